/* The facts that were learned about a table, as a member of data.json in a checkpoint:
 *   {"header":true,"task":"classes","columns":[
 *     {"name":"age","type":"continuous","mean":38.6,"std":13.7,"median":37,"missing":true},
 *     {"name":"job","type":"categorical","words":["clerk","cook"]},
 *     {"name":"day","type":"date","order":"dmy","parts":[2023,0.5,2023, …]},
 *     {"name":"id","type":"ignore"},
 *     {"name":"income","type":"target","words":["high","low"]}]}
 * task     "classes", or "numbers": a target then has mean, std and median instead of words.
 * words    by code; "whole":true beside them if they are compared as whole numbers.
 * parts    mean, std and median of each part of a date (date.h).
 * missing  whether the model has an input NAME_na. */
#ifndef GT_DATASETS_TABLE_JSON_H
#define GT_DATASETS_TABLE_JSON_H

#include "base/json.h"
#include "base/json_read.h"
#include "table/table_facts.h"

/* Appends the facts as the member `key` of an open object. */
void gt_table_json_put(struct gt_json *j, const char *key, const struct gt_table_facts *f);

/* Reads them back from a parsed text, which may be hostile; it must have been parsed with a depth of at least 5. `path` begins the message.
 * The caller frees *out with gt_table_facts_free; on failure it is empty. GT_EDATA: v does not have this form. */
enum gt_code gt_table_json_get(const struct gt_json_value *v, const char *path, struct gt_table_facts *out, struct gt_err *err);

/* Compares what two facts say about a model's inputs and targets: GT_EDATA names the first difference. For a resumed run, whose training
 * data must be the same. where: the data, for the message. */
enum gt_code gt_table_json_compare(const struct gt_table_facts *ckpt, const struct gt_table_facts *now, const char *where, const char *path,
                                   struct gt_err *err);

#endif
