// SPDX-License-Identifier: Apache-2.0
/* The questions in order, the answers, and the line that sums them up. */
#include "src/lab/probe/probe.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/core/axes.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/lab/probe/probe_box.h"
#include "src/measure/worker.h"

/* ---- What is known so far, and answers ---- */

static void probe_init(struct nb_probe *p, const struct nb_case *c, const struct nb_entry *entry) {
    *p = (struct nb_probe){.c = *c,
                           .entry = entry,
                           .dtype = (enum nb_dtype)c->dtype,
                           .format = &nb_formats[c->dtype],
                           .centres = nb_op_centres(c->op),
                           .of_sum = c->op == NB_OP_L2NORM,
                           .has_gamma = c->formula.affine != NB_AFFINE_NONE,
                           .has_beta = c->formula.affine == NB_AFFINE_GAMMA_BETA,
                           .eps_place = -1,
                           .variance = -1,
                           .answers = cJSON_CreateArray()};
}

void nb_probe_say(struct nb_probe *p, const char *question, const char *value, const char *confidence,
                  const char *evidence, ...) {
    char text[600];
    va_list arguments;
    va_start(arguments, evidence);
    vsnprintf(text, sizeof text, evidence, arguments);
    va_end(arguments);
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "question", question);
    nb_json_text(answer, "value", value);
    nb_json_text(answer, "confidence", value ? confidence : NULL);
    nb_json_text(answer, "evidence", text);
    cJSON_AddItemToArray(p->answers, answer);
}

/* ---- Subnormals, NaN and Inf. Subnormal inputs, squares and outputs are each met alone: the rest of a row keeps all else normal ---- */

enum { SPECIAL_COLS = 64 };

static const char *kept_or_flushed(bool kept, bool flushed) { return kept ? "kept" : flushed ? "flushed" : NULL; }

/* x of half the smallest normal number, and a rstd of 2^8 by eps. */
static void ask_inputs(struct nb_probe *p) {
    struct nb_box b released_by(nb_box_release);
    const double x = p->format->min_normal / 2;
    double eps = p->eps_place == NB_EPS_INSIDE ? 0x1p-16 : 0x1p-8;
    if (p->eps_place < 0) eps = 0x1p-16;
    if (nb_box_init(&b, p, 1, SPECIAL_COLS, eps) != 0) return;
    nb_box_set(&b, 0, 3, x);
    nb_box_set(&b, 0, 4, -x);
    if (nb_box_run(&b) != 0) return;
    const double y = nb_box_y(&b, 0, 3);
    nb_probe_say(p, "subnormal_inputs", kept_or_flushed(y > x * 16 && isfinite(y), y == 0), "certain",
                 "x = %.3g gives %.3g, which is normal when x counts", x, y);
}

/* x normal, rstd 2^-6: an output of half the smallest normal number or less. */
static void ask_outputs(struct nb_probe *p) {
    struct nb_box b released_by(nb_box_release);
    const double x = p->format->min_normal * 4, large = 64 * 8;
    if (nb_box_init(&b, p, 1, SPECIAL_COLS, 0) != 0) return;
    nb_box_set(&b, 0, 0, large); /* v = 2 * 2^18 / 64, or 2^19 */
    nb_box_set(&b, 0, 1, -large);
    nb_box_set(&b, 0, 3, x);
    if (nb_box_run(&b) != 0) return;
    const double rstd = nb_box_y(&b, 0, 0) / large, y = nb_box_y(&b, 0, 3);
    const bool kept = fabs(y - x * rstd) < 0.1 * x * rstd;
    const bool in_range = x * rstd < p->format->min_normal && x * rstd > 16 * p->format->min_subnormal;
    nb_probe_say(p, "subnormal_outputs", in_range ? kept_or_flushed(kept, y == 0) : NULL, "certain",
                 "%.3g times rstd %.3g gives %.3g", x, rstd, y);
}

/* x^2 = 2^-128 beside eps = 2^-126, both f32: v + eps is 1.25 eps, or eps. */
static void ask_squares(struct nb_probe *p) {
    const double x = p->of_sum ? 0x1p-67 : 0x1p-64;
    if (p->dtype == NB_F16 || p->eps_place != NB_EPS_INSIDE || !p->eps_plain || p->eps_on_sum) {
        nb_probe_say(p, "subnormal_squares", NULL, NULL, "%s",
                     p->dtype == NB_F16 ? "squares of f16 numbers are normal in f32"
                                        : "it can be seen only where eps is inside the root");
        return;
    }
    struct nb_box b released_by(nb_box_release);
    if (nb_box_init(&b, p, 1, SPECIAL_COLS, 0x1p-126) != 0) return;
    nb_box_set_level(&b, x);
    if (nb_box_run(&b) != 0) return;
    const double gain = nb_box_y(&b, 0, 0) / x * 0x1p-63;
    nb_probe_say(p, "subnormal_squares", kept_or_flushed(fabs(gain - sqrt(0.8)) < 0.02, fabs(gain - 1) < 0.02),
                 "certain", "v = 2^-128 beside eps = 2^-126: rstd is 2^63 times %.4g (0.894 when v counts)", gain);
}

/* One column is NaN or Inf: what do it and the others become? */
static void ask_special(struct nb_probe *p, const char *question, double special) {
    struct nb_box b released_by(nb_box_release);
    int64_t nan = 0, zero = 0;
    const char *value = "hidden from the others";
    if (nb_box_init(&b, p, 1, SPECIAL_COLS, 1e-5) != 0) return;
    for (int64_t i = 0; i < SPECIAL_COLS; i++) nb_box_set(&b, 0, i, i % 2 ? -1.25 : 1);
    nb_box_set(&b, 0, 7, special);
    if (nb_box_run(&b) != 0) return;
    const double own = nb_box_y(&b, 0, 7);
    for (int64_t i = 0; i < SPECIAL_COLS; i++) {
        nan += i != 7 && isnan(nb_box_y(&b, 0, i));
        zero += i != 7 && nb_box_y(&b, 0, i) == 0;
    }
    if (nan == SPECIAL_COLS - 1 && isnan(own)) value = "the whole row is NaN";
    if (zero == SPECIAL_COLS - 1) value = isnan(own) ? "the others are 0, itself NaN" : "the others are 0";
    nb_probe_say(p, question, value, "certain", "the element itself gives %g; of %d others %lld are NaN and %lld are 0",
                 own, SPECIAL_COLS - 1, (long long)nan, (long long)zero);
}

/* Subnormals, NaN, Inf. */
static void probe_special_values(struct nb_probe *p) {
    ask_inputs(p);
    if (!p->failure) ask_outputs(p);
    if (!p->failure) ask_squares(p);
    if (!p->failure) ask_special(p, "nan", NAN);
    if (!p->failure) ask_special(p, "inf", INFINITY);
}

/* What is done with gamma and beta: cast order, the format of 1 + gamma, fma.
 *
 * Rows of 96 elements +-1.5 and 160 of +-0.5 have v = 1 in any order of summation: where the root is exact, x rstd is x. With
 * beta = -RN(x gamma) only a fused product leaves its rounding error. */

enum { ROWS = 16, COLS = 256 };

static double round_x(const struct nb_probe *p, double v) { return nb_round_to(v, p->dtype); }

/* The outputs of the box as it is. -1: the call failed. */
static int outputs_of(struct nb_box *b, double *y) {
    if (nb_box_run(b) != 0) return -1;
    for (int64_t i = 0; i < ROWS * COLS; i++) y[i] = nb_box_y(b, i / COLS, i % COLS);
    return 0;
}

/* ---- cast order ---- */

/* What multiplies, as the kernel sees it: gamma, or 1 + gamma, which is exact here. */
static double weight(const struct nb_box *b, int64_t col) { return b->gamma[col] + (b->p->unit == 0 ? 1 : 0); }

/* The ways a store may round, each to the nearer or one of the two neighbours. */
enum { TO_NEAREST, TO_ZERO, FROM_ZERO, N_STORES };

/* Counts for each way the outputs that are not q w so rounded; returns how many are no neighbour of q w at all. */
static int64_t compare_stores(const struct nb_box *b, const double *q, const double *outputs,
                              int64_t differing[N_STORES]) {
    int64_t far = 0;
    for (int64_t i = 0; i < ROWS * COLS; i++) {
        const double y = outputs[i], product = q[i] * weight(b, i % COLS), ulp = nb_ulp(product, b->p->dtype);
        const double zero = copysign(floor(fabs(product) / ulp) * ulp, product);
        const double from = zero == product ? product : zero + copysign(ulp, product);
        differing[TO_NEAREST] += y != round_x(b->p, product);
        differing[TO_ZERO] += y != zero;
        differing[FROM_ZERO] += y != from;
        far += fabs(y - product) > ulp * (1 + 0x1p-12);
    }
    return far;
}

/* Outputs with gamma = 1 first: q, x rstd as it is stored. If the weight then multiplies q, all outputs are q gamma rounded in one way. If it
 * multiplies x rstd, some are no neighbour of q gamma, however it is rounded. */
static void ask_cast(struct nb_probe *p, struct nb_box *b) {
    static double q[ROWS * COLS], y[ROWS * COLS];
    int64_t differing[N_STORES] = {0}, least = INT64_MAX;
    nb_box_fill_normal(b, 0);
    if (outputs_of(b, q) != 0) return;
    for (int64_t i = 0; i < COLS; i++) /* six bits, so that 1 + gamma is exact in every format; no power of two */
        b->gamma[i] = (double)(33 + 2 * (i % 15)) / 32 - (p->unit == 0 ? 1 : 0);
    if (outputs_of(b, y) != 0) return;
    const int64_t far = compare_stores(b, q, y, differing);
    for (int s = 0; s < N_STORES; s++) least = differing[s] < least ? differing[s] : least;
    const char *value = least == 0 ? "before" : far > ROWS * COLS / 400 ? "after" : NULL;
    nb_probe_say(
        p, "cast", value, "certain",
        "%lld of %d outputs are the stored output for gamma = 1 times gamma, rounded again in one way; %lld are "
        "farther from that product than any rounding goes",
        (long long)(ROWS * COLS - least), ROWS * COLS, (long long)far);
}

/* ---- 1 + gamma ---- */

/* gamma below half a spacing of 1: in x's dtype 1 + gamma is 1, in f32 it is not. */
static void ask_offset(struct nb_probe *p, struct nb_box *b) {
    static double without[ROWS * COLS], with[ROWS * COLS];
    int64_t changed = 0;
    const double tiny = p->format->unit_roundoff * 0.75;
    nb_box_fill_normal(b, 1);
    for (int64_t i = 0; i < COLS; i++) b->gamma[i] = 0;
    if (outputs_of(b, without) != 0) return;
    for (int64_t i = 0; i < COLS; i++) b->gamma[i] = tiny;
    if (outputs_of(b, with) != 0) return;
    for (int64_t i = 0; i < ROWS * COLS; i++) changed += with[i] != without[i];
    const char *value = changed == 0 ? p->format->name : changed > ROWS * COLS / 8 ? "f32 or wider" : NULL;
    nb_probe_say(p, "offset_dtype", value, "certain", "gamma = %.3g changes %lld of %d outputs", tiny,
                 (long long)changed, ROWS * COLS);
}

/* ---- fma ---- */

/* v = 1; for L2Norm the sum is 1. */
static void fill_exact(struct nb_box *b) {
    const double unit = b->p->of_sum ? 1.0 / 16 : 1;
    for (int64_t i = 0; i < b->rows * b->cols; i++) b->x[i] = unit * (i % 16 < 6 ? 1.5 : 0.5) * (i % 2 ? -1 : 1);
}

/* 2^14 m in f32, m from 1.25 to 1.75: errors of products then are numbers in f16 too. */
static double wide_weight(int64_t i) {
    return (double)(float)(0x1p14 * (1.25 + 0.5 * nb_random_open(nb_random_stream(17, 0), (uint64_t)i)));
}

/* x w + beta with beta = -RN(x w): fused, rounded to f32 between, and rounded to x's dtype between. */
enum { FUSED, SEPARATE, NARROW, N_FORMS };
static const char *const forms[N_FORMS] = {"fma", "rounded, then added", "rounded to x's dtype, then added"};

static int compare_forms(struct nb_box *b, int64_t wrong[N_FORMS]) {
    const struct nb_probe *p = b->p;
    int64_t differing = 0;
    for (int64_t i = 0; i < b->cols; i++) {
        const double x = b->x[i], w = wide_weight(i), product = (double)(float)(x * w), y = nb_box_y(b, 0, i);
        const double narrow = round_x(p, (double)(float)(round_x(p, product) - product));
        const double predicted[N_FORMS] = {round_x(p, x * w - product), 0, narrow}; /* x w is exact in double */
        for (int f = 0; f < N_FORMS; f++) wrong[f] += predicted[f] != y;
        differing += predicted[FUSED] != 0;
    }
    return differing > b->cols / 8 ? 0 : -1;
}

static void say_forms(struct nb_probe *p, const int64_t wrong[N_FORMS], int64_t n) {
    const char *value = NULL;
    int n_right = 0;
    for (int f = 0; f < N_FORMS; f++) {
        if (wrong[f] != 0 || (f == NARROW && p->dtype == NB_F32)) continue;
        value = forms[f];
        n_right++;
    }
    if (n_right == 1)
        nb_probe_say(p, "affine_fma", value, "certain",
                     "x gamma - RN(x gamma) differs from fma in %lld of %lld columns, from 0 in %lld",
                     (long long)wrong[FUSED], (long long)n, (long long)wrong[SEPARATE]);
    else
        nb_probe_say(p, "affine_fma", NULL, NULL,
                     "x gamma - RN(x gamma) is neither fused nor rounded in all columns: 1/sqrt(1) is not 1, or "
                     "something else is done");
}

static void ask_fma(struct nb_probe *p) {
    int64_t wrong[N_FORMS] = {0};
    if (!p->has_beta) {
        nb_probe_say(p, "affine_fma", NULL, NULL, "no beta is passed with this formula");
        return;
    }
    if (p->dtype != NB_F32 && p->c.formula.param == NB_PARAM_X) {
        nb_probe_say(p, "affine_fma", NULL, NULL,
                     "products of 16-bit numbers are exact in f32: rounded or not, they are the same");
        return;
    }
    struct nb_box b released_by(nb_box_release);
    if (nb_box_init(&b, p, 1, COLS, 0) != 0) return;
    fill_exact(&b);
    for (int64_t i = 0; i < COLS; i++) {
        b.gamma[i] = wide_weight(i) - (p->unit == 0 ? 1 : 0);
        b.beta[i] = -(double)(float)(b.x[i] * wide_weight(i));
    }
    if (nb_box_run(&b) == 0 && compare_forms(&b, wrong) == 0) say_forms(p, wrong, COLS);
}

/* Cast order, dtype of 1 + gamma, fma with beta. */
static void probe_affine(struct nb_probe *p) {
    struct nb_box b released_by(nb_box_release) = {0};
    const bool narrow = p->dtype != NB_F32;
    if (!p->has_gamma || !narrow)
        nb_probe_say(p, "cast", NULL, NULL, "%s", narrow ? "no gamma is passed with this formula" : "f32 is not cast");
    if (!p->has_gamma || !narrow || p->unit != 0)
        nb_probe_say(p, "offset_dtype", NULL, NULL, "%s", p->unit != 0 ? "1 + gamma is not formed" : "f32 is not cast");
    if (p->has_gamma && narrow && nb_box_init(&b, p, ROWS, COLS, 1e-5) == 0) {
        ask_cast(p, &b);
        if (p->unit == 0 && !b.broken) ask_offset(p, &b);
    }
    if (!p->failure) ask_fma(p);
}

/* ---- Does gamma multiply, or 1 + gamma? With gamma 0 the one gives a row of zeros; or is it not looked at? ---- */

static double largest_y(struct nb_box *b, double gamma) {
    double largest = 0;
    for (int64_t i = 0; i < b->cols; i++) b->gamma[i] = gamma;
    nb_box_run(b);
    for (int64_t i = 0; i < b->cols && !b->broken; i++) largest = fmax(largest, fabs(nb_box_y(b, 0, i)));
    return largest;
}

/* 1 + gamma or gamma. */
static void probe_params(struct nb_probe *p) {
    p->unit = 1;
    if (!p->has_gamma) {
        nb_probe_say(p, "weight_offset", NULL, NULL, "no gamma is passed with this formula");
        return;
    }
    struct nb_box b released_by(nb_box_release);
    p->unit = 0; /* the box then lays zeros there */
    if (nb_box_init(&b, p, 1, 64, 1e-5) != 0) return;
    for (int64_t i = 0; i < 64; i++) nb_box_set(&b, 0, i, i % 2 ? -1 - (double)(i % 4) / 4 : 1.5);
    const double of_1 = largest_y(&b, 1), of_0 = largest_y(&b, 0);
    const bool ignored = of_0 > 0 && of_0 == of_1, offset = of_0 > 0 && !ignored;
    p->unit = offset ? 0 : 1;
    p->has_gamma = !ignored;
    if (!p->failure)
        nb_probe_say(p, "weight_offset",
                     offset    ? "1"
                     : ignored ? "ignored"
                               : "0",
                     "certain", "with gamma = 0 the largest |y| is %.4g, with gamma = 1 %.4g", of_0, of_1);
}

/* Of an array of answers: null when undetermined or not asked. */
static const char *value_of(const cJSON *answers, const char *question) {
    return nb_json_get_text(nb_json_find(answers, "question", question), "value");
}

/* ---- One line of what is known, in the words of the field: "sums in f32, eps inside in f32, mul_recip, cast after weight" ---- */

static const struct {
    const char *question, *before, *behind;
} parts[] = {
    {"accumulator", "sums in ", ""},
    {"variance", "", " variance"},
    {"eps_place", "eps ", ""},
    {"eps_dtype", "in ", ""},
    {"root", "", ""},
    {"cast", "cast ", " weight"},
    {"weight_offset", "weight offset ", ""},
    {"affine_fma", "beta: ", ""},
    {"rounding", "rounding ", ""},
};

/* All that is known on one line. */
static void probe_summary(const struct nb_probe *p, struct nb_strbuf *out) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *value = value_of(p->answers, parts[i].question);
        const bool follows = strcmp(parts[i].question, "eps_dtype") == 0;
        if (!value || strcmp(value, "0") == 0) continue;
        nb_strbuf_addf(out, "%s%s%s%s", !out->len ? "" : follows ? " " : ", ", parts[i].before, value, parts[i].behind);
    }
    if (!out->len) nb_strbuf_add(out, "nothing could be determined");
}

void nb_probe_undetermined(const cJSON *probe, struct nb_strbuf *out) {
    static const char *const names[][2] = {
        {"accumulator", "sums"}, {"variance", "variance"}, {"eps_place", "eps"}, {"root", "root"}};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const cJSON *answer = nb_json_find(nb_json_get(probe, "answers"), "question", names[i][0]);
        const char *why = nb_json_get_text(answer, "evidence");
        if (!why || nb_json_get_text(answer, "value")) continue;
        nb_strbuf_addf(out, "%s%s (%.*s)", any ? ", " : "; undetermined: ", names[i][1], (int)strcspn(why, ",;"), why);
        any = true;
    }
}

static void add_difference(struct nb_strbuf *out, const char *format, const char *value) {
    nb_strbuf_add(out, out->len ? "; " : "");
    nb_strbuf_addf(out, format, value);
}

void nb_probe_differences(const struct nb_case *c, const cJSON *probe, bool gave_nan, struct nb_strbuf *out) {
    const cJSON *answers = nb_json_get(probe, "answers");
    const char *eps = value_of(answers, "eps_place"), *offset = value_of(answers, "weight_offset"),
               *cast = value_of(answers, "cast"), *variance = value_of(answers, "variance"),
               *rounding = value_of(answers, "rounding"), *root = value_of(answers, "root"),
               *added = value_of(answers, "eps_added_to");
    static const struct {
        const char *question, *format;
    } formats[] = {{"eps_dtype", "eps is kept in %s"},
                   {"statistics_dtype", "the statistics are kept in %s"},
                   {"accumulator", "the sums run in %s"}};
    const bool takes_16_bits = c->dtype != NB_F32 && c->stats_dtype == NB_STATS_X;
    if (eps && strncmp(eps, "nowhere", 7) == 0)
        add_difference(out, "eps has no effect%s", "");
    else if (eps && strcmp(eps, nb_eps_place_names[c->formula.eps_place]) != 0)
        add_difference(out, strncmp(eps, "clamp", 5) == 0 ? "eps is a %s" : "eps is %s the root", eps);
    if (added && strcmp(added, "sum") == 0 && c->op != NB_OP_L2NORM)
        add_difference(out, "eps is added to the %s", added);
    if (gave_nan && variance && strcmp(variance, nb_variance_names[NB_VAR_ONEPASS]) == 0)
        add_difference(out, "variance as %s", "E[x^2] - mean^2");
    if (cast && strcmp(cast, nb_cast_names[c->formula.cast]) != 0) add_difference(out, "cast %s the weight", cast);
    if (offset && strcmp(offset, "ignored") == 0)
        add_difference(out, "gamma has no effect%s", "");
    else if (offset && (*offset == '1') != (c->formula.weight_offset == 1))
        add_difference(out, "the weight is %s", *offset == '1' ? "1 + gamma" : "gamma");
    for (size_t i = 0; i < sizeof formats / sizeof *formats && !takes_16_bits; i++) {
        const char *format = value_of(answers, formats[i].question);
        if (format && (strcmp(format, "f16") == 0 || strcmp(format, "bf16") == 0))
            add_difference(out, formats[i].format, format);
    }
    if (rounding && strncmp(rounding, "nearest", 7) != 0) add_difference(out, "results are rounded %s", rounding);
    if (root && (strcmp(root, "rsqrt_raw") == 0 || strcmp(root, "quake") == 0) && c->formula.root != NB_ROOT_RSQRT_RAW)
        add_difference(out, "1 / sqrt is an estimate (%s)", root);
}

/* ---- All questions in order, and what becomes of the answers ---- */

const struct nb_probe_question nb_probe_questions[] = {
    {"weight_offset", "is gamma the weight (0), 1 + gamma (1), or neither (ignored)?"},
    {"eps_place", "inside the root, outside, a clamp, or nowhere"},
    {"eps_added_to", "the mean or the sum"},
    {"eps_effective", "the eps that the outputs show"},
    {"eps_dtype", "the format that eps is kept in"},
    {"statistics_dtype", "the format of the variance or mean square"},
    {"variance", "LayerNorm: twopass, corrected, welford, onepass or shifted"},
    {"accumulator", "the format of the running sums of squares"},
    {"rounding", "of the output: nearest, towards or away from zero, down or up"},
    {"root", "div_sqrt, mul_recip, rsqrt_nr, rsqrt_raw, correctly_rounded (in double) or quake"},
    {"root_instruction", "the formula, or the instruction of this CPU, whose bits it has"},
    {"cast", "16 bits: is x * rstd rounded before the weight, or after?"},
    {"offset_dtype", "16 bits: the format of 1 + gamma"},
    {"affine_fma", "is gamma's product rounded before beta is added?"},
    {"subnormal_inputs", "kept or flushed to zero"},
    {"subnormal_outputs", "kept or flushed to zero"},
    {"subnormal_squares", "kept or flushed to zero"},
    {"nan", "what one NaN in a row does"},
    {"inf", "what one infinity in a row does"},
};
const size_t nb_n_probe_questions = sizeof nb_probe_questions / sizeof nb_probe_questions[0];

const char *nb_probe_refuses(const struct nb_case *c) {
    const bool row_norm = c->op == NB_OP_RMSNORM || c->op == NB_OP_PRMSNORM || c->op == NB_OP_LAYERNORM ||
                          c->op == NB_OP_L2NORM || c->op == NB_OP_ADD_RMSNORM || c->op == NB_OP_ADD_LAYERNORM;
    if (!row_norm)
        return "probe asks norms over rows: rmsnorm, prmsnorm, l2norm, layernorm, add_rmsnorm, add_layernorm";
    return c->pass == NB_FORWARD ? NULL : "probe asks forward kernels";
}

/* ---- what a kernel is called with ---- */

int nb_probe_set_axis(struct nb_case *c, const char *text, char *reason, size_t n) {
    static const char *const names[] = {"eps",           "eps_place",   "root",      "affine", "cast",
                                        "weight_offset", "param_dtype", "round_sum", NULL};
    char name[32];
    const size_t length = strcspn(text, "=");
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    if (text[length] && nb_name_find(names, name) >= 0)
        return nb_axis_set(nb_axis_find(name), c, text + length + 1, reason, n);
    return nb_reason(
        reason, n, "is not NAME=VALUE, of eps, eps_place, root, affine, cast, weight_offset, param_dtype or round_sum");
}

/* The op's usual one, as it stands in a normalized case; where the kernel has not that, as much as it has. */
static void set_affine(struct nb_case *c, uint32_t affines) {
    if (affines == 0) c->formula.affine = NB_AFFINE_NONE;
    if (affines && !(affines & 1u << c->formula.affine)) c->formula.affine = 31u - (uint32_t)__builtin_clz(affines);
}

const char *nb_probe_case(struct nb_case *c, const struct nb_entry *entry, const char *const *axes, size_t n) {
    struct nb_call call;
    char reason[256];
    bool open = true; /* the affine part is the kernel's */
    nb_case_init(c);
    snprintf(c->data, sizeof c->data, "normal");
    c->shape = nb_shape_of(1, NB_PROBE_COLS);
    c->op = entry->kernel->op;
    const uint32_t usual = c->formula.affine;
    nb_kernel_fit_formula(entry->kernel, &c->formula);
    c->formula.affine = usual;
    for (size_t i = 0; i < n; i++) {
        nb_probe_set_axis(c, axes[i], reason, sizeof reason);
        open &= strncmp(axes[i], "affine=", 7) != 0;
    }
    nb_case_set_entry(c, entry);
    nb_case_normalize(c);
    if (open) set_affine(c, entry->kernel->formulas.affines);
    nb_case_call(c, &call);
    const char *refusal = nb_probe_refuses(c);
    if (!refusal && entry->kernel->backend == NB_BACKEND_CUDA)
        refusal = "a probe gives its kernel the host's memory, which a GPU does not see; probe its emulation";
    if (!refusal) refusal = nb_cpu_refuses(entry->kernel->cpu_features, entry->kernel->width);
    if (!refusal) refusal = nb_case_conflict(c);
    if (!refusal) refusal = nb_kernel_refuses(entry->kernel, &c->formula);
    if (!refusal) refusal = nb_ask_applicable(entry, &call);
    return refusal;
}

/* ---- all questions ---- */

static void (*const subjects[])(struct nb_probe *) = {probe_params,  nb_probe_eps, nb_probe_variance,
                                                      nb_probe_root, probe_affine, probe_special_values};

cJSON *nb_probe_kernel(const struct nb_case *c, const struct nb_entry *entry, struct nb_workplace *worker, int at) {
    assert(entry && !nb_probe_refuses(c));
    struct nb_strbuf summary released_by(nb_strbuf_release) = {0};
    cJSON *result = cJSON_CreateObject();
    struct nb_probe p;
    probe_init(&p, c, entry);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0] && !p.failure; i++) {
        subjects[i](&p);
        if (worker) nb_worker_at(worker, at);
    }
    nb_json_text(result, "status", p.failure ? "failed" : "ok");
    nb_json_text(result, "reason", p.failure);
    cJSON_AddItemToObject(result, "answers", p.answers);
    probe_summary(&p, &summary);
    nb_json_text(result, "summary", summary.text);
    nb_json_number(result, "calls", (double)p.calls);
    return result;
}
