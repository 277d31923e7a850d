#include "file_system.h"
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

/* not in the headers of the kernel */
#define LUSTRE 0x0bd00bd0
#define GPFS 0x47504653
#define ZFS 0x2fc12fc1
#define BCACHEFS 0xca451a4e
#define JFS 0x3153464a
#define BEEGFS 0x19830326

enum { REMOTE = 1, STATES = 2, IN_PLACE = 4 };

static const struct { uint32_t magic; int is; } kinds[] = {
	{EXT4_SUPER_MAGIC, STATES | IN_PLACE}, /* ext2, ext3 and ext4 */
	{XFS_SUPER_MAGIC, STATES | IN_PLACE},
	/* the layer that is written is nearly always on ext4 or XFS: Docker and Podman use Btrfs without overlayfs */
	{OVERLAYFS_SUPER_MAGIC, STATES | IN_PLACE},
	{BTRFS_SUPER_MAGIC, STATES},
	{F2FS_SUPER_MAGIC, STATES},
	{ZFS, STATES},
	{BCACHEFS, STATES},
	{JFS, STATES},
	{TMPFS_MAGIC, STATES},
	{NFS_SUPER_MAGIC, REMOTE | STATES},
	{CEPH_SUPER_MAGIC, REMOTE | STATES},
	{LUSTRE, REMOTE | STATES},
	{GPFS, REMOTE | STATES},
	{BEEGFS, REMOTE | STATES},
	{SMB_SUPER_MAGIC, REMOTE},
	{SMB2_SUPER_MAGIC, REMOTE},
	{CIFS_SUPER_MAGIC, REMOTE},
	{V9FS_MAGIC, REMOTE},
	{FUSE_SUPER_MAGIC, REMOTE}, /* may be remote; may number files as they are opened */
	{AFS_SUPER_MAGIC, REMOTE},
	{AFS_FS_MAGIC, REMOTE},
	{CODA_SUPER_MAGIC, REMOTE},
};

/* Returns the properties of the file system of fd. asked: whether it could be asked. */
static int find_properties(int fd, bool *asked)
{
	struct statfs fs;
	*asked = !fstatfs(fd, &fs);
	for (size_t i = 0; *asked && i < sizeof kinds / sizeof *kinds; i++)
		if ((uint32_t)fs.f_type == kinds[i].magic)
			return kinds[i].is;
	return 0;
}

bool gt_fs_is_local(int fd)
{
	bool asked;
	int is = find_properties(fd, &asked);
	return asked && !(is & REMOTE);
}

bool gt_fs_keeps_states(int fd)
{
	bool asked;
	return find_properties(fd, &asked) & STATES;
}

bool gt_fs_writes_in_place(int fd)
{
	bool asked;
	return find_properties(fd, &asked) & IN_PLACE;
}
