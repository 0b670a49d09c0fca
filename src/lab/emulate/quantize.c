// SPDX-License-Identifier: Apache-2.0
/* One pass for the scale, one for the errors. */
#include "src/lab/emulate/emulate.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

const char *const nb_quantum_names[] = {"e4m3", "e5m2", "int8", NULL};
const char *const nb_scaling_names[] = {"none", "tensor", "row", NULL};

static double largest_of(enum nb_quantum quantum) {
    if (quantum == NB_QUANTUM_INT8) return 127;
    return nb_numbers[quantum == NB_QUANTUM_E4M3 ? NB_NUM_E4M3 : NB_NUM_E5M2].max_finite;
}

static bool is_beyond(double scaled, enum nb_quantum quantum) {
    if (quantum == NB_QUANTUM_INT8) return fabs(rint(scaled)) > 127;
    return !(fabs(scaled) < nb_numbers[quantum == NB_QUANTUM_E4M3 ? NB_NUM_E4M3 : NB_NUM_E5M2].overflow);
}

static double rounded(double scaled, enum nb_quantum quantum) {
    if (quantum == NB_QUANTUM_INT8) return fmin(fmax(rint(scaled), -127), 127);
    return nb_number_round(scaled, 0, quantum == NB_QUANTUM_E4M3 ? NB_NUM_E4M3 : NB_NUM_E5M2, NB_ROUND_NEAREST, 0);
}

static double quantize_value(double v, double scale, enum nb_quantum quantum) {
    return rounded(v / scale, quantum) * scale;
}

/* From the largest magnitude; rows of zeros keep 1. */
static double scale_of(const double *values, int64_t n, enum nb_quantum quantum) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i])) largest = fmax(largest, fabs(values[i]));
    const double scale = nb_number_round(largest / largest_of(quantum), 0, NB_NUM_F32, NB_ROUND_NEAREST, 0);
    return scale > 0 ? scale : 1;
}

struct sums {
    double signal, noise, relative_noise, n_relative, relative, n_nonzero, n_lost, n_beyond;
};

static double row_rms(const double *row, int64_t n) {
    double squares = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(row[i])) continue;
        squares += row[i] * row[i];
        count++;
    }
    return count > 0 ? sqrt(squares / count) : 0;
}

static void add_row(struct nb_quantized *q, struct sums *s, const double *row, int64_t n, double scale,
                    enum nb_quantum quantum) {
    const double rms = row_rms(row, n);
    for (int64_t i = 0; i < n; i++) {
        const double v = row[i];
        if (!isfinite(v)) {
            q->n_not_finite++;
            continue;
        }
        s->n_beyond += is_beyond(v / scale, quantum);
        const double stored = quantize_value(v, scale, quantum);
        const double error = isfinite(stored) ? stored - v : INFINITY; /* nothing is left of v */
        if (v != 0) s->n_nonzero++;
        if (v != 0 && stored == 0) s->n_lost++;
        s->signal += v * v;
        s->noise += error * error;
        if (rms > 0) {
            s->relative_noise += error / rms * (error / rms);
            s->n_relative++;
            q->max_error = fmax(q->max_error, fabs(error) / rms);
        }
        if (v != 0) s->relative += fabs(error / v);
        if (stored != 0) q->max_relative = fmax(q->max_relative, fabs(error / v));
    }
}

void nb_quantize(struct nb_quantized *q, const double *values, int64_t rows, int64_t cols, enum nb_quantum quantum,
                 enum nb_scaling scaling) {
    assert(rows > 0 && cols > 0 && quantum < NB_N_QUANTA && scaling < NB_N_SCALINGS);
    struct sums s = {0};
    *q = (struct nb_quantized){.n = rows * cols, .smallest_scale = INFINITY};
    const double whole = scaling == NB_SCALING_TENSOR ? scale_of(values, rows * cols, quantum) : 1;
    for (int64_t row = 0; row < rows; row++) {
        const double *v = values + row * cols, scale = scaling == NB_SCALING_ROW ? scale_of(v, cols, quantum) : whole;
        q->largest_scale = fmax(q->largest_scale, scale);
        q->smallest_scale = fmin(q->smallest_scale, scale);
        add_row(q, &s, v, cols, scale, quantum);
    }
    const double finite = (double)(q->n - q->n_not_finite);
    q->sqnr_db = s.noise > 0 ? 10 * log10(s.signal / s.noise) : s.signal > 0 ? INFINITY : NAN;
    q->rms_error = s.n_relative > 0 ? sqrt(s.relative_noise / s.n_relative) : NAN;
    q->mean_relative = s.n_nonzero > 0 ? s.relative / s.n_nonzero : NAN;
    q->lost = s.n_nonzero > 0 ? s.n_lost / s.n_nonzero : 0;
    q->beyond = finite > 0 ? s.n_beyond / finite : NAN;
}

const struct nb_member nb_quantized_members[] = {
    NB_MEMBER(COUNT, struct nb_quantized, n),
    NB_MEMBER(COUNT, struct nb_quantized, n_not_finite),
    NB_MEMBER(NUMBER, struct nb_quantized, sqnr_db),
    NB_MEMBER(NUMBER, struct nb_quantized, rms_error),
    NB_MEMBER(NUMBER, struct nb_quantized, max_error),
    NB_MEMBER(NUMBER, struct nb_quantized, max_relative),
    NB_MEMBER(NUMBER, struct nb_quantized, mean_relative),
    NB_MEMBER(NUMBER, struct nb_quantized, lost),
    NB_MEMBER(NUMBER, struct nb_quantized, beyond),
    NB_MEMBER(NUMBER, struct nb_quantized, smallest_scale),
    NB_MEMBER(NUMBER, struct nb_quantized, largest_scale),
    NB_MEMBERS_END,
};
