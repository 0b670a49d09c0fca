// SPDX-License-Identifier: Apache-2.0
/* results.json: written and read back, refused when damaged, made again when the journal is newer. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/results.h"
#include "tests/support/runs.h"

static void quiet(void) { nb_log_quiet(true); }
TestSuite(results_file, .init = quiet);

static char *results_text(const struct nb_results *r) {
    struct nb_strbuf out = {0};
    nb_results_print(r, &out);
    return out.text;
}

Test(results_file, what_is_written_reads_back_exactly) {
    char *journal = small_journal(), *dir = new_folder();
    struct nb_results r, back;
    put_file(dir, NB_JOURNAL_FILE, journal, strlen(journal));
    cr_assert_eq(nb_results_fold(&r, dir), 0);
    cr_assert_eq(nb_results_write(&r, dir), 0);
    cr_assert_eq(nb_results_read(&back, dir), 0);
    char *written = results_text(&r), *read = results_text(&back), *file = get_file(dir, NB_RESULTS_FILE);
    cr_assert_str_eq(written, file);
    cr_assert_str_eq(read, file);
    cr_assert_eq(back.records[1].timing.time_ns.value, r.records[1].timing.time_ns.value);
    cr_assert_eq(back.records[1].bytes, r.records[1].bytes);
    free(written);
    free(read);
    free(file);
    free(journal);
    nb_results_release(&r);
    nb_results_release(&back);
    remove_run(dir);
}

Test(results_file, a_newer_journal_is_folded_instead_of_reading_old_results) {
    char *journal = small_journal(), *dir = new_folder(), *path;
    struct nb_results r;
    put_file(dir, NB_JOURNAL_FILE, journal, (size_t)(strstr(journal, "{\"type\":\"end\"") - journal));
    cr_assert_eq(nb_results_fold(&r, dir), 0);
    cr_assert(nb_results_outdated(dir));
    cr_assert_eq(nb_results_write(&r, dir), 0);
    cr_assert_not(nb_results_outdated(dir));
    nb_results_release(&r);
    put_file(dir, NB_JOURNAL_FILE, journal, strlen(journal));
    path = nb_path_join(dir, NB_RESULTS_FILE);
    struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    utimensat(AT_FDCWD, path, times, 0);
    cr_assert(nb_results_outdated(dir));
    cr_assert_eq(nb_results_read(&r, dir), 0);
    cr_assert_eq(nb_json_get_number(r.meta, "elapsed_s"), 3.5);
    nb_results_release(&r);
    free(path);
    free(journal);
    remove_run(dir);
}

static int read_results(void *dir) {
    struct nb_results r;
    int result = nb_results_read(&r, dir);
    if (result == 0) nb_results_release(&r);
    return result;
}

Test(results_file, a_file_that_is_no_results_is_refused_with_its_place) {
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"{\n\"schema\": \"1.0\",\n oops\n}", "results.json:3:"},
        {"[]", "results.json"},
        {"{\"schema\":\"2.0\"}", "records"},
        {"{\"schema\":\"7.0\",\"records\":[]}", "7.0"},
        {"{\"schema\":\"2.0\",\"records\":[{}]}", "record 1"},
        {"", "results.json"},
        {"{\"schema\":\"2.0\",\"records\":[],\"config\":\"\xff\"}", "UTF-8"},
        {"{\"schema\":\"2.0\",\"records\":[],\"records\":[]}", "twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *dir = new_folder();
        put_file(dir, NB_RESULTS_FILE, cases[i].text, strlen(cases[i].text));
        int result;
        char *errors = errors_of(read_results, dir, &result);
        cr_assert_eq(result, -1, "%s", cases[i].text);
        cr_assert_not_null(strstr(errors, cases[i].said), "%s", errors);
        free(errors);
        remove_run(dir);
    }
    char *empty = new_folder();
    cr_assert_eq(read_results(empty), -1);
    remove_run(empty);
}
