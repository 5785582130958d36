/*
 * A rule for one JSON value: its type and its limits, as jobs declare them for
 * their parameters (docs/parameters.md). Stands in base/ because both config/
 * (which reports a bad rule with its place in the file) and queue/ (which
 * applies it to what clients send) need the very same one. Read-only after
 * rule_init: any thread.
 */
#ifndef BASE_RULE_H
#define BASE_RULE_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct pattern;

enum rule_type {
    RULE_STRING,
    RULE_INTEGER,
    RULE_NUMBER,
    RULE_BOOLEAN,
    RULE_DATE,
    RULE_TIMESTAMP,
    RULE_ENUM,
    RULE_LIST,
    RULE_TYPE_COUNT
};

struct rule {
    enum rule_type type;
    const char *pattern_text; /* string; NULL = any. Borrowed from the JSON. */
    struct pattern *pattern;
    int64_t min_length; /* string, in characters */
    int64_t max_length;
    int64_t min_integer;
    int64_t max_integer;
    double min_number;
    double max_number;
    const json_t *values; /* enum: array of texts. Borrowed. */
    int64_t min_items;    /* list */
    int64_t max_items;
    struct rule *items; /* list: of each item */
};

#define RULE_MAX_LENGTH INT64_C(10000) /* default and ceiling of max_length */
#define RULE_MAX_ITEMS  INT64_C(10000) /* default and ceiling of max_items */

/* A named value: the rule and what stands around it. */
struct rule_field {
    const char *title; /* NULL when none; borrowed like all texts here */
    bool required;
    bool confirm;           /* good for one request only: never inherited */
    const json_t *fallback; /* the default; NULL when none. Keeps the rule. */
    struct rule rule;
};

/* Called for each thing wrong with a rule: JSON pointer below it ("/max"), text. */
typedef void (*rule_fault_fn)(void *arg, const char *pointer, const char *text);

/*
 * Read {type, title, required, default, confirm, ...limits}. The JSON must
 * outlive the field. False if a fault was reported; the field is then only good
 * for rule_field_release.
 */
bool rule_field_init(struct rule_field *field, const json_t *json, rule_fault_fn fault,
                     void *arg) must_check;
void rule_field_release(struct rule_field *field);

/* The rule alone: {type, ...limits}, any other key is a fault. */
bool rule_init(struct rule *rule, const json_t *json, rule_fault_fn fault,
               void *arg) must_check;
void rule_release(struct rule *rule);

/*
 * Does value keep the rule? If not, fault is called for each breach: pointer
 * is "" for the value itself, "/2" for an item of a list.
 */
bool rule_check(const struct rule *rule, const json_t *value, rule_fault_fn fault,
                void *arg) must_check;

/* A value that keeps the rule, in its plain form (5.0 is 5). New reference. */
json_t *rule_normal(const struct rule *rule, const json_t *value);

/* Text from a command line as a value of the rule's type; NULL if it cannot be
 * read as one (new reference). A list is read from a,b,c. */
json_t *rule_from_text(const struct rule *rule, const char *text);

const char *rule_type_name(enum rule_type type);

#endif
