/* The sections of an index of data (data_index.h), for data_index_write.c and data_index_read.c. */
#ifndef GT_DATASETS_DATA_INDEX_PARTS_H
#define GT_DATASETS_DATA_INDEX_PARTS_H

#include "data_index.h"
#include "index_file.h"

/* tags of sections */
enum {
	GT_IX_SETTINGS = 1, /* text: gt_index_place.settings */
	GT_IX_STATE,        /* text: gt_index_place.state */
	GT_IX_SIZES,        /* struct gt_index_sizes */
	GT_IX_FACTS,        /* JSON: the facts as in data.json, and "report" (table_facts.h) */
	GT_IX_LABELS,       /* i32 [n] */
	GT_IX_TARGET,       /* f32 [n, width] */
	GT_IX_MARKS,        /* struct gt_sample_mark [n] */
	GT_IX_PART,         /* i64 [train]: samples of the split "train", ascending; the next tag: of "valid" */
	GT_IX_LINES = GT_IX_PART + 2, /* i64 [lines, 3]: row, line and file of struct gt_table_line */
	GT_IX_FIELD = 16,   /* values of field i; a ragged field has i32 [start[n]] */
	GT_IX_START = GT_IX_FIELD + GT_MAX_FIELDS, /* i64 [n + 1] of a ragged field i */
};

struct gt_index_sizes {
	int64_t n, part[2], divided, lines; /* divided: 1 or 0 */
	struct gt_text_counts texts;
};

#endif
