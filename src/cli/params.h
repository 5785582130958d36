/* The parameters of a job from the command line, and the body of a submit. */
#ifndef CLI_PARAMS_H
#define CLI_PARAMS_H

#include "base/compiler.h"

#include <jansson.h>

struct cli;
struct err;

/*
 * --params and each -p together; what -p says wins. The texts of -p become values
 * of the types the job declares: declared is the object name → rule of its
 * definition. New reference.
 */
int params_given(struct cli *cli, const char *job, const json_t *declared,
                 json_t **ret_params, struct err *err) must_check;

/* The body of POST /jobs/{job}/requests from the options. New reference. */
int params_body(struct cli *cli, const char *job, json_t **ret_body,
                struct err *err) must_check;

#endif
