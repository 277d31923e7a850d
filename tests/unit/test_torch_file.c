#include "test.h"
#include "store/safetensors_file.h"
#include <stdlib.h>
#include <string.h>

static enum gt_code open_file(const char *name, struct gt_st_file **f, struct gt_err *e)
{
	char path[512];
	snprintf(path, sizeof path, "%s/tests/%s", test_source(), name);
	return gt_st_open(path, f, e);
}

TEST(torch_file_equals_the_safetensors_file)
{
	struct gt_st_file *f[2];
	struct gt_err e;
	CHECK_OK(open_file("golden/mixed.safetensors", &f[0], &e), e);
	CHECK_OK(open_file("golden/mixed.pth", &f[1], &e), e);
	if (!f[0] || !f[1])
		return;
	CHECK(gt_st_count(f[0]) == 10 && gt_st_count(f[1]) == 10);
	for (int i = 0; i < 10; i++) {
		const struct gt_st_tensor *a = gt_st_at(f[0], i), *b = gt_st_at(f[1], i);
		CHECK(a && b && !strcmp(a->name, b->name) && gt_tdesc_equal(&a->desc, &b->desc));
		CHECK_MSG(!memcmp(a->data, b->data, gt_tdesc_bytes(&a->desc)), "%s differs", a->name);
		CHECK(gt_st_find(f[1], a->name) == b);
	}
	gt_st_close(f[0]);
	gt_st_close(f[1]);
}

/* The files that make_torch.py writes: the number of their tensors, or a part of the error. */
static const struct {
	const char *name;
	int tensors;
	const char *error;
} files[] = {
    {"good-state", 7, NULL},
    {"good-wrapped", 7, NULL},
    {"good-model", 7, NULL},
    {"good-parameter", 1, NULL},
    {"good-views", 3, NULL},
    {"good-protocol4", 7, NULL},
    {"good-empty", 0, NULL},
    {"good-hand", 1, NULL},
    {"bad-transposed", 0, "tensor \"w\": expected contiguous values, got other strides; save contiguous tensors: "},
    {"bad-module", 0, "got the Python object torch.nn.modules.linear.Linear; save only the weights: torch.save(model.state_dict()"},
    {"bad-bool", 0, "tensor \"mask\": gtrain does not support the type torch.BoolStorage"},
    {"bad-list", 0, "expected a state dict, got a list"},
    {"bad-number", 0, "whose values are tensors, got an int for \"epoch\""},
    {"bad-key", 0, "expected names of tensors as keys of the state dict, got an int"},
    {"bad-rank", 0, "tensor \"w\": more than 5 dimensions"},
    {"bad-call", 0, "got the Python object posix.system; "},
    {"bad-tuple", 0, "got the Python object posix.system; "},
    {"bad-deflated", 0, "without compression, got an archive with compressed or encrypted members"},
    {"bad-offset", 0, "expected 6 values from index 1 of its storage, which has 6"},
    {"bad-negative", 0, "expected 6 values from index -1 of its storage, which has 6"},
    {"bad-shape", 0, "tensor \"w\": its size overflows"},
    {"bad-overflow", 0, "tensor \"w\": its size overflows"},
    {"bad-count", 0, "its storage is missing or has another size"},
    {"bad-missing", 0, "its storage is missing or has another size"},
    {"bad-twice", 0, "tensor \"w\" is in the state dict twice"},
    {"bad-order", 0, "got a file of a big-endian machine"},
    {"bad-name", 0, "the name of a tensor is not UTF-8 text"},
    {"bad-memo", 0, "a reference to a value that was not stored"},
    {"bad-put", 0, "a value is stored out of order"},
    {"bad-stack", 0, "the stack is empty"},
    {"bad-opcode", 0, "an opcode that no state dict needs"},
    {"bad-self", 0, "got a dict for \"w\""},
    {"bad-cut", 0, "its end is missing"},
};

TEST(torch_files_load_or_are_refused_by_a_sentence)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct gt_st_file *f;
		struct gt_err e = {0};
		char name[64];
		snprintf(name, sizeof name, "corpus/checkpoint/torch-%s", files[i].name);
		enum gt_code code = open_file(name, &f, &e);
		if (files[i].error)
			CHECK_MSG(code == GT_EDATA && strstr(e.msg, files[i].error), "%s: %s", files[i].name, e.msg);
		else
			CHECK_MSG(code == GT_OK && gt_st_count(f) == files[i].tensors, "%s: %s", files[i].name, e.msg);
		gt_st_close(f);
	}
}

TEST(torch_views_share_their_storage)
{
	struct gt_st_file *f;
	struct gt_err e;
	CHECK_OK(open_file("corpus/checkpoint/torch-good-views", &f, &e), e);
	const struct gt_st_tensor *whole = f ? gt_st_find(f, "whole") : NULL, *row = f ? gt_st_find(f, "row") : NULL;
	CHECK(whole && row && (const float *)whole->data + 3 == row->data && *(const float *)row->data == 1);
	gt_st_close(f);
}

/* A checkpoint has safetensors files only. */
TEST(torch_file_is_no_checkpoint)
{
	struct gt_st_file *f;
	struct gt_err e;
	char path[512];
	snprintf(path, sizeof path, "%s/tests/golden/mixed.pth", test_source());
	CHECK(gt_st_open_unmapped(path, &f, &e) == GT_EDATA && strstr(e.msg, "expected a safetensors file, got a file of PyTorch"));
}

RUN_TESTS()
