#include "run/tensorboard.h"
#include "base/arena.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct gt_tensorboard {
	int fd;
	char path[4400];
};

/* Castagnoli's polynomial, reflected. A few dozen bytes a record: a bit at a time is fast enough and needs no table. */
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

/* A protobuf being written; the messages here stay far below the size. */
struct msg {
	size_t n;
	uint8_t b[512];
};

static void put(struct msg *m, const void *p, size_t n)
{
	if (m->n + n <= sizeof m->b) {
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

static struct msg event(int64_t step)
{
	struct msg m = {0};
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	double wall = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	tag(&m, 1, WIRE_64);
	put(&m, &wall, sizeof wall); /* x86-64 and ARM64 are little-endian, as the format is */
	if (step) {
		tag(&m, 2, WIRE_VARINT);
		varint(&m, (uint64_t)step);
	}
	return m;
}

static enum gt_code record(struct gt_tensorboard *t, const struct msg *m, struct gt_err *err)
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
	ssize_t w = write(t->fd, buf, m->n + 16);
	return w == (ssize_t)m->n + 16 ? GT_OK : gt_fail(err, GT_EIO, "%s: %s", t->path, w < 0 ? strerror(errno) : "short write");
}

static void scalar(struct msg *summary, const char *name, double v)
{
	struct msg value = {0};
	float f = (float)v;
	bytes(&value, 1, name, strlen(name));
	tag(&value, 2, WIRE_32);
	put(&value, &f, sizeof f);
	bytes(summary, 1, value.b, value.n);
}

enum gt_code gt_tensorboard_write(struct gt_tensorboard *t, const struct gt_event *ev, struct gt_err *err)
{
	struct msg summary = {0}, m = event(ev->step);
	char name[64];
	if (!t)
		return GT_OK;
	if (ev->kind == GT_EV_TRAIN) {
		scalar(&summary, "train/loss", ev->loss);
		scalar(&summary, "train/lr", ev->lr);
		scalar(&summary, "train/samples_per_s", ev->samples_per_s);
	} else if (ev->kind == GT_EV_EVAL) {
		snprintf(name, sizeof name, "%s/loss", ev->split);
		scalar(&summary, name, ev->loss);
		if (!isnan(ev->acc)) {
			snprintf(name, sizeof name, "%s/acc", ev->split);
			scalar(&summary, name, ev->acc);
		}
	} else {
		return GT_OK;
	}
	bytes(&m, 5, summary.b, summary.n);
	return record(t, &m, err);
}

enum gt_code gt_tensorboard_open(const char *dir, int64_t resume_step, struct gt_tensorboard **out, struct gt_err *err)
{
	static const uint8_t start[2] = {1 << 3 | WIRE_VARINT, 1}; /* SessionLog { status = START } */
	struct gt_tensorboard *t = calloc(1, sizeof *t);
	char host[64] = "host";
	*out = NULL;
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	gethostname(host, sizeof host - 1);
	snprintf(t->path, sizeof t->path, "%s/events.out.tfevents.%lld.%s.%d", dir, (long long)time(NULL), host, (int)getpid());
	t->fd = open(t->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	enum gt_code code = t->fd < 0 ? gt_fail(err, GT_ECANTCREAT, "%s: %s", t->path, strerror(errno)) : GT_OK;
	if (code == GT_OK) {
		struct msg m = event(0);
		bytes(&m, 3, "brain.Event:2", 13);
		code = record(t, &m, err);
	}
	if (code == GT_OK && resume_step >= 0) {
		struct msg m = event(resume_step);
		bytes(&m, 7, start, sizeof start);
		code = record(t, &m, err);
	}
	if (code != GT_OK) {
		gt_tensorboard_close(t);
		return code;
	}
	*out = t;
	return GT_OK;
}

void gt_tensorboard_close(struct gt_tensorboard *t)
{
	if (t && t->fd >= 0)
		close(t->fd);
	free(t);
}
