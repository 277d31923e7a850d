#include "export/protobuf.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_32_BITS = 5 };

static void append_bytes(struct gt_pb *m, const void *data, size_t n)
{
	if (m->no_memory || !n)
		return;
	if ((int64_t)(m->n + n) > m->cap) {
		uint8_t *grown = gt_grown(m->data, &m->cap, (int64_t)(m->n + n), 1);
		m->no_memory = !grown;
		if (!grown)
			return;
		m->data = grown;
	}
	memcpy(m->data + m->n, data, n);
	m->n += n;
}

/* Appends a varint: each byte has seven bits of the value, lowest bits first, and its highest bit is 1 if another byte follows. */
static void append_varint(struct gt_pb *m, uint64_t v)
{
	uint8_t buf[10];
	size_t n = 0;
	do {
		buf[n] = (uint8_t)(v & 0x7f);
		v >>= 7;
		buf[n++] |= v ? 0x80 : 0;
	} while (v);
	append_bytes(m, buf, n);
}

static void append_tag(struct gt_pb *m, int field, enum wire_type type)
{
	append_varint(m, (uint64_t)field << 3 | type);
}

void gt_pb_int(struct gt_pb *m, int field, int64_t value)
{
	append_tag(m, field, WIRE_VARINT);
	append_varint(m, (uint64_t)value);
}

void gt_pb_float(struct gt_pb *m, int field, float value)
{
	append_tag(m, field, WIRE_32_BITS);
	append_bytes(m, &value, sizeof value); /* the file format is little-endian, as all supported machines are */
}

void gt_pb_head(struct gt_pb *m, int field, uint64_t n)
{
	append_tag(m, field, WIRE_BYTES);
	append_varint(m, n);
}

void gt_pb_string(struct gt_pb *m, int field, const char *value)
{
	size_t n = strlen(value);
	gt_pb_head(m, field, n);
	append_bytes(m, value, n);
}

void gt_pb_join(struct gt_pb *m, struct gt_pb *part)
{
	m->no_memory |= part->no_memory;
	append_bytes(m, part->data, part->n);
	gt_pb_free(part);
}

void gt_pb_message(struct gt_pb *m, int field, struct gt_pb *part)
{
	gt_pb_head(m, field, part->n);
	gt_pb_join(m, part);
}

void gt_pb_free(struct gt_pb *m)
{
	free(m->data);
	*m = (struct gt_pb){0};
}
