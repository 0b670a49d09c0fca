// SPDX-License-Identifier: Apache-2.0
/* Foreign kernels of which every step is known: what probes say of them is right or left open, never wrong; and how often it is right,
 * question by question, is the power of the probes. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/accuracy/oracle.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/names.h"
#include "src/lab/probe/probe.h"
#include "tests/support/cases.h"
#include "tests/support/files.h"
#include "tests/support/sparsely.h"

/* ---- insides ---- */

struct inside {
    uint32_t op, dtype;
    int sum, stat, eps; /* enum nb_number: of running sums; of v and v + eps; that eps is rounded to first */
    int mean;           /* of a LayerNorm's running sum of x */
    int64_t lanes;
    bool fma;
    uint32_t root, eps_place;
    enum rounded { NOTHING, XHAT, RSTD } rounded; /* to x's dtype before it is used */
};

static struct inside box; /* what run() does */

static inline double to(double v, int format) {
    if (format == NB_NUM_F64) return v;
    if (format == NB_NUM_F32) return (double)(float)v;
    return nb_round_to(v, format == NB_NUM_BF16 ? NB_BF16 : NB_F16);
}

static double add_square(double sum, double x) {
    if (box.sum == NB_NUM_F32 && box.fma) return (double)fmaf((float)x, (float)x, (float)sum);
    if (box.sum == NB_NUM_F32) return (double)(float)(sum + (double)(float)(x * x));
    return to(sum + to(x * x, box.sum), box.sum);
}
static double add(double sum, double x) { return to(sum + x, box.sum); }
static double add_to_mean(double sum, double x) { return to(sum + x, box.mean); }

typedef double (*step)(double sum, double x);

static double in_lanes(const double *x, int64_t n, step next) {
    double lanes[128] = {0}, total = 0;
    for (int64_t i = 0; i < n; i += box.lanes)
        for (int64_t l = 0; l < box.lanes && i + l < n; l++) lanes[l] = next(lanes[l], x[i + l]);
    for (int64_t l = 0; l < box.lanes; l++) total = next == add_to_mean ? next(total, lanes[l]) : add(total, lanes[l]);
    return total;
}
static double root_of(double v, double eps) {
    const double e = to(eps, box.eps);
    if (box.eps_place == NB_EPS_INSIDE) return to(sqrt(to(v + e, box.stat)), NB_NUM_F32);
    if (box.eps_place == NB_EPS_OUTSIDE) return to(to(sqrt(v), box.stat) + e, box.stat);
    return fmax(to(sqrt(v), box.stat), e);
}

static double weighted(const struct nb_call *call, int64_t i, double xhat) {
    const float *gamma = call->gamma, *beta = call->beta;
    if (box.rounded == XHAT) xhat = nb_round_to(xhat, (enum nb_dtype)box.dtype);
    if (gamma) xhat = (double)(float)(xhat * (double)gamma[i]);
    return beta ? (double)(float)(xhat + (double)beta[i]) : xhat;
}

static void run_row(const struct nb_call *call, int64_t row) {
    static double x[1 << 17];
    const enum nb_dtype dtype = (enum nb_dtype)box.dtype;
    const int64_t n = call->cols;
    const size_t item = dtype == NB_F32 ? 4 : 2;
    const char *in = (const char *)call->x + (size_t)(row * call->x_stride) * item;
    char *out = (char *)call->y + (size_t)(row * call->y_stride) * item;
    nb_truth_widen(in, 0, n, dtype, x);
    if (box.op == NB_OP_LAYERNORM) {
        const double mean = to(in_lanes(x, n, add_to_mean) / (double)n, box.mean);
        for (int64_t i = 0; i < n; i++) x[i] = to(x[i] - mean, NB_NUM_F32);
    }
    const double v = to(to(in_lanes(x, n, add_square), NB_NUM_F64) / (double)n, box.stat), root = root_of(v, call->eps);
    const double rstd =
        box.root == NB_ROOT_DIV_SQRT
            ? 0
            : to(1 / root, box.rounded == RSTD ? (int)nb_number_of((enum nb_dtype)box.dtype) : NB_NUM_F32);
    for (int64_t i = 0; i < n; i++) {
        const double xhat = (double)(float)(box.root == NB_ROOT_DIV_SQRT ? x[i] / root : x[i] * rstd);
        nb_set(out, i, dtype, weighted(call, i, xhat));
    }
}

static int run_box(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) run_row(call, row);
    return 0;
}

/* ---- the truth ---- */

static const char *truth_of(const char *question) {
    if (strcmp(question, "accumulator") == 0)
        return box.sum == NB_NUM_F32 ? "f32" : box.sum == NB_NUM_F64 ? "f64 or compensated" : nb_numbers[box.sum].name;
    if (strcmp(question, "eps_place") == 0) return nb_eps_place_names[box.eps_place];
    if (strcmp(question, "eps_added_to") == 0) return "the mean";
    if (strcmp(question, "eps_dtype") == 0) return nb_numbers[box.eps].name;
    if (strcmp(question, "statistics_dtype") == 0)
        return box.stat == NB_NUM_F32 ? "f32 or wider" : nb_numbers[box.stat].name;
    if (strcmp(question, "root") == 0)
        return box.eps_place != NB_EPS_INSIDE && box.stat == NB_NUM_F64 ? "correctly_rounded" : nb_root_names[box.root];
    if (strcmp(question, "rounding") == 0) return "nearest";
    if (strcmp(question, "variance") == 0) return "twopass";
    if (strcmp(question, "cast") == 0) return box.rounded == XHAT ? "before" : "after";
    if (strcmp(question, "affine_fma") == 0) return "rounded, then added";
    return NULL;
}

/* Beside the truth: what is true as far as it goes. */
static bool is_right(const char *question, const char *value) {
    if (strcmp(question, "accumulator") == 0 && strcmp(value, "f32 or wider") == 0)
        return box.sum == NB_NUM_F32 || box.sum == NB_NUM_F64;
    const bool wide = box.stat == NB_NUM_F32 || box.stat == NB_NUM_F64;
    if (strcmp(question, "statistics_dtype") == 0 && wide)
        return strcmp(value, "f32 or wider") == 0 || strncmp(value, "finer than ", 11) == 0;
    const char *truth = truth_of(question);
    return truth && strcmp(truth, value) == 0;
}

/* ---- the boxes ---- */

/* The usual ones of each dtype; then one thing at a time otherwise. */
enum { F64 = NB_NUM_F64, F32 = NB_NUM_F32, F16 = NB_NUM_F16, BF16 = NB_NUM_BF16 };
static const struct inside boxes[] = {
    /* op, dtype, sum, stat, eps, mean, lanes, fma, root, eps_place, rounded */
    {NB_OP_RMSNORM, NB_F32, F32, F32, F32, F32, 64, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_RMSNORM, NB_BF16, F32, F32, F32, F32, 1, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_RMSNORM, NB_F16, F32, F32, F32, F32, 4, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_LAYERNORM, NB_F32, F32, F32, F32, F32, 1, false, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_LAYERNORM, NB_BF16, F32, F32, F32, F32, 8, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    /* places of eps */
    {NB_OP_RMSNORM, NB_F32, F32, F32, F32, F32, 8, true, NB_ROOT_MUL_RECIP, NB_EPS_OUTSIDE, NOTHING},
    {NB_OP_RMSNORM, NB_F32, F32, F32, F32, F32, 8, true, NB_ROOT_MUL_RECIP, NB_EPS_CLAMP, NOTHING},
    /* eps in another format than the statistics */
    {NB_OP_RMSNORM, NB_F32, F32, F32, F64, F32, 8, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_RMSNORM, NB_F32, F32, F32, BF16, F32, 8, true, NB_ROOT_MUL_RECIP, NB_EPS_OUTSIDE, NOTHING},
    {NB_OP_RMSNORM, NB_F32, F32, F32, F64, F32, 8, true, NB_ROOT_MUL_RECIP, NB_EPS_OUTSIDE, NOTHING},
    {NB_OP_RMSNORM, NB_F16, F32, F32, F64, F32, 8, true, NB_ROOT_MUL_RECIP, NB_EPS_OUTSIDE, NOTHING},
    {NB_OP_LAYERNORM, NB_BF16, F32, F64, F64, F32, 1, false, NB_ROOT_MUL_RECIP, NB_EPS_OUTSIDE, NOTHING},
    {NB_OP_RMSNORM, NB_BF16, F32, F32, BF16, F32, 64, true, NB_ROOT_DIV_SQRT, 0, XHAT},
    {NB_OP_RMSNORM, NB_F16, F32, F32, F16, F32, 16, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_LAYERNORM, NB_F32, F32, F32, BF16, F32, 8, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    /* 1 / sqrt(v + eps) in bf16, of statistics in f32 */
    {NB_OP_RMSNORM, NB_BF16, F32, F32, F32, F32, 8, true, NB_ROOT_MUL_RECIP, 0, RSTD},
    {NB_OP_RMSNORM, NB_BF16, F32, F32, BF16, F32, 8, true, NB_ROOT_MUL_RECIP, 0, RSTD},
    /* statistics in another format than f32 */
    {NB_OP_RMSNORM, NB_F32, F32, BF16, F32, F32, 8, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_RMSNORM, NB_BF16, F32, BF16, BF16, F32, 8, true, NB_ROOT_MUL_RECIP, 0, XHAT},
    {NB_OP_RMSNORM, NB_BF16, BF16, BF16, BF16, F32, 8, false, NB_ROOT_MUL_RECIP, 0, XHAT},
    {NB_OP_RMSNORM, NB_F16, F16, F16, F16, F32, 16, false, NB_ROOT_MUL_RECIP, 0, XHAT},
    {NB_OP_RMSNORM, NB_F32, F64, F64, F64, F32, 1, false, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_LAYERNORM, NB_BF16, F32, BF16, BF16, BF16, 8, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_LAYERNORM, NB_F32, F64, F64, F64, F64, 1, false, NB_ROOT_DIV_SQRT, 0, NOTHING},
    /* a mean in another format than the sum of squares; the latter one after another */
    {NB_OP_LAYERNORM, NB_F32, F32, F64, F16, F64, 1, true, NB_ROOT_MUL_RECIP, NB_EPS_OUTSIDE, NOTHING},
    {NB_OP_LAYERNORM, NB_F32, F32, F32, F32, F64, 8, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_LAYERNORM, NB_F32, F32, F32, F32, BF16, 8, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
    {NB_OP_LAYERNORM, NB_BF16, F32, F32, F32, F16, 1, true, NB_ROOT_MUL_RECIP, 0, NOTHING},
};
enum { N_BOXES = sizeof boxes / sizeof boxes[0] };

/* ---- what is said of them ---- */

struct score {
    int right, open;
};

static int question_at(const char *name) {
    size_t i = 0;
    while (i < nb_n_probe_questions && strcmp(nb_probe_questions[i].name, name) != 0) i++;
    cr_assert_lt(i, nb_n_probe_questions, "%s", name);
    return (int)i;
}

static cJSON *answers_of(const struct inside *inside) {
    static char text[40];
    const struct nb_kernel kernel = {.struct_size = sizeof kernel,
                                     .op = inside->op,
                                     .dtype = inside->dtype,
                                     .width = NB_NATIVE,
                                     .name = "box",
                                     .variant = "box",
                                     .summary = "a black box",
                                     .formulas = {.affines = 1u << NB_AFFINE_GAMMA_BETA},
                                     .run = run_box};
    const struct nb_entry entry = {.kernel = &kernel, .plugin = "boxes", .id = text, .kernel_id = text};
    struct nb_case c;
    snprintf(text, sizeof text, "boxes:box");
    box = *inside;
    cr_assert_eq(probe_case(&c, &entry, (struct nb_formula){.affine = NB_AFFINE_GAMMA_BETA}), 0);
    return kept_json(nb_probe_kernel(&c, &entry, NULL, 0));
}

static void count(int number, const cJSON *result, struct score *scores) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, nb_json_get(result, "answers")) {
        const char *question = nb_json_get_text(answer, "question"), *value = nb_json_get_text(answer, "value");
        if (!truth_of(question)) continue;
        struct score *score = &scores[question_at(question)];
        const bool right = value && is_right(question, value);
        score->right += right;
        score->open += !value && !(box.eps == NB_NUM_F64 && strcmp(question, "eps_dtype") == 0); /* f64 is never told */
        cr_expect(!value || right, "box %d: %s is %s, not %s (%s)", number, question, value, truth_of(question),
                  nb_json_get_text(answer, "evidence"));
    }
}

/* What is said of most of the boxes at least, so that silence is not taken for being right. */
static void expect_power(const struct score *scores) {
    static const char *const known[] = {"eps_place", "eps_dtype", "statistics_dtype", "accumulator", "rounding"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct score *s = &scores[question_at(known[i])];
        cr_expect_geq(2 * s->right, 3 * s->open, "%s: %d right, %d open", known[i], s->right, s->open);
    }
    const struct score *root = &scores[question_at("root")]; /* in 16 bits most boxes round something else, too */
    cr_expect_geq(root->right, 2, "root: %d right, %d open", root->right, root->open);
}

/* One dtype after another, side by side. */
ParameterizedTestParameters(probe_boxes, answers_are_right_or_left_open) {
    static uint32_t dtypes[] = {NB_F32, NB_F16, NB_BF16};
    return cr_make_param_array(uint32_t, dtypes, 3);
}
ParameterizedTest(const uint32_t *dtype, probe_boxes, answers_are_right_or_left_open) {
    struct score scores[64] = {{0, 0}};
    cr_assert_leq(nb_n_probe_questions, 64);
    for (int i = 0, n = 0; i < N_BOXES; i++) {
        if (boxes[i].dtype != *dtype || n++ % sparsely()) continue;
        const cJSON *result = answers_of(&boxes[i]);
        cr_assert_str_eq(nb_json_get_text(result, "status"), "ok");
        count(i, result, scores);
    }
    if (sparsely() == 1) expect_power(scores);
}
