/* The part of gt_check that predicts the time of a step on a described card. */
#ifndef GT_RUN_REPORT_CARD_H
#define GT_RUN_REPORT_CARD_H

#include "gtrain.h"
#include "session/session.h"

/* Checks that a prediction is possible, and sets *plan_for to the device to plan for. device: the device that the user named; NULL: that of
 * the config. Returns GT_EUSAGE or GT_ECONFIG, with a sentence that names both options, otherwise. */
enum gt_code gt_report_may_predict(const struct gt_conf *c, const char *device, const char *card, int world, const char **plan_for,
                                   struct gt_err *err);
/* Fills r->card. */
enum gt_code gt_report_card(struct gt_report *r, const struct gt_session *s, const char *card, struct gt_err *err);

#endif
