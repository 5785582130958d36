/*
 * Entries of `next`: what the queue, the definitions and those who check a body have in
 * common. No state; any thread.
 */
#ifndef QUEUE_CHAIN_H
#define QUEUE_CHAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define CHAIN_NAME_SIZE 128

/* The job that an entry names, "b" or {"job": "b", "params": {…}}; NULL = none. */
const char *chain_entry_job(const json_t *entry);

/* Is it the text "{name}", the value of a parameter of the request before? */
bool chain_value_param(const json_t *value, char *ret_name, size_t size);

#endif
