// SPDX-License-Identifier: Apache-2.0
/* What we write against the published schemas, by a validator that is not ours. Without it these tests are skipped. */
#include <criterion/criterion.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/results.h"
#include "tests/support/runs.h"

extern char **environ;

static void quiet(void) { nb_log_quiet(true); }
TestSuite(schema, .init = quiet);

enum { MOST = NB_N_STATUSES };

/* dirs: up to MOST folders, then null. */
static int spawn_validator(void *dirs) {
    char python[] = "/usr/bin/python3", script[] = "tests/check_schema.py", schemas[] = "reports/schema";
    char *argv[4 + MOST] = {python, script, schemas};
    for (char **dir = dirs, **arg = argv + 3; *dir; dir++) *arg++ = *dir;
    pid_t child;
    int status;
    if (posix_spawn(&child, argv[0], NULL, NULL, argv, environ) != 0) return 77;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void assert_validator_says(char **dirs, int expected) {
    int code;
    char *errors = errors_of(spawn_validator, dirs, &code);
    if (code == 77) cr_skip_test("no /usr/bin/python3 with jsonschema");
    cr_assert_eq(code, expected, "%s", errors);
    free(errors);
}

static char *folder_with_run(void) {
    char *dir = new_folder(), *journal = small_journal();
    struct nb_results r;
    put_file(dir, NB_JOURNAL_FILE, journal, strlen(journal));
    cr_assert_eq(nb_results_fold(&r, dir), 0);
    cr_assert_eq(nb_results_write(&r, dir), 0);
    nb_results_release(&r);
    free(journal);
    return dir;
}

Test(schema, a_run_is_valid) {
    char *dirs[] = {folder_with_run(), NULL};
    assert_validator_says(dirs, 0);
    remove_run(dirs[0]);
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
        put_file(dir, NB_JOURNAL_FILE, text.text, text.len);
        cr_assert_eq(nb_results_fold(&r, dir), 0);
        cr_assert_eq(nb_results_write(&r, dir), 0);
        nb_results_release(&r);
    }
    assert_validator_says(dirs, 0);
    for (int s = 0; s < NB_N_STATUSES; s++) remove_run(dirs[s]);
    nb_strbuf_release(&text);
    free(run);
}

Test(schema, the_validator_rejects_what_is_wrong) {
    static const struct {
        const char *file, *old, *new;
    } wrongs[] = {
        {"results.json", "\"status\": \"ok\"", "\"status\": \"fine\""},
        {"results.json", "\"n_samples\": 12", "\"n_samples\": 1.5"},
        {"results.json", "\"suspect\": false", "\"suspect\": NaN"},
        {"results.json", "\"counts\"", "\"cuonts\""},
        {"results.json", "\"status\": \"ok\"", "\"status\": \"crashed\""}, /* with times */
        {"results.json", "\"group\": 4", "\"group\": 4, \"group\": 4"},
        {"journal.jsonl", "\"per_sample\":8", "\"per_sample\":null"},
        {"journal.jsonl", "\"reason\":\"no vPMU\"", "\"because\":\"no vPMU\""},
        {"journal.jsonl", "\"order_seed\":\"18446744073709551615\"", "\"order_seed\":18446744073709551615"},
        {"journal.jsonl", "\"type\":\"check\"", "\"type\":\"chuck\""},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        char *dir = folder_with_run(), *text = get_file(dir, wrongs[i].file), *hit = strstr(text, wrongs[i].old);
        struct nb_strbuf out = {0};
        cr_assert_not_null(hit, "%s", wrongs[i].old);
        nb_strbuf_addn(&out, text, (size_t)(hit - text));
        nb_strbuf_add(&out, wrongs[i].new);
        nb_strbuf_add(&out, hit + strlen(wrongs[i].old));
        put_file(dir, wrongs[i].file, out.text, out.len);
        assert_validator_says((char *[]){dir, NULL}, 1);
        nb_strbuf_release(&out);
        free(text);
        remove_run(dir);
    }
}
