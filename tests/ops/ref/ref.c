/* The backend `ref`, with which the tests check gradients in f64. It is the CPU backend, linked in, with plain loops for the f64 calls of
 * the families that the CPU backend computes in f32 and bf16 only. Every other call is prepared by the CPU backend.
 *
 *     prepare(call) --- f64, family in ref_families ---> gt_ref_FAMILY (ref_*.c)
 *                  `--- any other call ----------------> gt_backend_cpu.prepare */
#include "ref.h"
#include "opsig.h"
#include <string.h>

extern const struct gt_backend gt_backend_cpu;

static const struct {
	const char *name;
	gt_cpu_prepare *prepare;
} ref_families[] = {{"linear", gt_ref_linear},       {"conv", gt_ref_conv},           {"pool", gt_ref_pool},
                    {"batchnorm", gt_ref_batchnorm}, {"groupnorm", gt_ref_groupnorm}, {"rnn", gt_ref_rnn}};

static const char *const family_of[GT_OP_COUNT] = {
#define GT_X(code, name, family, ...) [code] = #family,
	GT_OPCODES(GT_X)
#undef GT_X
};

static gt_cpu_prepare *find_reference(const struct gt_opcall *call)
{
	const char *family = family_of[call->code];
	if (!family || !call->nin || !call->in[0] || call->in[0]->dtype != GT_F64)
		return NULL;
	for (size_t i = 0; i < sizeof ref_families / sizeof *ref_families; i++)
		if (!strcmp(family, ref_families[i].name))
			return ref_families[i].prepare;
	return NULL;
}

static enum gt_code ref_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	gt_cpu_prepare *reference = find_reference(call);
	if (!reference)
		return gt_backend_cpu.prepare(dev, call, out, err);
	*out = NULL;
	GT_TRY(gt_opcall_check(call, err));
	if (gt_opcall_padded(call))
		return gt_opcall_refuse(call, err, "padded channels are not supported by the ref backend");
	return reference(dev, call, out, err);
}

__attribute__((visibility("default"))) extern struct gt_backend gt_backend_ref;
struct gt_backend gt_backend_ref;

/* Runs when the plugin is loaded, because the members of another struct are not constants in C. */
__attribute__((constructor)) static void fill_backend(void)
{
	gt_backend_ref = gt_backend_cpu;
	gt_backend_ref.name = "ref";
	gt_backend_ref.prepare = ref_prepare;
}
