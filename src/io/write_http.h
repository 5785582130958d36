/*
 * Rows sent out: a call of an http_spec for each row, or for all rows of a chunk, made
 * one after the other before the checkpoint. What was sent behind the last checkpoint
 * is sent again after a crash, with the same keys.
 */
#ifndef IO_WRITE_HTTP_H
#define IO_WRITE_HTTP_H

#include "base/sha256.h"
#include "io/writer.h"

int write_http_check(const json_t *def, struct err *err) must_check;
int write_http_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
                   struct err *err) must_check;

/*
 * The key of a call: the same whenever the same rows of the same work are sent, and
 * another for any other rows. work: io->work. row: number in the step of the first row
 * that is sent, from 1. rows: what is sent, as JSON.
 */
void write_http_key(const char *work, int64_t row, const struct buf *rows,
                    char ret_key[SHA256_HEX_SIZE]);

#endif
