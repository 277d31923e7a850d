#include "exec/device.h"
#include "base/arena.h"
#include "base/digest.h"
#include "base/plugin.h"
#include "base/public.h"
#include "conf/ctree.h"
#include "gzfile.h"
#include "image/decode.h"
#include "text/text_utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 64

/* Limits how long idle OpenMP threads spin. libgomp reads this variable when the cpu backend loads it. By default its threads spin for
 * milliseconds before they sleep. On a core that another process uses, too, a spinning thread takes time from the very thread for which it
 * waits: an MLP step of 0.3 ms took 54 ms on a shared machine, and 4 to 6 ms with this count, which is still longer than the gaps between
 * two loops of a step. */
static void threads_sleep_early(void)
{
	if (!getenv("OMP_WAIT_POLICY"))
		setenv("GOMP_SPINCOUNT", "1000", 0);
}

enum gt_code gt_device_plugin(const char *name, const char *symbol, void **out, struct gt_err *err)
{
	if (!strcmp(name, "cpu"))
		threads_sleep_early();
	return gt_plugin_open(name, symbol, out, err);
}

static enum gt_code backend_open(const char *name, const struct gt_backend **out, struct gt_err *err)
{
	char symbol[64];
	void *p;
	snprintf(symbol, sizeof symbol, "gt_backend_%s", name);
	GT_TRY(gt_device_plugin(name, symbol, &p, err));
	*out = p;
	uint32_t abi = (*out)->abi;
	if (abi != GT_BACKEND_ABI)
		return gt_fail(err, GT_EUNAVAILABLE,
		               "backend %s has interface version %u.%u, but this gtrain needs %u.%u: install both from the same build", name,
		               abi >> 16, abi & 0xffff, GT_BACKEND_ABI >> 16, GT_BACKEND_ABI & 0xffff);
	return GT_OK;
}

/* Appends the number of threads to the device's name, as in "AMD EPYC (avx512_core_bf16), 2 threads". */
static void name_threads(struct gt_devinfo *info, int n)
{
	char text[32];
	if (!info->threads)
		return;
	size_t used = strlen(info->name), len = (size_t)snprintf(text, sizeof text, ", %d thread%s", n, n == 1 ? "" : "s");
	if (used + len < sizeof info->name)
		memcpy(info->name + used, text, len + 1);
}

/* Opens device `index` of a backend. Sets *found, if found is not NULL, to the number of devices of that backend, or to -1 if the backend
 * cannot be loaded or fails. */
static enum gt_code open_one(const char *name, int index, const struct gt_dev_opts *given, struct gt_device *out, int *found,
                             struct gt_err *err)
{
	struct gt_devinfo *info = calloc(MAX_DEVICES, sizeof *info);
	struct gt_dev_opts opts = *given;
	int n = 0;
	if (!info)
		return gt_fail_memory(err, MAX_DEVICES * sizeof *info);
	enum gt_code code = backend_open(name, &out->be, err);
	if (code == GT_OK)
		code = out->be->probe(info, MAX_DEVICES, &n, err);
	if (found)
		*found = code == GT_OK ? n : -1;
	if (code == GT_OK && n == 0) /* probe() has stored in err the reason why there is no device */
		code = err ? gt_fail_prefix((err->code = GT_EUNAVAILABLE, err), "no %s device", name) : GT_EUNAVAILABLE;
	else if (code == GT_OK && index >= n)
		code = gt_fail(err, GT_EUNAVAILABLE, "device %s:%d does not exist: this machine has %d device%s of this type, counted from 0",
		               name, index, n, n == 1 ? "" : "s");
	opts.index = index;
	if (code == GT_OK) {
		out->info = info[index];
		snprintf(out->note, sizeof out->note, "%s", out->info.note);
		name_threads(&out->info, opts.threads > 0 ? opts.threads : out->info.threads);
		code = out->be->open(&opts, &out->dev, err);
	}
	free(info);
	return code;
}

/* Returns whether a device file of the NVIDIA driver exists; on WSL, the file is /dev/dxg. */
static bool gpu_is_there(void)
{
	return !access("/dev/nvidiactl", F_OK) || !access("/dev/dxg", F_OK);
}

/* Opens the first GPU, or the CPU. If a GPU exists but cannot be used, usually because a library is missing, writes the reason to
 * out->note. */
static enum gt_code open_auto(const struct gt_dev_opts *opts, struct gt_device *out, struct gt_err *err)
{
	struct gt_err why = {0};
	int found = -1;
	if (open_one("cuda", 0, opts, out, &found, &why) == GT_OK)
		return GT_OK;
	*out = (struct gt_device){0};
	GT_TRY(open_one("cpu", 0, opts, out, NULL, err));
	bool hidden = !found && getenv("CUDA_VISIBLE_DEVICES");
	if (found > 0 || (gpu_is_there() && !hidden))
		snprintf(out->note, sizeof out->note, "device = \"auto\" selects the CPU although this machine has a GPU: %.400s", why.msg);
	return GT_OK;
}

enum gt_code gt_device_open(const char *word, const struct gt_dev_opts *opts, struct gt_device *out, struct gt_err *err)
{
	char name[16];
	int index = 0;
	*out = (struct gt_device){0};
	if (!strcmp(word, "auto"))
		return open_auto(opts, out, err);
	const char *colon = strchr(word, ':');
	size_t n = colon ? (size_t)(colon - word) : strlen(word);
	if (n >= sizeof name)
		n = sizeof name - 1;
	memcpy(name, word, n);
	name[n] = 0;
	if (strcmp(name, "cpu") && strcmp(name, "cuda") && strcmp(name, "null"))
		return gt_fail(err, GT_EUNAVAILABLE, "device: expected auto, cpu, cuda or cuda:N, got \"%s\"", word);
	if (!strcmp(word, "null:cuda")) {
		index = 1;
	} else if (colon) {
		char *end;
		long i = strtol(colon + 1, &end, 10);
		if (*end || end == colon + 1 || i < 0 || i >= MAX_DEVICES)
			return gt_fail(err, GT_EUNAVAILABLE, "device: expected one index, as in cuda:0, got \"%s\"", word);
		index = (int)i;
	}
	return open_one(name, index, opts, out, NULL, err);
}

int gt_device_choice(const char *word)
{
	const struct gt_backend *be;
	int n = 0;
	if (strcmp(word, "auto") && strncmp(word, "cuda", 4))
		return !strcmp(word, "null");
	if (strchr(word, ':'))
		return 1;
	struct gt_devinfo *info = calloc(MAX_DEVICES, sizeof *info);
	if (!info || backend_open("cuda", &be, NULL) != GT_OK || be->probe(info, MAX_DEVICES, &n, NULL) != GT_OK)
		n = 0;
	free(info);
	return n;
}

void gt_device_close(struct gt_device *d)
{
	if (d->dev)
		d->be->close(d->dev);
	*d = (struct gt_device){0};
}

/* Appends the devices of one backend to at most cap rows. */
static void append_devices(const char *name, struct gt_device_row *rows, int cap, int *n)
{
	const struct gt_backend *be;
	struct gt_devinfo info[MAX_DEVICES];
	struct gt_err why = {0};
	int found = 0;
	enum gt_code code = backend_open(name, &be, &why);
	if (code == GT_OK)
		code = be->probe(info, MAX_DEVICES, &found, &why);
	if (code != GT_OK)
		found = 0;
	for (int k = 0; k < (found ? found : 1) && *n < cap; k++) {
		struct gt_device_row *r = &rows[(*n)++];
		*r = (struct gt_device_row){.usable = found > 0};
		snprintf(r->backend, sizeof r->backend, "%s", name);
		if (found) {
			name_threads(&info[k], info[k].threads);
			memcpy(r->id, info[k].id, sizeof r->id);
			memcpy(r->name, info[k].name, sizeof r->name);
			memcpy(r->detail, info[k].detail, sizeof r->detail);
			memcpy(r->native, info[k].native, sizeof r->native);
			r->bytes = info[k].bytes;
		} else {
			snprintf(r->id, sizeof r->id, "%s", name);
			snprintf(r->detail, sizeof r->detail, "%.255s", why.msg[0] ? why.msg : "none found");
		}
	}
}

enum gt_code gt_devices(struct gt_device_row *rows, int cap, int *n, struct gt_err *err)
{
	*n = 0;
	append_devices("cpu", rows, cap, n);
	append_devices("cuda", rows, cap, n);
	(void)err;
	return GT_OK;
}

void gt_build_info(struct gt_build_info *out)
{
	struct gt_device_row cpu;
	char name[7][64];
	int n = 0;
	append_devices("cpu", &cpu, 1, &n);
	memcpy(out->processor, cpu.usable ? cpu.name : cpu.detail, sizeof out->processor - 1);
	out->processor[sizeof out->processor - 1] = 0;
	snprintf(out->libraries, sizeof out->libraries, "%s%s%s, %s, %s, %s, %s, %s, %s", cpu.usable ? cpu.detail : "", cpu.usable ? ", " : "",
	         gt_gzfile_libraries(name[0], sizeof *name), gt_image_png_library(name[1], sizeof *name),
	         gt_image_jpeg_library(name[2], sizeof *name), gt_image_webp_library(name[3], sizeof *name),
	         gt_text_library(name[4], sizeof *name), gt_ctree_library(name[5], sizeof *name), gt_digest_library(name[6], sizeof *name));
	out->cpu = gt_plugin_installed("cpu");
	out->cuda = gt_plugin_installed("cuda");
	out->gloo = gt_plugin_installed("gloo");
	out->fetch = gt_plugin_installed("fetch");
	out->draw = gt_plugin_installed("draw");
	out->archive = gt_plugin_installed("archive");
	out->mlflow = gt_plugin_installed("mlflow");
}
