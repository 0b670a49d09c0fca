// SPDX-License-Identifier: Apache-2.0
/* What we write against the published schemas, by a validator that is not ours. Without it these tests are skipped. */
#include <criterion/criterion.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "src/record/fold.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

extern char **environ;

TestSuite(schema, .init = quiet);

enum { MOST = NB_N_STATUSES };

/* dirs: up to MOST folders, then null. */
static int spawn_validator(char **dirs) {
    char python[] = "/usr/bin/python3", script[] = "tests/check_schema.py", schemas[] = "reports/schema";
    char *argv[4 + MOST] = {python, script, schemas};
    for (char **dir = dirs, **arg = argv + 3; *dir; dir++) *arg++ = *dir;
    pid_t child;
    int status;
    if (posix_spawn(&child, argv[0], NULL, NULL, argv, environ) != 0) return 77;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What it says. */
static char *validate(char **dirs, int expected) {
    begin_errors();
    const int code = spawn_validator(dirs);
    char *errors = end_errors();
    if (code == 77) cr_skip_test("no /usr/bin/python3 with jsonschema");
    cr_assert_eq(code, expected, "%s", errors);
    return errors;
}

Test(schema, records_of_every_status_are_valid) {
    struct nb_strbuf text = {0};
    char *dirs[MOST + 1] = {NULL};
    char *run = run_line("[{\"index\":0,\"part\":0,\"keys\":[\"" KEY_RMS "\",\"" KEY_LN "\"],\"reference\":0}]",
                         "[{\"reason\":\"no\",\"count\":1,\"key\":\"" KEY_PLUGIN "\"}]", "[1,3]", 1);
    for (int s = 0; s < NB_N_STATUSES; s++) {
        char *dir = dirs[s] = new_folder();
        struct nb_results r;
        nb_strbuf_clear(&text);
        nb_strbuf_add(&text, run);
        if (nb_status_failed((enum nb_status)s))
            nb_strbuf_addf(&text,
                           "{\"type\":\"failure\",\"group\":0,\"launch\":null,\"key\":\"" KEY_RMS
                           "\",\"status\":\"%s\",\"reason\":\"why\"}\n",
                           nb_status_name((enum nb_status)s));
        nb_strbuf_add(&text,
                      "{\"type\":\"resume\",\"started\":\"2025-01-31T12:00:00Z\",\"argv\":[\"normbench\"],"
                      "\"fingerprint\":{\"build\":{},\"cpu\":{},\"system\":{},\"kernels\":[],\"libraries\":{}}}\n"
                      "{\"type\":\"end\",\"elapsed_s\":1,\"peak_memory_mib\":null,\"interrupted\":2}\n");
        put_journal(dir, text.text);
        cr_assert_eq(nb_results_fold(&r, dir), 0);
        cr_assert_eq(nb_results_write(&r, dir), 0);
        nb_results_release(&r);
    }
    validate(dirs, 0);
    nb_strbuf_release(&text);
}
