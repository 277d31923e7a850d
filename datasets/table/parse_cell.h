/* Parses the text of one table cell: missing, a number, or a word. Spaces and tabs around the text are ignored.
 *
 * A number is decimal: [+-] digits [. digits] [e [+-] digits], with digits before or after the point. Hexadecimal numbers, "inf" and
 * "infinity" are words. A number such as 1e999, whose magnitude is above 3.4e38 (the largest f32), is out of range; a number that is too
 * small for a double is 0. A table may write its numbers in another notation (struct gt_notation), such as 1.234,50. */
#ifndef GT_DATASETS_TABLE_PARSE_CELL_H
#define GT_DATASETS_TABLE_PARSE_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The notation of the numbers of a table. All zero: as in C. */
struct gt_notation {
	char decimal;   /* decimal point of numbers: '.' or ','; 0: '.' */
	char thousands; /* separator of groups of three digits: '.', ',', '\'' (also ’) or ' ' (also no-break spaces); 0: no separator */
};

enum gt_number_kind {
	GT_CELL_WORD,   /* not a number */
	GT_CELL_CODE,   /* a whole number with leading zeros, such as 007: probably a code whose zeros matter */
	GT_CELL_NUMBER,
	GT_CELL_RANGE,  /* a number outside of the range of f32 */
};

/* Classifies a text of len bytes with a NUL at its end, and stores its number unless it is a word. The number is the nearest double. */
enum gt_number_kind gt_cell_number(const char *text, size_t len, double *out);

/* Like gt_cell_number, for a number in a notation. Groups of three digits may also be written without a separator. */
enum gt_number_kind gt_cell_parse(const struct gt_notation *n, const char *text, size_t len, double *out);

/* Returns whether a word is almost a number: a number in another notation, or an infinite number. */
bool gt_cell_almost(const struct gt_notation *n, const char *text, size_t len);

/* Returns whether a text of len bytes is a number that is written with commas: with a decimal comma (1,5 and 1.234,5), or with commas
 * between groups of three digits (1,234,567.8). gt_cell_number takes such a text as a word. */
bool gt_cell_has_commas(const char *text, size_t len);

/* Returns whether pandas reads a text of len bytes as an infinite number: inf or infinity, in any case, with or without a sign.
 * gt_cell_number takes such a text as a word. */
bool gt_cell_is_infinite(const char *text, size_t len);

/* Removes spaces and tabs at both ends. If spaces or tabs were removed at the end, the byte after the text becomes NUL. A trimmed text may
 * be trimmed again with its original length. */
static inline const char *gt_cell_trim(char *text, size_t *len)
{
	size_t n = *len;
	while (n && (text[n - 1] == ' ' || text[n - 1] == '\t' || !text[n - 1]))
		n--;
	if (n < *len)
		text[n] = 0;
	while (n && (*text == ' ' || *text == '\t')) {
		text++;
		n--;
	}
	*len = n;
	return text;
}

/* Returns whether v is a whole number below 2^53, the range in which a double can represent every whole number. */
static inline bool gt_cell_is_whole(double v)
{
	return v > -0x1p53 && v < 0x1p53 && v == (double)(int64_t)v;
}

/* Writes a text of a file for a message: at most 40 bytes, without control characters and invalid UTF-8. Returns buf. */
#define GT_CELL_SHOWN 48
const char *gt_cell_shown(const char *text, char buf[GT_CELL_SHOWN]);

#endif
