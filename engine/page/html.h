/* Writes HTML in which all texts are escaped.
 *
 *     gt_html(f, "<p>%s, %d", ...)                 trusted markup; never a name or text from a user or a file
 *     gt_html_text(f, name);                       a text between tags or in an attribute with quotation marks
 * */
#ifndef GT_PAGE_HTML_H
#define GT_PAGE_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes a text. Markup is escaped; control characters, marks of the text direction, and bytes that are not UTF-8 become U+FFFD. */
void gt_html_text(FILE *f, const char *text);
/* Writes a text like gt_html_text, but on one line. An ellipsis replaces the rest of a text with more than `most` characters. */
void gt_html_short(FILE *f, const char *text, int most);

/* Begins and ends a part of the page: a heading with the anchor `id`. */
void gt_html_section(FILE *f, const char *id, const char *title);
void gt_html_section_end(FILE *f);

/* Begins a table in a frame that scrolls sideways if the table is wider than the screen. name: the name that screen readers announce.
 * head: the titles of the columns, separated by "|"; "#" before a title marks a column of numbers. gt_html_table_end closes the table. */
void gt_html_table(FILE *f, const char *name, const char *head);
void gt_html_table_end(FILE *f);
/* Write the cells of a row. The caller writes `<tr>` before the head cell and `</tr>` after the last cell. */
void gt_html_head_cell(FILE *f, const char *text);
void gt_html_cell(FILE *f, const char *text);
void gt_html_number(FILE *f, double value, int decimals); /* NAN: an empty cell */
void gt_html_count(FILE *f, int64_t n);

/* ---- numbers as text. Each function writes into buf (GT_HTML_NUMBER bytes) and returns it ----------------------------------------- */
#define GT_HTML_NUMBER 48
const char *gt_page_count(char *buf, int64_t n);      /* 669,706 */
const char *gt_page_bytes(char *buf, uint64_t n);     /* 2.6 MB */
const char *gt_page_seconds(char *buf, double s);     /* a duration: "17.5 s", "2 min 05 s" or "1 h 02 min" */
const char *gt_page_value(char *buf, double v);       /* 0.3433 */

#endif
