/* A record of a CSV file, or of JSON Lines, and the limits of its size. */
#ifndef GT_DATASETS_CSV_RECORD_H
#define GT_DATASETS_CSV_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#define GT_CSV_MAX_FIELD (1 << 20)   /* maximum bytes of a field */
#define GT_CSV_MAX_FIELDS 65536      /* maximum number of fields of a record */
#define GT_CSV_MAX_RECORD (64 << 20) /* maximum bytes of a record in the file */

struct gt_csv_record {
	int n;               /* number of fields; 0: the file has no more records */
	char *const *field;  /* [n] UTF-8 as in the file, each ended by a NUL; valid until the next call */
	const uint32_t *len; /* [n] bytes of each field, without the NUL */
	int64_t line;        /* line of the file at which the record begins, from 1 */
	bool names;          /* JSON Lines and .npz: this is the first record, which contains the names of the columns */
};

#endif
