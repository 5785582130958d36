/*
 * Readers of the sections that are more than one value (rows of settings.c), and
 * what follows once all of the file is read. Each notes what is wrong and leaves
 * its part of the config empty or at the default.
 */
#ifndef CONFIG_SECTIONS_H
#define CONFIG_SECTIONS_H

#include <jansson.h>

struct config;
struct config_job;
struct reading;
struct setting;
struct ynode;

/* section.c, into struct config */
void section_store(struct reading *, const struct setting *, const struct ynode *,
                   void *);
void section_databases(struct reading *, const struct setting *, const struct ynode *,
                       void *);
void section_lanes(struct reading *, const struct setting *, const struct ynode *,
                   void *);
void section_keys(struct reading *, const struct setting *, const struct ynode *,
                  void *);
void section_budgets(struct reading *, const struct setting *, const struct ynode *,
                     void *);

/* jobs.c, into struct config and struct config_job */
void section_jobs(struct reading *, const struct setting *, const struct ynode *,
                  void *);
void section_params(struct reading *, const struct setting *, const struct ynode *,
                    void *);
void section_lane(struct reading *, const struct setting *, const struct ynode *,
                  void *);
void section_estimate(struct reading *, const struct setting *, const struct ynode *,
                      void *);
void section_calls(struct reading *, const struct setting *, const struct ynode *,
                   void *);
void section_retry(struct reading *, const struct setting *, const struct ynode *,
                   void *);
void section_retry_on(struct reading *, const struct setting *, const struct ynode *,
                      void *);
void section_needs_keys(struct reading *, const struct setting *, const struct ynode *,
                        void *);
void section_steps(struct reading *, const struct setting *, const struct ynode *,
                   void *);
void section_task(struct reading *, const struct setting *, const struct ynode *,
                  void *);

/* next.c, into struct config_job */
void section_next(struct reading *, const struct setting *, const struct ynode *,
                  void *);

/* webhooks.c, into struct config and struct config_job */
void section_webhooks(struct reading *, const struct setting *, const struct ynode *,
                      void *);
void section_webhook(struct reading *, const struct setting *, const struct ynode *,
                     void *);
/* Their keys must be named. */
void config_check_webhooks(struct reading *reading);
/* What the definition says of it; a new reference. Only of a job that has one. */
json_t *config_webhook_json(const struct config_job *job);

/* schedules.c, into struct config and struct config_schedule */
void section_schedules(struct reading *, const struct setting *, const struct ynode *,
                       void *);
void section_missed(struct reading *, const struct setting *, const struct ynode *,
                    void *);
void section_schedule_params(struct reading *, const struct setting *,
                             const struct ynode *, void *);

/* references.c: names that must exist, across the whole config. */
void config_check_references(struct reading *reading);
void config_check_database(struct reading *reading, const struct ynode *node);
void config_check_budget(struct reading *reading, const struct ynode *node);
void config_check_key(struct reading *reading, const struct ynode *node);

/* job_steps.c: what can be said of steps without knowing their types. */
void config_check_steps(struct reading *reading, const struct config_job *job);
/* `:name` in SQL, outside of quotes and comments, is a parameter of the job. */
void config_check_sql(struct reading *reading, const struct config_job *job,
                      const struct ynode *node);

/* definition.c: fill job->definition and job->hash. */
void config_make_definition(struct reading *reading, struct config_job *job);

#endif
