/* What every cmocka file of this room includes, in the order cmocka needs. */
#ifndef TESTS_UNIT_CLI_TEST_H
#define TESTS_UNIT_CLI_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"

#endif
