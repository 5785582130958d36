#include "test.h"

#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct folder {
    char path[64];
};

static int
setup(void **state)
{
    static struct folder folder;

    snprintf(folder.path, sizeof(folder.path), "/tmp/pawl-fsio-XXXXXX");
    *state = folder.path;
    return mkdtemp(folder.path) ? 0 : -1;
}

static int
teardown(void **state)
{
    fs_remove_tree_quietly(*state);
    return fs_exists(*state) ? -1 : 0;
}

/* The test's folder + name, in a place of its own for each use. */
static const char *
in(void **state, const char *name)
{
    static char paths[4][256];
    static int next;

    next = (next + 1) % 4;
    snprintf(paths[next], sizeof(paths[next]), "%s/%s", (const char *)*state, name);
    return paths[next];
}

static mode_t
mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void
test_reading_holds_the_ceiling_at_n_minus_1_n_and_n_plus_1(void **state)
{
    static const size_t sizes[] = {1, 4096, 16384, 16385, 100000};

    for (size_t i = 0; i < array_len(sizes); i++) {
        scoped(buf_release) struct buf content = {0};
        struct err err = {0};

        memset(buf_reserve(&content, sizes[i]), 'x', sizes[i]);
        content.len = sizes[i];
        assert_int_equal(
            fs_replace_file(in(state, "f"), content.data, content.len, 0600, &err), 0);
        for (int more = -1; more <= 1; more++) {
            scoped(buf_release) struct buf buf = {0};
            struct err refused = {0};
            int r =
                fs_read_file(in(state, "f"), sizes[i] + (size_t)more, &buf, &refused);

            assert_int_equal(r, more < 0 ? -ERR_TOO_LARGE : 0);
            if (more >= 0)
                assert_int_equal(buf.len, sizes[i]);
        }
    }
}

static void
test_an_absent_file_is_not_found_and_a_folder_is_an_io_error(void **state)
{
    scoped(buf_release) struct buf buf = {0};
    struct err err = {0};

    assert_int_equal(fs_read_file(in(state, "none"), 10, &buf, &err), -ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/none: "));
    err_clear(&err);
    assert_int_equal(fs_read_file(*state, 10, &buf, &err), -ERR_IO);
}

static void
test_replacing_is_whole_and_leaves_no_rest(void **state)
{
    scoped(buf_release) struct buf buf = {0};
    struct err err = {0};

    assert_int_equal(fs_replace_file(in(state, "f"), "one", 3, 0644, &err), 0);
    assert_int_equal(fs_replace_file(in(state, "f"), "two", 3, 0640, &err), 0);
    assert_int_equal(fs_read_file(in(state, "f"), 10, &buf, &err), 0);
    assert_string_equal(buf_str(&buf), "two");
    assert_int_equal(mode_of(in(state, "f")), 0640);
    assert_int_equal(fs_replace_file(in(state, "no/f"), "x", 1, 0644, &err), -ERR_IO);
    fs_remove_quietly(in(state, "f"));
    assert_int_equal(rmdir(*state), 0); /* nothing else was in it */
    assert_int_equal(mkdir(*state, 0700), 0);
}

static void
test_a_failed_replace_leaves_the_old_file(void **state)
{
    struct err err = {0};

    assert_int_equal(mkdir(in(state, "d"), 0700), 0);
    assert_int_equal(fs_replace_file(in(state, "d"), "x", 1, 0644, &err), -ERR_IO);
    fs_remove_quietly(in(state, "d")); /* a folder: stays */
    assert_true(fs_exists(in(state, "d")));
    assert_int_equal(rmdir(in(state, "d")), 0);
    assert_int_equal(rmdir(*state), 0);
    assert_int_equal(mkdir(*state, 0700), 0);
}

static void
test_private_folders_are_made_with_parents(void **state)
{
    struct err err = {0};

    assert_int_equal(fs_mkdir_private(in(state, "a/b//c"), &err), 0);
    assert_int_equal(fs_mkdir_private(in(state, "a/b/c/"), &err), 0);
    assert_int_equal(fs_mkdir_private("/", &err), 0);
    assert_int_equal(mode_of(in(state, "a")), 0700);
    assert_int_equal(mode_of(in(state, "a/b/c")), 0700);
    assert_int_equal(fs_replace_file(in(state, "f"), "x", 1, 0600, &err), 0);
    assert_int_equal(fs_mkdir_private(in(state, "f/g"), &err), -ERR_IO);
    assert_non_null(strstr(err.text, "not a folder"));
}

static void
test_temp_files_are_private_and_distinct(void **state)
{
    scoped(buf_release) struct buf one = {0};
    scoped(buf_release) struct buf two = {0};
    scoped(fd_close) int fd_one = -1;
    scoped(fd_close) int fd_two = -1;
    struct err err = {0};

    assert_int_equal(fs_open_temp(*state, "t-", &one, &fd_one, &err), 0);
    assert_int_equal(fs_open_temp(*state, "t-", &two, &fd_two, &err), 0);
    assert_string_not_equal(buf_str(&one), buf_str(&two));
    assert_int_equal(mode_of(buf_str(&one)), 0600);
    assert_int_equal(fcntl(fd_one, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fs_pwrite_all(fd_one, "abc", 3, 5, "t", &err), 0);
    assert_int_equal(lseek(fd_one, 0, SEEK_END), 8);
    assert_int_equal(fs_rename_durable(buf_str(&one), in(state, "t"), &err), 0);
    assert_int_equal(fs_rename_durable(buf_str(&one), in(state, "t"), &err), -ERR_IO);
}

static void
test_writing_to_a_full_device_is_disk_full(void **state)
{
    scoped(fd_close) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct err err = {0};

    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, "x", 1, "/dev/full", &err), -ERR_DISK_FULL);
}

static void
test_removing_a_tree_follows_no_link(void **state)
{
    struct err err = {0};

    assert_int_equal(fs_mkdir_private(in(state, "kept"), &err), 0);
    assert_int_equal(fs_replace_file(in(state, "kept/f"), "x", 1, 0600, &err), 0);
    assert_int_equal(fs_mkdir_private(in(state, "tree/sub"), &err), 0);
    assert_int_equal(symlink(in(state, "kept"), in(state, "tree/sub/link")), 0);
    fs_remove_tree_quietly(in(state, "tree"));
    assert_false(fs_exists(in(state, "tree")));
    assert_true(fs_exists(in(state, "kept/f")));
}

/* In a child of its own: who asks second? 0 taken, 1 held, else failure. */
static int
take_in_child(const char *path, char *ret_holder)
{
    int pipes[2];
    int status;
    pid_t pid;

    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct lockfile lock = LOCKFILE_INIT;
        char holder[LOCKFILE_TEXT_SIZE] = "";
        struct err err = {0};
        int r = lockfile_take(path, "child", &lock, holder, &err);

        (void)!write(pipes[1], holder, sizeof(holder));
        _exit(r < 0 ? 9 : r);
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], ret_holder, LOCKFILE_TEXT_SIZE),
                     LOCKFILE_TEXT_SIZE);
    close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void
test_the_second_taker_is_told_who_holds_the_lock(void **state)
{
    scoped(lockfile_release) struct lockfile lock = LOCKFILE_INIT;
    char holder[LOCKFILE_TEXT_SIZE] = "";
    char pid[32];
    struct err err = {0};

    assert_int_equal(lockfile_take(in(state, "lock"), "serve", &lock, holder, &err),
                     LOCKFILE_TAKEN);
    snprintf(pid, sizeof(pid), "%d@", (int)getpid());
    assert_int_equal(take_in_child(in(state, "lock"), holder), LOCKFILE_HELD);
    assert_true(str_starts_with(holder, pid));
    assert_true(str_ends_with(holder, "Z, serve"));
    assert_non_null(strstr(holder, " since "));
}

static void
test_a_released_lock_can_be_taken_and_the_file_stays(void **state)
{
    struct lockfile lock = LOCKFILE_INIT;
    char holder[LOCKFILE_TEXT_SIZE] = "";
    struct err err = {0};

    assert_int_equal(lockfile_take(in(state, "lock"), "one", &lock, holder, &err), 0);
    lockfile_release(&lock);
    lockfile_release(&lock);
    assert_true(fs_exists(in(state, "lock")));
    /* The child takes it, and dies without a release: the kernel lets go. */
    assert_int_equal(take_in_child(in(state, "lock"), holder), LOCKFILE_TAKEN);
    assert_int_equal(lockfile_take(in(state, "lock"), "two", &lock, holder, &err), 0);
    lockfile_release(&lock);
}

static void
test_a_lock_file_that_is_a_link_is_refused(void **state)
{
    struct lockfile lock = LOCKFILE_INIT;
    char holder[LOCKFILE_TEXT_SIZE] = "";
    struct err err = {0};

    assert_int_equal(symlink(in(state, "elsewhere"), in(state, "lock")), 0);
    assert_int_equal(lockfile_take(in(state, "lock"), "x", &lock, holder, &err),
                     -ERR_IO);
    assert_int_equal(lock.fd, -1);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(test_reading_holds_the_ceiling_at_n_minus_1_n_and_n_plus_1),
        in_folder(test_an_absent_file_is_not_found_and_a_folder_is_an_io_error),
        in_folder(test_replacing_is_whole_and_leaves_no_rest),
        in_folder(test_a_failed_replace_leaves_the_old_file),
        in_folder(test_private_folders_are_made_with_parents),
        in_folder(test_temp_files_are_private_and_distinct),
        in_folder(test_writing_to_a_full_device_is_disk_full),
        in_folder(test_removing_a_tree_follows_no_link),
        in_folder(test_the_second_taker_is_told_who_holds_the_lock),
        in_folder(test_a_released_lock_can_be_taken_and_the_file_stays),
        in_folder(test_a_lock_file_that_is_a_link_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
