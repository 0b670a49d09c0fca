// SPDX-License-Identifier: Apache-2.0
/* Statistics first (of a row, for BatchNorm of all channels), then the elements that see them. */
#include "src/accuracy/yardstick.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"

/* ---- noise ----------------------------------------------------------------------------------------------------------- */

enum { N = NB_PERTURBATIONS };

/* What each perturbation does to one row's or channel's statistics. */
struct change {
    double mean[N], var[N];           /* of mean and variance (RMSNorm: mean square; L2: sum of squares) */
    double scale_by[N], scale_now[N]; /* 1/s' - 1/s, and 1/s' */
};

struct noise {
    const struct nb_oracle *o;
    double *v, (*d)[N];     /* a row: the numbers that are normalized, and their moves */
    struct change *changes; /* of each truth */
    bool alike;             /* are all rows moved as the first? */
};

/* BatchNorm: are the statistics taken from the perturbed numbers at all? */
static bool has_statistics(const struct nb_case *c) { return c->mode != NB_INFERENCE; }

static double half_ulp(const struct nb_inputs *in, const void *tensor, int64_t i) {
    return nb_ulp(nb_get(tensor, i, in->dtype), in->dtype) / 2;
}

/* Eight bits of the place for x, eight for the residual. */
static double sign_of(uint64_t bits, bool residual, int k) { return bits >> (k + (residual ? 8 : 0)) & 1 ? 1 : -1; }

/* inputs.c has the first streams */
static struct nb_random signs_of(const struct nb_oracle *o) { return nb_random_stream(o->c->seed, 1000); }

double nb_noise_move(const struct nb_oracle *o, bool residual, int64_t row, int64_t col, int k) {
    const struct nb_inputs *in = o->in;
    const int64_t i = row * in->cols + col;
    return sign_of(nb_random_bits(signs_of(o), (uint64_t)i), residual, k) *
           half_ulp(in, residual ? in->residual : in->x, i);
}

static void read_row(const struct noise *noise, int64_t row) {
    const struct nb_inputs *in = noise->o->in;
    const bool both = nb_op_adds(noise->o->c->op);
    const struct nb_random signs = signs_of(noise->o);
    nb_truth_row(noise->o->c, in, row, noise->v);
    for (int64_t i = 0; i < in->cols; i++) {
        const int64_t at = row * in->cols + i;
        const uint64_t bits = nb_random_bits(signs, (uint64_t)(noise->alike ? i : at));
        const double h = half_ulp(in, in->x, at), h_residual = both ? half_ulp(in, in->residual, at) : 0;
        for (int k = 0; k < N; k++) noise->d[i][k] = sign_of(bits, false, k) * h + sign_of(bits, true, k) * h_residual;
    }
}

static struct change *changes_at(const struct noise *noise, const struct nb_row_truth *t) {
    return noise->changes + (t - noise->o->truth);
}

/* ---- statistics ---- */

static void add_means(const struct noise *noise, int64_t row) {
    const int64_t n = noise->o->c->op == NB_OP_BATCHNORM ? noise->o->in->cols : noise->o->n_stats;
    for (int64_t i = 0; i < n; i++) {
        struct change *at = changes_at(noise, nb_oracle_truth(noise->o, row, i));
        for (int k = 0; k < N; k++) at->mean[k] += noise->d[i][k] / (double)noise->o->n_stats;
    }
}

static void add_variances(const struct noise *noise, int64_t row) {
    const struct nb_oracle *o = noise->o;
    const int64_t n = o->c->op == NB_OP_BATCHNORM ? o->in->cols : o->n_stats;
    const double divisor = o->c->op == NB_OP_L2NORM ? 1 : (double)o->n_stats;
    const bool centred = nb_op_centres(o->c->op);
    for (int64_t i = 0; i < n; i++) {
        const struct nb_row_truth *t = nb_oracle_truth(o, row, i);
        const double c = centred ? (noise->v[i] - t->mean) - t->mean_lo : noise->v[i];
        struct change *at = changes_at(noise, t);
        for (int k = 0; k < N; k++) {
            const double d = noise->d[i][k] - (centred ? at->mean[k] : 0);
            at->var[k] += d * (2 * c + d) / divisor;
        }
    }
}

/* ---- scale ---- */

/* Of perturbation k, once var is known. */
static void set_scale(struct change *change, int k, const struct nb_case *c, const struct nb_row_truth *t) {
    const double var = change->var[k], now_var = fmax(t->var + var, 0), s = 1 / t->scale;
    double s_now, s_change;
    if (c->formula.eps_place == NB_EPS_INSIDE) {
        s_now = sqrt(now_var + c->eps);
        s_change = var / (s + s_now);
    } else {
        const double root = sqrt(t->var), root_now = sqrt(now_var);
        const double sum = root + root_now, root_change = sum > 0 ? var / sum : 0;
        const bool added = c->formula.eps_place == NB_EPS_OUTSIDE;
        s_now = added ? root_now + c->eps : fmax(root_now, c->eps);
        s_change = added || (root > c->eps && root_now > c->eps) ? root_change : s_now - s;
    }
    change->scale_now[k] = 1 / s_now;
    change->scale_by[k] = -s_change / (s * s_now);
}

static void set_scales(const struct noise *noise, int64_t truth) {
    for (int k = 0; k < N; k++) set_scale(&noise->changes[truth], k, noise->o->c, &noise->o->truth[truth]);
}

static void all_channels(const struct noise *noise) {
    const int64_t rows = has_statistics(noise->o->c) ? noise->o->in->rows : 0;
    for (int64_t r = 0; r < rows; r++) {
        read_row(noise, r);
        add_means(noise, r);
    }
    for (int64_t r = 0; r < rows; r++) {
        read_row(noise, r);
        add_variances(noise, r);
    }
    for (int64_t i = 0; i < noise->o->n_truth; i++) set_scales(noise, i);
}

/* ---- elements ---- */

/* tanh(a + b) - tanh(a) */
static double tanh_change(double a, double b) { return sinh(b) / (cosh(a + b) * cosh(a)); }

static double dyt_element(const struct noise *noise, int64_t i) {
    const double alpha = noise->o->c->alpha, a = alpha * noise->v[i], g = nb_oracle_weight(noise->o, i);
    double largest = 0;
    if (!isfinite(a)) return NAN;
    for (int k = 0; k < N && fabs(a) <= 300; k++) /* beyond it is flat, and cosh would overflow */
        largest = fmax(largest, fabs(g * tanh_change(a, alpha * noise->d[i][k])));
    return largest;
}

/* All perturbations of one element. */
static double element(const struct noise *noise, int64_t row, int64_t i) {
    const struct nb_oracle *o = noise->o;
    const struct nb_row_truth *t = nb_oracle_truth(o, row, i);
    const struct change *change = changes_at(noise, t);
    const bool centred = nb_op_centres(o->c->op);
    const double g = nb_oracle_weight(o, o->c->op == NB_OP_BATCHNORM ? t - o->truth : i);
    const double c = centred ? (noise->v[i] - t->mean) - t->mean_lo : noise->v[i];
    double largest = 0;
    if (!isfinite(t->scale) || !isfinite(c)) return NAN;
    for (int k = 0; k < N; k++) {
        const double d = noise->d[i][k] - (centred ? change->mean[k] : 0);
        largest = fmax(largest, fabs(g * (d * change->scale_now[k] + c * change->scale_by[k])));
    }
    return largest;
}

static void noise_row(const struct noise *noise, int64_t row, double *of_elements) {
    const enum nb_op op = noise->o->c->op;
    read_row(noise, row);
    if (op != NB_OP_BATCHNORM && op != NB_OP_DYT) {
        noise->changes[row] = (struct change){0};
        add_means(noise, row);
        add_variances(noise, row);
        set_scales(noise, row);
    }
    for (int64_t i = 0; i < noise->o->in->cols; i++)
        of_elements[i] = op == NB_OP_DYT ? dyt_element(noise, i) : element(noise, row, i);
}

static void noise_init(struct noise *noise, const struct nb_oracle *o) {
    const unsigned long long cols = (unsigned long long)o->in->cols;
    *noise = (struct noise){
        .o = o,
        .v = nb_alloc(cols, sizeof *noise->v),
        .d = nb_alloc(cols, sizeof *noise->d),
        .changes = nb_alloc((unsigned long long)o->n_truth, sizeof *noise->changes),
    };
    if (o->c->op == NB_OP_BATCHNORM) all_channels(noise);
}

static void noise_release(struct noise *noise) { nb_free_all(noise->v, noise->d, noise->changes); }

void nb_input_noise(const struct nb_oracle *o, int64_t row, double *of_elements) {
    struct noise noise released_by(noise_release);
    noise_init(&noise, o);
    noise.alike = true;
    noise_row(&noise, row, of_elements);
}

static void set_noise(double *of_rows, const struct nb_oracle *o) {
    struct noise noise released_by(noise_release);
    double *of_elements freed = nb_alloc((unsigned long long)o->in->cols, sizeof *of_elements);
    noise_init(&noise, o);
    for (int64_t row = 0; row < o->in->rows; row++) {
        noise_row(&noise, row, of_elements);
        for (int64_t i = 0; i < o->in->cols && !isnan(of_rows[row]); i++)
            of_rows[row] = isnan(of_elements[i]) ? NAN : fmax(of_rows[row], of_elements[i]);
    }
}

/* ---- ratios ---------------------------------------------------------------------------------------------------------- */

void nb_yardstick_init(struct nb_yardstick *y, const struct nb_oracle *o) {
    *y = (struct nb_yardstick){.o = o, .noise = nb_alloc((unsigned long long)o->in->rows, sizeof *y->noise)};
    if (o->c->op != NB_OP_COPY) set_noise(y->noise, o);
}

void nb_yardstick_release(struct nb_yardstick *y) {
    free(y->noise);
    *y = (struct nb_yardstick){0};
}

/* What the stored result cannot show is no noise of the kernel's: half an ulp of the largest element at least. */
void nb_ratios_row(struct nb_ratios *r, int64_t row, const void *computed, const double *exact) {
    const enum nb_dtype dtype = r->yardstick->o->in->dtype;
    const double noise = r->yardstick->noise[row];
    double largest = 0, largest_exact = 0;
    bool any = false;
    for (int64_t i = 0; i < r->yardstick->o->in->cols; i++) {
        if (!(fabs(exact[i]) < nb_formats[dtype].overflow)) continue;
        const double got = nb_get(computed, i, dtype);
        any |= isfinite(got);
        r->is_strange |= !isfinite(got);
        if (!isfinite(got)) continue;
        largest = fmax(largest, fabs(got - exact[i]));
        largest_exact = fmax(largest_exact, fabs(exact[i]));
    }
    if (!any || isnan(noise)) return;
    r->n_rows++;
    r->noise_ratio = fmax(r->noise_ratio, largest / fmax(noise, nb_ulp(largest_exact, dtype) / 2));
}

void nb_ratios_finish(const struct nb_ratios *r, struct nb_accuracy *out) {
    out->has_ratios = true;
    out->noise_ratio = r->is_strange || r->n_rows == 0 ? (double)NAN : r->noise_ratio;
}
