/* Writes docs/states.md to standard output: `meson compile states`. */
#include "batch/lifecycle.h"
#include "queue/lifecycle.h"

#include <stdio.h>

static const char head[] =
    "# States\n"
    "\n"
    "Made from the tables in `src/queue/lifecycle.c` and `src/batch/lifecycle.c`\n"
    "(`meson compile states`); they are the only places where a state may change.\n"
    "\n"
    "## Request\n"
    "\n"
    "A state says where the request stands, an outcome how it ended. DONE and FAILED "
    "are\n"
    "final.\n"
    "\n";

static const char middle[] = "\n"
                             "## Execution and step execution\n"
                             "\n"
                             "STOPPING is running: it has no end time until the work "
                             "has really ended. COMPLETED,\n"
                             "FAILED and STOPPED are final.\n"
                             "\n";

static void
print_requests(void)
{
    size_t count = 0;
    const struct request_move *moves = request_moves(&count);

    puts("```mermaid\nstateDiagram-v2");
    for (size_t i = 0; i < count; i++)
        printf("    %s --> %s: %s\n",
               moves[i].entry ? "[*]" : request_status_name(moves[i].from),
               request_status_name(moves[i].to), moves[i].event);
    puts("```\n\n| from | event | to | outcome | why |\n|---|---|---|---|---|");
    for (size_t i = 0; i < count; i++) {
        const char *outcome = request_outcome_name(moves[i].outcome);

        printf("| %s | %s | %s | %s | %s |\n",
               moves[i].entry ? "–" : request_status_name(moves[i].from),
               moves[i].event, request_status_name(moves[i].to),
               outcome ? outcome : "–", moves[i].why);
    }
}

static void
print_executions(void)
{
    size_t count = 0;
    const struct execution_move *moves = execution_moves(&count);

    puts("```mermaid\nstateDiagram-v2");
    for (size_t i = 0; i < count; i++)
        printf("    %s --> %s: %s\n",
               moves[i].entry ? "[*]" : execution_state_name(moves[i].from),
               execution_state_name(moves[i].to), moves[i].event);
    puts("```\n\n| from | event | to | why |\n|---|---|---|---|");
    for (size_t i = 0; i < count; i++)
        printf("| %s | %s | %s | %s |\n",
               moves[i].entry ? "–" : execution_state_name(moves[i].from),
               moves[i].event, execution_state_name(moves[i].to), moves[i].why);
}

int
main(void)
{
    fputs(head, stdout);
    print_requests();
    fputs(middle, stdout);
    print_executions();
    return fflush(stdout) == 0 ? 0 : 1;
}
