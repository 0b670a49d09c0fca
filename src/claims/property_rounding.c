// SPDX-License-Identifier: Apache-2.0
/* Formulas in the formats that store them: where is rounded, what is lost. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/random.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"
#include "src/lab/roots/root_variants.h"

/* cast_order. Rounded to the dtype before the weight (Llama) or after it (Gemma): which outputs differ, and by how much. */

static void compare(const struct nb_property_call *call, enum nb_dtype dtype, const double *before, const double *after,
                    int64_t n) {
    double n_differ = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (before[i] == after[i]) continue;
        n_differ++;
        most = fmax(most, fabs(before[i] - after[i]) / nb_ulp(fmin(fabs(before[i]), fabs(after[i])), dtype));
    }
    nb_property_add(call, "differ", "share", n_differ / (double)n);
    nb_property_add(call, "largest_step", "ulp", most);
}

static void cast_order_run(const struct nb_property_call *call) {
    const int parsed = nb_dtype_parse(nb_param_text(call, "dtype"));
    const enum nb_dtype dtype = parsed < 0 ? NB_BF16 : (enum nb_dtype)parsed;
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    const char *weight = nb_param_text(call, "weight");
    const double spread = strcmp(weight, "ones") == 0 ? 0 : strcmp(weight, "wide") == 0 ? 3 : 0.3;
    const struct nb_random weights = nb_random_stream(1, 1);
    double *x freed = nb_norm_normal(n, 3 * n + cols), *before = x + n, *after = before + n, *gamma = after + n;
    for (int64_t i = 0; i < n; i++) x[i] = nb_round_to(x[i], dtype);
    for (int64_t i = 0; i < cols; i++)
        gamma[i] = nb_round_to(1 + spread * nb_random_normal(weights, (uint64_t)i), dtype);
    struct nb_norm norm = {.kernel = nb_param_text(call, "kernel"),
                           .dtype = dtype,
                           .eps = nb_param_number(call, "eps"),
                           .formula = {.root = NB_ROOT_MUL_RECIP, .cast = NB_CAST_BEFORE},
                           .rows = rows,
                           .cols = cols,
                           .x = x,
                           .gamma = gamma};
    if (nb_norm_found(call, &norm, before, "differ") != 0) return;
    norm.formula.cast = NB_CAST_AFTER;
    if (nb_norm_found(call, &norm, after, "differ") == 0) compare(call, dtype, before, after, n);
}

/* promotion. x rounded to 16 bits after the scaling, then times a weight of another dtype: an eager framework gives the product the wider of both
 * types, since the narrower could not hold it. Measured: the share of products that the dtype of x cannot hold. */

static void promotion_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    const int parsed = nb_dtype_parse(nb_param_text(call, "dtype"));
    const enum nb_dtype dtype = parsed < 0 ? NB_BF16 : (enum nb_dtype)parsed;
    const enum nb_dtype other = strcmp(nb_param_text(call, "weight"), "f32") == 0 ? NB_F32 : dtype;
    const struct nb_random weights = nb_random_stream(1, 1);
    double *x freed = nb_norm_normal(n, 2 * n), *y = x + n, beyond = 0;
    for (int64_t i = 0; i < n; i++) x[i] = nb_round_to(x[i], dtype);
    const struct nb_norm norm = {
        .kernel = "rmsnorm_twopass", .dtype = dtype, .eps = 1e-6, .rows = rows, .cols = cols, .x = x};
    if (nb_norm_found(call, &norm, y, "result_bits") == 0) {
        /* The type of the product: torch.promote_types of both. */
        const enum nb_dtype result = nb_formats[other].bytes > nb_formats[dtype].bytes ? other : dtype;
        for (int64_t i = 0; i < n; i++) {
            const double w = nb_round_to(1 + 0.3 * nb_random_normal(weights, (uint64_t)(i % cols)), other);
            const double product = nb_round_to(y[i] * w, result);
            beyond += nb_round_to(product, dtype) != product;
        }
        nb_property_add(call, "result_bits", "", 8 * (double)nb_formats[result].bytes);
        nb_property_add(call, "beyond_dtype", "", beyond / (double)n);
    }
}

/* quantized. Rows stored in 8 bits or in f16, as they are and behind a norm: what is lost, and the mean relative error of an element. */

/* f16 needs no scale: elements that become 0 count 1, those that overflow too. */
static double relative_error_f16(const double *v, int64_t n) {
    double sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (v[i] == 0 || !isfinite(v[i])) continue;
        const double stored = nb_round_to(v[i], NB_F16);
        sum += isfinite(stored) ? fabs((stored - v[i]) / v[i]) : 1;
        count++;
    }
    return count > 0 ? sum / count : (double)NAN;
}

/* NaN: nothing but zeros. */
static double relative_error(const struct nb_property_call *call, const double *y, int64_t rows, int64_t cols) {
    const char *to = nb_param_text(call, "to");
    const int quantum = nb_name_find(nb_quantum_names, to),
              scaling = nb_name_find(nb_scaling_names, nb_param_text(call, "scaling"));
    struct nb_quantized q = {.mean_relative = NAN};
    if (strcmp(to, "f16") == 0) return relative_error_f16(y, rows * cols);
    if (quantum >= 0)
        nb_quantize(&q, y, rows, cols, (enum nb_quantum)quantum,
                    scaling < 0 ? NB_SCALING_TENSOR : (enum nb_scaling)scaling);
    return q.mean_relative;
}

static void quantized_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    const double sizes = nb_param_number(call, "sizes");
    double *x freed = nb_norm_rows(call, nb_param_text(call, "data"), rows, cols, "relative_error");
    if (!x) return;
    for (int64_t i = 0; i < rows * cols; i++) x[i] *= pow(sizes, (double)(i / cols) / (double)rows - 0.5);
    double *y freed = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-6, x, rows, cols, y, "relative_error") == 0)
        nb_property_add_or(call, "relative_error", "share", relative_error(call, y, rows, cols), "nothing but zeros");
}

/* root_forms. Ways to form 1/sqrt(v) in f32 (src/lab/roots/root_variants.h) against the correctly rounded one, over every so many of the
 * numbers of [1, 4), which represent all normal ones: the error is the same under a scaling by 4. */

struct off {
    double max_ulp, n_differ, n;
};

static void take(struct off *o, const float *x, const float *r, const float *right) {
    for (int i = 0; i < NB_BATCH; i++) {
        const double exact = 1 / sqrt((double)x[i]);
        o->max_ulp = fmax(o->max_ulp, fabs((double)r[i] - exact) / nb_ulp(exact, NB_F32));
        o->n_differ += r[i] != right[i];
        o->n++;
    }
}

static void sweep(const struct nb_root_variant *v, uint32_t stride, struct off *o) {
    const uint32_t first = 0x3f800000, last = 0x40800000; /* 1 and 4 */
    const struct nb_root_variant *rounded = nb_root_variant_find("double");
    float x[NB_BATCH], r[NB_BATCH], right[NB_BATCH];
    int n = 0;
    for (uint32_t bits = first; bits < last; bits += stride) {
        memcpy(&x[n++], &bits, sizeof bits);
        if (n < NB_BATCH) continue;
        v->fill(x, r);
        rounded->fill(x, right);
        take(o, x, r, right);
        n = 0;
    }
}

static void try_form(const struct nb_property_call *call, const struct nb_root_variant *v, uint32_t stride) {
    struct off o = {0};
    const char *refused = nb_root_variant_refuses(v);
    if (refused) return; /* another machine's instruction is no part of the question here */
    sweep(v, stride, &o);
    nb_finding_tag(nb_property_add(call, "max_ulp", "ulp", o.max_ulp), "form", v->name);
    nb_finding_tag(nb_property_add(call, "misrounded", "share", o.n_differ / o.n), "form", v->name);
}

static void root_forms_run(const struct nb_property_call *call) {
    const double stride = nb_param_number(call, "stride");
    for (size_t i = 0; i < nb_n_root_variants; i++)
        for (int j = 0; j < nb_param_count(call, "form"); j++)
            if (fnmatch(nb_param_text_at(call, "form", j), nb_root_variants[i].name, 0) == 0) {
                try_form(call, &nb_root_variants[i], stride >= 1 && stride < 1e6 ? (uint32_t)stride : 17);
                break;
            }
}

/* eps_place. eps inside the root, v + eps, against outside, sqrt(v) + eps: the gain |y / x| rms of rows of constant magnitude. In exact numbers
 * r / sqrt(r^2 + eps) and r / (r + eps). */

static double gain(const struct nb_property_call *call, enum nb_eps_place place) {
    const int64_t cols = nb_param_whole(call, "cols");
    const double rms = nb_param_number(call, "rms");
    double *x freed = nb_alloc(2 * (unsigned long long)cols, sizeof *x), *y = x + cols;
    for (int64_t i = 0; i < cols; i++) x[i] = i % 2 ? -rms : rms;
    const struct nb_norm n = {.kernel = nb_param_text(call, "kernel"),
                              .eps = nb_param_number(call, "eps"),
                              .formula.eps_place = place,
                              .rows = 1,
                              .cols = cols,
                              .x = x};
    return nb_norm_found(call, &n, y, "gain") == 0 ? nb_rms_of(y, cols) : (double)NAN;
}

static struct nb_finding *add_gain(const struct nb_property_call *call, const char *name, double value) {
    const double rms = nb_param_number(call, "rms"), eps = nb_param_number(call, "eps");
    struct nb_finding *f = nb_property_add(call, name, "", value);
    nb_finding_tag(f, "size",
                   rms * rms <= 10 * eps     ? "near eps"
                   : rms * rms >= 1000 * eps ? "far above eps"
                                             : "above eps");
    return f;
}

static void eps_place_run(const struct nb_property_call *call) {
    const double inside = gain(call, NB_EPS_INSIDE), outside = gain(call, NB_EPS_OUTSIDE);
    if (isnan(inside) || isnan(outside)) return;
    nb_finding_tag(add_gain(call, "gain", inside), "eps_place", "inside");
    nb_finding_tag(add_gain(call, "gain", outside), "eps_place", "outside");
    add_gain(call, "apart", fabs(outside - inside) / outside);
}

/* design. Classes as tutorials print them, executed step by step in the formats that their dtypes imply (src/emulate/), against the exact
 * result: what is lost (NaN, Inf or 0 instead of a number), and how far off the rest is. */

struct tally {
    double n, n_lost, n_nan;
    double *errors; /* of rows: ||y - exact|| / ||exact|| of what is not lost */
    int64_t n_rows;
};

static bool is_number(double v) { return isfinite(v) && v != 0; }

static void take_row(struct tally *t, const double *y, const double *exact, int64_t cols) {
    double error = 0, whole = 0;
    for (int64_t i = 0; i < cols; i++) {
        t->n++;
        t->n_nan += !isfinite(y[i]);
        const bool lost = is_number(exact[i]) && !is_number(y[i]);
        t->n_lost += lost;
        if (lost || !isfinite(y[i]) || !isfinite(exact[i])) continue;
        error += pow(y[i] - exact[i], 2);
        whole += exact[i] * exact[i];
    }
    if (whole > 0) t->errors[t->n_rows++] = sqrt(error / whole);
}

static void execute(const struct nb_design *d, const struct nb_design_rows *rows, struct tally *t) {
    struct nb_case c;
    double *y freed = nb_alloc((unsigned long long)rows->cols, sizeof *y);
    double *exact freed = nb_alloc((unsigned long long)rows->cols, sizeof *exact);
    nb_design_case(&c, d, rows->rows, rows->cols, rows->affine);
    t->errors = nb_alloc((unsigned long long)rows->rows, sizeof *t->errors);
    for (int64_t row = 0; row < rows->rows; row++) {
        const double *x = rows->x + row * rows->cols;
        nb_emulate_row(d, rows->cols, x, rows->gamma, rows->beta, y, (uint64_t)row);
        nb_exact_row(&c, x, rows->gamma, rows->beta, NULL, exact, NULL);
        take_row(t, y, exact, rows->cols);
    }
}

enum { LOST, NOT_FINITE, ERROR, N_OF_DESIGN };
static const char *const of_design[N_OF_DESIGN] = {"lost", "not_finite", "error"};

/* The figures of the rows of a seed; -1: there are no such rows. */
static int draw_rows(const struct nb_property_call *call, const struct nb_design *d, uint64_t seed,
                     double *figures[N_OF_DESIGN]) {
    struct nb_design_rows rows released_by(nb_design_rows_release) = {0};
    struct tally t = {0};
    struct nb_design_data source = {.data = nb_param_text(call, "data"),
                                    .rows = nb_param_whole(call, "rows"),
                                    .cols = nb_param_whole(call, "cols"),
                                    .seed = seed,
                                    .affine = NB_AFFINE_NONE};
    if (nb_design_data_resolve(&source) != 0 || nb_design_rows_init(&rows, d, &source) != 0) return -1;
    execute(d, &rows, &t);
    figures[LOST][seed - 1] = t.n_lost / t.n;
    figures[NOT_FINITE][seed - 1] = t.n_nan / t.n;
    figures[ERROR][seed - 1] = t.n_rows ? nb_median(t.errors, (size_t)t.n_rows) : (double)NAN;
    free(t.errors);
    return 0;
}

static void add_drawn(const struct nb_property_call *call, const char *name, double *values, size_t n,
                      const struct nb_design *d) {
    struct nb_finding *f = nb_property_add_seeds(call, name, "share", values, n, "every element is lost, or 0");
    nb_finding_tag(f, "op", nb_op_names[d->op]);
    nb_finding_tag(f, "store", nb_numbers[d->store].name);
    nb_finding_tag(f, "statistics", nb_numbers[d->stat].name);
    nb_finding_tag_number(f, "eps", d->eps);
}

static void design_run(const struct nb_property_call *call) {
    const char *design = nb_param_text(call, "design");
    const size_t n = (size_t)nb_param_whole(call, "seeds");
    struct nb_design d;
    double *figures[N_OF_DESIGN];
    for (int i = 0; i < N_OF_DESIGN; i++) figures[i] = nb_alloc(n, sizeof *figures[i]);
    bool drawn = nb_design_parse(&d, design) == 0;
    for (size_t seed = 1; seed <= n && drawn; seed++) drawn = draw_rows(call, &d, seed, figures) == 0;
    if (!drawn)
        nb_findings_add_missing(call->out, "lost", "design '%.80s' on '%.80s' cannot be made", design,
                                nb_param_text(call, "data"));
    for (int i = 0; i < N_OF_DESIGN; i++)
        if (drawn)
            add_drawn(call, of_design[i], figures[i], n, &d);
        else
            free(figures[i]);
}

const struct nb_property nb_property_rounding[] = {
    {"cast_order",
     "rounding before or after the weight",
     cast_order_run,
     {{"kernel", "[\"rmsnorm_twopass\"]", "kernels", false, "kernel"},
      {"dtype", "[\"bf16\"]", "f16, bf16", false, "dtype"},
      {"weight", "[\"drawn\"]", "drawn: 1 + 0.3 N(0,1), rounded to the dtype; wide: 3 N(0,1); ones", false, "weight"},
      {"rows", "64", "", true, NULL},
      {"cols", "1024", "", true, NULL},
      {"eps", "1e-6", "", false, NULL}}},
    {"promotion",
     "16-bit rows times weights of another dtype",
     promotion_run,
     {{"dtype", "[\"bf16\", \"f16\"]", "of x", false, "dtype"},
      {"weight", "[\"x\", \"f32\"]", "dtype of the weight: x's, or f32", false, "weight"},
      {"rows", "16", "", true, NULL},
      {"cols", "512", "", true, NULL}}},
    {"quantized",
     "rows stored in few bits, with and without a norm",
     quantized_run,
     {{"norm", "[\"none\", \"rmsnorm_twopass\", \"layernorm_twopass\"]", "", false, "norm"},
      {"data", "[\"normal\", \"massive\", \"lognormal(3)\"]", "", false, "data"},
      {"to", "[\"e4m3\", \"e5m2\", \"int8\", \"f16\"]", "", false, "to"},
      {"scaling", "\"tensor\"", "none, tensor, row; f16 has none", false, NULL},
      {"sizes", "[1]", "of rows: largest over smallest of what each is multiplied by", false, "sizes"},
      {"rows", "64", "", true, NULL},
      {"cols", "384", "", true, NULL}}},
    {"root_forms",
     "ways to form 1/sqrt in f32",
     root_forms_run,
     {{"form", "[\"recip_sqrt\", \"rsqrt*\", \"kernel*\"]", "globs on their names (`normbench stress --help`)", false,
       NULL},
      {"stride", "17", "of the 2^24 numbers every so many", false, NULL}}},
    {"eps_place",
     "eps inside or outside the root",
     eps_place_run,
     {{"kernel", "\"rmsnorm_twopass\"", "", false, NULL},
      {"rms", "[0.1, 0.01, 3.16e-3, 1e-3, 1e-4]", "of the rows", false, "rms"},
      {"eps", "[1e-5, 1e-6, 1e-8]", "", false, "eps"},
      {"cols", "256", "", true, NULL}}},
    {"design",
     "a class executed step by step in given formats",
     design_run,
     {{"design", "[\"rmsnorm/store:f16\"]", "as `normbench emulate` takes them", false, "design"},
      {"data", "[\"normal\"]", "rows, as the data axis takes them", false, "data"},
      {"seeds", "1", "draws of the rows, of which 6 or more give an interval", true, NULL},
      {"rows", "16", "", true, NULL},
      {"cols", "512", "", true, NULL}}},
    {.name = NULL}};
