/*
 * The checks of a configuration that need to know steps: what `pawl check` and
 * every start run after config_load. Problems are added with file:line:column.
 */
#ifndef RUN_CHECK_H
#define RUN_CHECK_H

struct config;
struct config_errors;

void run_check(const struct config *config, struct config_errors *errors);

#endif
