#include "use/inference.h"
#include "gtrain_use.h"
#include <stdio.h>
#include <string.h>

enum gt_code gt_inference_open(const char *path, const char *const *sets, int nsets, struct gt_ckpt **ckpt, struct gt_conf **conf,
                               struct gt_err *err)
{
	char cfg[4400];
	GT_TRY(gt_ckpt_open(path, NULL, true, NULL, NULL, ckpt, err));
	snprintf(cfg, sizeof cfg, "%s/config.cfg", gt_ckpt_path(*ckpt));
	const char *text = gt_ckpt_meta(*ckpt)->config;
	enum gt_code code = gt_conf_load_resolved(cfg, text, strlen(text), sets, nsets, conf, err); /* without @include */
	if (code != GT_OK)
		gt_ckpt_close(*ckpt);
	return code;
}

enum gt_code gt_ckpt_conf(const char *path, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err)
{
	struct gt_ckpt *ckpt;
	GT_TRY(gt_inference_open(path, sets, nsets, &ckpt, out, err));
	gt_ckpt_close(ckpt);
	return GT_OK;
}
