// SPDX-License-Identifier: Apache-2.0
#include "tests/support/batchnorm.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/kernel_fields.h"

static void *keep(struct memory *m, void *block) {
    cr_assert(block && m->n < (int)(sizeof m->blocks / sizeof m->blocks[0]));
    return m->blocks[m->n++] = block;
}

void *take(struct memory *m, int64_t n, size_t item_bytes) { return keep(m, calloc((size_t)n, item_bytes)); }

float *take_floats(struct memory *m, int64_t n, float value) {
    float *p = take(m, n, sizeof *p);
    for (int64_t i = 0; i < n; i++) p[i] = value;
    return p;
}

void take_scratch(struct memory *m, const struct nb_kernel *k, struct nb_call *call) {
    const size_t bytes = nb_kernel_scratch_bytes(k, call);
    call->scratch = memset(keep(m, aligned_alloc(64, (bytes + 127) / 64 * 64)), 0xff, bytes);
}

void release_memory(struct memory *m) {
    while (m->n > 0) free(m->blocks[--m->n]);
}

struct nb_call batchnorm_call(struct size size, uint32_t layout, uint32_t mode, int64_t pad) {
    const bool planes = layout == NB_NCHW;
    struct nb_call call = {.struct_size = sizeof call,
                           .layout = layout,
                           .mode = mode,
                           .n_threads = 1,
                           .n = size.n,
                           .c = size.c,
                           .hw = size.hw,
                           .rows = planes ? size.n * size.c : size.n * size.hw,
                           .cols = planes ? size.hw : size.c,
                           .eps = 1e-5,
                           .momentum = 0.1};
    call.formula = (struct nb_formula){
        .struct_size = sizeof call.formula, .root = NB_ROOT_MUL_RECIP, .affine = NB_AFFINE_GAMMA_BETA};
    call.x_stride = call.y_stride = call.dy_stride = call.dx_stride = call.cols + pad;
    return call;
}

int64_t channel_of(const struct nb_call *call, int64_t row, int64_t col) {
    return call->layout == NB_NCHW ? row % call->c : col;
}

double scattered(int64_t i) { return (double)((uint64_t)i * 0x9e3779b97f4a7c15u >> 40) / 0x1p24 * 3 - 1.5; }

void channel_statistics(const struct nb_call *call, enum nb_dtype dtype, double *mean, double *var) {
    const double n = (double)(call->n * call->hw);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t r = 0; r < call->rows; r++)
            for (int64_t i = 0; i < call->cols; i++) {
                const int64_t c = channel_of(call, r, i);
                const double x = nb_get(call->x, r * call->x_stride + i, dtype), d = x - mean[c];
                if (pass == 0)
                    mean[c] += x / n;
                else
                    var[c] += d * d / n;
            }
}

static bool takes_part(const struct walk *w, const struct nb_kernel *k) {
    return k->op == NB_OP_BATCHNORM && k->pass == w->pass && (!w->name || strcmp(k->name, w->name) == 0) &&
           !nb_cpu_refuses(k->cpu_features, k->width);
}

bool walk_on(struct walk *w) {
    for (; w->next < 2 * w->n_sizes * nb_registry_size(); w->next++) {
        const size_t s = w->next % (2 * w->n_sizes);
        w->kernel = nb_registry_at(w->next / (2 * w->n_sizes))->kernel;
        w->size = w->sizes[s / 2];
        w->layout = s % 2 ? NB_NHWC : NB_NCHW;
        const bool too_long = w->longest && s % 2 && w->size.hw > w->longest;
        if (!takes_part(w, w->kernel) || too_long) continue;
        w->next++;
        return true;
    }
    return false;
}
