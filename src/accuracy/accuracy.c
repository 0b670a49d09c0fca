// SPDX-License-Identifier: Apache-2.0
/* Exponent and first bits of the significand are taken as they stand in the double. */
#include "src/accuracy/accuracy.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/oracle.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"

/* ---- errors by size -------------------------------------------------------------------------------------------------- */

/* Counted by powers of two for the eye, finely for an order statistic. */

/* Logarithmic: 32 bins an octave from 2^-40 to 2^40. */
enum { BIN_BITS = 5, LOWEST_OCTAVE = -40, OCTAVES = 80 };
struct ulp_bins {
    int64_t n, of[OCTAVES << BIN_BITS];
};

enum { BINS_PER_OCTAVE = 1 << BIN_BITS, N_BINS = OCTAVES * BINS_PER_OCTAVE };

static int bucket_of(double ulps) {
    if (ulps <= 0.5) return 0;
    const uint64_t bits = nb_double_bits(ulps);
    const bool power_of_two = bits << 12 == 0;
    const int bucket = (int)(bits >> 52) - 1023 + (power_of_two ? 1 : 2); /* (1/2, 1] is 1 */
    return bucket < NB_ULP_BUCKETS ? bucket : NB_ULP_BUCKETS - 1;
}

static int bin_of(double ulps) {
    if (ulps < 0x1p-40) return 0;
    const int64_t lowest = (int64_t)(1023 + LOWEST_OCTAVE) * BINS_PER_OCTAVE;
    const int64_t bin = (int64_t)(nb_double_bits(ulps) >> (52 - BIN_BITS)) - lowest;
    return bin < N_BINS ? (int)bin : N_BINS - 1;
}

static void add_to_bins(struct ulp_bins *b, double ulps) {
    b->n++;
    b->of[bin_of(ulps)]++;
}

/* The 99th percentile, to 1/32 of itself above, and not above the largest error. */
static double p99_of(const struct ulp_bins *b, double largest) {
    const double wanted = 0.99 * (double)b->n;
    int64_t below = 0;
    for (int bin = 0; bin < N_BINS; bin++) {
        below += b->of[bin];
        if ((double)below < wanted) continue;
        const double upper = 1 + (bin % BINS_PER_OCTAVE + 1.0) / BINS_PER_OCTAVE;
        return fmin(ldexp(upper, bin / BINS_PER_OCTAVE + LOWEST_OCTAVE), largest);
    }
    return largest;
}

/* ---- errors ---------------------------------------------------------------------------------------------------------- */

/* One sweep over a row for the errors and their sums, a second over the kept errors for what is left beside gain and offset. */

/* Mean and sum of squared distances from it, updated. */
struct moments {
    double n, mean, squares;
};

/* Least squares of v = intercept + slope w. */
struct line {
    double n, w, v, ww, wv;
};

struct nb_accuracy_sum {
    struct nb_accuracy a;
    enum nb_number number;
    int64_t n_biased, n_rounded;
    double abs_ulp, bias, bias_large;
    struct moments large, rounding; /* over rows */
    struct ulp_bins bins;
    double *error, *ulp; /* of the row's elements: NaN for those left out; spacing at the exact value */
    int64_t cols;
};

struct nb_accuracy_sum *nb_accuracy_new(enum nb_number number) {
    struct nb_accuracy_sum *s = nb_alloc(1, sizeof *s);
    s->number = number;
    s->a.reproducer = (struct nb_reproducer){.row = -1, .col = -1};
    return s;
}

static void moments_add(struct moments *m, double v) {
    double d = v - m->mean;
    m->mean += d / ++m->n;
    m->squares += d * (v - m->mean);
}

static void line_add(struct line *l, double w, double v) {
    l->n++;
    l->w += w;
    l->v += v;
    l->ww += w * w;
    l->wv += w * v;
}

/* -1 where w has no spread to speak of. */
static int line_fit(const struct line *l, double *intercept, double *slope) {
    double mean_w = l->w / l->n, mean_v = l->v / l->n, sww = l->ww - l->w * mean_w;
    if (!(sww > 1e-9 * l->ww)) return -1;
    *slope = (l->wv - l->w * mean_v) / sww;
    *intercept = mean_v - *slope * mean_w;
    return 0;
}

/* ---- elements ---------------------------------------------------------------------------------------------------------- */

struct element {
    const struct nb_row_values *values;
    int64_t row, col;
    double got, want, want_low, tolerance; /* exactly want + want_low */
};

/* The two cancel up to their last bits, so that want_low is not lost. */
static double error_of(const struct element *e) { return (e->got - e->want) - e->want_low; }

/* Of a number that is stored. */
static enum nb_dtype dtype_of(enum nb_number number) {
    assert(number == NB_NUM_F32 || number == NB_NUM_F16 || number == NB_NUM_BF16);
    return number == NB_NUM_F32 ? NB_F32 : number == NB_NUM_F16 ? NB_F16 : NB_BF16;
}

static double x_of(const struct nb_accuracy_sum *s, const struct element *e) {
    const struct nb_row_values *v = e->values;
    if (v->stored_x) return nb_get(v->stored_x, e->col, dtype_of(s->number));
    return v->numbers_x ? v->numbers_x[e->col] : NAN;
}

static void set_reproducer(struct nb_accuracy_sum *s, const struct element *e, double ratio, double ulp) {
    struct nb_reproducer *w = &s->a.reproducer;
    if (w->row >= 0 && ratio <= s->a.worst_ratio) return;
    s->a.worst_ratio = ratio;
    *w = (struct nb_reproducer){.row = e->row, .col = e->col, .got = e->got, .want = e->want};
    w->x = x_of(s, e);
    w->err_ulp = error_of(e) / ulp;
    w->tolerance_ulp = e->tolerance / ulp;
}

/* NaN and Inf on either side. Returns whether that is all there is to say about the element. */
static bool exceptional(struct nb_accuracy_sum *s, const struct element *e) {
    struct nb_accuracy *a = &s->a;
    const double limit = nb_numbers[s->number].overflow;
    const bool has_inf = nb_number_has_inf(s->number); /* else NaN stands for it */
    const bool want_inf = fabs(e->want) >= limit, got_inf = has_inf ? isinf(e->got) : isnan(e->got);
    if (isinf(e->tolerance) && e->tolerance > 0) return true;
    if (isfinite(e->got) && !isnan(e->want) && !want_inf) return false;
    bool right =
        (isnan(e->want) && isnan(e->got)) || (want_inf && got_inf && (!has_inf || (e->want > 0) == (e->got > 0)));
    if (right) return true;
    if (isnan(e->want))
        a->nan_missing++;
    else if (want_inf)
        a->inf_missing++;
    else if (isnan(e->got))
        a->nan_unexpected++;
    else
        a->inf_unexpected++;
    a->n_beyond++;
    set_reproducer(s, e, INFINITY, isfinite(e->want) ? nb_number_ulp(e->want, s->number) : NAN);
    return true;
}

/* A finite number within the range of the format; what the double does not show decides ties. */
static double nearest_of(const struct nb_accuracy_sum *s, const struct element *e, double ulp) {
    if (e->want_low != 0 || s->number == NB_NUM_F64)
        return nb_number_round(e->want, e->want_low, s->number, NB_ROUND_NEAREST, 0);
    return nb_nearest_multiple(e->want, ulp);
}

static void compare(struct nb_accuracy_sum *s, const struct element *e, double ulp) {
    struct nb_accuracy *a = &s->a;
    const double error = error_of(e), ulps = fabs(error) / ulp, nearest = nearest_of(s, e, ulp);
    s->abs_ulp += ulps;
    if (ulps > a->max_ulp) a->max_ulp = ulps;
    add_to_bins(&s->bins, ulps);
    a->histogram[bucket_of(ulps)]++;
    if (e->got == nearest) s->n_rounded++;
    const bool beyond = !(fabs(error) <= e->tolerance);
    if (beyond) a->n_beyond++;
    if (beyond && e->got == 0 && nearest != 0) a->zero_unexpected++;
    set_reproducer(s, e, error == 0 ? 0 : fabs(error) / e->tolerance, ulp);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

static double rms_of(const double *exact, const double *error, int64_t cols) {
    double sum = 0, n = 0;
    for (int64_t i = 0; i < cols; i++) {
        if (isnan(error[i])) continue;
        sum += exact[i] * exact[i];
        n++;
    }
    return n > 0 ? sqrt(sum / n) : 0;
}

/* Signed relative errors, and the line that parts scale from last rounding. */
static void row_bias(struct nb_accuracy_sum *s, const double *exact, int64_t cols, double rms) {
    const double normal = 2 * nb_numbers[s->number].min_normal;
    const double half_scale =
        1 / (2 * nb_numbers[s->number].unit_roundoff); /* |y| / ulp is in [half_scale, 2 half_scale) */
    struct line line = {0};
    double sum_large = 0, n_large = 0;
    for (int64_t i = 0; i < cols; i++) {
        const double y = fabs(exact[i]);
        if (isnan(s->error[i]) || !(y > rms * 0x1p-10)) continue;
        const double error = exact[i] > 0 ? s->error[i] : -s->error[i];
        const double relative = error / y;
        s->bias += relative;
        s->n_biased++;
        if (!(y > rms / 4) || y < normal) continue;
        sum_large += relative;
        n_large++;
        line_add(&line, y / (s->ulp[i] * half_scale), error / s->ulp[i]);
    }
    double intercept, slope;
    if (line.n >= 32 && line_fit(&line, &intercept, &slope) == 0) {
        moments_add(&s->rounding, intercept);
        s->a.n_rounding_rows++;
        s->a.n_rounding += (int64_t)line.n;
    }
    if (n_large == 0) return;
    s->bias_large += sum_large;
    s->a.n_large += (int64_t)n_large;
    moments_add(&s->large, sum_large / n_large);
}

static void keep_largest(double *largest, double v) {
    if (fabs(v) > fabs(*largest)) *largest = v;
}

static void decompose(struct nb_accuracy_sum *s, const double *exact, int64_t cols, double rms) {
    const double u = nb_numbers[s->number].unit_roundoff;
    struct line line = {0};
    for (int64_t i = 0; i < cols; i++)
        if (!isnan(s->error[i])) line_add(&line, exact[i] / rms, s->error[i] / rms);
    const double ulp_of_rms = nb_number_ulp(rms, s->number);
    double offset = 0, gain = 0, squares = 0;
    if (line_fit(&line, &offset, &gain) != 0) gain = line.ww > 0 ? line.wv / line.ww : 0; /* all y alike: no offset */
    for (int64_t i = 0; i < cols; i++) {
        if (isnan(s->error[i])) continue;
        const double residual = (s->error[i] - gain * exact[i] - offset * rms) / fmax(s->ulp[i], ulp_of_rms);
        squares += residual * residual;
    }
    keep_largest(&s->a.gain_u, gain / u);
    keep_largest(&s->a.offset_u, offset / u);
    keep_largest(&s->a.residual_ulp, sqrt(squares / line.n));
}

/* The computed numbers, into the place of their errors. */
static void take_row(struct nb_accuracy_sum *s, int64_t cols, const struct nb_row_values *v) {
    if (cols > s->cols) {
        s->error = nb_realloc(s->error, (unsigned long long)cols, sizeof *s->error);
        s->ulp = nb_realloc(s->ulp, (unsigned long long)cols, sizeof *s->ulp);
        s->cols = cols;
    }
    if (v->stored)
        nb_truth_widen(v->stored, 0, cols, dtype_of(s->number), s->error);
    else
        memcpy(s->error, v->numbers, (size_t)cols * sizeof *s->error);
}

void nb_accuracy_row(struct nb_accuracy_sum *s, int64_t row, int64_t cols, const struct nb_row_values *v) {
    assert(v->exact && v->tolerance && (v->stored || v->numbers));
    int64_t n_kept = 0;
    take_row(s, cols, v);
    for (int64_t i = 0; i < cols; i++) {
        const struct element e = {.values = v,
                                  .row = row,
                                  .col = i,
                                  .got = s->error[i],
                                  .want = v->exact[i],
                                  .want_low = v->exact_low ? v->exact_low[i] : 0,
                                  .tolerance = v->tolerance[i]};
        s->error[i] = NAN;
        if (exceptional(s, &e)) {
            s->a.n_exceptional++;
            continue;
        }
        s->ulp[i] = nb_number_ulp(e.want, s->number);
        compare(s, &e, s->ulp[i]);
        s->error[i] = error_of(&e);
        n_kept++;
    }
    s->a.n += cols;
    if (v->loss != NB_LOSS_NONE && s->a.n_rows_lost++ == 0) s->a.loss = v->loss;
    const double rms = rms_of(v->exact, s->error, cols);
    if (n_kept == 0 || !(rms > 0)) return;
    s->a.n_rows++;
    row_bias(s, v->exact, cols, rms);
    decompose(s, v->exact, cols, rms);
}

/* ---- the whole --------------------------------------------------------------------------------------------------------- */

static double deviation(const struct moments *m) { return m->n > 1 ? sqrt(m->squares / (m->n - 1)) : NAN; }

void nb_accuracy_finish(struct nb_accuracy_sum *s, struct nb_accuracy *out) {
    const double u = nb_numbers[s->number].unit_roundoff;
    struct nb_accuracy *a = &s->a;
    const bool any = s->bins.n > 0;
    if (!any) a->max_ulp = a->gain_u = a->offset_u = a->residual_ulp = NAN;
    a->mean_ulp = any ? s->abs_ulp / (double)s->bins.n : NAN;
    a->p99_ulp = any ? p99_of(&s->bins, a->max_ulp) : NAN;
    a->correctly_rounded = any ? (double)s->n_rounded / (double)s->bins.n : NAN;
    a->bias_u = s->n_biased > 0 ? s->bias / (double)s->n_biased / u : NAN;
    a->bias_large_u = a->n_large > 0 ? s->bias_large / (double)a->n_large / u : NAN;
    a->bias_large_sd_u = deviation(&s->large) / u;
    a->rounding_ulp = s->rounding.n > 0 ? s->rounding.mean : NAN;
    a->rounding_sd_ulp = deviation(&s->rounding);
    a->bias_sigma = NAN;
    *out = *a;
    nb_free_all(s->error, s->ulp, s);
}

double nb_accuracy_parameters_ratio(const struct nb_accuracy *a) {
    const struct nb_parameter_error *errors[] = {&a->dgamma, &a->dbeta, &a->dalpha};
    double largest = NAN;
    for (int i = 0; a->has_parameters && i < 3; i++)
        if (errors[i]->n > 0 && !(errors[i]->ratio <= largest)) largest = errors[i]->ratio;
    return largest;
}

/* ---- the judgement of the bias --------------------------------------------------------------------------------------- */

/* Two tests of one-sided errors, in standard deviations of what chance gives; derivations.md derives them. */

/* Distance of v from the interval expected +- allowance, in sigma, with its sign. */
static double beyond(double v, double expected, double allowance, double sigma) {
    const double distance = fabs(v - expected) - allowance;
    return distance > 0 ? copysign(distance / sigma, v - expected) : 0;
}

static double whole_bias_sigma(const struct nb_accuracy *a, double u, const struct nb_bias *e) {
    const double scales = fmin((double)e->n_scales, (double)a->n_rows);
    const double own = e->element_sd / sqrt(fmin((double)a->n_large, e->n_elements));
    const double shared = fmax(e->scale_sd, a->bias_large_sd_u * u) / sqrt(scales);
    return beyond(a->bias_large_u * u, e->expected, e->systematic, hypot(own, shared));
}

/* Of rows that are rounded to nearest the intercept has 0.29 ulp sqrt(1 / n + mean^2 / n / variance) of |y| / ulp, which for
 * significands in [1, 2) is at most 1.6 ulp / sqrt(n); more is measured where other errors add to it. */
static double rounding_sigma(const struct nb_accuracy *a, const struct nb_bias *e) {
    const double rows = (double)a->n_rounding_rows, per_row = 1.6 / sqrt((double)a->n_rounding / rows);
    const double beside = fmax(0, a->rounding_sd_ulp * a->rounding_sd_ulp - per_row * per_row);
    const double scales = fmin(rows, (double)e->n_scales);
    const double sigma = hypot(sqrt(per_row * per_row / rows + beside / scales), e->rounding_shared_ulp);
    return beyond(a->rounding_ulp, 0, e->rounding_allowance_ulp, sigma);
}

void nb_accuracy_judge_bias(struct nb_accuracy *a, enum nb_dtype dtype, const struct nb_bias *expected) {
    a->bias_sigma = NAN;
    if (!expected->predictable || a->n_rows < 16 || a->n_large == 0) return;
    a->bias_sigma = whole_bias_sigma(a, nb_formats[dtype].unit_roundoff, expected);
    if (!expected->rounding_predictable || a->n_rounding_rows < 32) return;
    const double rounding = rounding_sigma(a, expected);
    if (fabs(rounding) > fabs(a->bias_sigma)) a->bias_sigma = rounding;
}

/* ---- as JSON ---------------------------------------------------------------------------------------------------------- */

/* Counts of elements are numbers, since they stay far below 2^53; what the reproducer got, wanted and read is exact text, since that is what a
 * replay compares. What is infinite is null; which of NaN and Inf a null stands for follows from the counts. */

#define A(KIND, field) NB_MEMBER(KIND, struct nb_accuracy, field)

static const struct nb_member bias_evidence[] = {
    A(COUNT, n_rows),           A(COUNT, n_large),          A(NUMBER, bias_large_u),
    A(AMOUNT, bias_large_sd_u), A(COUNT, n_rounding_rows),  A(COUNT, n_rounding),
    A(NUMBER, rounding_ulp),    A(AMOUNT, rounding_sd_ulp), NB_MEMBERS_END};

static const struct nb_member figures[] = {A(COUNT, n),
                                           A(COUNT, n_exceptional),
                                           A(AMOUNT, max_ulp),
                                           A(AMOUNT, mean_ulp),
                                           A(AMOUNT, p99_ulp),
                                           A(NUMBER, bias_u),
                                           A(NUMBER, bias_sigma),
                                           NB_MEMBER_GROUP("bias_evidence", bias_evidence),
                                           A(AMOUNT, correctly_rounded),
                                           A(NUMBER, gain_u),
                                           A(NUMBER, offset_u),
                                           A(NUMBER, residual_ulp),
                                           A(COUNT, nan_unexpected),
                                           A(COUNT, inf_unexpected),
                                           A(COUNT, zero_unexpected),
                                           A(COUNT, nan_missing),
                                           A(COUNT, inf_missing),
                                           A(COUNT, n_beyond),
                                           A(AMOUNT, worst_ratio),
                                           A(COUNT, n_rows_lost),
                                           NB_MEMBERS_END};

static const struct nb_member histogram[] = {A(COUNTS, histogram), NB_MEMBERS_END};

/* Present where has_ratios. */
static const struct nb_member ratios[] = {A(AMOUNT, noise_ratio), NB_MEMBERS_END};

static const struct nb_member reproducer[] = {NB_MEMBER(COUNT, struct nb_reproducer, row),
                                              NB_MEMBER(COUNT, struct nb_reproducer, col),
                                              NB_MEMBER(EXACT, struct nb_reproducer, got),
                                              NB_MEMBER(EXACT, struct nb_reproducer, want),
                                              NB_MEMBER(EXACT, struct nb_reproducer, x),
                                              NB_MEMBER(NUMBER, struct nb_reproducer, err_ulp),
                                              NB_MEMBER(AMOUNT, struct nb_reproducer, tolerance_ulp),
                                              NB_MEMBERS_END};

static const struct nb_member parameter_error[] = {
    NB_MEMBER(COUNT, struct nb_parameter_error, n), NB_MEMBER(AMOUNT, struct nb_parameter_error, ratio),
    NB_MEMBER(AMOUNT, struct nb_parameter_error, norm_u), NB_MEMBERS_END};

static const struct {
    const char *name;
    size_t offset; /* in struct nb_accuracy */
} parameters[] = {{"dgamma", offsetof(struct nb_accuracy, dgamma)},
                  {"dbeta", offsetof(struct nb_accuracy, dbeta)},
                  {"dalpha", offsetof(struct nb_accuracy, dalpha)}};
enum { N_PARAMETERS = sizeof parameters / sizeof parameters[0] };

/* An object, or null where there is none. */
static void add_or_null(cJSON *json, const char *name, bool is_there, const struct nb_member *members,
                        const void *from) {
    if (is_there)
        nb_json_add_members(cJSON_AddObjectToObject(json, name), members, from);
    else
        cJSON_AddNullToObject(json, name);
}

cJSON *nb_accuracy_to_json(const struct nb_accuracy *a, enum nb_number number) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "dtype", nb_numbers[number].name);
    nb_json_number(json, "unit_roundoff", nb_numbers[number].unit_roundoff);
    nb_json_add_members(json, figures, a);
    nb_json_text(json, "loss", a->loss == NB_LOSS_NONE ? NULL : nb_loss_names[a->loss]);
    nb_json_add_members(json, histogram, a);
    add_or_null(json, "reproducer", a->reproducer.row >= 0, reproducer, &a->reproducer);
    if (a->has_ratios) add_or_null(json, "ratios", true, ratios, a);
    cJSON *errors = a->has_parameters ? cJSON_AddObjectToObject(json, "parameters") : NULL;
    for (size_t i = 0; errors && i < N_PARAMETERS; i++) {
        const struct nb_parameter_error *p = (const void *)((const char *)a + parameters[i].offset);
        add_or_null(errors, parameters[i].name, p->n > 0, parameter_error, p);
    }
    return json;
}

/* 1: read, 0: there is none, -1 after nb_error. */
static int get_if_there(const cJSON *json, const char *name, const struct nb_member *members, void *to) {
    const cJSON *object = nb_json_get(json, name);
    if (!cJSON_IsObject(object)) return 0;
    return nb_json_get_members(object, members, to, "accuracy") == 0 ? 1 : -1;
}

/* What is infinite is null in JSON. */
static int parameter_from_json(struct nb_parameter_error *p, const cJSON *json, const char *name) {
    *p = (struct nb_parameter_error){.ratio = NAN, .norm_u = NAN};
    const int there = get_if_there(json, name, parameter_error, p);
    if (there <= 0) return there;
    if (isnan(p->ratio)) p->ratio = INFINITY;
    if (isnan(p->norm_u)) p->norm_u = INFINITY;
    return 0;
}

int nb_accuracy_from_json(struct nb_accuracy *a, const cJSON *json) {
    const cJSON *errors = nb_json_get(json, "parameters");
    const char *loss = nb_json_get_text(json, "loss");
    const int found = loss ? nb_name_find(nb_loss_names, loss) : NB_LOSS_NONE;
    *a = (struct nb_accuracy){.reproducer = {.row = -1, .col = -1}, .has_parameters = cJSON_IsObject(errors)};
    if (nb_json_get_members(json, figures, a, "accuracy") != 0) return -1;
    const int has_ratios = get_if_there(json, "ratios", ratios, a);
    if (has_ratios < 0) return -1;
    a->has_ratios = has_ratios > 0;
    for (size_t i = 0; i < N_PARAMETERS; i++)
        if (parameter_from_json((void *)((char *)a + parameters[i].offset), errors, parameters[i].name) != 0) return -1;
    if (found < 0) return nb_error("accuracy: unknown loss \"%s\"", loss);
    a->loss = (enum nb_loss)found;
    if (nb_json_get_members(json, histogram, a, "accuracy") != 0) return -1;
    return get_if_there(json, "reproducer", reproducer, &a->reproducer) < 0 ? -1 : 0;
}
