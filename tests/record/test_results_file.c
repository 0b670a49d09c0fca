// SPDX-License-Identifier: Apache-2.0
/* results.json: written and read back, refused when damaged, made again when the journal is newer. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
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
    struct nb_results r released_by(nb_results_release), back released_by(nb_results_release);
    cr_assert_eq(nb_results_fold(&r, dir), 0);
    cr_assert_eq(nb_results_write(&r, dir), 0);
    cr_assert_eq(nb_results_read(&back, dir), 0);
    char *file = get_file(dir, NB_RESULTS_FILE);
    cr_assert_str_eq(results_text(&r), file);
    cr_assert_str_eq(results_text(&back), file);
    cr_assert_eq(back.records[1].timing.time_ns.value, r.records[1].timing.time_ns.value);
    cr_assert_eq(back.records[1].bytes, r.records[1].bytes);
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
    struct nb_results r released_by(nb_results_release);
    return nb_results_read(&r, dir);
}

Test(results_file, a_file_that_is_no_results_is_refused_with_its_place) {
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"{\n\"schema\": \"3.0\",\n oops\n}", "results.json:3:"},
        {"[]", "results.json"},
        {"{\"schema\":\"3.0\"}", "records"},
        {"{\"schema\":\"2.0\",\"records\":[]}", "has schema 2.0, and this version reads only 3.0"},
        {"{\"records\":[]}", "has no \"schema\""},
        {"{\"schema\":\"3.0\",\"records\":[]}", "its head was changed"},
        {"", "results.json"},
        {"{\"schema\":\"3.0\",\"records\":[],\"config\":\"\xff\"}", "UTF-8"},
        {"{\"schema\":\"3.0\",\"records\":[],\"records\":[]}", "twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *dir = new_folder();
        put_text(dir, NB_RESULTS_FILE, cases[i].text);
        expect_refused(read_results(dir), cases[i].text, cases[i].said);
    }
    cr_assert_eq(read_results(new_folder()), -1);
}

/* ---- sums ---- */

/* Changes each value of a part and puts it back; the file is refused each time, and the part named where its name is not what changed. */
static void change_each(cJSON *in, const cJSON *results, const char *part, const char *dir) {
    static char other[] = "changed";
    cJSON *item;
    cJSON_ArrayForEach(item, in) {
        const char *name = item->string ? item->string : "";
        const cJSON kept = *item;
        if (strcmp(name, "records") == 0) continue;
        if (cJSON_IsArray(item) || cJSON_IsObject(item)) {
            change_each(item, results, part, dir);
            continue;
        }
        if (cJSON_IsString(item))
            item->valuestring = other;
        else if (cJSON_IsNumber(item))
            item->valuedouble = item->valuedouble ? 2 * item->valuedouble : 1;
        else
            item->type = cJSON_IsTrue(item) ? cJSON_False : cJSON_True;
        put_text(dir, NB_RESULTS_FILE, json_text(results));
        begin_errors();
        cr_expect_eq(read_results(dir), -1, "%s: %s can be changed", part, name);
        const char *said = end_errors();
        const bool is_schema = strcmp(name, "schema") == 0, is_name = strcmp(name, "key") == 0;
        cr_expect(strstr(said, is_schema ? "has schema changed" : "its \"sum\" is of something else") &&
                      strstr(said, is_schema || is_name ? NB_RESULTS_FILE : part),
                  "%s: %s: %s", part, name, said);
        *item = kept;
    }
}

Test(results_file, no_value_can_be_changed_but_white_space_can) {
    char *dir = new_folder();
    const struct nb_results r = folded(small_journal());
    cJSON *json = kept_json(cJSON_Parse(results_text(&r))), *record;
    put_text(dir, NB_RESULTS_FILE, json_text(json));
    cr_assert_eq(read_results(dir), 0);
    change_each(json, json, "its head", dir);
    cJSON_ArrayForEach(record, cJSON_GetObjectItem(json, "records"))
        change_each(record, json, nb_json_get_text(record, "key"), dir);
    cJSON_DeleteItemFromObject(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "records"), 1), "sum");
    put_text(dir, NB_RESULTS_FILE, json_text(json));
    expect_refused(read_results(dir), "a record without a sum", KEY_LN " was changed after it was written");
}

/* What to do is true: without the file the journal is read. */
Test(results_file, changed_results_can_be_made_again_from_the_journal) {
    char *dir = folder_with(small_journal()), *path freed = nb_path_join(dir, NB_RESULTS_FILE);
    struct nb_results r released_by(nb_results_release) = results_of(dir);
    cr_assert_eq(nb_results_write(&r, dir), 0);
    change_file(dir, NB_RESULTS_FILE, ": null", ": 1e999");
    expect_refused(read_results(dir), "infinity, which prints as null does", "its \"sum\" is of something else");
    cr_assert_eq(nb_results_write(&r, dir), 0);
    change_file(dir, NB_RESULTS_FILE, "\"config\": \"hand\"", "\"config\": \"band\"");
    expect_refused(read_results(dir), "another config", "delete it, and `normbench report` makes it again");
    unlink(path);
    cr_expect_eq(read_results(dir), 0);
}

/* The first records with a timing in them, each with one member changed; the error names file, record and member. */
Test(results_file, figures_that_cannot_be_are_refused_by_name) {
    static const struct {
        const char *in[3], *value, *said; /* in: the path in a record */
    } cases[] = {
        {{"timing", "time_ns", "value"}, "-5", "time_ns"},
        {{"timing", "time_ns"}, "-5", "time_ns"},
        {{"timing", "vs_copy", "low"}, "-0.5", "vs_copy"},
        {{"timing", "min_ns"}, "-1", "min_ns"},
        {{"timing", "gbytes_per_s"}, "\"3\"", "gbytes_per_s"},
        {{"timing"}, "-5", "timing"},
        {{"accuracy", "max_ulp"}, "-7", "max_ulp"},
        {{"accuracy"}, "[]", "accuracy"},
        {{"bytes"}, "-1", "bytes"},
    };
    char *dir = folder_with(small_journal());
    struct nb_results r released_by(nb_results_release) = results_of(dir);
    size_t at = 0;
    while (!r.records[at].has_timing) at++;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *json = kept_json(cJSON_Parse(results_text(&r))),
              *object = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "records"), (int)at);
        char *changed = new_folder(), *said;
        int depth = 0;
        for (; depth < 2 && cases[i].in[depth + 1]; depth++) object = cJSON_GetObjectItem(object, cases[i].in[depth]);
        cr_assert(cJSON_ReplaceItemInObject(object, cases[i].in[depth], cJSON_Parse(cases[i].value)), "%s",
                  cases[i].said);
        put_results(changed, json);
        begin_errors();
        cr_expect_eq(read_results(changed), -1, "%s: %s", cases[i].said, cases[i].value);
        said = end_errors();
        HAS(said, cases[i].said, r.records[at].key, NB_RESULTS_FILE);
    }
}

Test(results_file, records_that_are_gone_or_there_twice_are_noticed) {
    char *dir = folder_with(small_journal());
    struct nb_results r released_by(nb_results_release) = results_of(dir);
    cr_assert_geq(r.n, 2);
    for (int twice = 0; twice < 2; twice++) {
        cJSON *json = kept_json(cJSON_Parse(results_text(&r))), *records = cJSON_GetObjectItem(json, "records");
        char *changed = new_folder();
        if (twice)
            cJSON_ReplaceItemInArray(records, 1, cJSON_Duplicate(cJSON_GetArrayItem(records, 0), true));
        else
            cJSON_DeleteItemFromArray(records, 0);
        put_results(changed, json);
        expect_refused(read_results(changed), "records",
                       twice ? "records 1 and 2 are the same case: " : "\"counts\" has ");
    }
}
