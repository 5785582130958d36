/* Writes docs/steps.md to standard output: `tools/docs-check --write`. */
#include "io/formats.h"
#include "io/item_retry.h"
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
    "  - name: export            # letters, digits, - and _\n"
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
    "`_` (so a value names a file, never a folder). A file to be read is sought from "
    "the\n"
    "folder of `pawl.yaml`, unless its path begins with `/`. A job makes at\n"
    "most one result file.\n"
    "\n"
    "A step that reads and writes one SQLite database at once needs it in WAL mode, or "
    "its\n"
    "reading keeps its writing out: `PRAGMA journal_mode=WAL`, once. A stop is obeyed "
    "between\n"
    "chunks, when the rows of the chunk have come: a slow query is ended by `pawl "
    "cancel`.\n"
    "\n"
    "## How a step goes on\n"
    "\n"
    "After a stop, a failure or a crash a job that is gone on with does not begin its "
    "steps\n"
    "anew: those completed are passed over, and the broken one goes on behind its "
    "last\n"
    "committed chunk. Each step shows which promise its writer gives (its `effect`):\n"
    "\n"
    "| writer | effect | what a crash can do |\n"
    "|---|---|---|\n"
    "| `database: main`, the store's own | transactional | nothing: rows, counters and "
    "checkpoint are one transaction |\n"
    "| another database | transactional | nothing: the checkpoint is a row of the "
    "table `pawl_checkpoint` there, in the transaction of the rows |\n"
    "| another database, `checkpoint: none` | at-least-once | the last chunk may be "
    "written again: make it an upsert |\n"
    "| `file` | file | nothing: the file begun is cut back to its checkpoint and gone "
    "on with; it ends byte for byte as if it had not been interrupted (a workbook "
    "too), and is published whole or not at all |\n"
    "| `http` | at-least-once | rows since the last checkpoint are sent again, with "
    "the "
    "keys they had |\n"
    "\n"
    "pawl makes `pawl_checkpoint` itself when a step first writes to a database. Where "
    "its\n"
    "user may not create tables, let the owner run this once, and grant the user "
    "SELECT,\n"
    "INSERT, UPDATE and DELETE on it:\n"
    "\n"
    "```sql\n"
    "CREATE TABLE pawl_checkpoint (store_id text NOT NULL, instance bigint NOT NULL,\n"
    "    step text NOT NULL, token bigint NOT NULL, chunk bigint NOT NULL, position "
    "text,\n"
    "    writer_state text, counters text, updated_at bigint NOT NULL,\n"
    "    PRIMARY KEY (store_id, instance, step));\n"
    "```\n"
    "\n"
    "Its rows are removed 30 days after they were last touched. A run that goes on "
    "raises\n"
    "`token` there first, so one that was taken for dead and wakes up later writes "
    "nothing.\n"
    "\n"
    "The unfinished file lies in the results folder as long as it can be gone on from: "
    "until\n"
    "its job is completed, cancelled or asked for anew, at most for seven days. If it "
    "is gone\n"
    "or not whole, the step begins at zero and says so.\n"
    "\n"
    "A query says by `restart` where it goes on:\n"
    "\n"
    "- `position` (the default): it is run again, and as many rows as were committed "
    "are\n"
    "  passed over. Right where the query gives the same rows in the same order each "
    "time: end\n"
    "  it in ORDER BY. A query that was changed since the stop goes on the same way "
    "(so an\n"
    "  expression can be mended), and the step's message says so.\n"
    "- `requery`: it is run again and read from its first row, because its condition "
    "leaves\n"
    "  out what is done.\n"
    "- `key`, with `key: id` or `key: [day, id]`: rows are read in ascending order of "
    "these\n"
    "  columns (the query needs no ORDER BY), and going on begins behind the last key. "
    "Fast\n"
    "  on large tables, and rows that come or go meanwhile do no harm. Together the "
    "columns\n"
    "  must tell the rows apart and never be NULL.\n"
    "\n"
    "Files are read from front to back, and the position is known in the file itself: "
    "a "
    "byte\n"
    "in CSV and JSON lines, a row in XML and workbooks. A checksum tells whether it is "
    "still\n"
    "the same file; if not, the step fails rather than leave rows out. A file that is "
    "made or\n"
    "downloaded anew, in another order each time, is read with `restart: beginning`: "
    "all "
    "of it\n"
    "again, into a table by an upsert, or into a file that is started over.\n"
    "\n"
    "## A step in partitions\n"
    "\n"
    "```yaml\n"
    "steps:\n"
    "  - name: copy\n"
    "    chunk: 1000\n"
    "    partitions: 8\n"
    "    partition: {key: id}\n"
    "    read: {database: shop, sql: \"SELECT id, total FROM orders\"}\n"
    "    write: {database: main, rows: \"INSERT INTO copied VALUES (:id, :total)\"}\n"
    "```\n"
    "\n"
    "The rows of `read.sql` are cut by a column of whole numbers into so many ranges "
    "(2 to 64) of\n"
    "about the same width, and the ranges are read side by side: by the run itself, "
    "and by *hands*,\n"
    "requests with source `partition` that any free slot of any worker takes, in the "
    "lane of the\n"
    "run. With no slot free the run does all of them, one after the other. The column "
    "must hold no\n"
    "NULL; unless the reader has `restart: key` or `requery`, it must be unique as "
    "well, since the\n"
    "rows of a range are read in its order. Rows that come in later beyond the ends "
    "belong to the\n"
    "first or last range.\n"
    "\n"
    "Items (`read: {items: …}`) are cut by the numbers of their combinations, without\n"
    "`partition`; values that come out of a query must stay the same while the step "
    "runs.\n"
    "\n"
    "Each partition has a checkpoint of its own, which belongs to the instance: after "
    "a crash,\n"
    "stop or failure the next try goes on with those that are not done, each where it "
    "stood. What\n"
    "a dead hand held is taken by the others. A chunk counts only while both claims "
    "stand, that of\n"
    "the hand and that of the run, so each row is there once, in the store's database "
    "and in\n"
    "others. The step is COMPLETED, with the sums of all counters, when all partitions "
    "are. An\n"
    "error in one fails the step; the message names the partition and its range. A "
    "stop or cancel\n"
    "of the run is for its hands too.\n"
    "\n"
    "The writer must be one that makes no file. A request with `maxCalls` has no "
    "hands. An SQLite\n"
    "database that the step reads and writes at once must be in WAL mode.\n"
    "\n"
    "## Records that cannot be read\n"
    "\n"
    "A line of another width, a number that is none, bytes that are no text of the "
    "encoding,\n"
    "an object with a key twice: such a record fails the step with file, line and "
    "column,\n"
    "unless the step leaves out items of the class. The class is `parse` where the "
    "bytes are\n"
    "not what the format has, and `format` where they are but do not fit the columns. "
    "What\n"
    "makes the rest of the file unreadable always fails the step: a quote that is "
    "never "
    "closed,\n"
    "XML that is not well-formed, half a ZIP file, a file made to swell (entities, "
    "ratios "
    "over\n"
    "300).\n"
    "\n"
    "## Rows out of nothing\n"
    "\n"
    "`items` gives each combination of values, for calls to be made or reports to be "
    "written:\n"
    "\n"
    "```yaml\n"
    "read:\n"
    "  items:\n"
    "    district: {sql: \"SELECT code FROM district ORDER BY code\", database: shop}\n"
    "    kind:     [sale, rent]\n"
    "    month:    {from: \"{first_month}\", to: \"2026-12\"}   # also numbers, days\n"
    "    year:     {param: years}                           # a list given by who "
    "asks\n"
    "```\n"
    "\n"
    "`write.item` and `write.rows` take a statement or a list of them. Those of `item` "
    "run once\n"
    "for each row that was read, those of `rows` after them for each row that came of "
    "the\n"
    "processors (without any, these are the same rows). All of a chunk is one "
    "transaction.\n"
    "Foreign keys of an SQLite database are kept by the store's own only; in one of "
    "yours they are\n"
    "not looked at, as SQLite has it unless a connection asks.\n"
    "\n"
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
    const struct io_option *retry;

    fputs(head, stdout);
    puts("\n| step | has | what it does |\n|---|---|---|");
    for (size_t i = 0; i < count; i++)
        printf("| %s | `%s` | %s |\n", types[i].name, types[i].key, types[i].help);
    puts("\nThe keys of the last three stand in "
         "[collect.md](collect.md#steps-without-rows).");
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
    puts("\n## retry\n\nwhat of a step is tried again before its `skip`, or the end "
         "of the step, decides");
    retry = item_retry_options(&count);
    print_options(retry, count);
    puts("\nAn item whose processing fails is processed again, from the item as it was "
         "read; a chunk\nthat its target refuses is rolled back and written again as a "
         "whole (then, where `skip`\nnames the class, once more item by item). Records "
         "that cannot be read are not read\nagain. A stop, drain or cancel ends the "
         "wait "
         "at once.");
    writers = format_writers(&count);
    for (size_t i = 0; i < count; i++) {
        printf(
            "\n## write: %s\n\n%s; %zu rows a chunk unless the step says otherwise\n",
            writers[i].name, writers[i].help, writers[i].chunk);
        print_options(writers[i].options, writers[i].n_options);
    }
    return 0;
}
