/* The definition of a step: what is wrong in it is told by its key. */
#include "../io/io_test.h"

#include "steps/step.h"

static void
test_A13_a_key_has_a_place_only_in_what_is_sent(void **state)
{
    static const char *const wrong[] = {
        "{\"name\":\"a\",\"read\":{\"items\":{\"n\":[1]}},\"process\":{\"map\":{"
        "\"set\":{\"c\":\"{key:GEO}\"}}},\"write\":{\"file\":\"a.csv\"}}",
        "{\"name\":\"a\",\"fetch\":{\"url\":\"http://x/\",\"file\":\"{key:GEO}\"}}",
    };

    for (size_t i = 0; i < array_len(wrong); i++) {
        json_t *def = json_of(wrong[i]);
        struct err err = {0};

        assert_int_equal(step_validate(def, &err), -ERR_CONFIG);
        assert_non_null(strstr(err.text, "only in what is sent"));
        json_decref(def);
    }
}

static void
test_a_wrong_definition_is_told_by_its_key(void **state)
{
#define READ  "\"read\":{\"sql\":\"SELECT 1\",\"database\":\"shop\"}"
#define WRITE "\"write\":{\"file\":\"a.csv\"}"
#define INTO  "\"write\":{\"database\":\"shop\",\"table\":\"t\"}"
#define PARTS "\"partitions\":4,\"partition\":{\"key\":\"id\"},"
    static const struct {
        const char *def, *want; /* NULL: right */
    } cases[] = {
        {"{\"name\":\"s\"," READ "," WRITE "}", NULL},
        {"{\"name\":\"s\",\"chunk\":5," READ ",\"write\":{\"file\":\"a.{f}\"}}", NULL},
        {"{\"name\":\"s\"," READ
         ",\"write\":{\"file\":\"a.{f}\",\"format\":\"{f}\",\"sheet\":\"x\"}}",
         NULL},
        {"[]", "must be a map"},
        {"{\"name\":\"s\"}", "there is no \"read\""},
        {"{\"name\":\"s\"," READ "," WRITE ",\"process\":{\"htp\":{}}}",
         "\"htp\" is no processor"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"process\":{\"http\":{}}}",
         "\"url\" is missing"},
        {"{\"name\":\"s\"," READ "," WRITE
         ",\"process\":{\"http\":{\"url\":\"ftp://x\"}}}",
         "must begin with http://"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"process\":{\"http\":{\"url\":\"http://"
         "x\",\"outcomes\":{\"status\":{\"42\":\"ok\"}}}}}",
         "\"42\" is no HTTP status"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"process\":{\"http\":{\"url\":\"http://"
         "x\",\"outcomes\":{\"code\":\"c\",\"codes\":{\"1\":\"fine\"}}}}}",
         "must be one of: ok, no-data"},
        {"{\"name\":\"s\"," READ "," WRITE
         ",\"process\":[{\"map\":{\"cast\":{\"a\":\"money\"}}}]}",
         "process.map.cast.a"},
        {"{\"name\":\"s\"," READ "," WRITE
         ",\"process\":[{\"filter\":{\"match\":{\"a\":\"(\"}}}]}",
         "process.filter.match.a"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"concurrency\":65}", "concurrency"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"skip\":{\"on\":[\"parse\"]}}",
         "skip.limit"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"skip\":{\"limit\":1,\"on\":[\"all\"]}}",
         "skip.on"},
        {"{\"name\":\"s\"," READ "," WRITE ",\"retry\":{\"on\":[\"parse\"]}}", NULL},
        {"{\"name\":\"s\"," READ "," WRITE ",\"retry\":{\"attempts\":3}}",
         "retry: \"on\""},
        {"{\"name\":\"s\"," READ "," WRITE ",\"retry\":{\"on\":[\"format\"]}}",
         "retry.on: must be a list of parse, upstream, rejected, constraint"},
        {"{\"name\":\"s\"," READ "," WRITE
         ",\"retry\":{\"on\":[\"parse\"],\"attempts\":1}}",
         "retry.attempts: must be 2 to 100"},
        {"{\"name\":\"s\"," READ "," WRITE
         ",\"retry\":{\"on\":[\"parse\"],\"wait\":\"1s\"}}",
         "retry: unknown key \"wait\""},
        {"{\"name\":\"s\"," READ "," WRITE
         ",\"retry\":{\"on\":[\"parse\"],\"backoff\":\"1m\",\"max_backoff\":\"1s\"}}",
         "retry.max_backoff"},
        {"{\"name\":\"s\",\"sql\":[]}", "there must be a statement"},
        {"{\"name\":\"s\",\"sql\":\"SELECT 1\",\"write\":{}}", "unknown key \"write\""},
        {"{\"name\":\"s\",\"fetch\":{\"url\":\"http://x\"}}", "\"file\" is missing"},
        {"{\"name\":\"s\",\"fetch\":{\"url\":\"http://x\",\"file\":\"../x\"}}",
         "plain name"},
        {"{\"name\":\"s\",\"http\":{\"url\":\"http://x/{a b}\"}}", "no name"},
        {"{" READ "," WRITE "}", "name"},
        {"{\"name\":\"s\"," READ "}", "step s: \"write\" is missing"},
        {"{\"name\":\"s\",\"chunks\":5," READ "," WRITE "}", "did you mean \"chunk\"?"},
        {"{\"name\":\"s\",\"chunk\":0," READ "," WRITE "}", "chunk: must be"},
        {"{\"name\":\"s\",\"read\":{\"database\":\"x\"}," WRITE "}", "nothing to read"},
        {"{\"name\":\"s\",\"read\":{\"sql\":5}," WRITE "}", "read.sql: must be a text"},
        {"{\"name\":\"s\",\"read\":{\"sql\":\"x\",\"csv\":\"y\"}," WRITE "}",
         "has both"},
        {"{\"name\":\"s\",\"read\":{\"sql\":\"x\",\"restart\":\"often\"}," WRITE "}",
         "read.restart: must be one of: position requery"},
        {"{\"name\":\"s\",\"read\":{\"csv\":\"x\",\"delimiter\":\";;\"}," WRITE "}",
         "read.delimiter: must be one ASCII character"},
        {"{\"name\":\"s\",\"read\":{\"csv\":\"x\",\"columns\":{\"a\":\"money\"}}," WRITE
         "}",
         "read.columns: must be a list of names, or map"},
        {"{\"name\":\"s\"," READ ",\"write\":{\"file\":\"a.pdf\"}}",
         "\"pdf\" is no format"},
        {"{\"name\":\"s\"," READ ",\"write\":{\"file\":\"a.csv\",\"shet\":\"x\"}}",
         "unknown key \"shet\""},
        {"{\"name\":\"s\"," READ ",\"write\":{\"file\":\"a.{f.csv\"}}", "write.file"},
        {"{\"name\":\"s\"," READ ",\"write\":{\"database\":\"x\"}}",
         "either \"table\" or \"rows\""},
        {"{\"name\":\"s\"," READ
         ",\"write\":{\"database\":\"x\",\"table\":\"t\",\"mode\":\"upsert\"}}",
         "belong together"},
        {"{\"name\":\"s\"," READ
         ",\"write\":{\"database\":\"x\",\"rows\":\"t\",\"key\":[\"a\"]}}",
         "go with \"table\""},
        {"{\"name\":\"s\"," READ ",\"write\":{\"database\":\"x\",\"file\":\"t\"}}",
         "either \"file\" or \"database\""},
        {"{\"name\":\"s\"," PARTS READ "," INTO "}", NULL},
        {"{\"name\":\"s\"," PARTS READ "," WRITE "}", "a step that makes a file"},
        {"{\"name\":\"s\"," PARTS "\"read\":{\"csv\":\"x\"}," INTO "}",
         "what is read by csv cannot be cut"},
        {"{\"name\":\"s\",\"partitions\":4," READ "," INTO "}", "write {key: COLUMN}"},
        {"{\"name\":\"s\",\"partitions\":1," READ "," INTO "}", "from 2 to 64"},
        {"{\"name\":\"s\",\"partitions\":4,\"read\":{\"items\":{\"a\":[1]}}," INTO "}",
         NULL},
        {"{\"name\":\"s\"," PARTS "\"read\":{\"items\":{\"a\":[1]}}," INTO "}",
         "cut by their numbers"},
    };
    struct io_test t;

    io_test_init(&t, "{}");
    for (size_t i = 0; i < array_len(cases); i++) {
        json_t *def = json_of(cases[i].def);

        if (cases[i].want)
            fails(&t, ERR_CONFIG, cases[i].want, step_validate(def, &t.err));
        else
            ok(&t, step_validate(def, &t.err));
        json_decref(def);
    }
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_A13_a_key_has_a_place_only_in_what_is_sent),
        cmocka_unit_test(test_a_wrong_definition_is_told_by_its_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
