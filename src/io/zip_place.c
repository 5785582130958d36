#include "io/zip_place.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "io/zip_read.h"

#include <string.h>

int
zip_place_put(const struct zip_entry *entry, int64_t rows, struct buf *out)
{
    struct json_out json;

    json_out_init(&json, out);
    json_begin_object(&json);
    json_kv_i64(&json, "rows", rows);
    json_kv_i64(&json, "crc", entry->crc);
    json_kv_i64(&json, "bytes", (int64_t)entry->raw);
    json_end_object(&json);
    return 0;
}

int
zip_place_get(const char *name, const struct zip_entry *entry, const char *text,
              int64_t *ret_rows, struct err *err)
{
    scoped(json_drop) json_t *root = NULL;
    int64_t crc = -1, bytes = -1, rows = 0;
    int r = json_parse(text, strlen(text), 4, &root, err);

    if (r == 0)
        r = json_get_i64(root, "rows", &rows, err);
    if (r == 0)
        r = json_get_i64(root, "crc", &crc, err);
    if (r == 0)
        r = json_get_i64(root, "bytes", &bytes, err);
    err_clear(err);
    if (r != 0 || crc != entry->crc || bytes != (int64_t)entry->raw)
        return err_set(err, ERR_INVALID,
                       "%s is not the file that was read before the stop: it was "
                       "changed; ask for a new run (restart: false), and say `restart: "
                       "beginning` if its rows may come in another order each time",
                       name);
    *ret_rows = rows;
    return 0;
}
