/*
 * embed: files into a C source, since neither compiler of Debian 12 knows #embed.
 *
 *     embed [-z] NAME OUTPUT FILE...
 *
 * OUTPUT defines `size_t NAME(const struct embed_file **ret_files)`, declared by who
 * uses it (base/embed.h). With -z each file is there gzipped as well where that is
 * smaller, for an HTTP server to hand out as it stands. The same input gives the same
 * output byte for byte: the gzip header bears no time.
 *
 * In meson:
 *     custom_target(input: files(…), output: 'page_files.c',
 *       command: [embed, '-z', 'page_files', '@OUTPUT@', '@INPUT@'])
 *
 * It runs at build time only: any trouble is said, and ends it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

struct bytes {
    unsigned char *data;
    size_t len;
};

static void
die(const char *what, const char *path)
{
    fprintf(stderr, "embed: %s: %s: %s\n", path, what, strerror(errno));
    exit(1);
}

static struct bytes
read_file(const char *path)
{
    struct bytes all = {0};
    FILE *in = fopen(path, "rb");
    size_t room = 0;

    if (!in)
        die("cannot open", path);
    for (;;) {
        if (all.len == room) {
            room = room ? room * 2 : 65536;
            all.data = realloc(all.data, room);
            if (!all.data)
                die("no memory", path);
        }
        size_t got = fread(all.data + all.len, 1, room - all.len, in);

        if (got == 0)
            break;
        all.len += got;
    }
    if (ferror(in))
        die("cannot read", path);
    fclose(in);
    return all;
}

/* The input as one gzip member; empty when that would not be smaller. */
static struct bytes
gzip(const struct bytes *in, const char *path)
{
    struct bytes out = {0};
    z_stream z = {0};

    if (in->len > 0x40000000)
        die("too large to embed", path);
    /* 15 + 16: the largest window, gzip format. */
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        die("deflate does not start", path);
    size_t room = deflateBound(&z, (uLong)in->len);

    out.data = malloc(room);
    if (!out.data)
        die("no memory", path);
    z.next_in = in->data;
    z.avail_in = (uInt)in->len;
    z.next_out = out.data;
    z.avail_out = (uInt)room;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        die("deflate failed", path);
    out.len = room - z.avail_out;
    deflateEnd(&z);
    if (out.len >= in->len) {
        free(out.data);
        out = (struct bytes){0};
    }
    return out;
}

static void
write_array(FILE *out, const char *kind, int number, const struct bytes *b)
{
    fprintf(out, "static const unsigned char %s_%d[] = {", kind, number);
    for (size_t i = 0; i < b->len; i++)
        fprintf(out, "%s%u,", i % 20 == 0 ? "\n" : "", b->data[i]);
    fputs("\n0};\n", out);
}

/* The name as a C string; what could end it or start an escape is refused. */
static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    for (const char *c = name; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') {
            errno = EINVAL;
            die("cannot embed a file of this name", path);
        }
    return name;
}

int
main(int argc, char **argv)
{
    bool zip = argc > 1 && strcmp(argv[1], "-z") == 0;
    int at = zip ? 2 : 1;

    if (argc < at + 3) {
        fputs("usage: embed [-z] NAME OUTPUT FILE...\n", stderr);
        return 2;
    }
    const char *name = argv[at];
    const char *path = argv[at + 1];
    char **files = argv + at + 2;
    int count = argc - at - 2;
    FILE *out = fopen(path, "wb");
    size_t *sizes = calloc((size_t)count * 2, sizeof(*sizes));

    if (!out || !sizes)
        die("cannot write", path);
    fputs("/* Made by tools/embed. */\n#include \"base/embed.h\"\n\n", out);
    for (int i = 0; i < count; i++) {
        struct bytes plain = read_file(files[i]);
        struct bytes zipped = zip ? gzip(&plain, files[i]) : (struct bytes){0};

        write_array(out, "plain", i, &plain);
        sizes[i * 2] = plain.len;
        if (zipped.len)
            write_array(out, "gzip", i, &zipped);
        sizes[i * 2 + 1] = zipped.len;
        free(plain.data);
        free(zipped.data);
    }
    fputs("\nstatic const struct embed_file files[] = {\n", out);
    for (int i = 0; i < count; i++) {
        fprintf(out, "    {\"%s\", plain_%d, %zu, ", base_name(files[i]), i,
                sizes[i * 2]);
        if (sizes[i * 2 + 1])
            fprintf(out, "gzip_%d, %zu},\n", i, sizes[i * 2 + 1]);
        else
            fputs("NULL, 0},\n", out);
    }
    fprintf(
        out,
        "};\n\nsize_t %s(const struct embed_file **ret_files);\n\n"
        "size_t\n%s(const struct embed_file **ret_files)\n{\n"
        "    *ret_files = files;\n    return sizeof(files) / sizeof(files[0]);\n}\n",
        name, name);
    free(sizes);
    if (fclose(out) != 0)
        die("cannot write", path);
    return 0;
}
