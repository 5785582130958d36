/*
 * Text of a cell as XML: <, > and & are entities; characters that XML cannot
 * hold, and CR, which it would turn into LF, are _xHHHH_ as Excel writes them;
 * text that looks like such an escape is escaped itself.
 */
#ifndef IO_XLSX_ESCAPE_H
#define IO_XLSX_ESCAPE_H

#include <stddef.h>

/* Most bytes that one byte becomes: "_x0001_". */
#define XLSX_ESCAPE_GROWTH 7

/* Write text (valid UTF-8) to p, which has room for len * XLSX_ESCAPE_GROWTH bytes;
 * returns the end. */
char *xlsx_escape(char *p, const char *text, size_t len);

#endif
