// SPDX-License-Identifier: Apache-2.0
/* A tuning as text, JSON, file and option; and the verdicts of `normbench tune` on invented launches. */
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/tuning.h"
#include "src/tune/tune_run.c"
#include "tests/support/files.h"

/* ---- text and JSON ------------------------------------------------------------------------------------------------ */

Test(tuning, a_text_changes_what_it_names_and_nothing_else) {
    struct nb_tuning t = {.l1_bytes = 7, .slab_bytes = 1};
    char reason[200];
    cr_assert_eq(
        nb_tuning_parse(&t, "stream_bytes=2M,slab_bytes=4,native=avx512_bf16,column_tile=0", reason, sizeof reason), 0,
        "%s", reason);
    cr_expect_eq(t.stream_bytes, 2 << 20);
    cr_expect_eq(t.slab_bytes, 4);
    cr_expect_eq(t.native, NB_CPU_AVX512BF16);
    cr_expect_eq(t.column_tile, 0);
    cr_expect_eq(t.l1_bytes, 7);
}

Test(tuning, a_text_that_is_none_is_refused_and_changes_nothing) {
    static const char *const texts[] = {"",
                                        "stream_bytes",
                                        "stream_bytes=",
                                        "stream_bytes=-1",
                                        "stream_bytes=1T",
                                        "stream_bytes=1K1",
                                        "stream_bytes=99999999999999999999",
                                        "column_tile=1K",
                                        "column_tile=2147483648",
                                        "native=avx2",
                                        "native=avx512_bf16+",
                                        "nativ=0",
                                        "l1_bytes=1,,l2_bytes=2",
                                        "l1_bytes=1 ,l2_bytes=2"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct nb_tuning t = {.slab_bytes = 2, .l1_bytes = 5};
        const struct nb_tuning before = t;
        char reason[200] = "";
        cr_expect_eq(nb_tuning_parse(&t, texts[i], reason, sizeof reason), -1, "%s", texts[i]);
        cr_expect(nb_tuning_equal(&t, &before), "%s", texts[i]);
        cr_expect_gt(strlen(reason), 10);
    }
}

/* Another value in each field, in turn. */
static struct nb_tuning other_than(const struct nb_tuning *t, const struct nb_tuning_field *field) {
    struct nb_tuning other = *t;
    nb_tuning_set(&other, field,
                  field == nb_tuning_fields ? (t->native ? 0 : NB_CPU_AVX512BF16) : nb_tuning_get(t, field) + 12345);
    return other;
}

Test(tuning, text_and_json_read_back) {
    struct nb_tuning base;
    nb_tuning_default(&base);
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        const struct nb_tuning changed = other_than(&base, &nb_tuning_fields[i]);
        struct nb_tuning by_text = base, by_json = base;
        struct nb_strbuf text released_by(nb_strbuf_release) = {0};
        char reason[200];
        cr_expect_not(nb_tuning_equal(&changed, &base), "%s", nb_tuning_fields[i].name);
        nb_tuning_print(&changed, &base, &text);
        cr_expect_eq(strncmp(text.text, nb_tuning_fields[i].name, strlen(nb_tuning_fields[i].name)), 0);
        cr_expect_null(strchr(text.text, ','), "%s names more than one field", text.text);
        cr_assert_eq(nb_tuning_parse(&by_text, text.text, reason, sizeof reason), 0, "%s: %s", text.text, reason);
        cr_expect(nb_tuning_equal(&by_text, &changed));
        cJSON *json = kept_json(nb_tuning_to_json(&changed));
        cr_assert_eq(nb_tuning_from_json(&by_json, json), 0);
        cr_expect(nb_tuning_equal(&by_json, &changed));
    }
}

Test(tuning, json_that_is_none_is_refused) {
    static const char *const texts[] = {"3",
                                        "{\"native\":16}",
                                        "{\"native\":\"avx9\"}",
                                        "{\"stream_bytes\":-1}",
                                        "{\"stream_bytes\":1.5}",
                                        "{\"stream_bytes\":1e300}",
                                        "{\"stream_bytes\":\"1M\"}",
                                        "{\"column_tile\":1e12}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct nb_tuning t = {0};
        cJSON *json = kept_json(cJSON_Parse(texts[i]));
        cr_expect_eq(nb_tuning_from_json(&t, json), -1, "%s", texts[i]);
    }
}

/* ---- defaults, file, option --------------------------------------------------------------------------------------- */

Test(tuning, defaults_follow_from_the_cpu) {
    struct nb_tuning t;
    nb_tuning_default(&t);
    cr_expect_eq(t.native & ~nb_cpu_light()->features, 0, "no instructions that the CPU does not have");
    cr_expect_gt(t.l1_bytes, 0);
    cr_expect_geq(t.l2_bytes, t.l1_bytes);
    cr_expect_geq(t.column_tile, 1024);
    cr_expect_leq(t.slab_bytes, t.l2_bytes);
    cr_expect_eq(t.struct_size, sizeof t);
}

Test(tuning, calls_carry_what_is_used) {
    struct nb_tuning t;
    struct nb_case c;
    struct nb_call call;
    nb_case_init(&c);
    nb_case_call(&c, &call);
    cr_expect_null(call.tuning, "a process that has chosen nothing says nothing");
    nb_tuning_default(&t);
    nb_tuning_use(&t);
    nb_case_init(&c);
    nb_case_call(&c, &call);
    cr_assert_not_null(call.tuning);
    cr_expect(nb_tuning_equal(call.tuning, &t));
    t.slab_bytes++;
    nb_tuning_use(&t);
    cr_expect(nb_tuning_equal(call.tuning, &t), "another choice is for all calls, those made before too");
}

Test(tuning, no_kernel_changes_what_others_are_told, .signal = SIGSEGV) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn it into an exit */
    struct nb_tuning t;
    nb_tuning_default(&t);
    nb_tuning_use(&t);
    cr_assert(nb_tuning_holds(&nb_tuning_used()->stream_bytes));
    cr_assert_not(nb_tuning_holds(&t));
    ((struct nb_tuning *)(uintptr_t)nb_tuning_used())->stream_bytes = 1;
}

/* A folder of its own as the user's cache. */
static void use_folder(void) {
    setenv("XDG_CACHE_HOME", new_folder(), 1);
    unsetenv("NORMBENCH_TUNING");
}

/* A file for this CPU, or for another, with one field that is not the default's. */
static char *write_file(bool of_this_cpu) {
    struct nb_tuning t;
    char *path = nb_tuning_path(), *cpu freed = nb_tuning_cpu();
    cr_assert_not_null(path);
    cr_expect_not_null(strstr(path, cpu), "a file for each kind of CPU");
    nb_tuning_default(&t);
    t.stream_bytes = 4242;
    cJSON *json = kept_json(cJSON_CreateObject());
    nb_json_text(json, "schema", NB_TUNING_SCHEMA);
    nb_json_text(json, "measured", "2025-01-31T12:00:00Z");
    nb_json_text(cJSON_AddObjectToObject(json, "cpu"), "identity", of_this_cpu ? cpu : "GenuineIntel-6-85-7-00000000");
    cJSON_AddItemToObject(json, "tuning", nb_tuning_to_json(&t));
    cr_assert_eq(nb_tuning_file_write(path, json), 0);
    return kept(path);
}

Test(tuning, an_option_comes_before_the_file) {
    struct nb_tuning plain;
    use_folder();
    write_file(true);
    nb_tuning_default(&plain);
    cr_assert_eq(nb_tuning_choose("slab_bytes=2"), 0);
    cr_expect_eq(nb_tuning_used()->stream_bytes, 4242, "what the option does not name is the file's");
    cr_expect_eq(nb_tuning_used()->slab_bytes, 2);
    cr_assert_eq(nb_tuning_choose("default,slab_bytes=2"), 0);
    cr_expect_eq(nb_tuning_used()->stream_bytes, plain.stream_bytes, "default leaves the file aside");
    cr_expect_eq(nb_tuning_choose("slab_bytes=7T"), -1);
    setenv("NORMBENCH_TUNING", "none", 1);
    cr_expect_null(nb_tuning_path());
    cr_assert_eq(nb_tuning_choose(NULL), 0);
    cr_expect_eq(nb_tuning_used()->stream_bytes, plain.stream_bytes, "none: no file is read");
    cr_expect_null(nb_tuning_replay(), "the defaults need nothing said");
}

Test(tuning, a_file_of_another_cpu_or_a_broken_one_is_left_aside) {
    struct nb_tuning plain;
    nb_tuning_default(&plain);
    for (int broken = 0; broken < 2; broken++) {
        use_folder();
        char *path = write_file(false);
        if (broken) cr_assert_eq(nb_file_write(path, "{\"schema\":", 10), 0);
        cr_expect_null(nb_tuning_file_read(path));
        cr_assert_eq(nb_tuning_choose(NULL), 0);
        cr_expect(nb_tuning_equal(nb_tuning_used(), &plain));
    }
}

Test(tuning, instructions_that_the_cpu_lacks_are_refused) {
    const uint32_t missing = NB_CPU_AVX512BF16 & ~nb_cpu_light()->features;
    cr_assert_eq(nb_tuning_choose("default,native=0"), 0);
    cr_expect_eq(nb_tuning_used()->native, 0);
    if (!missing) cr_skip("this CPU has it");
    const struct nb_tuning wanted = {.native = missing};
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&text, "default,native=");
    nb_tuning_print_field(&wanted, &nb_tuning_fields[0], &text);
    cr_expect_eq(nb_tuning_choose(text.text), -1, "%s", text.text);
}

/* ---- verdicts ----------------------------------------------------------------------------------------------------- */

enum { LAUNCHES = 6 };

static const struct tune_topic *topic_of(const char *field) {
    for (size_t i = 0; i < N_TOPICS; i++)
        if (all_topics[i].field && strcmp(all_topics[i].field, field) == 0) return &all_topics[i];
    cr_assert_fail("no topic of %s", field);
    return NULL;
}

/* Every arm takes ln time[shape][arm], with noise of so much from launch to launch. */
static struct tune_outcome judged(const struct nb_tuning *base, const char *field, double times[][3], double noise) {
    static struct nb_by_state gains[N_SHAPES][N_SETTINGS + 1][LAUNCHES];
    struct tune_outcome o;
    plan_topic(&o, topic_of(field), base);
    for (o.n_trials = 0; o.n_trials < o.n_shapes; o.n_trials++) {
        const size_t s = o.n_trials;
        struct tune_trial *t = &o.trials[s];
        *t = (struct tune_trial){.shape = s, .base_arm = base_arm_of(&o, s), .n_launches = LAUNCHES};
        for (int a = 0; a < o.n_arms; a++) {
            t->gain[a] = gains[s][a];
            for (int l = 0; l < LAUNCHES; l++)
                gains[s][a][l].ln[0] = times[s][t->base_arm] - times[s][a] + noise * (l % 2 ? 1 : -1) * (a + 1);
        }
    }
    judge(&o);
    return o;
}

Test(tune, nothing_but_noise_leaves_the_default) {
    static double even[N_SHAPES][3];
    struct nb_tuning base;
    nb_tuning_default(&base);
    cr_expect_eq(judged(&base, "slab_bytes", even, 0.02).verdict.candidate, -1);
    cr_expect_eq(judged(&base, "slab_bytes", even, 0).verdict.candidate, -1);
}

Test(tune, what_is_faster_wins_where_it_is_and_nowhere_else) {
    static double times[N_SHAPES][3];
    struct nb_tuning base;
    nb_tuning_default(&base);
    base.slab_bytes = 0;
    for (size_t s = 0; s < N_SHAPES; s++) times[s][1] = s < 3 ? -0.05 : 0.05; /* faster on the three smallest */
    const struct tune_outcome o = judged(&base, "slab_bytes", times, 0.002);
    cr_assert_geq(o.verdict.candidate, 0);
    const struct nb_tuning *t = &o.candidates[o.verdict.candidate].tuning;
    cr_expect_gt(t->slab_bytes, o.shapes[2].size);
    cr_expect_lt(t->slab_bytes, o.shapes[3].size);
    cr_expect_eq(o.verdict.n_trials, 3);
    cr_expect_gt(o.verdict.gain.low, 0.03);
    cr_expect_eq(judged(&base, "slab_bytes", times, 0.06).verdict.candidate, -1, "the same gain under more noise");
}

Test(tune, a_default_that_costs_is_left) {
    static double times[N_SHAPES][3];
    struct tune_shape shapes[N_SHAPES];
    struct nb_tuning base;
    nb_tuning_default(&base);
    base.stream_bytes = 1; /* everything streams, and it is slow except on the largest */
    for (size_t s = 0; s < N_SHAPES; s++) times[s][0] = 0.3;
    const size_t n = topic_of("stream_bytes")->shapes(nb_cpu_light(), shapes);
    times[n - 1][0] = -0.2;
    struct tune_outcome o = judged(&base, "stream_bytes", times, 0.01);
    cr_assert_geq(o.verdict.candidate, 0);
    cr_expect_gt(o.candidates[o.verdict.candidate].tuning.stream_bytes, shapes[n - 2].size);
    cr_expect_lt(o.candidates[o.verdict.candidate].tuning.stream_bytes, shapes[n - 1].size);
    times[n - 1][0] = 0.2; /* slow there too: nothing streams */
    o = judged(&base, "stream_bytes", times, 0.01);
    cr_assert_geq(o.verdict.candidate, 0);
    cr_expect_eq(o.candidates[o.verdict.candidate].tuning.stream_bytes, 0);
}

Test(tune, a_trial_without_launches_says_nothing) {
    static double times[N_SHAPES][3];
    struct nb_tuning base;
    nb_tuning_default(&base);
    base.slab_bytes = 0;
    for (size_t s = 0; s < N_SHAPES; s++) times[s][1] = -0.05;
    struct tune_outcome o = judged(&base, "slab_bytes", times, 0);
    cr_assert_geq(o.verdict.candidate, 0);
    for (size_t s = 0; s < o.n_shapes; s++) o.trials[s].n_launches = 0;
    judge(&o);
    cr_expect_eq(o.verdict.candidate, -1);
    cr_expect(isnan(o.verdict.gain.value));
}

Test(tuning, a_topic_without_a_winner_shows_what_its_trials_gave) {
    struct nb_strbuf out released_by(nb_strbuf_release) = {0};
    cJSON *json released_by(nb_json_release) = cJSON_Parse(
        "{\"measured\":\"now\",\"topics\":[{\"name\":\"ways\",\"verdict\":\"default\",\"trials\":["
        "{\"key\":\"copy/shape:1x1/\",\"arms\":[{\"setting\":\"k=a\",\"default\":true},{\"setting\":\"k=b\",\"default\":false,"
        "\"faster_percent\":{\"value\":-41,\"low\":-45,\"high\":-38}}]}]}]}");
    nb_tune_print(json, &out);
    HAS(out.text, "ways: the default stays; nothing is faster over all shapes by more than noise\n    copy/shape:1x1\n",
        " -41.0% [-45.0, -38.0]\n");
}
