/*
 * The role api: the service over HTTP (routes.c is the index of the room). Made
 * and freed by main on the thread of its loop, when the loop does not run.
 */
#ifndef API_API_H
#define API_API_H

#include "base/compiler.h"

#include <stdint.h>

struct api;
struct config;
struct err;
struct log;
struct loop;
struct service;

/* Borrowed; all outlive the api. */
struct api_options {
    const struct config *config;
    const struct service *service;
    struct loop *loop;
    struct log *log;
    const char *socket; /* path of the Unix socket; NULL = none */
    const char *version;
};

/* Listens when it returns. */
int api_new(const struct api_options *options, struct api **ret_api,
            struct err *err) must_check;
void api_free(struct api *api); /* accepts NULL */

/* The port of the TCP listener (config.api.listen may name port 0). */
int api_port(const struct api *api);

/* Not ready any more (/readyz answers 503); accept nothing new, finish what runs,
 * then call fn. On the loop's thread. */
void api_drain(struct api *api, int64_t deadline_ms, void (*fn)(void *arg), void *arg);

#endif
