/* Opens the device of a session, and chooses the dtype in which it computes. */
#include "session/session.h"
#include "against/against.h"
#include "base/fileio.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const gt_precision_names[] = {"fp32", "tf32", "bf16", "fp16"};

enum gt_code gt_compute_dtype(const struct gt_conf *c, const char *backend, enum gt_dtype *out, struct gt_err *err)
{
	bool cuda = !strcmp(backend, "cuda"), null = !strcmp(backend, "null");
	switch ((enum gt_precision)c->precision) {
	case GT_PREC_FP32:
		*out = GT_F32;
		return GT_OK;
	case GT_PREC_BF16:
		*out = GT_BF16;
		return GT_OK;
	case GT_PREC_TF32:
		*out = GT_F32;
		if (cuda || null)
			return GT_OK;
		return gt_conf_refuse(c, "precision", err, "precision = \"tf32\" and device \"%s\" cannot be combined: only NVIDIA GPUs have "
		                      "tf32; use \"fp32\"",
		                      backend);
	case GT_PREC_FP16:
		*out = GT_F16;
		if (cuda || null)
			return GT_OK;
		break;
	}
	return gt_conf_refuse(c, "precision", err, "precision = \"fp16\" and device \"%s\" cannot be combined: this device has no f16 "
	                      "arithmetic; use \"bf16\"",
	                      backend);
}

bool gt_computes_in_f32(const struct gt_conf *c, const struct gt_devinfo *info)
{
	return *info->native && !strstr(info->native, gt_precision_names[c->precision]);
}

enum gt_code gt_device_for(const struct gt_conf *c, const char *word, const struct gt_dev_opts *opts, struct gt_device *out,
                           struct gt_err *err)
{
	enum gt_code code = gt_device_open(word, opts, out, err);
	/* If the config's device is "cuda", a rank opens for example "cuda:1". In this case, the error names the line of the key `device`. */
	if (code != GT_EUNAVAILABLE || !err || strncmp(c->device, "cuda", 4) != 0 || strncmp(word, c->device, strlen(c->device)) != 0)
		return code;
	struct gt_err said = *err;
	gt_conf_refuse(c, "device", err, "expected \"auto\" or \"cpu\" on this machine, got \"%.40s\": %s", c->device, said.msg);
	return err->code = code;
}

enum gt_code gt_device_check_computes(const char *word, struct gt_err *err)
{
	if (!word || strncmp(word, "null", 4))
		return GT_OK;
	return gt_fail(err, GT_EUSAGE, "--device: expected a device that computes, such as cpu, got \"%s\", which only plans; use it with "
	               "`gtrain check` or `gtrain plan`", word);
}

enum gt_code gt_against_precision(const char *word, int *out, struct gt_err *err)
{
	*out = -1;
	if (!strcmp(word, "cpu"))
		return GT_OK;
	for (int i = GT_PREC_FP32; i <= GT_PREC_FP16; i++)
		if (i != GT_PREC_TF32 && i != GT_PREC_FP16 && !strncmp(word, "cpu:", 4) && !strcmp(word + 4, gt_precision_names[i]))
			*out = i;
	return *out >= 0 ? GT_OK : gt_fail(err, GT_EUSAGE, "--against: expected cpu, cpu:fp32 or cpu:bf16, got \"%s\"", word);
}

enum gt_code gt_session_wrap_device(struct gt_session *s, const char *word, const struct gt_dev_opts *opts, struct gt_err *err)
{
	int precision = -1;
	bool disturb = !strncmp(word, GT_AGAINST_ROUNDING, strlen(GT_AGAINST_ROUNDING));
	if (!disturb)
		GT_TRY(gt_against_precision(word, &precision, err));
	if (disturb && !s->device.be->host_memory)
		return gt_fail(err, GT_EUSAGE, "--against=%s: expected the device cpu", word);
	struct gt_against_spec spec = {.disturb = disturb ? atoi(word + strlen(GT_AGAINST_ROUNDING)) : 0,
	                               .tf32 = s->conf->precision == GT_PREC_TF32,
	                               .type = precision < 0                ? GT_DTYPE_COUNT
	                                       : precision == GT_PREC_BF16 ? GT_BF16
	                                                                   : GT_F32};
	return gt_against_wrap(&s->device, &spec, opts, err);
}

enum gt_code gt_session_write_comparison(const struct gt_session *s, const char *dir, struct gt_err *err)
{
	char name[64], path[GT_PATH_SIZE];
	snprintf(name, sizeof name, "operations-%d.jsonl", s->at.rank);
	GT_TRY(gt_path_join(path, dir, name, err));
	return gt_against_write(&s->device, path, err);
}
