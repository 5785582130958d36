/*
 * Walking the tree of nodes, and turning parts of it into JSON.
 */
#include "config/yaml_node.h"

#include "base/strs.h"
#include "config/errors.h"

#include <stdlib.h>
#include <string.h>

const struct ynode *
ynode_get(const struct ynode *node, const char *key)
{
    const struct ynode *member;

    if (node == NULL || node->kind != YNODE_MAP)
        return NULL;
    for (member = node->first; member != NULL; member = member->next) {
        if (str_eq(member->key, key))
            return member;
    }
    return NULL;
}

bool
ynode_is_null(const struct ynode *node)
{
    return node == NULL || (node->kind == YNODE_SCALAR && !node->quoted &&
                            (str_eq(node->text, "") || str_eq(node->text, "~") ||
                             str_eq(node->text, "null")));
}

const char *
ynode_kind_word(const struct ynode *node)
{
    if (ynode_is_null(node))
        return "nothing";
    return node->kind == YNODE_MAP    ? "a map"
           : node->kind == YNODE_LIST ? "a list"
                                      : "a single value";
}

static const struct ynode *
item_at(const struct ynode *list, const char *token)
{
    const struct ynode *item = list->first;
    int64_t at;

    if (!str_to_i64(token, &at) || at < 0)
        return NULL;
    while (item != NULL && at-- > 0)
        item = item->next;
    return item;
}

const struct ynode *
ynode_find(const struct ynode *node, const char *pointer)
{
    while (*pointer == '/') {
        const struct ynode *inner = NULL;
        char token[256];
        size_t len = 0;

        for (pointer++; *pointer != '\0' && *pointer != '/'; pointer++) {
            char c = *pointer;

            if (c == '~' && (pointer[1] == '0' || pointer[1] == '1'))
                c = *++pointer == '0' ? '~' : '/';
            if (len + 1 < sizeof(token))
                token[len++] = c;
        }
        token[len] = '\0';
        if (node->kind == YNODE_MAP)
            inner = ynode_get(node, token);
        else if (node->kind == YNODE_LIST)
            inner = item_at(node, token);
        if (inner == NULL)
            break;
        node = inner;
    }
    return node;
}

static bool
looks_like_number(const char *text)
{
    const char *at = *text == '-' || *text == '+' ? text + 1 : text;
    size_t digits = strspn(at, "0123456789");
    size_t all = digits;

    if (at[all] == '.')
        all += 1 + strspn(at + all + 1, "0123456789");
    if (all == 0 || (digits == 0 && all == 1))
        return false;
    if ((at[all] == 'e' || at[all] == 'E')) {
        size_t sign = at[all + 1] == '+' || at[all + 1] == '-' ? 1 : 0;
        size_t power = strspn(at + all + 1 + sign, "0123456789");

        if (power > 0)
            all += 1 + sign + power;
    }
    return at[all] == '\0';
}

static json_t *
number_json(const struct ynode *node, const char *where, struct config_errors *errors)
{
    const char *digits = node->text + strspn(node->text, "-");
    const char *problem = "JSON cannot hold this number";
    int64_t integer;
    double real;

    if (digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9')
        problem = "a leading zero: put it in quotes if it is a text such as a code, or "
                  "leave the zero out";
    else if (str_to_i64(node->text, &integer))
        return json_integer(integer);
    else if (strpbrk(node->text, ".eE") != NULL && str_to_double(node->text, &real))
        return json_real(real);
    config_errors_add(errors, where, node->line, node->column, "%s: %s", node->text,
                      problem);
    return json_string(node->text); /* so that little else is found wrong */
}

static json_t *
scalar_json(const struct ynode *node, const char *where, struct config_errors *errors)
{
    if (node->quoted)
        return json_string(node->text);
    if (ynode_is_null(node))
        return json_null();
    if (str_eq(node->text, "true") || str_eq(node->text, "false"))
        return json_boolean(str_eq(node->text, "true"));
    if (looks_like_number(node->text))
        return number_json(node, where, errors);
    return json_string(node->text);
}

json_t *
ynode_json(const struct ynode *node, const char *where, struct config_errors *errors)
{
    const struct ynode *inner;
    json_t *json;

    if (node->kind == YNODE_SCALAR)
        return scalar_json(node, where, errors);
    json = node->kind == YNODE_MAP ? json_object() : json_array();
    for (inner = node->first; inner != NULL; inner = inner->next) {
        json_t *value = ynode_json(inner, where, errors);

        if (node->kind == YNODE_MAP)
            json_object_set_new(json, inner->key, value);
        else
            json_array_append_new(json, value);
    }
    return json;
}
