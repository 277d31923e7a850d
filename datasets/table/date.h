/* Parses dates as people write them, and divides a date into the numeric inputs of a model (as add_datepart of fastai).
 *
 *     2023-05-18   2023/05/18   2023.05.18           year, month, day
 *     18.05.2023   18/05/2023   18-05-2023           day, month, year
 *                  05/18/2023   05-18-2023           month, day, year
 *
 * A time may follow after a space or a T: 12:30, 12:30:59.25, with AM or PM, and with Z or an offset from UTC such as +02:00, which is
 * subtracted. */
#ifndef GT_DATASETS_TABLE_DATE_H
#define GT_DATASETS_TABLE_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_date_order { GT_DATE_AUTO, GT_DATE_YMD, GT_DATE_DMY, GT_DATE_MDY, GT_DATE_ORDERS };
#define GT_DATE_ORDER_WORDS "auto|ymd|dmy|mdy" /* values of the key `order` of a date column, in the order of enum gt_date_order */
extern const char *const gt_date_order_names[GT_DATE_ORDERS];

/* Returns a bit mask of the orders in which a text of len bytes is a date, 1 << order each; 0: not a date. */
unsigned gt_date_orders(const char *text, size_t len);

/* Sets *out to the seconds from 1970-01-01 00:00 to a date. Returns false if the text is not a date in this order. */
bool gt_date_parse(const char *text, size_t len, enum gt_date_order order, double *out);

#define GT_DATE_PARTS 9
extern const char *const gt_date_part_names[GT_DATE_PARTS];
/* Sets the parts of a date, given in seconds from 1970: year, month (1 ... 12), day of the month (1 ... 31), day of the week (0: Monday),
 * day of the year (1 ... 366), 1 if it is the first day of its month, 1 if it is the last, days since 1970 with their fraction, and the
 * fraction of the day. */
void gt_date_parts(double seconds, double out[GT_DATE_PARTS]);

#endif
