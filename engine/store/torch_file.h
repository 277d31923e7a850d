/* Reads state dicts that torch.save has written (.pth, .pt), from the bytes of the file. Nothing in the file is executed: torch_pickle.c
 * accepts only the few opcodes and names that a state dict needs.
 *
 *     NAME/data.pkl     a pickle: {"fc.weight": tensor of storage "0", shape [10, 512], strides [512, 1], …}, or the same under a key of
 *                       GT_TORCH_KEYS, as training scripts write it
 *     NAME/byteorder    "little"
 *     NAME/data/0       the values of storage "0"; tensors of equal values may share a storage
 *
 * The members of the archive are stored, not compressed, so that a mapped file can be used in place. Their CRC-32 is not checked.
 * Source of the format: torch/serialization.py and torch/_utils.py of PyTorch 1.6 and later. */
#ifndef GT_STORE_TORCH_FILE_H
#define GT_STORE_TORCH_FILE_H

#include "base/arena.h"
#include "store/st_slot.h"

/* X(key): keys under which programs save the state dict of a model in a dict with other values */
#define GT_TORCH_KEYS(X)                                                                                                                   \
	X("state_dict")                                                                                                                        \
	X("model")

/* Returns whether the first n bytes of a file are those of a zip archive of torch.save, whose first member is NAME/data.pkl. */
bool gt_torch_is_file(const unsigned char *first, size_t n);

/* Reads the list of tensors of a file of `bytes` bytes. *slots receives *count tensors sorted by name, with offsets from the beginning of
 * the file; unlike in a safetensors file, they may overlap. They and their names are in the arena.
 * GT_EDATA: the file is damaged, or is no state dict of contiguous tensors; the sentence names path and tensor. */
enum gt_code gt_torch_slots(const unsigned char *file, uint64_t bytes, const char *path, struct gt_arena *a, struct gt_st_slot **slots,
                            int *count, struct gt_err *err);

#endif
