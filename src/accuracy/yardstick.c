// SPDX-License-Identifier: Apache-2.0
/* Ratios of errors. A ratio that would divide by nothing is NaN, with the reason. */
#include "src/accuracy/yardstick.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/noise.h"
#include "src/accuracy/reference.h"
#include "src/core/dtype.h"
#include "src/core/log.h"

static double squared_error(const struct nb_oracle *o, const void *y, const double *exact) {
    double sum = 0;
    for (int64_t i = 0; i < o->in->cols; i++) {
        if (!isfinite(exact[i]) || fabs(exact[i]) >= nb_formats[o->in->dtype].overflow) continue;
        const double error = nb_get(y, i, o->in->dtype) - exact[i];
        if (!isfinite(error)) return NAN;
        sum += error * error;
    }
    return sum;
}

void nb_yardstick_init(struct nb_yardstick *y, const struct nb_oracle *o) {
    const int64_t rows = o->in->rows, cols = o->in->cols;
    *y = (struct nb_yardstick){.o = o, .rows = rows};
    y->noise = nb_alloc((unsigned long long)rows, sizeof *y->noise);
    y->reference = nb_alloc((unsigned long long)rows, sizeof *y->reference);
    if (o->c->op == NB_OP_COPY) return;
    struct nb_noise *noise = nb_noise_new(o, o->c->seed);
    struct nb_reference *reference = nb_reference_new(o);
    double *exact = nb_alloc((unsigned long long)cols, sizeof *exact);
    void *computed = nb_alloc((unsigned long long)cols, nb_formats[o->in->dtype].bytes);
    for (int64_t row = 0; row < rows; row++) {
        nb_oracle_row(o, row, exact);
        nb_reference_row(reference, row, computed);
        y->noise[row] = nb_noise_row(noise, row);
        y->reference[row] = squared_error(o, computed, exact);
    }
    free(exact);
    free(computed);
    nb_noise_free(noise);
    nb_reference_free(reference);
}

void nb_yardstick_release(struct nb_yardstick *y) {
    free(y->noise);
    free(y->reference);
    *y = (struct nb_yardstick){0};
}

/* ---- a kernel's rows ---- */

/* The numbers of a format in a line: how many steps from 0, with the sign. */
static double ordinal(const void *array, int64_t i, enum nb_dtype dtype) {
    const uint64_t bits = nb_bits(array, i, dtype), sign = (uint64_t)1 << (8 * nb_formats[dtype].bytes - 1);
    return bits & sign ? -(double)(bits & (sign - 1)) : (double)bits;
}

static double steps_apart(const void *computed, int64_t i, double exact, enum nb_dtype dtype) {
    uint32_t nearest = 0;
    nb_set(&nearest, 0, dtype, exact);
    return fabs(ordinal(computed, i, dtype) - ordinal(&nearest, 0, dtype));
}

struct row_errors {
    double largest, squares, exact_squares, largest_exact, n;
    bool strange;
};

static struct row_errors errors_of(struct nb_ratios *r, const void *computed, const double *exact) {
    const enum nb_dtype dtype = r->yardstick->o->in->dtype;
    struct row_errors e = {0};
    for (int64_t i = 0; i < r->yardstick->o->in->cols; i++) {
        if (!isfinite(exact[i]) || fabs(exact[i]) >= nb_formats[dtype].overflow) continue;
        const double got = nb_get(computed, i, dtype), error = fabs(got - exact[i]);
        if (!isfinite(got)) {
            e.strange = true;
            r->n_strange++;
            continue;
        }
        e.n++;
        e.squares += error * error;
        e.exact_squares += exact[i] * exact[i];
        e.largest = fmax(e.largest, error);
        e.largest_exact = fmax(e.largest_exact, fabs(exact[i]));
        r->max_ordinal = fmax(r->max_ordinal, steps_apart(computed, i, exact[i], dtype));
    }
    return e;
}

/* What the stored result cannot show is no noise of the kernel's: half an ulp of the largest element at least. */
static void add_noise(struct nb_ratios *r, int64_t row, const struct row_errors *e, double rms) {
    const enum nb_dtype dtype = r->yardstick->o->in->dtype;
    const double noise = r->yardstick->noise[row];
    if (isnan(noise)) return;
    r->n_noise_rows++;
    const double ratio = e->largest / fmax(noise, nb_ulp(e->largest_exact, dtype) / 2);
    r->noise_ratio = fmax(r->noise_ratio, ratio);
    if (rms > 0) r->noise_ulp = fmax(r->noise_ulp, noise / (2 * nb_formats[dtype].unit_roundoff * rms));
}

void nb_ratios_row(struct nb_ratios *r, int64_t row, const void *computed, const double *exact) {
    const struct row_errors e = errors_of(r, computed, exact);
    const double u = nb_formats[r->yardstick->o->in->dtype].unit_roundoff;
    const double rms = e.n > 0 ? sqrt(e.exact_squares / e.n) : 0, reference = r->yardstick->reference[row];
    r->n += (int64_t)e.n;
    r->squares += e.squares;
    r->exact_squares += e.exact_squares;
    if (rms > 0) r->scaled_max_u = fmax(r->scaled_max_u, e.largest / (u * rms));
    if (e.n > 0) add_noise(r, row, &e, rms);
    if (isnan(reference)) r->n_reference_failed++;
    if (isnan(reference) || e.strange || e.n == 0) return;
    r->n_reference_rows++;
    r->own_squares += e.squares;
    r->reference_squares += reference;
}

/* ---- the whole ---- */

static double reference_ratio(const struct nb_ratios *r, const char **reason) {
    if (r->n_reference_rows == 0) {
        *reason = r->n_strange > 0            ? "NaN or Inf where a number belongs"
                  : r->n_reference_failed > 0 ? "the reference itself has no finite result here"
                                              : "no finite exact result";
        return NAN;
    }
    if (r->reference_squares > 0) return sqrt(r->own_squares / r->reference_squares);
    if (r->own_squares == 0) return 1;
    *reason = "the reference is exact here";
    return NAN;
}

void nb_ratios_finish(const struct nb_ratios *r, struct nb_accuracy *out) {
    const char *noise_reason = "", *reference_reason = "";
    out->has_ratios = true;
    out->noise_ratio = r->noise_ratio;
    if (r->n_strange > 0)
        noise_reason = "NaN or Inf where a number belongs";
    else if (r->n_noise_rows == 0)
        noise_reason = "no finite exact result";
    if (*noise_reason) out->noise_ratio = NAN;
    out->noise_ulp = r->n_noise_rows > 0 ? r->noise_ulp : NAN;
    out->reference_ratio = reference_ratio(r, &reference_reason);
    out->nmse = r->exact_squares > 0 && r->n_strange == 0 ? r->squares / r->exact_squares : NAN;
    out->scaled_max_u = r->n > 0 ? r->scaled_max_u : NAN;
    out->max_ordinal = r->n > 0 ? r->max_ordinal : NAN;
    snprintf(out->noise_reason, sizeof out->noise_reason, "%s", noise_reason);
    snprintf(out->reference_reason, sizeof out->reference_reason, "%s", reference_reason);
}
