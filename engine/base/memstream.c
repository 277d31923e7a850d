#include "base/memstream.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static ssize_t append_bytes(void *cookie, const char *data, size_t n)
{
	struct gt_memstream *m = cookie;
	if (n >= m->cap - m->len) {
		size_t cap = 2 * (m->len + n) + 1024;
		char *text = m->lost ? NULL : realloc(m->text, cap);
		if (!text) {
			m->lost = true;
			return 0; /* stdio treats a return of 0 as an error */
		}
		m->text = text;
		m->cap = cap;
	}
	memcpy(m->text + m->len, data, n);
	m->len += n;
	m->text[m->len] = '\0';
	return (ssize_t)n;
}

FILE *gt_memstream_open(struct gt_memstream *m)
{
	*m = (struct gt_memstream){0};
	return fopencookie(m, "w", (cookie_io_functions_t){.write = append_bytes});
}

enum gt_code gt_memstream_close(FILE *f, struct gt_memstream *m, char **text, size_t *len, struct gt_err *err)
{
	bool lost = ferror(f);
	lost |= fclose(f) != 0 || m->lost;
	if (!lost && !m->text)
		lost = !(m->text = calloc(1, 1)); /* nothing was written, so the text is empty */
	if (lost) {
		free(m->text);
		m->text = NULL;
		m->len = 0;
	}
	*text = m->text;
	if (len)
		*len = m->len;
	return lost ? gt_fail_memory(err, 0) : GT_OK;
}
