/* Compares the size of checkpoints with the free space of their disk, before the first step. */
#include "base/bytes.h"
#include "base/fileio.h"
#include "store/st_slot.h"
#include "train/state.h"
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define HEADER 160 /* bytes of a tensor's entry in the header of its file, without its name */
#define FILES 16384 /* bytes for manifest.json and for the last, partly filled block of each file */

/* Returns the bytes of a checkpoint of the session, rounded up. */
static int64_t count_bytes(const struct gt_session *s)
{
	const struct gt_graph *g = s->space->layout.first;
	int64_t bytes = FILES + (int64_t)strlen(s->conf->text) + (s->data.facts_text ? (int64_t)strlen(s->data.facts_text) : 0);
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		struct gt_tdesc d = gt_session_desc(s, i);
		bool trained = p->cls != GT_PARAM_BUFFER && !p->frozen;
		int tensors = 1 + (trained ? gt_optim_of(&s->optim, p)->nstates + s->optim.ema + gt_session_residuals(s) : 0);
		bytes += tensors * ((int64_t)gt_tdesc_bytes(&d) + HEADER + (int64_t)strlen(p->name));
	}
	return bytes;
}

/* Returns the maximum number of checkpoints that the run has on disk at the same time: the newest ones (checkpoint.keep), the best one,
 * and a new one that is written before an old one is removed. */
static int64_t count_on_disk(const struct gt_session *s)
{
	const struct gt_conf_checkpoint *c = &s->conf->checkpoint;
	int64_t most = c->keep + 1 + (*c->best_metric != 0), saves = 1;
	if (c->every_minutes > 0)
		return most;
	if (c->every_epochs > 0 && s->batch.steps_per_epoch > 0)
		saves += (s->batch.steps - 1) / s->batch.steps_per_epoch / c->every_epochs;
	if (c->every_steps > 0)
		saves += (s->batch.steps - 1) / c->every_steps;
	return saves < most ? saves : most;
}

/* Refuses compressed gradients on so many ranks that a checkpoint could not be saved: it has the rounding errors of each rank. */
static enum gt_code check_residuals(const struct gt_session *s, struct gt_err *err)
{
	int64_t params = s->space->layout.first->nparams, ranks = gt_session_residuals(s), states = 1 + s->optim.nstates + s->optim.ema;
	if (!ranks || params * (ranks + states) <= GT_ST_TENSORS_MAX)
		return GT_OK;
	return gt_conf_refuse(s->conf, "parallel.compress", err, "expected \"none\" for %lld parameters on %lld ranks, because a checkpoint "
	                      "has the rounding errors of each rank, and at most %d tensors", (long long)params, (long long)ranks,
	                      GT_ST_TENSORS_MAX);
}

enum gt_code gt_state_check_space(const struct gt_session *s, const char *dir, bool resumes, char *text, size_t size, struct gt_err *err)
{
	char part[GT_PATH_SIZE], need[GT_BYTES_TEXT], all[GT_BYTES_TEXT], room[GT_BYTES_TEXT];
	struct statvfs fs;
	int64_t bytes = count_bytes(s), count = count_on_disk(s);
	*text = 0;
	GT_TRY(check_residuals(s, err));
	snprintf(part, sizeof part, "%.*s", (int)gt_ckpt_dir_existing(dir), dir);
	if (statvfs(*part ? part : ".", &fs) || !fs.f_blocks) /* the file system does not report its free space */
		return GT_OK;
	uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	gt_bytes_text(need, sizeof need, (uint64_t)bytes);
	gt_bytes_text(room, sizeof room, free_bytes);
	if (free_bytes < (uint64_t)bytes)
		return gt_fail(err, GT_EIO, "%.300s: a checkpoint needs %s (%lld bytes), but only %s (%llu bytes) are free on this disk; free some "
		               "space, or %s", dir, need, (long long)bytes, room, (unsigned long long)free_bytes,
		               resumes ? "move the directory to another disk and resume it there" : "write to another disk with --out DIR");
	if (!resumes && free_bytes / (uint64_t)count < (uint64_t)bytes)
		snprintf(text, size, "%.300s: up to %lld checkpoints of %s are on disk at the same time (checkpoint.keep = %lld) and need %s, but "
		         "only %s are free; free some space, or lower checkpoint.keep", dir, (long long)count, need,
		         (long long)s->conf->checkpoint.keep, gt_bytes_text(all, sizeof all, (uint64_t)(bytes * count)), room);
	return GT_OK;
}
