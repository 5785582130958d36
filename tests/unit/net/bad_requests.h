/*
 * Malformed requests with the status that refuses each. The first 22 are the probe that
 * other servers failed (docs/decisions); no handler may ever see one of them. Body
 * limit: 100 bytes.
 */
#ifndef TESTS_NET_BAD_REQUESTS_H
#define TESTS_NET_BAD_REQUESTS_H

#include <stddef.h>

struct bytes {
    const char *data;
    size_t len;
};

#define BYTES(literal)                                                                 \
    {                                                                                  \
        literal, sizeof(literal) - 1                                                   \
    }

#define HOST "Host: a\r\n"

struct bad_case {
    const char *what;
    struct bytes text;
    int status;
};

static const struct bad_case bad_cases[] = {
    {"bare LF", BYTES("GET / HTTP/1.1\n" HOST "\r\n"), 400},
    {"no Host", BYTES("GET / HTTP/1.1\r\n\r\n"), 400},
    {"two Hosts", BYTES("GET / HTTP/1.1\r\n" HOST "Host: b\r\n\r\n"), 400},
    {"length and coding",
     BYTES("POST / HTTP/1.1\r\n" HOST
           "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
     400},
    {"two lengths",
     BYTES("POST / HTTP/1.1\r\n" HOST
           "Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello"),
     400},
    {"length +0", BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: +0\r\n\r\n"), 400},
    {"length 0x0", BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x0\r\n\r\n"),
     400},
    {"length -1", BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n"), 400},
    {"coding gzip", BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n"),
     501},
    {"coding xchunked",
     BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
     501},
    {"chunk size zz",
     BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400},
    {"chunk size 0x0",
     BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n"),
     400},
    {"folded header", BYTES("GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n"), 400},
    {"space before colon", BYTES("GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n"), 400},
    {"NUL in value", BYTES("GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n"), 400},
    {"NUL in target", BYTES("GET /a\0b HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"space in target", BYTES("GET /a b HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"line without colon", BYTES("GET / HTTP/1.1\r\n" HOST "nonsense\r\n\r\n"), 400},
    {"HTTP/3.7", BYTES("GET / HTTP/3.7\r\n" HOST "\r\n"), 505},
    {"no version", BYTES("GET /\r\n" HOST "\r\n"), 400},
    {"control character in method", BYTES("G\1T / HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"CR in value", BYTES("GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n"), 400},
    /* Of our own. */
    {"HTTP/1.2", BYTES("GET / HTTP/1.2\r\n" HOST "\r\n"), 505},
    {"HTTP/2 preface", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400},
    {"version of letters", BYTES("GET / HTTP/a.b\r\n" HOST "\r\n"), 400},
    {"longer version", BYTES("GET / HTTP/1.10\r\n" HOST "\r\n"), 400},
    {"lower case version", BYTES("GET / http/1.1\r\n" HOST "\r\n"), 400},
    {"TLS hello", BYTES("\x16\x03\x01\x02"), 400},
    {"method of 17 letters", BYTES("ABCDEFGHIJKLMNOPQ / HTTP/1.1\r\n"), 501},
    {"absolute target", BYTES("GET http://a/ HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"two spaces", BYTES("GET  / HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"fragment in target", BYTES("GET /a#b HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"raw UTF-8 in target", BYTES("GET /\xea\xb0\x80 HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"two empty lines first", BYTES("\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"blank before first header", BYTES("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400},
    {"empty name", BYTES("GET / HTTP/1.1\r\n" HOST ": x\r\n\r\n"), 400},
    {"DEL in value", BYTES("GET / HTTP/1.1\r\n" HOST "X: \x7f\r\n\r\n"), 400},
    {"LF after value", BYTES("GET / HTTP/1.1\r\n" HOST "X: a\n\r\n"), 400},
    {"LF at the end", BYTES("GET / HTTP/1.1\r\n" HOST "\n"), 400},
    {"Host with user", BYTES("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), 400},
    {"Host with path", BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400},
    {"two Hosts in 1.0", BYTES("GET / HTTP/1.0\r\n" HOST HOST "\r\n"), 400},
    {"same length twice",
     BYTES("POST / HTTP/1.1\r\n" HOST
           "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
     400},
    {"tab behind the length",
     BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: 1\t\r\n\r\na"), 400},
    {"tab behind the coding",
     BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n"),
     501},
    {"list of lengths",
     BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\nhello"), 400},
    {"empty length", BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"), 400},
    {"length with blank",
     BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: 1 0\r\n\r\n"), 400},
    {"length of 19 digits",
     BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: 9999999999999999999\r\n\r\n"),
     413},
    {"length over the limit",
     BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: 101\r\n\r\n"), 413},
    {"two codings",
     BYTES("POST / HTTP/1.1\r\n" HOST
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
     400},
    {"coding list",
     BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501},
    {"coding identity",
     BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"), 501},
    {"empty coding", BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n"),
     400},
    {"coding with vertical tab",
     BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \vchunked\r\n\r\n"), 400},
    {"length and foreign coding",
     BYTES("POST / HTTP/1.1\r\n" HOST
           "Transfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"),
     400},
    {"coding in 1.0",
     BYTES("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
     400},
    {"odd Expect", BYTES("POST / HTTP/1.1\r\n" HOST "Expect: tea\r\n\r\n"), 417},
    {"Content-Encoding",
     BYTES("POST / HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\n\r\n"), 415},
    {"framing fault tells more than Content-Encoding",
     BYTES("POST / HTTP/1.1\r\n" HOST
           "Content-Encoding: gzip\r\nContent-Length: x\r\n\r\n"),
     400},
};

#endif
