// SPDX-License-Identifier: Apache-2.0
/* Sums of squares within (case, copy), over the degrees of freedom that they have. */
#include "src/gate/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/random.h"

const char *const nb_replica_names[NB_N_REPLICAS] = {"control", "copy", "same"};

static bool is_whole(const struct nb_calibration_launch *l) {
    for (int t = 0; t < NB_N_REPLICAS; t++)
        if (!isfinite(l->replicas[t].ratio) || !isfinite(l->replicas[t].ratio_min) || !isfinite(l->replicas[t].halves))
            return false;
    return true;
}

/* ---- deviations from the mean of their case ---------------------------------------------------------------------------- */

enum figure { RATIO, RATIO_MIN };

static double figure_of(const struct nb_calibration_launch *l, int copy, enum figure f) {
    return f == RATIO ? l->replicas[copy].ratio : l->replicas[copy].ratio_min;
}

static double case_mean(const struct nb_calibration_launch *launches, size_t n, int case_index, int copy,
                        enum figure f) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (launches[i].case_index != case_index) continue;
        sum += figure_of(&launches[i], copy, f);
        count++;
    }
    return sum / (double)count;
}

/* Of one copy, pooled over cases. */
static double variance_of(const struct nb_calibration_launch *launches, size_t n, size_t n_cases, int copy,
                          enum figure f) {
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double mean = case_mean(launches, n, launches[i].case_index, copy, f);
        const double d = figure_of(&launches[i], copy, f) - mean;
        squares += d * d;
    }
    return n > n_cases ? squares / (double)(n - n_cases) : (double)NAN;
}

static double copies_sd(const struct nb_calibration_launch *launches, size_t n, size_t n_cases, enum figure f) {
    double sum = 0;
    for (int t = 0; t < NB_N_COPIES; t++) sum += variance_of(launches, n, n_cases, t, f) / NB_N_COPIES;
    return sqrt(sum);
}

/* Both roles of the two copies, so that a simulated launch keeps what a candidate and its control have in common. Means are taken out,
 * which makes deviations too small by sqrt((n - 1) / n) of their case; that is put back. */
static void keep_residuals(struct nb_calibration *out, const struct nb_calibration_launch *launches, size_t n) {
    const double widen = sqrt((double)n / (double)(n - out->n_cases));
    out->residuals = nb_alloc(NB_N_COPIES * n, sizeof *out->residuals);
    for (size_t i = 0; i < n; i++) {
        const struct nb_calibration_launch *l = &launches[i];
        double ratio[NB_N_COPIES], ratio_min[NB_N_COPIES];
        for (int t = 0; t < NB_N_COPIES; t++) {
            ratio[t] = widen * (l->replicas[t].ratio - case_mean(launches, n, l->case_index, t, RATIO));
            ratio_min[t] = widen * (l->replicas[t].ratio_min - case_mean(launches, n, l->case_index, t, RATIO_MIN));
        }
        for (int t = 0; t < NB_N_COPIES; t++)
            out->residuals[out->n_residuals++] = (struct nb_gate_launch){.ratio = ratio[t],
                                                                         .control = ratio[1 - t],
                                                                         .ratio_min = ratio_min[t],
                                                                         .order_effect = l->replicas[t].order_effect,
                                                                         .contaminated = l->replicas[t].contaminated};
    }
}

/* ---- the estimate ---------------------------------------------------------------------------------------------------------- */

/* The lower p-quantile of chi-squared by Wilson and Hilferty (1931), to 1 % from 5 degrees of freedom on. */
static double chi_squared_quantile(double p, double df) {
    const double t = 1 - 2 / (9 * df) + nb_normal_quantile(p) * sqrt(2 / (9 * df));
    return t > 0 ? df * t * t * t : 0;
}

static size_t count_cases(const struct nb_calibration_launch *launches, size_t n) {
    size_t cases = 0;
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
        while (before < i && launches[before].case_index != launches[i].case_index) before++;
        cases += before == i;
    }
    return cases;
}

/* Half the mean square of the difference between the halves is the variance of a half's median, and a quarter that of the
 * whole's. */
static double within_variance(const struct nb_calibration_launch *launches, size_t n) {
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        for (int t = 0; t < NB_N_COPIES; t++)
            squares += launches[i].replicas[t].halves * launches[i].replicas[t].halves;
    return squares / (4 * NB_N_COPIES * (double)n);
}

/* Medians over launches of what is no spread. */
static void take_costs(struct nb_calibration *out, const struct nb_calibration_launch *launches, size_t n) {
    double *v = nb_alloc(2 * n, sizeof *v);
    for (size_t i = 0; i < n; i++) {
        v[i] = launches[i].overhead_s;
        v[n + i] = launches[i].sample_s;
        for (int t = 0; t < NB_N_COPIES; t++)
            out->contaminated += launches[i].replicas[t].contaminated / (double)(2 * n);
    }
    out->overhead_s = nb_median(v, n);
    out->sample_s = nb_median(v + n, n);
    free(v);
}

static void take_biases(struct nb_calibration *out, const struct nb_calibration_launch *launches, size_t n) {
    double *v = nb_alloc(n, sizeof *v);
    size_t kept = 0;
    for (int t = 0; t < NB_N_REPLICAS; t++) {
        for (size_t i = 0; i < n; i++) v[i] = launches[i].replicas[t].ratio;
        out->bias[t] = nb_hodges_lehmann(v, n, 0.95);
    }
    for (size_t i = 0; i < n; i++) {
        const double effect = launches[i].replicas[NB_REPLICA_COPY].order_effect;
        if (isfinite(effect)) v[kept++] = effect;
    }
    out->order_effect = nb_hodges_lehmann(v, kept, 0.95);
    free(v);
}

void nb_calibration_estimate(const struct nb_calibration_launch *launches, size_t n, int blocks,
                             struct nb_calibration *out) {
    struct nb_calibration_launch *whole = nb_alloc(n + 1, sizeof *whole);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (is_whole(&launches[i])) whole[kept++] = launches[i];
    const size_t cases = count_cases(whole, kept);
    *out = (struct nb_calibration){.n_launches = kept, .n_cases = cases, .blocks = blocks};
    if (kept < cases + 2) {
        out->launch_sd = out->launch_sd_high = out->within_sd = out->between_sd = NAN;
        out->same_sd = out->min_sd = out->contaminated = out->overhead_s = out->sample_s = NAN;
        free(whole);
        return;
    }
    const double df = (double)(kept - cases);
    out->launch_sd = copies_sd(whole, kept, cases, RATIO);
    out->launch_sd_high = out->launch_sd * sqrt(df / chi_squared_quantile(0.05, df));
    out->min_sd = copies_sd(whole, kept, cases, RATIO_MIN);
    out->same_sd = sqrt(variance_of(whole, kept, cases, NB_REPLICA_SAME, RATIO));
    out->within_sd = fmin(sqrt(within_variance(whole, kept)), out->launch_sd);
    out->between_sd = sqrt(out->launch_sd * out->launch_sd - out->within_sd * out->within_sd);
    keep_residuals(out, whole, kept);
    take_costs(out, whole, kept);
    take_biases(out, whole, kept);
    free(whole);
}

double nb_calibration_sd(const struct nb_calibration *c, int blocks) {
    const double within = c->within_sd * c->within_sd * (double)c->blocks / blocks;
    return sqrt(c->between_sd * c->between_sd + within);
}

void nb_calibration_release(struct nb_calibration *c) {
    free(c->residuals);
    *c = (struct nb_calibration){0};
}
