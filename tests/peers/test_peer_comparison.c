// SPDX-License-Identifier: Apache-2.0
/* Ours against others: every verdict from journals made by hand, each turned both ways; means; the config's key; levels; budgets. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/plot.h"
#include "reports/run/render_peers.c"
#include "src/core/case.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/level_shape.h"
#include "src/core/log.h"
#include "src/core/shape.h"
#include "src/peers/peer_comparison.h"
#include "src/plan/config.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

static const struct nb_compare_settings five_percent = {.confirm_launches = 16, .behind = 0.05};

static enum nb_peer_comparison_verdict judge(double low, double high, double confirmed_high, int n_confirmed) {
    const struct nb_interval ratio = {sqrt(low * high), low, high}, confirmed = {confirmed_high, 0.5, confirmed_high};
    return nb_peer_comparison_judge(&ratio, &confirmed, n_confirmed, &five_percent);
}

Test(peer_comparison, verdicts_turn_at_their_limits) {
    const double limit = 1 / 1.05;
    cr_expect_eq(judge(1.001, 1.2, NAN, 0), NB_PEER_COMPARISON_AHEAD);
    cr_expect_eq(judge(1.0, 1.2, NAN, 0), NB_PEER_COMPARISON_EVEN);
    cr_expect_eq(judge(0.8, limit + 1e-9, NAN, 0), NB_PEER_COMPARISON_EVEN, "the whole interval must be beyond 5 %%");
    cr_expect_eq(judge(0.8, limit - 1e-9, NAN, 0), NB_PEER_COMPARISON_LOOKS_BEHIND);
    cr_expect_eq(judge(0.8, 0.9, 0.9, 15), NB_PEER_COMPARISON_LOOKS_BEHIND, "15 fresh launches are too few");
    cr_expect_eq(judge(0.8, 0.9, 0.9, 16), NB_PEER_COMPARISON_BEHIND);
    cr_expect_eq(judge(0.8, 0.9, limit + 1e-9, 16), NB_PEER_COMPARISON_NOT_CONFIRMED);
    cr_expect_eq(judge(0.8, 0.9, NAN, 16), NB_PEER_COMPARISON_LOOKS_BEHIND);
    cr_expect_eq(judge(NAN, NAN, 0.9, 16), NB_PEER_COMPARISON_UNKNOWN);
    cr_expect_eq(judge(1.1, 1.2, 0.5, 16), NB_PEER_COMPARISON_AHEAD, "what does not look behind needs no confirmation");
}

/* ---- from journals ------------------------------------------------------------------------------------------------ */

#define OURS KEY_RMS
#define THEIRS KEY_PLUGIN

/* A run of so many launches in which theirs takes `ratio` times as long as ours; a case that failed its check has no samples. */
static void write_run(const char *dir, int launches, double ratio, const char *their_status) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    const bool ok = strcmp(their_status, "ok") == 0;
    static const char *const keys[] = {OURS, THEIRS};
    char *run = run_line("[{\"index\":0,\"part\":0,\"keys\":[\"" OURS "\",\"" THEIRS "\"],\"reference\":0}]", "[]",
                         "null", launches);
    const char *plan = strstr(run, "\"order_seed\"");
    nb_strbuf_addn(&text, run, (size_t)(plan - run));
    nb_strbuf_addf(&text, "\"compare\":{\"ours\":[\"*_a\"],\"confirm_launches\":16,\"behind\":0.05},%s", plan);
    nb_strbuf_addf(
        &text,
        "{\"type\":\"check\",\"group\":0,\"cases\":[{\"key\":\"" OURS "\",\"status\":\"ok\",\"summation_depth\":1,"
        "\"row_local\":true},{\"key\":\"" THEIRS "\",\"status\":\"%s\",\"summation_depth\":1,\"row_local\":true}],"
        "\"copies\":[],\"elapsed_s\":0.1}\n",
        their_status);
    for (int l = 0; l < launches; l++) {
        const double drift = 1 + 0.001 * l;
        const double ns[] = {1000 * drift, 1000 * ratio * drift * (1 + 0.0005 * (l % 3))};
        const double samples[][3] = {{ns[0], ns[0], ns[0]}, {ns[1], ns[1], ns[1]}};
        add_launch(&text, 0, l, keys, ok ? 2 : 1, samples[0], 3);
    }
    put_journal(dir, text.text);
}

struct doctored {
    double ratio, confirmed; /* 0: no confirmation */
    int launches, confirming;
    const char *status;
};

static struct nb_results results; /* of a run that was made, and its comparisons */
static struct nb_peer_comparisons comparisons;
static const struct nb_peer_comparison *first;

static void release(void) {
    nb_peer_comparisons_release(&comparisons);
    nb_results_release(&results);
}
TestSuite(peer_comparison, .fini = release);

static void doctor(struct doctored d) {
    char *dir = new_folder(), *confirm freed = nb_path_join(dir, NB_CONFIRM_FOLDER);
    release();
    write_run(dir, d.launches, d.ratio, d.status);
    if (d.confirmed > 0) {
        cr_assert_eq(nb_dir_make(confirm), 0);
        write_run(confirm, d.confirming, d.confirmed, "ok");
    }
    cr_assert_eq(nb_results_fold(&results, dir), 0);
    cr_assert_eq(nb_peer_comparisons_make(&comparisons, &results), 0);
    cr_assert_eq(comparisons.n, 1);
    first = comparisons.items;
    cr_expect_str_eq(first->library, "mine");
}

static enum nb_peer_comparison_verdict verdict_of(double ratio, double confirmed, int confirming) {
    doctor((struct doctored){ratio, confirmed, 6, confirming, "ok"});
    return first->verdict;
}

Test(peer_comparison, doctored_journals_turn_every_verdict) {
    cr_expect_eq(verdict_of(1.30, 0, 0), NB_PEER_COMPARISON_AHEAD);
    cr_expect_float_eq(first->ratio.value, 1.30, 0.01);
    cr_expect_eq(verdict_of(0.97, 0, 0), NB_PEER_COMPARISON_EVEN, "slower by 3 %% is not behind");
    cr_expect_eq(verdict_of(0.90, 0, 0), NB_PEER_COMPARISON_LOOKS_BEHIND);
    cr_expect_eq(verdict_of(0.90, 0.90, 16), NB_PEER_COMPARISON_BEHIND);
    cr_expect_eq(verdict_of(0.90, 0.99, 16), NB_PEER_COMPARISON_NOT_CONFIRMED);
    cr_expect_eq(verdict_of(0.90, 0.90, 8), NB_PEER_COMPARISON_LOOKS_BEHIND, "a confirmation that was cut off is none");
}

Test(peer_comparison, without_a_figure_there_is_a_reason) {
    static const struct doctored runs[] = {{1.3, 0, 6, 0, "inaccurate"}, {1.3, 0, 5, 0, "ok"}};
    for (int i = 0; i < 2; i++) {
        struct nb_strbuf text released_by(nb_strbuf_release) = {0};
        doctor(runs[i]);
        nb_peers_print(&results, &comparisons, &(struct nb_page){.out = &text});
        cr_expect_eq(first->verdict, NB_PEER_COMPARISON_UNKNOWN);
        cr_assert_not_null(first->reason);
        cr_expect_not_null(strstr(text.text, first->reason), "the page says why: %s", text.text);
    }
}

Test(peer_comparison, page_and_document_tell_what_is_behind) {
    struct nb_peer_mean *means freed = NULL;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    doctor((struct doctored){0.9, 0.9, 6, 16, "ok"});
    cr_assert_eq(nb_peer_means(&comparisons, &means), 1);
    cr_expect_eq(means[0].n, 1);
    cr_expect_eq(means[0].n_of[NB_PEER_COMPARISON_BEHIND], 1);
    cr_expect_float_eq(means[0].ratio.value, first->ratio.value, 1e-12);
    cr_expect_float_eq(means[0].ratio.low, first->ratio.low, 5e-3);
    nb_peers_print(&results, &comparisons, &(struct nb_page){.markdown = true, .out = &text});
    HAS(text.text, "## Behind, or looking so at first", "on 16 fresh launches",
        "ours is faster in 0 of 1 comparisons, slower in 1; theirs takes 0.9 times as long.");
    cJSON *json = kept_json(peers_to_json(&results, &comparisons)),
          *one = cJSON_GetObjectItem(json, "comparisons")->child;
    cr_expect_str_eq(nb_json_get_text(one, "verdict"), "behind");
    cr_expect_eq(nb_json_get_number(one, "confirming_launches"), 16);
    cr_expect_str_eq(nb_json_get_text(cJSON_GetObjectItem(one, "theirs"), "key"), THEIRS);
}

Test(peer_comparison, the_picture_has_the_means) {
    struct nb_figures figures released_by(nb_figures_release) = {0};
    doctor((struct doctored){1.3, 0, 6, 0, "ok"});
    nb_plot_peers(&results, &figures);
    cr_assert_eq(figures.n, 1);
    cr_expect_float_eq(figures.list[0].lines[0].points[0].x, first->ratio.value, 1e-12);
}

Test(peer_comparison, one_cell_far_off_moves_the_mean_and_not_the_median) {
    static const double ratios[] = {4137, 1.5, 2, 1.8, 2.5};
    enum { N = sizeof ratios / sizeof ratios[0] };
    const struct nb_record theirs = {.c = {.op = NB_OP_RMSNORM}};
    struct nb_peer_comparison items[N];
    struct nb_peer_mean *means;
    for (int i = 0; i < N; i++)
        items[i] = (struct nb_peer_comparison){.theirs = &theirs,
                                               .library = "theirs",
                                               .ratio = {ratios[i], 0.9 * ratios[i], 1.1 * ratios[i]},
                                               .verdict = NB_PEER_COMPARISON_AHEAD};
    const struct nb_peer_comparisons all = {.items = items, .n = N};
    cr_assert_eq(nb_peer_means(&all, &means), 1);
    cr_expect_float_eq(means[0].median, 2, 1e-12);
    cr_expect_gt(means[0].ratio.value, 8);
    cr_expect_eq(means[0].most, 4137);
    free(means);
    items[0].verdict = NB_PEER_COMPARISON_UNKNOWN;
    cr_assert_eq(nb_peer_means(&all, &means), 1);
    cr_expect_float_eq(means[0].median, 1.9, 1e-12, "of those with a figure");
    free(means);
}

Test(peer_comparison, a_run_that_compares_nothing_is_refused) {
    cr_assert_eq(nb_results_fold(&results, folder_with(small_journal())), 0);
    cr_expect_eq(nb_peer_comparisons_make(&comparisons, &results), -1);
}

/* ---- the config's key ----------------------------------------------------------------------------------------------- */

static int parse(struct nb_config *config, const char *compare) {
    char *text freed = nb_textf("{ \"blocks\": [{ \"op\": \"rmsnorm\" }], \"compare\": %s }", compare);
    return nb_config_parse(config, "c.json", text, strlen(text));
}

Test(peer_comparison, the_configs_key_is_read_strictly) {
    static const char *const wrong[] = {"3",
                                        "{}",
                                        "{ \"ours\": [] }",
                                        "{ \"ours\": [3] }",
                                        "{ \"ours\": \"\" }",
                                        "{ \"ours\": \"a\", \"ours\": \"b\" }",
                                        "{ \"ours\": \"a\", \"confirm\": 16 }",
                                        "{ \"ours\": \"a\", \"confirm\": { \"launches\": 5 } }",
                                        "{ \"ours\": \"a\", \"confirm\": { \"launches\": 6.5 } }",
                                        "{ \"ours\": \"a\", \"confirm\": { \"behind\": 5 } }",
                                        "{ \"ours\": \"a\", \"theirs\": \"b\" }"};
    struct nb_config config;
    cr_assert_eq(
        parse(&config, "{ \"ours\": [\"*_fast\", \"b\"], \"confirm\": { \"launches\": 20, \"behind_percent\": 3 } }"),
        0);
    cr_expect_eq(config.compare.ours.n, 2);
    cr_expect_eq(config.compare.confirm_launches, 20);
    cr_expect_float_eq(config.compare.behind, 0.03, 1e-12);
    struct nb_compare_settings back released_by(nb_compare_settings_release);
    cJSON *json = kept_json(nb_compare_settings_to_json(&config.compare));
    nb_compare_settings_from_json(&back, json);
    cr_expect_str_eq(back.ours.items[1], "b");
    cr_expect_eq(back.confirm_launches, 20);
    nb_config_release(&config);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect_eq(parse(&config, wrong[i]), -1, "%s", wrong[i]);
}

/* ---- levels ------------------------------------------------------------------------------------------------------- */

static const struct nb_level_caches caches = {48 << 10, 1 << 20, 32 << 20};

static double bytes_at(uint32_t op, uint32_t pass, uint32_t dtype, const char *text) {
    struct nb_case c;
    char plain[128], reason[200];
    nb_case_init(&c);
    c.op = op;
    c.pass = pass;
    c.dtype = dtype;
    if (nb_level_shape(&c, text, &caches, plain, sizeof plain, reason, sizeof reason) != 0) return NAN;
    cr_assert_eq(nb_shape_parse(&c.shape, plain, reason, sizeof reason), 0, "%s: %s", plain, reason);
    nb_case_normalize(&c);
    return nb_case_bytes(&c);
}

Test(level, working_sets_lie_where_they_are_named) {
    static const uint32_t ops[] = {NB_OP_RMSNORM, NB_OP_ADD_LAYERNORM};
    for (int o = 0; o < 2; o++)
        for (uint32_t pass = 0; pass < NB_N_PASSES; pass++)
            for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++) {
                const double l1 = bytes_at(ops[o], pass, dtype, "L1x256"),
                             l2 = bytes_at(ops[o], pass, dtype, "L2x1024");
                const double l3 = bytes_at(ops[o], pass, dtype, "L3x4096"),
                             far = bytes_at(ops[o], pass, dtype, "DRAMx4096");
                cr_expect(l1 > 0 && l1 <= 0.9 * 48 * 1024, "L1: %g", l1);
                cr_expect(l2 > 1.25 * 48 * 1024 && l2 <= 0.8 * (1 << 20), "L2: %g", l2);
                cr_expect(l3 > 1.25 * (1 << 20) && l3 <= 16 << 20, "L3: %g", l3);
                cr_expect(far > 1.5 * (32 << 20), "DRAM: %g", far);
            }
    const double image = bytes_at(NB_OP_BATCHNORM, NB_FORWARD, NB_F32, "nchw:L3x64x28x28");
    cr_expect(image > 1.25 * (1 << 20) && image <= 16 << 20, "%g", image);
}

Test(level, a_cell_that_cannot_be_is_refused_with_the_reason) {
    struct nb_case c;
    char plain[128], reason[200] = "";
    const struct nb_level_caches unknown = {0, 0, 0};
    nb_case_init(&c);
    c.op = NB_OP_RMSNORM;
    cr_expect_eq(nb_level_shape(&c, "L1x65536", &caches, plain, sizeof plain, reason, sizeof reason), -1);
    cr_expect_not_null(strstr(reason, "L1x65536"));
    cr_expect_eq(nb_level_shape(&c, "L2x64", &unknown, plain, sizeof plain, reason, sizeof reason), -1);
    cr_expect_not_null(strstr(reason, "caches"));
}

Test(level, ranges_and_prefixes_are_expanded) {
    char reason[200];
    struct nb_strings texts;
    enum nb_level level;
    char plain[64];
    cr_assert_eq(nb_shape_expand("L2x256:4096:*4", &texts, reason, sizeof reason), 0, "%s", reason);
    cr_assert_eq(texts.n, 3);
    cr_expect_str_eq(texts.items[0], "L2x256");
    cr_expect_str_eq(texts.items[2], "L2x4096");
    nb_strings_release(&texts);
    cr_assert_eq(nb_shape_expand("nhwc:DRAMx56x56x64", &texts, reason, sizeof reason), 0, "%s", reason);
    cr_assert_eq(texts.n, 1);
    cr_expect_str_eq(texts.items[0], "nhwc:DRAMx56x56x64");
    nb_strings_release(&texts);
    cr_expect_eq(nb_shape_expand("L2x", &texts, reason, sizeof reason), -1);
    cr_expect_eq(nb_shape_expand("L4x256", &texts, reason, sizeof reason), -1);
    cr_expect_eq(nb_shape_level("64x256", &level, plain, sizeof plain), -1);
    cr_assert_eq(nb_shape_level("nchw:L3x8x4", &level, plain, sizeof plain), 0);
    cr_expect_eq(level, NB_L3);
    cr_expect_str_eq(plain, "nchw:1x8x4");
}
