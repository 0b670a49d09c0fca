// SPDX-License-Identifier: Apache-2.0
/* Widths kept apart: which groups there are, the order of their launches, and what pairs of neighbouring launches come to. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/core/text.h"
#include "src/measure/paired.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

TestSuite(claims_widths, .init = quiet);

/* ---- turns and groups ---- */

Test(claims_widths, in_turns_each_follows_each_other_equally_often) {
    enum { MOST = 7 };
    for (int n = 1; n <= MOST; n++) {
        const int rounds = n % 2 && n > 1 ? 2 * n : n;
        int follows[MOST][MOST] = {{0}}, at[MOST][MOST] = {{0}};
        for (int round = 0; round < rounds; round++) {
            int order[MOST];
            nb_turns(order, n, round + 3 * rounds);
            for (int i = 0; i < n; i++) {
                cr_assert(order[i] >= 0 && order[i] < n);
                at[order[i]][i]++;
                if (i > 0) follows[order[i - 1]][order[i]]++;
            }
        }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                cr_expect_eq(at[i][j], rounds / n, "%d of %d stands %d times at %d", i, n, at[i][j], j);
                if (i != j)
                    cr_expect_eq(follows[i][j], rounds / n, "%d of %d follows %d %d times", j, n, i, follows[i][j]);
            }
    }
}

/* ---- figures ---- */

static const char *const keys[2][2] = {
    {"layernorm_twopass_v256_f32/shape:64x64", "rmsnorm_twopass_v256_f32/shape:64x64"},
    {"layernorm_twopass_v512_f32/shape:64x64", "rmsnorm_twopass_v512_f32/shape:64x64"}};

/* A group of each width: LayerNorm, the reference, and RMSNorm; a family where they are kept apart. */
static void add_run(struct nb_strbuf *out, int launches, bool family) {
    static const char *const variants[] = {"layernorm_twopass_v256_f32", "rmsnorm_twopass_v256_f32",
                                           "layernorm_twopass_v512_f32", "rmsnorm_twopass_v512_f32"};
    struct nb_strbuf groups released_by(nb_strbuf_release) = {0};
    for (int w = 0; w < 2; w++)
        nb_strbuf_addf(&groups,
                       "%s{\"index\":%d,\"part\":0,%s\"keys\":[\"%s\",\"%s\"],\"reference\":0,"
                       "\"labels\":[[0],[0]]}",
                       w ? "," : "[", w, family ? "\"family\":0," : "", keys[w][0], keys[w][1]);
    nb_strbuf_add(&groups, "],\"labels\":[{\"name\":\"mine/norm\",\"source\":null,\"text\":null}]");
    nb_strbuf_add(out, run_line_of(variants, 4, groups.text, "[]", "null", launches));
    for (int w = 0; w < 2; w++) add_check(out, w, keys[w], 2);
}

struct truth {
    double cut[2], wide; /* of RMSNorm by width; time at 512 bits over that at 256 */
    double common, own;  /* what launches of one number share in the cut, and what each has for itself */
    int launches;
    bool no_family;
};

/* Deviations that sum to nothing over the launches; those of the two widths do not go together. */
static double deviation(int launch, int w) {
    static const double order[2][8] = {{-1, 1, -0.6, 0.6, -0.3, 0.3, -0.8, 0.8},
                                       {0.8, 0.7, -1, 0.3, -0.6, 1, -0.4, -0.8}};
    return order[w][launch % 8];
}

static char *run_of(const struct truth *t) {
    struct nb_strbuf text = {0};
    add_run(&text, t->launches, !t->no_family);
    for (int l = 0; l < t->launches; l++)
        for (int w = 0; w < 2; w++) {
            const double cut = t->cut[w] + t->common * deviation(l, 0) + t->own * deviation(l, w), drift = 1 + 0.5 * l;
            const double ln = 1000 * drift * (w ? t->wide : 1);
            const double rms = ln * (1 - cut), samples[][3] = {{ln, 3 * ln, NAN}, {rms, 3 * rms, NAN}};
            add_launch(&text, w, l, keys[w], 2, samples[0], 3);
        }
    add_end(&text);
    return folder_of(&text);
}

#define CLAIM(expect)                                                                                                  \
    "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}],\"experiments\":{\"norm\":{"  \
    "\"kind\":\"timing\",\"isolate\":\"width\",\"blocks\":[{\"op\":\"rmsnorm\"}],\"compare\":[{\"of\":{\"op\":"        \
    "\"rmsnorm\"},\"against\":{\"op\":\"layernorm\"},\"tags\":{\"compared\":\"norms\"}},{\"of\":{\"width\":\"512\"},"  \
    "\"against\":{\"width\":\"256\"},\"tags\":{\"compared\":\"widths\"}}]}},\"readings\":[{\"id\":\"r\",\"text\":"     \
    "\"t\",\"experiment\":\"norm\",\"expect\":[" expect "]}]}"

static enum nb_claim_verdict judged(const char *claim_text, const struct truth *t) {
    struct nb_claim claim released_by(nb_claim_release);
    struct nb_claim_result result released_by(nb_claim_result_release);
    return claim_on_run(claim_text, run_of(t), &claim, &result);
}

Test(claims_widths, how_the_cut_hangs_on_the_width_is_told_by_pairs_of_launches) {
    static const char claim[] = CLAIM("{\"figure\":\"cut\",\"form\":\"spread\",\"across\":\"width\",\"least\":0.05,"
                                      "\"where\":{\"compared\":\"norms\"}}");
    const struct truth apart = {.cut = {0.2, 0.3}, .wide = 0.7, .common = 0.15, .launches = 8};
    cr_expect_eq(judged(claim, &apart), NB_REPRODUCED, "what both launches of a pair share cancels");
    const struct truth alike = {.cut = {0.2, 0.22}, .wide = 0.7, .common = 0.15, .launches = 8};
    cr_expect_eq(judged(claim, &alike), NB_NOT_REPRODUCED);
    const struct truth noisy = {.cut = {0.2, 0.3}, .wide = 0.7, .own = 0.15, .launches = 8};
    cr_expect_eq(judged(claim, &noisy), NB_UNDECIDED_HERE, "what each has for itself does not");
    const struct truth few = {.cut = {0.2, 0.3}, .wide = 0.7, .launches = 5};
    cr_expect_eq(judged(claim, &few), NB_UNDECIDED_HERE);
}

Test(claims_widths, times_of_two_widths_are_compared_between_neighbouring_launches) {
    static const char claim[] = CLAIM(
        "{\"figure\":\"cut\",\"form\":\"between\",\"least\":0.25,\"most\":0.35,\"where\":{\"compared\":\"widths\"}}");
    struct truth t = {.cut = {0.2, 0.2}, .wide = 0.7, .common = 0.1, .launches = 8};
    cr_expect_eq(judged(claim, &t), NB_REPRODUCED);
    t.wide = 0.9;
    cr_expect_eq(judged(claim, &t), NB_NOT_REPRODUCED);
    t.wide = 0.7;
    t.no_family = true;
    cr_expect_eq(judged(claim, &t), NB_NOT_MEASURED, "launches far from each other are no pair");
}

Test(claims_widths, nothing_but_the_width_can_be_isolated) {
    char text[] = CLAIM("{\"figure\":\"cut\",\"form\":\"at_least\",\"least\":0}");
    struct nb_claim claim;
    memcpy(strstr(text, "\"isolate\":\"width\""), "\"isolate\":\"dtype\"", strlen("\"isolate\":\"dtype\""));
    expect_refused(nb_claim_parse(&claim, "dir/mine.json", text, strlen(text)), text, "\"isolate\" is 'dtype'");
}
