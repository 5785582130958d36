/*
 * What a backfill asks for, spread out: values that stand for several become one set
 * of parameters for each combination. No state; any thread.
 *
 *     "2026-01-01..2026-03-31"   each day (type date, or a text of this form)
 *     "2026-01..2026-12", "202601..202612"   each month, of a text
 *     "20260101..20260331"       each day, of a text
 *     "1..12"                    each whole number (type integer)
 *     "a,b,c"                    each of them; any may be a range
 *     ["a,b", "c"]               each of them, commas are theirs; texts may be ranges
 *
 * A parameter of type list is taken as it is.
 */
#ifndef SERVICE_SPREAD_H
#define SERVICE_SPREAD_H

#include "queue/params.h"

#include <jansson.h>

struct queue_job;

/*
 * *ret_items: an array of objects (new reference), the last parameter given runs
 * fastest. PARAMS_INVALID: a value that cannot be read, or more than max in all.
 * Whether the items keep the rules of the job is not looked at.
 */
int spread_params(const struct queue_job *job, const json_t *params, size_t max,
                  json_t **ret_items, struct params_errors *errors) must_check;

#endif
