#include "test.h"

#include "base/sha256.h"

/* From FIPS 180-2, appendix B, and the empty message. */
static void
test_known_digests(void **state)
{
    static const struct {
        const char *text;
        const char *hex;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        char hex[SHA256_HEX_SIZE];

        sha256_hex(rows[i].text, strlen(rows[i].text), hex);
        assert_string_equal(hex, rows[i].hex);
    }
}

static void
test_pieces_give_the_digest_of_the_whole_and_the_struct_is_ready_again(void **state)
{
    scoped(sha256_release) struct sha256 sha = {0};
    char whole[SHA256_HEX_SIZE];
    char pieces[SHA256_HEX_SIZE];

    sha256_hex("hello world", 11, whole);
    sha256_init(&sha);
    for (int round = 0; round < 2; round++) {
        sha256_update(&sha, "hello", 5);
        sha256_update(&sha, "", 0);
        sha256_update(&sha, " world", 6);
        sha256_final_hex(&sha, pieces);
        assert_string_equal(pieces, whole);
    }
    sha256_release(&sha);
}

static void
test_hex_of_all_bytes(void **state)
{
    char hex[7];

    hex_encode("\x00\x9f\xff", 3, hex);
    assert_string_equal(hex, "009fff");
    hex_encode("", 0, hex);
    assert_string_equal(hex, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_digests),
        cmocka_unit_test(
            test_pieces_give_the_digest_of_the_whole_and_the_struct_is_ready_again),
        cmocka_unit_test(test_hex_of_all_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
