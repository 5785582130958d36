/*
 * Staying with a request until it is final, and taking its result home. What
 * submit --wait, watch and run have in common.
 */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct bar;
struct cli;
struct err;
struct interrupt;

enum follow_outcome {
    FOLLOW_FINAL,
    FOLLOW_LEFT, /* Ctrl-C; the request goes on */
};

/*
 * Show the progress until the request is final. A server that goes away is given
 * half a minute to come back. *ret_request (new reference) on FOLLOW_FINAL.
 */
int follow(struct cli *cli, struct interrupt *interrupt, int64_t request_id,
           json_t **ret_request, struct err *err) must_check;

/*
 * Download the result of a completed request to where --output says: written
 * beside it first, checked by length and SHA-256, then renamed, so that the
 * name never stands for half a file. *ret_path is in cli->arena.
 */
int follow_download(struct cli *cli, struct interrupt *interrupt, const json_t *request,
                    const char *output, const char **ret_path,
                    struct err *err) must_check;

/* Before anything is asked for: can --output, if given, be written there? */
int follow_check_output(struct cli *cli, struct err *err) must_check;

/*
 * All of it for one request: follow, download if --output was given, print the
 * end. tries: after a failure that is tried again, the same for the next try.
 * Returns the exit status.
 */
int follow_to_end(struct cli *cli, int64_t request_id, bool tries,
                  struct err *err) must_check;

/* The last try of the work that this request belongs to, itself if it is that. */
int64_t follow_last_try(const json_t *request);

/* Print a final request for people or as JSON; path NULL = not downloaded. */
void follow_print_end(struct cli *cli, const json_t *request, const char *path);

#endif
