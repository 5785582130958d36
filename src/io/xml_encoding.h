/*
 * XML in the encodings of io/charset.h that expat does not know itself, as public
 * services in Korea and elsewhere still send it.
 */
#ifndef IO_XML_ENCODING_H
#define IO_XML_ENCODING_H

#include <expat.h>

/* For XML_SetUnknownEncodingHandler; arg is not used. */
int xml_encoding_find(void *arg, const XML_Char *name, XML_Encoding *info);

#endif
