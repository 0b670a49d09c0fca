// SPDX-License-Identifier: Apache-2.0
/* The journal as a file: whole lines survive everything, damaged ones are left out and named. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/json.h"
#include "src/measure/journal.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

static int count_line(const cJSON *line, void *arg) {
    (*(int *)arg)++;
    return 0;
}

static cJSON *line_of_type(const char *type) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", type);
    nb_json_text(line, "schema", NB_SCHEMA_VERSION);
    return line;
}

/* The same as the program writes it, with the "run" line twice. */
static char *written(const char *journal) {
    char *dir = new_folder();
    struct nb_journal j;
    cr_assert_eq(nb_journal_create(&j, dir), 0);
    for (const char *at = journal; *at; at += strcspn(at, "\n") + 1) {
        cJSON *line = cJSON_ParseWithLength(at, strcspn(at, "\n"));
        cJSON_DeleteItemFromObject(line, "sum");
        cr_assert_eq(nb_journal_write(&j, kept_json(line)), 0);
    }
    nb_journal_close(&j);
    return get_file(dir, NB_JOURNAL_FILE);
}

TestSuite(journal, .init = quiet);

/* copies: of the "run" line. */
static void truncate_at_every_byte(const char *journal, int copies) {
    char *dir = new_folder();
    const size_t len = strlen(journal), first = strcspn(journal, "\n");
    for (size_t cut = 1; cut < len; cut += 3) {
        char *whole freed = strndup(journal, cut);
        /* The line that lacks nothing but its newline is whole. */
        int expected = times_in(whole, "\n") + (journal[cut] == '\n'), n = 0;
        if (expected >= copies) expected -= copies - 1;
        put_file(dir, NB_JOURNAL_FILE, journal, cut);
        cr_assert_eq(nb_journal_read(dir, count_line, &n), cut < first ? -1 : 0, "cut at %zu", cut);
        cr_assert_eq(n, expected, "cut at %zu: %d lines, %d expected", cut, n, expected);
    }
}

Test(journal, a_truncation_at_any_byte_loses_only_the_line_that_is_cut) {
    begin_errors();
    truncate_at_every_byte(small_journal(), 1);
    truncate_at_every_byte(written(small_journal()), 2);
    end_errors();
}

static int print_line(const cJSON *line, void *arg) {
    nb_json_print(line, arg);
    nb_strbuf_add(arg, "\n");
    return 0;
}
static char *lines_of(const char *dir) {
    struct nb_strbuf text = {0};
    cr_assert_eq(nb_journal_read(dir, print_line, &text), 0);
    return text.text;
}

/* The lines but one; owned. */
static char *without_line(const char *lines, size_t index) {
    struct nb_strbuf text = {0};
    for (size_t i = 0; *lines; i++, lines += strcspn(lines, "\n") + 1)
        if (i != index) nb_strbuf_addn(&text, lines, strcspn(lines, "\n") + 1);
    return text.text;
}

Test(journal, a_byte_that_changes_costs_its_line_alone) {
    char *dir = new_folder(), *journal = small_journal();
    char *launches = strstr(journal, "{\"type\":\"launch\",\"group\":0,\"launch\":1"),
         *rest = strstr(journal, "{\"type\":\"counters\"");
    memmove(launches, rest, strlen(rest) + 1); /* one is enough */
    journal = written(journal);
    const size_t len = strlen(journal);
    put_file(dir, NB_JOURNAL_FILE, journal, len);
    char *all freed = lines_of(dir);
    size_t number = 0; /* of the line that the byte is in */
    for (size_t at = 0; at < len; number += journal[at] == '\n', at++) {
        if (at % 3 > 0) continue;
        const char before = journal[at];
        journal[at] ^= (char)(1 << at % 8);
        put_file(dir, NB_JOURNAL_FILE, journal, len);
        begin_errors();
        char *expected freed = number < 2 ? strdup(all) : without_line(all, number - 1), *got = lines_of(dir);
        cr_assert_str_eq(got, expected, "byte %zu of line %zu", at, number + 1);
        free(got);
        struct nb_journal j;
        if (at % 61 == 0) {
            cr_assert_eq(nb_journal_append_to(&j, dir), 0);
            nb_journal_close(&j);
        }
        cr_assert(strstr(end_errors(), "damaged and left out"), "byte %zu", at);
        if (at % 61 == 0) { /* taken out: nothing more is said */
            begin_errors();
            got = lines_of(dir);
            cr_assert_str_eq(got, expected, "byte %zu, taken out", at);
            cr_assert_str_empty(end_errors(), "byte %zu", at);
            free(got);
        }
        journal[at] = before;
    }
}

Test(journal, resuming_after_any_truncation_goes_on_behind_the_last_whole_line) {
    char *dir = new_folder(), *journal = written(small_journal());
    const size_t len = strlen(journal), first = strcspn(journal, "\n");
    for (size_t cut = first; cut < len; cut += 7) {
        struct nb_journal j;
        int before = 0, after = 0;
        put_file(dir, NB_JOURNAL_FILE, journal, cut);
        cr_assert_eq(nb_journal_read(dir, count_line, &before), 0);
        cr_assert_eq(nb_journal_append_to(&j, dir), 0, "cut at %zu", cut);
        cJSON *line = kept_json(line_of_type("resume"));
        cr_assert_eq(nb_journal_write(&j, line), 0);
        nb_journal_close(&j);
        cr_assert_eq(nb_journal_read(dir, count_line, &after), 0, "cut at %zu", cut);
        cr_assert_eq(after, before + 1, "cut at %zu: %d lines after %d", cut, after, before);
    }
}

Test(journal, a_journal_torn_in_its_first_line_cannot_be_resumed) {
    char *dir = new_folder();
    struct nb_journal j;
    put_file(dir, NB_JOURNAL_FILE, "{\"type\":\"ru", 11);
    expect_refused(nb_journal_append_to(&j, dir), "a torn first line", "start the run again");
}

Test(journal, what_is_damaged_is_named_by_line_and_by_what_stood_there) {
    char *dir = new_folder(), *journal = written(small_journal());
    *strstr(journal, "per_sample") = 'P'; /* of the first launch */
    *strstr(journal, "peak_memory") = 'P';
    put_text(dir, NB_JOURNAL_FILE, journal);
    begin_errors();
    int n = 0;
    cr_assert_eq(nb_journal_read(dir, count_line, &n), 0);
    char *said = end_errors();
    HAS(said, NB_JOURNAL_FILE ": damaged", "line 4, launch 0 of group 0");
}

static int read_folder(const char *dir) {
    int n = 0;
    return nb_journal_read(dir, count_line, &n) == 0 ? n : -1;
}

Test(journal, lines_without_sums_are_left_out_where_they_are_none) {
    char *journal = small_journal();
    static const char *const damage[] = {"{\"type\":\"check\"", "[]",      "{}",
                                         "{\"type\":1}",        "garbage", "{\"type\":\"\xff\"}"};
    const int n_lines = times_in(journal, "\n");
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        char *dir = new_folder();
        struct nb_strbuf text released_by(nb_strbuf_release) = {0};
        size_t first = strcspn(journal, "\n") + 1, second = first + strcspn(journal + first, "\n") + 1;
        nb_strbuf_addn(&text, journal, first);
        nb_strbuf_add(&text, damage[i]);
        nb_strbuf_add(&text, "\n");
        nb_strbuf_add(&text, journal + second);
        put_file(dir, NB_JOURNAL_FILE, text.text, text.len);
        begin_errors();
        cr_assert_eq(read_folder(dir), n_lines - 1, "%s", damage[i]);
        char *said = end_errors();
        cr_assert(strstr(said, NB_JOURNAL_FILE ": damaged and left out: line 2"), "%s", said);
    }
}

Test(journal, a_null_byte_in_a_line_is_damage_not_its_end) {
    char *dir = new_folder(), *journal = small_journal();
    size_t len = strlen(journal), first = strcspn(journal, "\n");
    journal[first - 1] = '\0';
    put_file(dir, NB_JOURNAL_FILE, journal, len);
    int n = 0;
    cr_assert_eq(nb_journal_read(dir, count_line, &n), -1);
    cr_assert_eq(n, 0);
}

Test(journal, one_of_another_schema_or_without_a_run_line_is_refused) {
    static const char *const texts[] = {"{\"type\":\"run\",\"schema\":\"2.0\"}\n", "{\"type\":\"end\"}\n", "",
                                        "{\"type\":\"run\"}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *dir = new_folder();
        int n = 0;
        put_text(dir, NB_JOURNAL_FILE, texts[i]);
        cr_assert_eq(nb_journal_read(dir, count_line, &n), -1, "%s", texts[i]);
    }
}

Test(journal, a_folder_that_holds_a_run_is_not_overwritten) {
    static const char *const names[] = {"journal.jsonl", "results.json"};
    for (int i = 0; i < 2; i++) {
        char *dir = new_folder();
        struct nb_journal j;
        put_file(dir, names[i], "kept", 4);
        cr_assert_eq(nb_journal_create(&j, dir), -1);
        cr_assert_str_eq(get_file(dir, names[i]), "kept");
    }
}

Test(journal, a_second_writer_is_refused) {
    char *dir = new_folder();
    struct nb_journal first, second;
    cr_assert_eq(nb_journal_create(&first, dir), 0);
    cJSON *line = kept_json(line_of_type("run"));
    cr_assert_eq(nb_journal_write(&first, line), 0);
    cr_assert_eq(nb_journal_append_to(&second, dir), -1);
    nb_journal_close(&first);
    cr_assert_eq(nb_journal_append_to(&second, dir), 0);
    nb_journal_close(&second);
}

/* The limit on the size of files stands for a full disk. In a process of its own, since it cannot be lifted again. */
static int write_beyond_limit(const char *dir) {
    struct nb_journal j;
    signal(SIGXFSZ, SIG_IGN);
    if (nb_journal_create(&j, dir) != 0) return 2;
    cJSON *line = line_of_type("run"), *large = line_of_type("check");
    struct nb_strbuf filler = {0};
    for (int i = 0; i < 500; i++) nb_strbuf_add(&filler, "0123456789");
    nb_json_text(large, "filler", filler.text);
    if (nb_journal_write(&j, line) != 0) return 3;
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){2000, 2000});
    if (nb_journal_write(&j, large) == 0) return 4;
    if (nb_journal_write(&j, line_of_type("end")) != 0) return 5;
    return 0;
}

Test(journal, a_write_that_fails_half_way_leaves_nothing_of_its_line) {
    char *dir = new_folder();
    pid_t child = fork();
    if (child == 0) _exit(write_beyond_limit(dir));
    int status, n = 0;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child ended with %x", (unsigned)status);
    cr_assert_eq(nb_journal_read(dir, count_line, &n), 0);
    cr_assert_eq(n, 2);
}
