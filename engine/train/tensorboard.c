#include "train/tensorboard.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "train/logfile.h"
#include "store/ckpt.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct gt_tensorboard {
	struct gt_logfile *log;
};

/* Uses Castagnoli's polynomial, reflected. A record has only a few dozen bytes, so computing one bit at a time is fast enough. */
uint32_t gt_crc32c(const void *data, size_t n)
{
	const uint8_t *p = data;
	uint32_t c = ~0u;
	for (size_t i = 0; i < n; i++) {
		c ^= p[i];
		for (int k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
	}
	return ~c;
}

static uint32_t masked(const void *data, size_t n)
{
	uint32_t c = gt_crc32c(data, n);
	return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

/* A protobuf message that is being assembled. */
struct msg {
	size_t n;
	bool full; /* something did not fit */
	uint8_t b[16384];
};

static void put(struct msg *m, const void *p, size_t n)
{
	m->full |= n > sizeof m->b - m->n;
	if (!m->full) {
		memcpy(m->b + m->n, p, n);
		m->n += n;
	}
}

static void varint(struct msg *m, uint64_t v)
{
	do {
		uint8_t b = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
		put(m, &b, 1);
		v >>= 7;
	} while (v);
}

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void tag(struct msg *m, int field, int wire)
{
	varint(m, (uint64_t)(field << 3 | wire));
}

static void bytes(struct msg *m, int field, const void *p, size_t n)
{
	tag(m, field, WIRE_BYTES);
	varint(m, n);
	put(m, p, n);
}

static void message(struct msg *m, int field, const struct msg *inner)
{
	m->full |= inner->full;
	bytes(m, field, inner->b, inner->n);
}

static void string(struct msg *m, int field, const char *s)
{
	bytes(m, field, s, strlen(s));
}

static void number(struct msg *m, int field, double v)
{
	tag(m, field, WIRE_64);
	put(m, &v, sizeof v); /* x86-64 and ARM64 are little-endian, as the format is */
}

static void integer(struct msg *m, int field, uint64_t v)
{
	tag(m, field, WIRE_VARINT);
	varint(m, v);
}

static void start(struct msg *m)
{
	m->n = 0;
	m->full = false;
}

static double wall_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void event(struct msg *m, int64_t step)
{
	start(m);
	number(m, 1, wall_time());
	if (step)
		integer(m, 2, (uint64_t)step);
}

static void record(struct gt_tensorboard *t, const struct msg *m)
{
	uint8_t buf[sizeof m->b + 16];
	uint64_t n = m->n;
	uint32_t crc;
	memcpy(buf, &n, 8);
	crc = masked(buf, 8);
	memcpy(buf + 8, &crc, 4);
	memcpy(buf + 12, m->b, m->n);
	crc = masked(m->b, m->n);
	memcpy(buf + 12 + m->n, &crc, 4);
	gt_logfile_write(t->log, buf, m->n + 16);
}

/* Adds the scalar "prefix/name" with the value v to a summary; adds nothing if v is NaN. */
static void scalar(struct msg *summary, const char *prefix, const char *name, double v)
{
	struct msg value;
	char text[64];
	float f = (float)v;
	if (isnan(v))
		return;
	start(&value);
	snprintf(text, sizeof text, "%s/%s", prefix, name);
	string(&value, 1, text);
	tag(&value, 2, WIRE_32);
	put(&value, &f, sizeof f);
	message(summary, 1, &value);
}

static void scores(struct msg *summary, const char *prefix, const struct gt_scores *s)
{
	for (int i = 0; i < GT_SCORE_COUNT; i++)
		scalar(summary, prefix, gt_score_rows[i].word, gt_score_get(s, (enum gt_score)i));
}

/* Adds a Summary.Value without a value. Its metadata contains the message that the hparams plugin reads: an HParamsPluginData whose field
 * number `field` is `inner`. */
static void hparams_value(struct msg *summary, const char *name, int field, const struct msg *inner)
{
	struct msg data, plugin, metadata, value;
	start(&data), start(&plugin), start(&metadata), start(&value);
	message(&data, field, inner);
	string(&plugin, 1, "hparams");
	message(&plugin, 2, &data);
	message(&metadata, 1, &plugin);
	string(&value, 1, name);
	message(&value, 9, &metadata);
	message(summary, 1, &value);
}

enum { SESSION_START = 3, SESSION_END = 4, STATUS_SUCCESS = 1 }; /* two fields of HParamsPluginData, and a value of Status */

/* Adds an entry to SessionStartInfo.hparams, a map from string to google.protobuf.Value. */
static void put_hparam(void *user, const struct gt_conf_scalar *s)
{
	struct msg *info = user, value, entry;
	if (!strncmp(s->path, "checkpoint.", 11) || !strncmp(s->path, "log.", 4) || !strcmp(s->path, "schema"))
		return;
	start(&value), start(&entry);
	if (s->kind == GT_SCALAR_TEXT)
		string(&value, 3, s->text);
	else if (s->kind == GT_SCALAR_BOOL)
		integer(&value, 4, s->number != 0);
	else
		number(&value, 2, s->number);
	string(&entry, 1, s->path);
	message(&entry, 2, &value);
	message(info, 1, &entry);
}

enum gt_code gt_tensorboard_hparams(struct gt_tensorboard *t, const struct gt_conf *c, struct gt_err *err)
{
	struct msg info, summary, m;
	if (!t)
		return GT_OK;
	start(&info), start(&summary), event(&m, 0);
	gt_conf_each_scalar(c, put_hparam, &info);
	number(&info, 5, wall_time());
	hparams_value(&summary, "_hparams_/session_start_info", SESSION_START, &info);
	message(&m, 5, &summary);
	if (m.full)
		return gt_fail(err, GT_EINTERNAL, "the event of the hyper-parameters is larger than %zu bytes", sizeof m.b);
	record(t, &m);
	return GT_OK;
}

void gt_tensorboard_write(struct gt_tensorboard *t, const struct gt_event *ev)
{
	struct msg summary, m, info;
	if (!t)
		return;
	start(&summary), start(&info), event(&m, ev->step);
	if (ev->kind == GT_EV_TRAIN) {
		scalar(&summary, "train", "loss", ev->loss);
		scalar(&summary, "train", "acc", ev->acc);
		scalar(&summary, "train", "top5", ev->top5);
		scalar(&summary, "train", "lr", ev->lr);
		scalar(&summary, "train", "samples_per_s", ev->samples_per_s);
	} else if (ev->kind == GT_EV_EPOCH) {
		scores(&summary, "train_epoch", &ev->scores);
	} else if (ev->kind == GT_EV_EVAL) {
		scores(&summary, ev->split, &ev->scores);
	} else if (ev->kind == GT_EV_END && !strcmp(ev->text, "ok")) {
		integer(&info, 1, STATUS_SUCCESS);
		number(&info, 2, wall_time());
		hparams_value(&summary, "_hparams_/session_end_info", SESSION_END, &info);
	} else {
		return;
	}
	message(&m, 5, &summary);
	record(t, &m);
}

/* Creates the file under a name that no other file has: in containers, two sessions may have the same pid within one second. */
static enum gt_code create(struct gt_tensorboard *t, const char *dir, int64_t next, struct gt_err *err)
{
	char host[64] = "host", name[160], path[GT_PATH_SIZE], final[GT_PATH_SIZE];
	enum gt_code code = GT_ECANTCREAT;
	struct stat st;
	gethostname(host, sizeof host - 1);
	for (int i = 0; code && i < 100; i++) {
		int n = snprintf(name, sizeof name, "events.out.tfevents.%lld.%s.%d", (long long)time(NULL), host, (int)getpid());
		if (i)
			snprintf(name + n, sizeof name - (size_t)n, ".%d", i);
		GT_TRY(gt_path_join(final, dir, name, err));
		GT_TRY(gt_ckpt_next_path(path, dir, next, name, err));
		if (lstat(final, &st))
			code = gt_logfile_create(path, final, &t->log, err);
		else
			gt_fail(err, code, "%s: the file exists already", final);
		if (code && lstat(path, &st) && lstat(final, &st))
			break; /* the file cannot be created for another reason than that the name exists */
	}
	return code;
}

enum gt_code gt_tensorboard_open(const char *dir, int64_t resume_step, int64_t next, struct gt_tensorboard **out, struct gt_err *err)
{
	static const uint8_t session[2] = {1 << 3 | WIRE_VARINT, 1}; /* SessionLog { status = START } */
	struct gt_tensorboard *t = calloc(1, sizeof *t);
	*out = NULL;
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	enum gt_code code = create(t, dir, next, err);
	if (code) {
		free(t);
		return code;
	}
	struct msg m;
	event(&m, 0);
	string(&m, 3, "brain.Event:2");
	record(t, &m);
	if (resume_step >= 0) {
		event(&m, resume_step);
		bytes(&m, 7, session, sizeof session);
		record(t, &m);
	}
	gt_logfile_sync(t->log);
	code = gt_dir_sync(dir, err);
	if (code) {
		gt_tensorboard_close(t, NULL);
		return code;
	}
	*out = t;
	return GT_OK;
}

void gt_tensorboard_sync(struct gt_tensorboard *t)
{
	gt_logfile_sync(t ? t->log : NULL);
}

const char *gt_tensorboard_error(struct gt_tensorboard *t)
{
	return gt_logfile_error(t ? t->log : NULL);
}

enum gt_code gt_tensorboard_close(struct gt_tensorboard *t, struct gt_err *err)
{
	enum gt_code code = gt_logfile_close(t ? t->log : NULL, err);
	free(t);
	return code;
}
