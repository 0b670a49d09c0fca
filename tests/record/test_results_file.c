// SPDX-License-Identifier: Apache-2.0
/* results.json: written and read back, refused when damaged, made again when the journal is newer. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

TestSuite(results_file, .init = quiet);

static char *results_text(const struct nb_results *r) {
    struct nb_strbuf out = {0};
    nb_results_print(r, &out);
    return kept(out.text);
}

Test(results_file, what_is_written_reads_back_exactly) {
    char *dir = folder_with(small_journal());
    struct nb_results r, back;
    cr_assert_eq(nb_results_fold(&r, dir), 0);
    cr_assert_eq(nb_results_write(&r, dir), 0);
    cr_assert_eq(nb_results_read(&back, dir), 0);
    char *file = get_file(dir, NB_RESULTS_FILE);
    cr_assert_str_eq(results_text(&r), file);
    cr_assert_str_eq(results_text(&back), file);
    cr_assert_eq(back.records[1].timing.time_ns.value, r.records[1].timing.time_ns.value);
    cr_assert_eq(back.records[1].bytes, r.records[1].bytes);
    nb_results_release(&r);
    nb_results_release(&back);
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
    put_text(dir, NB_JOURNAL_FILE, journal);
    path = nb_path_join(dir, NB_RESULTS_FILE);
    struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    utimensat(AT_FDCWD, path, times, 0);
    cr_assert(nb_results_outdated(dir));
    cr_assert_eq(nb_results_read(&r, dir), 0);
    cr_assert_eq(nb_json_get_number(r.meta, "elapsed_s"), 3.5);
    nb_results_release(&r);
    free(path);
}

static int read_results(const char *dir) {
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
        put_text(dir, NB_RESULTS_FILE, cases[i].text);
        begin_errors();
        expect_refused(read_results(dir), cases[i].text, cases[i].said);
    }
    cr_assert_eq(read_results(new_folder()), -1);
}
