// SPDX-License-Identifier: Apache-2.0
/* Kernels and designs, made alike: each turns short rows into short rows. */
#include "src/lab/exhaustive/exhaust_rows.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/lab/emulate/emulate.h"
#include "src/measure/pool.h"

struct list {
    struct nb_row_source *items;
    int n;
};

static void append(struct list *l, const struct nb_row_source *s) {
    l->items = nb_realloc(l->items, (unsigned)l->n + 1, sizeof *l->items);
    l->items[l->n++] = *s;
}

/* ---- kernels ---- */

static bool is_row_norm(const struct nb_kernel *k) {
    static const uint32_t ops[] = {NB_OP_RMSNORM, NB_OP_PRMSNORM,    NB_OP_LAYERNORM,
                                   NB_OP_L2NORM,  NB_OP_ADD_RMSNORM, NB_OP_ADD_LAYERNORM};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (k->op == ops[i]) return k->pass == NB_FORWARD;
    return false;
}

/* Roots, and with a weight the two cast orders. Parameters in f32 unless the kernel has them in its dtype alone. */
static void append_formulas(struct list *l, const struct nb_entry *entry, const struct nb_exhaust_options *o) {
    const struct nb_kernel *k = entry->kernel;
    for (uint32_t root = 0; root < NB_N_ROOTS; root++)
        for (int form = 0; form < 3; form++) {
            struct nb_row_source s = {.entry = entry, .gamma = 1, .weight = 1, .op = k->op};
            s.formula = (struct nb_formula){.struct_size = sizeof s.formula, .root = root, .affine = NB_AFFINE_NONE};
            if (form > 0) {
                s.gamma = s.weight = nb_round_to(o->gamma, o->dtype);
                s.formula.affine = NB_AFFINE_GAMMA;
                s.formula.cast = form == 2 ? NB_CAST_BEFORE : NB_CAST_AFTER;
            }
            if (nb_kernel_refuses(k, &s.formula)) s.formula.param = NB_PARAM_X;
            if (nb_kernel_refuses(k, &s.formula)) continue;
            snprintf(s.text, sizeof s.text, "%s/root:%s%s%s", entry->kernel_id, nb_root_name(root),
                     form ? "/affine:gamma" : "/affine:none",
                     form == 0   ? ""
                     : form == 1 ? "/cast:after"
                                 : "/cast:before");
            append(l, &s);
        }
}

static bool is_named(const char *variant, const struct nb_exhaust_options *o) {
    for (int i = 0; i < o->n_names; i++)
        if (fnmatch(o->names[i], variant, 0) == 0) return true;
    return o->n_names == 0;
}

static int add_kernels(struct list *l, const struct nb_exhaust_options *o) {
    const int before = l->n;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        const struct nb_kernel *k = entry->kernel;
        if (entry->plugin || k->dtype != o->dtype || !is_row_norm(k) || !is_named(entry->id, o)) continue;
        if (!nb_cpu_refuses(k->cpu_features, k->width)) append_formulas(l, entry, o);
    }
    if (l->n == before && o->n_names > 0)
        return nb_error("--kernel %s: no %s kernel of rows that can run here has such a variant; `normbench list` has "
                        "them",
                        o->names[0], nb_dtype_names[o->dtype]);
    return 0;
}

/* ---- designs ---- */

static int append_design(struct list *l, const char *text, bool weighted, const struct nb_exhaust_options *o) {
    struct nb_row_source s = {.gamma = 1, .weight = 1};
    if (nb_design_parse(&s.design, text) != 0) return -1;
    if (s.design.store != nb_number_of(o->dtype))
        return nb_error("--design %s stores %s, --dtype says %s: they must be the same", text,
                        nb_numbers[s.design.store].name, nb_dtype_names[o->dtype]);
    s.op = s.design.op;
    s.design.k = 1; /* pRMSNorm sees the whole of so short a row */
    if (weighted) {
        const double offset = s.design.weight_offset ? 1 : 0; /* the weight is nearly the same for all */
        s.gamma = nb_round_to(o->gamma - offset, o->dtype);
        s.weight = offset + s.gamma;
    }
    snprintf(s.text, sizeof s.text, "%s%s", text, weighted ? ", with a weight" : "");
    append(l, &s);
    return 0;
}

/* Where each operation may be done in the dtype (@) instead of f32. */
static const struct {
    const char *text;
    bool only_weighted; /* without a weight it is the first one */
} usual[] = {
    {"rmsnorm/store:@/weight:@", false},
    {"rmsnorm/store:@/weight:@/cast:before", true},
    {"rmsnorm/store:@/weight:@/weight_offset:1/offset:@", true},
    {"rmsnorm/store:@/weight:@/rstd:@", false},
    {"rmsnorm/store:@/weight:@/sqrt:@/root:div_sqrt", false},
    {"rmsnorm/store:@/weight:@/stat:@", false},
    {"rmsnorm/store:@/weight:@/store_round:rz", false},
    {"rmsnorm/all:@", false},
};

static int add_usual_designs(struct list *l, const struct nb_exhaust_options *o) {
    int result = 0;
    for (int weighted = 0; weighted < 2; weighted++)
        for (size_t i = 0; i < sizeof usual / sizeof usual[0] && result == 0; i++) {
            struct nb_strbuf text = {0};
            if (usual[i].only_weighted && !weighted) continue;
            for (const char *p = usual[i].text; *p; p++)
                nb_strbuf_addn(&text, *p == '@' ? nb_dtype_names[o->dtype] : p,
                               *p == '@' ? strlen(nb_dtype_names[o->dtype]) : 1);
            result = append_design(l, text.text, weighted, o);
            nb_strbuf_release(&text);
        }
    return result;
}

static int add_designs(struct list *l, const struct nb_exhaust_options *o) {
    int result = 0;
    for (int i = 0; i < o->n_designs && result == 0; i++) {
        result = append_design(l, o->designs[i], false, o);
        if (result == 0) result = append_design(l, o->designs[i], true, o);
    }
    return result;
}

int nb_row_sources(const struct nb_exhaust_options *o, struct nb_row_source **sources, int *n) {
    struct list l = {0};
    int result = 0;
    if (o->n_names == 0 && o->n_designs == 0) result = add_usual_designs(&l, o);
    if (result == 0 && (o->n_designs == 0 || o->n_names > 0)) result = add_kernels(&l, o);
    if (result == 0) result = add_designs(&l, o);
    *sources = l.items;
    *n = l.n;
    return result;
}

/* ---- rows ---- */

void nb_row_buffers_init(struct nb_row_buffers *b, int64_t rows, int64_t cols) {
    const uint64_t n = (uint64_t)(rows * cols);
    assert(cols <= 8);
    *b = (struct nb_row_buffers){.rows = rows, .cols = cols};
    b->x = nb_alloc(n, sizeof *b->x);
    b->y = nb_alloc(n, sizeof *b->y);
    b->zero = nb_alloc(n, sizeof *b->zero);
    b->residual_out = nb_alloc(n, sizeof *b->residual_out);
}

void nb_row_buffers_release(struct nb_row_buffers *b) {
    free(b->x);
    free(b->y);
    free(b->zero);
    free(b->residual_out);
    free(b->scratch);
    *b = (struct nb_row_buffers){0};
}

static void fill_call(const struct nb_row_source *s, struct nb_row_buffers *b, enum nb_dtype dtype, int64_t n,
                      double eps, struct nb_call *call) {
    for (int64_t i = 0; i < b->cols; i++) {
        b->gamma_f32[i] = (float)s->gamma;
        nb_set(b->gamma_x, i, dtype, s->gamma);
    }
    const bool wants_gamma = s->formula.affine != NB_AFFINE_NONE;
    const void *gamma = s->formula.param == NB_PARAM_X ? (const void *)b->gamma_x : b->gamma_f32;
    *call = (struct nb_call){
        .struct_size = sizeof *call, .n_threads = 1, .rows = n, .cols = b->cols, .k = b->cols, .eps = eps};
    call->formula = s->formula;
    call->x = b->x;
    call->y = b->y;
    call->gamma = wants_gamma ? gamma : NULL;
    call->x_stride = call->y_stride = call->residual_stride = call->residual_out_stride = b->cols;
    call->residual = b->zero;
    call->residual_out = b->residual_out;
}

static void run_kernel(const struct nb_row_source *s, struct nb_row_buffers *b, enum nb_dtype dtype, int64_t n,
                       double eps) {
    struct nb_call call;
    fill_call(s, b, dtype, n, eps, &call);
    const size_t bytes = (nb_kernel_scratch_bytes(s->entry->kernel, &call) + 63) / 64 * 64;
    if (bytes > b->scratch_bytes) {
        free(b->scratch);
        b->scratch = aligned_alloc(64, bytes);
        b->scratch_bytes = b->scratch ? bytes : 0;
        if (!b->scratch) abort();
    }
    call.scratch = b->scratch;
    nb_run_in_ranges(s->entry->kernel, &call, 0);
}

static void run_design(const struct nb_row_source *s, struct nb_row_buffers *b, enum nb_dtype dtype, int64_t n,
                       double eps) {
    struct nb_design d = s->design;
    double x[8], y[8], gamma[8];
    d.eps = eps;
    for (int64_t i = 0; i < b->cols; i++) gamma[i] = s->gamma;
    for (int64_t row = 0; row < n; row++) {
        for (int64_t i = 0; i < b->cols; i++) x[i] = nb_get(b->x, row * b->cols + i, dtype);
        nb_emulate_row(&d, b->cols, x, s->gamma == 1 ? NULL : gamma, NULL, y, (uint64_t)row + 1);
        for (int64_t i = 0; i < b->cols; i++) nb_set(b->y, row * b->cols + i, dtype, y[i]);
    }
}

void nb_row_source_run(const struct nb_row_source *s, struct nb_row_buffers *b, enum nb_dtype dtype, int64_t n,
                       double eps) {
    if (s->entry)
        run_kernel(s, b, dtype, n, eps);
    else
        run_design(s, b, dtype, n, eps);
}
