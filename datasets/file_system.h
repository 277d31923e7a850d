/* What the kinds of file systems promise, by their numbers (statfs(2)). An unknown kind promises nothing. */
#ifndef GT_DATASETS_FILE_SYSTEM_H
#define GT_DATASETS_FILE_SYSTEM_H

#include <stdbool.h>

/* All functions return false if fd has no file system that can be asked. */

/* Another host cannot change or remove files there. If it does, reading a mapping of such a file ends a process with SIGBUS. */
bool gt_fs_is_local(int fd);
/* A file keeps its inode number, and each change of a file sets a change time that programs cannot choose. A file of SquashFS has no change
 * time; through overlayfs, its nanoseconds are 0, as are those of few other files. */
bool gt_fs_keeps_states(int fd);
/* A write to an allocated block of a disk needs no other block, so it cannot fail because the disk is full. File systems that copy on write
 * (Btrfs, ZFS, bcachefs, F2FS) need another block, and tmpfs has no disk. */
bool gt_fs_writes_in_place(int fd);

#endif
