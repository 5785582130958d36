/*
 * Where parts and results lie: one folder that every process of a store sees.
 * All access to it goes through here, so that an object store can take its
 * place. The folder proves by a marker file that it belongs to this store.
 *
 *      <folder>/pawl-store                     the store's id
 *      <folder>/parts/INSTANCE-STEP-TOKEN.part  being made; bears the claim's token
 *      <folder>/files/REQUEST/NAME             finished, never changed again
 *
 * Publishing is write, fsync, rename, fsync of the folders, then the row: a row
 * never names a file that a power cut can take away. Read-only after opening;
 * any thread.
 */
#ifndef RUN_RESULT_STORE_H
#define RUN_RESULT_STORE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct result_store;

#define RESULT_PATH_MAX 512 /* of the path inside the folder, as kept in rows */

struct result_file {
    char path[RESULT_PATH_MAX]; /* relative to the folder */
    int64_t bytes;
    char sha256[65];
};

/*
 * Open the folder, making it and its marker where there is none yet.
 * -ERR_CONFIG: the folder belongs to another store.
 */
int result_store_open(const char *folder, const char *store_id,
                      struct result_store **ret_results, struct err *err) must_check;
void result_store_close(struct result_store *results);

/* Has this folder been opened before, by any store? */
bool result_store_is_marked(const char *folder);

/* The absolute path of the part that one step of one claim writes. */
int result_store_part(const struct result_store *results, int64_t instance,
                      const char *step, int64_t token, char *ret_path, size_t size,
                      struct err *err) must_check;

/* Turn a finished, closed part into the result NAME of its request. */
int result_store_publish(const struct result_store *results, const char *part_path,
                         int64_t request, const char *name,
                         struct result_file *ret_file, struct err *err) must_check;

/* What a request published, hashed anew; its NAME goes to ret_name. -ERR_NOT_FOUND:
 * nothing. */
int result_store_find(const struct result_store *results, int64_t request,
                      char ret_name[256], struct result_file *ret_file,
                      struct err *err) must_check;

/*
 * Open a result for reading. -ERR_GONE: it is no longer there. A file that is
 * not bytes long is damaged: -ERR_IO says so and nothing is served.
 */
int result_store_read(const struct result_store *results, const char *path,
                      int64_t bytes, int *ret_fd, struct err *err) must_check;

/* Bytes and hash of what is left to read of fd; path is for messages. */
int result_store_hash(int fd, const char *path, struct result_file *file,
                      struct err *err) must_check;

/* What lies in the folder; path is relative to it and lives during the call only. */
struct result_entry {
    int64_t owner; /* of a part the instance, of a published file the request */
    int64_t token; /* of a part; 0 = a published file */
    const char *path;
};

typedef int (*result_entry_fn)(void *arg, const struct result_entry *entry,
                               struct err *err);

/* All parts and files with names of ours, in no order; fn < 0 ends it. */
int result_store_list(const struct result_store *results, result_entry_fn fn, void *arg,
                      struct err *err) must_check;
int result_store_list_parts(const struct result_store *results, result_entry_fn fn,
                            void *arg, struct err *err) must_check;
bool result_store_there(const struct result_store *results, const char *path);

/* Remove the parts of an instance, or only those of one claim (token > 0). */
void result_store_drop_parts(const struct result_store *results, int64_t instance,
                             int64_t token);

/* Remove the parts of an instance that claims up to this one made: those of a run that
 * went on after them, with a later token, stay. */
void result_store_drop_parts_until(const struct result_store *results, int64_t instance,
                                   int64_t token);

/* Remove what a request published (its row must not name it any more). */
void result_store_drop_files(const struct result_store *results, int64_t request);

/* Remove one published file, by its path in the folder. Gone already is fine. */
int result_store_drop_file(const struct result_store *results, const char *path,
                           struct err *err) must_check;

#endif
