/* Writes docs/config.md to standard output: `ninja config-reference-md`. */
#include "config/config.h"

int
main(void)
{
    config_print_reference(stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
