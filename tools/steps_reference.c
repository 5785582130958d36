/* Writes docs/steps.md to standard output: `tools/docs-check --write`. */
#include "io/formats.h"
#include "io/option.h"
#include "steps/step.h"

#include <stdio.h>

static const char head[] =
    "# Steps\n"
    "\n"
    "Made from the tables in `src/steps/steps.c` and `src/io/formats.c`\n"
    "(`tools/docs-check --write`).\n"
    "\n"
    "A job has `steps`, done in order. A step reads rows and writes them, any reader "
    "with\n"
    "any writer, and commits chunk by chunk:\n"
    "\n"
    "```yaml\n"
    "steps:\n"
    "  - name: export            # letters, digits and -\n"
    "    chunk: 10000            # rows committed together; each writer has its "
    "default\n"
    "    read:  {sql: \"SELECT * FROM city WHERE country = :country\", database: "
    "shop}\n"
    "    write: {file: \"cities-{country}.xlsx\"}\n"
    "```\n"
    "\n"
    "Values of parameters are bound in SQL as `:name`, never pasted in; in names of "
    "files\n"
    "they stand as `{name}`, where anything but letters, digits, `.`, `_` and `-` "
    "becomes\n"
    "`_`. A job makes at most one result file.\n"
    "\n"
    "What a crash can do hangs on the writer: rows for `database: main` (the store's "
    "own)\n"
    "commit together with the note of how far the step is; rows for another database "
    "are\n"
    "committed first and noted then, so the last chunk may be written again when the "
    "job\n"
    "is asked for anew: make such a write an upsert. A file appears whole or not at "
    "all.\n"
    "In CSV a text that a spreadsheet would take for a formula (it begins with `=`, "
    "`+`,\n"
    "`-`, `@`, a tab or a carriage return) gets an apostrophe before it, unless `raw`; "
    "in\n"
    "a workbook a text is a text anyway.\n";

static void
print_options(const struct io_option *options, size_t count)
{
    static const char *const types[] = {
        [IO_OPTION_TEXT] = "text",
        [IO_OPTION_CHAR] = "one character",
        [IO_OPTION_BOOL] = "true or false",
        [IO_OPTION_WORD] = "word",
        [IO_OPTION_CHARSET] = "name of an encoding",
        [IO_OPTION_NUMBER] = "whole number",
        [IO_OPTION_NAME] = "name or number",
        [IO_OPTION_TEXTS] = "map: name to text",
        [IO_OPTION_MAP] = "map",
        [IO_OPTION_ONE_OR_LIST] = "text, or a list of them",
        [IO_OPTION_LIST] = "list",
        [IO_OPTION_TYPES] = "map: column to type",
        [IO_OPTION_ANY] = "see there",
        [IO_OPTION_COUNT] = "whole number",
        [IO_OPTION_DURATION] = "duration",
        [IO_OPTION_SIZE] = "bytes",
    };

    puts("\n| key | value | meaning |\n|---|---|---|");
    for (size_t i = 0; i < count; i++)
        printf("| `%s`%s | %s%s%s | %s |\n", options[i].name,
               options[i].required ? " (needed)" : "", types[options[i].type],
               options[i].words ? ": " : "", options[i].words ? options[i].words : "",
               options[i].help);
}

int
main(void)
{
    size_t count = 0;
    const struct step_type *types = step_types(&count);
    const struct processor_kind *processors;
    const struct reader_kind *readers;
    const struct writer_kind *writers;

    fputs(head, stdout);
    puts("\n| step | has | what it does |\n|---|---|---|");
    for (size_t i = 0; i < count; i++)
        printf("| %s | `%s` | %s |\n", types[i].name, types[i].key, types[i].help);
    readers = format_readers(&count);
    for (size_t i = 0; i < count; i++) {
        printf("\n## read: %s\n\n%s\n", readers[i].name, readers[i].help);
        print_options(readers[i].options, readers[i].n_options);
    }
    processors = format_processors(&count);
    puts("\n## process\n\n| key | what it does |\n|---|---|");
    for (size_t i = 0; i < count; i++)
        printf("| `%s` | %s |\n", processors[i].name, processors[i].help);
    puts("\nTheir keys, `skip`, `concurrency` and budgets stand in "
         "[collect.md](collect.md).");
    writers = format_writers(&count);
    for (size_t i = 0; i < count; i++) {
        printf(
            "\n## write: %s\n\n%s; %zu rows a chunk unless the step says otherwise\n",
            writers[i].name, writers[i].help, writers[i].chunk);
        print_options(writers[i].options, writers[i].n_options);
    }
    return 0;
}
