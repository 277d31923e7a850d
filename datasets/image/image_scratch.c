#include "image/image_scratch.h"
#include "base/arena.h"
#include "image/decode.h"
#include "image/transform.h"
#include <stdlib.h>
#include <string.h>

enum gt_code gt_image_scratch_open(struct gt_image_scratch **out, struct gt_err *err)
{
	*out = calloc(1, sizeof **out);
	return *out ? GT_OK : gt_fail_memory(err, sizeof **out);
}

static void free_buffer(struct gt_image_scratch *s, int which)
{
	free(s->buf[which].p);
	s->buf[which].p = NULL;
	s->buf[which].bytes = 0;
	if (which == GT_BUF_TAPS_X || which == GT_BUF_TAPS_Y)
		memset(&s->taps[which - GT_BUF_TAPS_X], 0, sizeof s->taps[0]);
}

void gt_image_scratch_close(struct gt_image_scratch *s)
{
	if (!s)
		return;
	for (int i = 0; i < GT_BUF_COUNT; i++)
		free_buffer(s, i);
	gt_jpeg_close(s->jpeg);
	free(s);
}

size_t gt_image_scratch_bytes(const struct gt_image_scratch *s)
{
	size_t n = sizeof *s;
	for (int i = 0; i < GT_BUF_COUNT; i++)
		n += s->buf[i].bytes;
	return n;
}

enum gt_code gt_scratch_take(struct gt_image_scratch *s, enum gt_scratch_buf which, size_t n, uint8_t **out, struct gt_err *err)
{
	n += GT_BUF_SLACK;
	if (n > s->buf[which].bytes) {
		size_t room = n + n / 4; /* allocates a quarter more than needed, so that slowly growing images do not reallocate the buffer each
		                            time */
		free_buffer(s, which);
		s->buf[which].p = malloc(room);
		if (!s->buf[which].p)
			return gt_fail_memory(err, room);
		s->buf[which].bytes = room;
	}
	*out = s->buf[which].p;
	return GT_OK;
}

void gt_scratch_trim(struct gt_image_scratch *s)
{
	while (gt_image_scratch_bytes(s) > GT_IMAGE_SCRATCH_KEEP) {
		int largest = 0;
		for (int i = 1; i < GT_BUF_COUNT; i++)
			largest = s->buf[i].bytes > s->buf[largest].bytes ? i : largest;
		free_buffer(s, largest);
	}
}
