// SPDX-License-Identifier: Apache-2.0
/* Rows by name and by file. */
#include "src/lab/stress/trial_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/plan/distributions.h"
#include "src/plan/inputs.h"
#include "src/plan/npy.h"

enum stream { STREAM_X, STREAM_RESIDUAL }; /* as src/plan/inputs.c numbers them */

static double *drawn(const struct nb_trial *t, uint64_t seed, enum stream stream) {
    const struct nb_random random = nb_random_stream(seed, stream);
    const int64_t n = t->in.rows * t->in.cols;
    double *z = nb_alloc((unsigned long long)n, sizeof *z);
    for (int64_t i = 0; i < n; i++) z[i] = nb_random_normal(random, (uint64_t)i);
    return z;
}

void nb_draws_init(struct nb_draws *d, const struct nb_trial *t, uint64_t seed) {
    struct nb_case c = t->c;
    struct nb_inputs in;
    *d = (struct nb_draws){.seed = seed, .n = t->in.rows * t->in.cols, .z = drawn(t, seed, STREAM_X)};
    if (t->in.residual) d->z_other = drawn(t, seed, STREAM_RESIDUAL);
    c.seed = seed;
    snprintf(c.data, sizeof c.data, "normal");
    if (nb_inputs_init(&in, &c) != 0) return;
    d->gamma = nb_alloc((unsigned long long)in.n_params, sizeof *d->gamma);
    d->beta = nb_alloc((unsigned long long)in.n_params, sizeof *d->beta);
    for (int64_t i = 0; i < in.n_params; i++) {
        d->gamma[i] = (double)in.gamma_f32[i];
        d->beta[i] = (double)in.beta_f32[i];
    }
    nb_inputs_release(&in);
}

void nb_draws_release(struct nb_draws *d) {
    free(d->z);
    free(d->z_other);
    free(d->gamma);
    free(d->beta);
    *d = (struct nb_draws){0};
}

static void fill(double *to, const double *z, const struct nb_trial *t, enum nb_family family, double p) {
    const double largest = nb_formats[t->in.dtype].max_finite;
    for (int64_t i = 0; i < t->in.rows * t->in.cols; i++) {
        const double v = family == NB_FAMILY_SCALE ? p * z[i] : p + z[i];
        to[i] = v > largest ? largest : v < -largest ? -largest : v;
    }
}

void nb_trial_load(struct nb_trial *t, const struct nb_draws *d, enum nb_family family, double p) {
    double *x = nb_alloc(2 * (unsigned long long)d->n, sizeof *x), *other = d->z_other ? x + d->n : NULL;
    fill(x, d->z, t, family, p);
    if (other) fill(other, d->z_other, t, family, p);
    nb_trial_set_params(t, d->gamma, d->beta);
    nb_trial_set_x(t, x, other);
    free(x);
}

void nb_trial_load_rows(struct nb_trial *t, const double *x) { nb_trial_set_x(t, x, x); }

void nb_trial_key(const struct nb_case *of, const char *data, uint64_t seed, int64_t rows, struct nb_strbuf *out) {
    struct nb_case c = *of;
    c.seed = seed;
    snprintf(c.data, sizeof c.data, "%s", data);
    if (rows > 0) {
        c.shape = (struct nb_shape){.layout = NB_ROWS, .rows = rows, .cols = of->shape.cols};
        snprintf(c.shape.text, sizeof c.shape.text, "%lldx%lld", (long long)rows, (long long)c.shape.cols);
    }
    nb_case_key(&c, out);
}

void nb_trial_replay(const struct nb_trial *t, const char *key, struct nb_strbuf *out) {
    nb_strbuf_addf(out, "normbench replay '%s' --check-only", key);
    if (t->entry->plugin) nb_strbuf_addf(out, " --plugin '%s'", t->entry->file);
}

int nb_trial_write_row(const struct nb_trial *t, const double *x, const char *path) {
    const int64_t cols = t->in.cols;
    const enum nb_dtype dtype = t->in.dtype == NB_F16 ? NB_F16 : NB_F32; /* .npy knows no bf16 */
    void *values = nb_alloc((unsigned long long)cols, nb_formats[dtype].bytes);
    for (int64_t i = 0; i < cols; i++) nb_set(values, i, dtype, nb_round_to(x[i], t->in.dtype));
    int result = nb_npy_write(path, values, dtype == NB_F16 ? "<f2" : "<f4", &cols, 1);
    free(values);
    return result;
}
