/*
 * The checks of a configuration that need to know cron rules and zones; beside
 * run_check. Problems are added with file:line:column.
 */
#ifndef SCHEDULE_CHECK_H
#define SCHEDULE_CHECK_H

struct config;
struct config_errors;

void schedule_check(const struct config *config, struct config_errors *errors);

#endif
