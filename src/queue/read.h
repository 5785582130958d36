/* Inside queue/: a row of the table request into its struct. */
#ifndef QUEUE_READ_H
#define QUEUE_READ_H

#include "queue/request.h"

struct arena;
struct db_rows;

/* Columns 0…17, in the order of the table; the rest becomes "nothing known". */
void queue_read_request(const struct db_rows *rows, struct arena *arena,
                        struct request *ret_request);

/* A text cell in the arena; NULL for NULL. */
const char *queue_read_text(const struct db_rows *rows, int column,
                            struct arena *arena);

#define QUEUE_READ_COLUMNS 18

#endif
