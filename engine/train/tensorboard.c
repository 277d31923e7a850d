#include "train/tensorboard.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "store/ckpt.h"
#include "train/logfile.h"
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

/* Uses Castagnoli's polynomial, reflected. Records are short, so computing one bit at a time is fast enough: an image takes 1 ms. */
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

static uint32_t masked_crc(const void *data, size_t n)
{
	uint32_t c = gt_crc32c(data, n);
	return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

/* A protobuf message that is being assembled. */
struct msg {
	size_t n;
	bool full; /* the message was longer than its buffer */
	uint8_t b[16384];
};

static void put_bytes(struct msg *m, const void *p, size_t n)
{
	m->full |= n > sizeof m->b - m->n;
	if (!m->full) {
		memcpy(m->b + m->n, p, n);
		m->n += n;
	}
}

static void put_varint(struct msg *m, uint64_t v)
{
	do {
		uint8_t b = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
		put_bytes(m, &b, 1);
		v >>= 7;
	} while (v);
}

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void put_tag(struct msg *m, int field, int wire)
{
	put_varint(m, (uint64_t)(field << 3 | wire));
}

static void put_bytes_field(struct msg *m, int field, const void *p, size_t n)
{
	put_tag(m, field, WIRE_BYTES);
	put_varint(m, n);
	put_bytes(m, p, n);
}

static void put_message(struct msg *m, int field, const struct msg *inner)
{
	m->full |= inner->full;
	put_bytes_field(m, field, inner->b, inner->n);
}

static void put_string(struct msg *m, int field, const char *s)
{
	put_bytes_field(m, field, s, strlen(s));
}

static void put_double(struct msg *m, int field, double v)
{
	put_tag(m, field, WIRE_64);
	put_bytes(m, &v, sizeof v); /* the format is little-endian, like x86-64 and ARM64 */
}

static void put_integer(struct msg *m, int field, uint64_t v)
{
	put_tag(m, field, WIRE_VARINT);
	put_varint(m, v);
}

static void reset_msg(struct msg *m)
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

static void start_event(struct msg *m, int64_t step)
{
	reset_msg(m);
	put_double(m, 1, wall_time());
	if (step)
		put_integer(m, 2, (uint64_t)step);
}

static void write_record(struct gt_tensorboard *t, const struct msg *m)
{
	uint8_t buf[sizeof m->b + 16];
	uint64_t n = m->n;
	uint32_t crc;
	memcpy(buf, &n, 8);
	crc = masked_crc(buf, 8);
	memcpy(buf + 8, &crc, 4);
	memcpy(buf + 12, m->b, m->n);
	crc = masked_crc(m->b, m->n);
	memcpy(buf + 12 + m->n, &crc, 4);
	gt_logfile_write(t->log, buf, m->n + 16);
}

/* Writes an event whose last bytes are n bytes of data. head: the event without them. */
static enum gt_code write_long_record(struct gt_tensorboard *t, const struct msg *head, const void *data, size_t n, struct gt_err *err)
{
	uint64_t size = head->n + n;
	uint8_t *buf = malloc(size + 16);
	if (!buf)
		return gt_fail_memory(err, size + 16);
	memcpy(buf, &size, 8);
	uint32_t crc = masked_crc(buf, 8);
	memcpy(buf + 8, &crc, 4);
	memcpy(buf + 12, head->b, head->n);
	memcpy(buf + 12 + head->n, data, n);
	crc = masked_crc(buf + 12, size);
	memcpy(buf + 12 + size, &crc, 4);
	gt_logfile_write(t->log, buf, size + 16);
	free(buf);
	return GT_OK;
}

/* Adds a message as a field: its bytes in `inner`, and n more that follow the event. */
static void put_head(struct msg *m, int field, const struct msg *inner, size_t n)
{
	put_tag(m, field, WIRE_BYTES);
	put_varint(m, inner->n + n);
	put_bytes(m, inner->b, inner->n);
	m->full |= inner->full;
}

/* Writes the Summary.Value `value`, which n bytes of data complete. */
static enum gt_code write_long_value(struct gt_tensorboard *t, int64_t step, const struct msg *value, const void *data, size_t n,
                                     struct gt_err *err)
{
	struct msg summary, m;
	reset_msg(&summary), start_event(&m, step);
	put_head(&summary, 1, value, n);
	put_head(&m, 5, &summary, n);
	if (m.full)
		return gt_fail(err, GT_EINTERNAL, "the head of an event is larger than %zu bytes", sizeof m.b);
	return write_long_record(t, &m, data, n, err);
}

/* Adds the scalar "prefix/name" with the value v to a summary; adds nothing if v is NaN. */
static void put_scalar(struct msg *summary, const char *prefix, const char *name, double v)
{
	struct msg value;
	char text[64];
	float f = (float)v;
	if (isnan(v))
		return;
	reset_msg(&value);
	snprintf(text, sizeof text, "%s/%s", prefix, name);
	put_string(&value, 1, text);
	put_tag(&value, 2, WIRE_32);
	put_bytes(&value, &f, sizeof f);
	put_message(summary, 1, &value);
}

static void put_scores(struct msg *summary, const char *prefix, const struct gt_scores *s)
{
	for (int i = 0; i < GT_SCORE_COUNT; i++)
		put_scalar(summary, prefix, gt_score_rows[i].word, gt_score_get(s, (enum gt_score)i));
}

/* Adds a Summary.Value without a value. Its metadata contains the message that the hparams plugin reads: an HParamsPluginData whose field
 * number `field` is `inner`. */
static void put_hparams_value(struct msg *summary, const char *name, int field, const struct msg *inner)
{
	struct msg data, plugin, metadata, value;
	reset_msg(&data), reset_msg(&plugin), reset_msg(&metadata), reset_msg(&value);
	put_message(&data, field, inner);
	put_string(&plugin, 1, "hparams");
	put_message(&plugin, 2, &data);
	put_message(&metadata, 1, &plugin);
	put_string(&value, 1, name);
	put_message(&value, 9, &metadata);
	put_message(summary, 1, &value);
}

/* two fields of HParamsPluginData, and two values of Status */
enum { SESSION_START = 3, SESSION_END = 4, STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };

/* Adds an entry to SessionStartInfo.hparams, a map from string to google.protobuf.Value. */
static void put_hparam(void *user, const struct gt_conf_scalar *s)
{
	struct msg *info = user, value, entry;
	if (!strncmp(s->path, "checkpoint.", 11) || !strncmp(s->path, "log.", 4) || !strcmp(s->path, "schema"))
		return;
	reset_msg(&value), reset_msg(&entry);
	if (s->kind == GT_SCALAR_TEXT)
		put_string(&value, 3, s->text);
	else if (s->kind == GT_SCALAR_BOOL)
		put_integer(&value, 4, s->number != 0);
	else
		put_double(&value, 2, s->number);
	put_string(&entry, 1, s->path);
	put_message(&entry, 2, &value);
	put_message(info, 1, &entry);
}

enum gt_code gt_tensorboard_hparams(struct gt_tensorboard *t, const struct gt_conf *c, struct gt_err *err)
{
	struct msg info, summary, m;
	if (!t)
		return GT_OK;
	reset_msg(&info), reset_msg(&summary), start_event(&m, 0);
	gt_conf_each_scalar(c, put_hparam, &info);
	put_double(&info, 5, wall_time());
	put_hparams_value(&summary, "_hparams_/session_start_info", SESSION_START, &info);
	put_message(&m, 5, &summary);
	if (m.full)
		return gt_fail(err, GT_EINTERNAL, "the TensorBoard event with the hyper-parameters is larger than %zu bytes", sizeof m.b);
	write_record(t, &m);
	return GT_OK;
}

/* Returns the status of a session by its event END; 0: it has none, because the run can go on after a signal or a time limit. */
static int end_status(const struct gt_event *ev)
{
	if (ev->code)
		return STATUS_FAILURE;
	return !strcmp(ev->text, "ok") || !strcmp(ev->text, "early stop") ? STATUS_SUCCESS : 0;
}

void gt_tensorboard_write(struct gt_tensorboard *t, const struct gt_event *ev)
{
	struct msg summary, m, info;
	if (!t)
		return;
	reset_msg(&summary), reset_msg(&info), start_event(&m, ev->step);
	if (ev->kind == GT_EV_TRAIN) {
		put_scalar(&summary, "train", "loss", ev->loss);
		put_scalar(&summary, "train", "acc", ev->acc);
		put_scalar(&summary, "train", "top5", ev->top5);
		put_scalar(&summary, "train", "lr", ev->lr);
		put_scalar(&summary, "train", "samples_per_s", ev->samples_per_s);
	} else if (ev->kind == GT_EV_EPOCH) {
		put_scores(&summary, "train_epoch", &ev->scores);
	} else if (ev->kind == GT_EV_EVAL) {
		put_scores(&summary, ev->split, &ev->scores);
	} else if (ev->kind == GT_EV_END && end_status(ev)) {
		put_integer(&info, 1, end_status(ev));
		put_double(&info, 2, wall_time());
		put_hparams_value(&summary, "_hparams_/session_end_info", SESSION_END, &info);
	} else {
		return;
	}
	put_message(&m, 5, &summary);
	write_record(t, &m);
}

void gt_tensorboard_histogram(struct gt_tensorboard *t, const char *tag, int64_t step, const struct gt_histogram *h)
{
	double limit[GT_HISTOGRAM_BUCKETS], count[GT_HISTOGRAM_BUCKETS];
	struct msg histo, value, summary, m;
	if (!t || !h->n)
		return;
	for (int i = 0; i < GT_HISTOGRAM_BUCKETS; i++) {
		limit[i] = h->min + (h->max - h->min) * (i + 1) / GT_HISTOGRAM_BUCKETS;
		count[i] = (double)h->count[i];
	}
	limit[GT_HISTOGRAM_BUCKETS - 1] = h->max;
	reset_msg(&histo), reset_msg(&value), reset_msg(&summary), start_event(&m, step);
	const double fields[] = {h->min, h->max, (double)h->n, h->sum, h->sum_squares};
	for (int i = 0; i < 5; i++)
		put_double(&histo, 1 + i, fields[i]);
	put_bytes_field(&histo, 6, limit, sizeof limit);
	put_bytes_field(&histo, 7, count, sizeof count);
	put_string(&value, 1, tag);
	put_message(&value, 5, &histo);
	put_message(&summary, 1, &value);
	put_message(&m, 5, &summary);
	write_record(t, &m);
}

enum gt_code gt_tensorboard_image(struct gt_tensorboard *t, const char *tag, int64_t step, const struct gt_thumbnail *x, int channels,
                                  struct gt_err *err)
{
	struct msg image, value;
	reset_msg(&image), reset_msg(&value);
	put_integer(&image, 1, (uint64_t)x->height);
	put_integer(&image, 2, (uint64_t)x->width);
	put_integer(&image, 3, (uint64_t)channels);
	put_tag(&image, 4, WIRE_BYTES);
	put_varint(&image, x->n);
	put_string(&value, 1, tag);
	put_head(&value, 4, &image, x->n);
	return write_long_value(t, step, &value, x->png, x->n, err);
}

enum gt_code gt_tensorboard_text(struct gt_tensorboard *t, const char *tag, int64_t step, const char *text, struct gt_err *err)
{
	enum { DT_STRING = 7 };
	size_t n = strlen(text);
	struct msg plugin, metadata, shape, tensor, value;
	reset_msg(&plugin), reset_msg(&metadata), reset_msg(&shape), reset_msg(&tensor), reset_msg(&value);
	put_string(&plugin, 1, "text");
	put_message(&metadata, 1, &plugin);
	put_integer(&tensor, 1, DT_STRING);
	put_message(&tensor, 2, &shape);
	put_tag(&tensor, 8, WIRE_BYTES);
	put_varint(&tensor, n);
	put_string(&value, 1, tag);
	put_message(&value, 9, &metadata);
	put_head(&value, 8, &tensor, n);
	return write_long_value(t, step, &value, text, n, err);
}

/* Creates the file under a unique name: in containers, two sessions may have the same pid within one second. */
static enum gt_code create_file(struct gt_tensorboard *t, const char *dir, int64_t next, struct gt_err *err)
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
			break; /* creating the file failed for another reason than an existing name */
	}
	return code;
}

enum gt_code gt_tensorboard_open(const char *dir, int64_t resume_step, int64_t next, struct gt_tensorboard **out, struct gt_err *err)
{
	static const uint8_t session[2] = {1 << 3 | WIRE_VARINT, 1}; /* the protobuf message SessionLog { status = START } */
	struct gt_tensorboard *t = calloc(1, sizeof *t);
	*out = NULL;
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	enum gt_code code = create_file(t, dir, next, err);
	if (code) {
		free(t);
		return code;
	}
	struct msg m;
	start_event(&m, 0);
	put_string(&m, 3, "brain.Event:2");
	write_record(t, &m);
	if (resume_step >= 0) {
		start_event(&m, resume_step + 1); /* the first step whose earlier events TensorBoard drops */
		put_bytes_field(&m, 7, session, sizeof session);
		write_record(t, &m);
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
