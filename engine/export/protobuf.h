/* A writer of messages in the binary format of Protocol Buffers (protobuf.dev/programming-guides/encoding), for ONNX files.
 *
 *     struct gt_pb type = {0}, value = {0};
 *     gt_pb_int(&type, 1, 1);                  field 1: a varint
 *     gt_pb_string(&value, 1, "input");        field 1: a length and bytes
 *     gt_pb_message(&value, 2, &type);         field 2: a message, which is freed
 *     ... value.data, value.n ...
 *     gt_pb_free(&value);
 *
 * A failure (out of memory) sets no_memory, also in the message that contains this message. */
#ifndef GT_EXPORT_PROTOBUF_H
#define GT_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_pb {
	uint8_t *data; /* malloc'ed */
	size_t n;      /* bytes of data */
	int64_t cap;
	bool no_memory;
};

void gt_pb_int(struct gt_pb *m, int field, int64_t value); /* also for enumerations and bool */
void gt_pb_float(struct gt_pb *m, int field, float value);
void gt_pb_string(struct gt_pb *m, int field, const char *value);
void gt_pb_message(struct gt_pb *m, int field, struct gt_pb *part);
/* Appends the fields of part to m, and frees part. */
void gt_pb_join(struct gt_pb *m, struct gt_pb *part);
/* Appends the head of a field whose content has n bytes: its number and n. The caller writes these n bytes to the file after m. */
void gt_pb_head(struct gt_pb *m, int field, uint64_t n);
void gt_pb_free(struct gt_pb *m); /* m is then an empty message */

#endif
