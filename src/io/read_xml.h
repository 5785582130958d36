/*
 * Reads a repeated element of an XML file: read: {xml: path, item: path, …}.
 * Restarts by passing over the items before the position, in a file that is known
 * to be the same; or from the beginning if told so.
 */
#ifndef IO_READ_XML_H
#define IO_READ_XML_H

#include "io/reader.h"

int read_xml_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
                 struct err *err) must_check;

#endif
