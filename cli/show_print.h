/* Prints the samples of `gtrain show` as text: images as blocks of colour, tokens, and rows of tables. */
#ifndef GT_CLI_SHOW_PRINT_H
#define GT_CLI_SHOW_PRINT_H

#include "cli.h"
#include "gtrain_show.h"

/* show_images.c. Prints images in rows of tiles with their captions: with colours as half blocks (two pixels per character), without
 * colours as characters from ' ' (black) to '@' (white). Small images are shown pixel by pixel, larger images are reduced. */
enum gt_code gt_show_print_images(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err);
/* show_rows.c. Print the tokens or the text of each sample, and the other inputs as a table with a column for each sample. */
enum gt_code gt_show_print_texts(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err);
enum gt_code gt_show_print_rows(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err);
/* show_rows.c. Prints all samples as JSON. */
enum gt_code gt_show_print_json(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err);

#endif
