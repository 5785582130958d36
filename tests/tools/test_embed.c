/*
 * What is embedded is the file, byte for byte, and its gzip form unpacks to the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/embed.h"

size_t embed_samples(const struct embed_file **ret_files);

static const struct embed_file *
find(const char *name)
{
    const struct embed_file *files = NULL;
    size_t count = embed_samples(&files);

    for (size_t i = 0; i < count; i++)
        if (strcmp(files[i].name, name) == 0)
            return &files[i];
    fail_msg("%s is not embedded", name);
    return NULL;
}

static void
assert_same_as_on_disk(const struct embed_file *file)
{
    char path[4096];
    unsigned char data[8192];
    FILE *in;
    size_t got;

    snprintf(path, sizeof(path), "%s/tests/tools/%s", getenv("PAWL_SOURCE_ROOT"),
             file->name);
    in = fopen(path, "rb");
    assert_non_null(in);
    got = fread(data, 1, sizeof(data), in);
    assert_true(feof(in));
    fclose(in);
    assert_int_equal(got, file->bytes);
    assert_memory_equal(data, file->data, got);
    assert_int_equal(file->data[got], 0);
}

static void
test_text_bytes_and_nothing_are_kept_as_they_are(void **state)
{
    (void)state;
    assert_same_as_on_disk(find("sample-text.txt"));
    assert_same_as_on_disk(find("sample-bytes.bin"));
    assert_same_as_on_disk(find("sample-empty.txt"));
    assert_int_equal(find("sample-bytes.bin")->bytes, 256);
}

static void
test_the_gzip_form_unpacks_to_the_file(void **state)
{
    const struct embed_file *file = find("sample-text.txt");
    unsigned char data[8192];
    z_stream z = {0};

    (void)state;
    assert_non_null(file->gzip);
    assert_true(file->gzip_bytes < file->bytes);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (z_const Bytef *)(uintptr_t)file->gzip;
    z.avail_in = (uInt)file->gzip_bytes;
    z.next_out = data;
    z.avail_out = sizeof(data);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, file->bytes);
    assert_memory_equal(data, file->data, file->bytes);
    inflateEnd(&z);
}

static void
test_gzip_is_left_out_where_it_would_be_larger(void **state)
{
    (void)state;
    assert_null(find("sample-empty.txt")->gzip);
    assert_null(find("sample-bytes.bin")->gzip);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_bytes_and_nothing_are_kept_as_they_are),
        cmocka_unit_test(test_the_gzip_form_unpacks_to_the_file),
        cmocka_unit_test(test_gzip_is_left_out_where_it_would_be_larger),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
