/*
 * What a whole request head means: framing of the body, Host, connection, Expect.
 */
#ifndef NET_HTTP_HEAD_H
#define NET_HTTP_HEAD_H

#include <stdbool.h>

struct http_parse;

/* Fill the parser's results from its fields. False: refuse with that status. */
bool http_head_judge(struct http_parse *parser, int *ret_status,
                     const char **ret_reason);

#endif
