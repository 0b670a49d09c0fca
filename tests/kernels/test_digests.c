// SPDX-License-Identifier: Apache-2.0
/* The bits of what kernels compute. Their arithmetic is spelt out in IEEE operations, in an order that the source and the
 * number of lanes fix, so that a variant gives the same bits on every CPU and architecture: the digests of digests.txt
 * were made on x86-64 and hold on aarch64 too. Roots by the hardware's estimate are each CPU's own, and not in them.
 * Where bits are to change, a failure says the new digest. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"

TestSuite(digests, .init = load_kernels);

enum { ROWS = 5, COLS = 1003 };
static const struct { int64_t n, c, hw; } batch = {ROWS, 3, 167};

/* What a call owns. */
struct memory {
    void *blocks[24];
    int n;
};
static void *keep(struct memory *m, void *block) {
    cr_assert(block && m->n < (int)(sizeof m->blocks / sizeof m->blocks[0]));
    return m->blocks[m->n++] = block;
}
static void *take(struct memory *m, int64_t n, size_t item_bytes) { return keep(m, calloc((size_t)n, item_bytes)); }

/* From -4 to 4 about the offset, rounded to the dtype: sums of these show the order in which they are made. */
static void *some(struct memory *m, int64_t n, enum nb_dtype dtype, uint32_t seed, double offset) {
    void *to = take(m, n, nb_formats[dtype].bytes);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t mixed = ((uint32_t)i + seed) * 2654435761u;
        nb_set(to, i, dtype, offset + ((double)(mixed >> 8) - 0x1p23) / 0x1p21);
    }
    return to;
}

/* All tensors of rows that some op has; those that are none of the kernel's are not looked at. */
static struct nb_call call_of(struct memory *m, enum nb_dtype dtype, uint32_t root) {
    const int64_t n = ROWS * COLS;
    struct nb_call call = {.struct_size = sizeof call, .rows = ROWS, .cols = COLS, .k = COLS, .n_threads = 1};
    call.eps = 1e-5;
    call.alpha = 0.5;
    call.formula =
        (struct nb_formula){.struct_size = sizeof call.formula, .root = root, .affine = NB_AFFINE_GAMMA_BETA};
    call.x = some(m, n, dtype, 1, 0.25);
    call.residual = some(m, n, dtype, 2, 0);
    call.dy = some(m, n, dtype, 3, 0);
    call.dresidual_out = some(m, n, dtype, 4, 0);
    call.gamma = some(m, COLS, NB_F32, 5, 1);
    call.beta = some(m, COLS, NB_F32, 6, 0);
    call.y = take(m, n, nb_formats[dtype].bytes);
    call.residual_out = take(m, n, nb_formats[dtype].bytes);
    call.dx = take(m, n, nb_formats[dtype].bytes);
    call.dresidual = take(m, n, nb_formats[dtype].bytes);
    call.x_stride = call.residual_stride = call.y_stride = call.residual_out_stride = COLS;
    call.dy_stride = call.dresidual_out_stride = call.dx_stride = call.dresidual_stride = COLS;
    call.dgamma = take(m, COLS, sizeof(float));
    call.dbeta = take(m, COLS, sizeof(float));
    call.dalpha = take(m, 1, sizeof(float));
    call.mean = some(m, ROWS, NB_F32, 7, 0);
    call.rstd = some(m, ROWS, NB_F32, 8, 8);
    return call;
}

/* The same tensors as channels of a batch, whose statistics have room for as many as there are columns. */
static void make_batch(struct memory *m, struct nb_call *call, uint32_t layout) {
    const bool planes = layout == NB_NCHW;
    call->layout = layout;
    call->n = batch.n, call->c = batch.c, call->hw = batch.hw;
    call->rows = batch.n * (planes ? batch.c : batch.hw);
    call->cols = planes ? batch.hw : batch.c;
    call->momentum = 0.1;
    call->x_stride = call->y_stride = call->dy_stride = call->dx_stride = call->cols;
    call->residual = call->dresidual_out = NULL;
    call->residual_out = call->dresidual = NULL;
    call->dalpha = NULL;
    call->running_mean_in = some(m, batch.c, NB_F32, 9, 0);
    call->running_var_in = some(m, batch.c, NB_F32, 10, 8);
    call->running_mean_out = take(m, batch.c, sizeof(float));
    call->running_var_out = take(m, batch.c, sizeof(float));
}

static uint64_t add(uint64_t hash, const void *tensor, size_t bytes) {
    return tensor ? nb_hash(hash, tensor, bytes) : hash;
}

static uint64_t add_outputs(uint64_t hash, const struct nb_call *call, size_t item) {
    const size_t n = ROWS * COLS * item, n_batch = (size_t)(batch.n * batch.c * batch.hw) * item;
    const bool is_batch = call->running_var_out;
    const void *const tensors[] = {call->y, call->residual_out, call->dx, call->dresidual};
    for (int i = 0; i < 4; i++) hash = add(hash, tensors[i], is_batch ? n_batch : n);
    hash = add(hash, call->dgamma, COLS * sizeof(float));
    hash = add(hash, call->dbeta, COLS * sizeof(float));
    hash = add(hash, call->mean, ROWS * sizeof(float));
    hash = add(hash, call->rstd, ROWS * sizeof(float));
    hash = add(hash, call->dalpha, sizeof(float));
    hash = add(hash, call->running_mean_out, (size_t)batch.c * sizeof(float));
    return add(hash, call->running_var_out, (size_t)batch.c * sizeof(float));
}

static uint64_t add_call(uint64_t hash, const struct nb_kernel *k, uint32_t root, uint32_t layout) {
    struct memory memory = {0};
    struct nb_call call = call_of(&memory, (enum nb_dtype)k->dtype, root);
    if (k->op == NB_OP_PRMSNORM) call.k = COLS / 4;
    if (k->op == NB_OP_BATCHNORM) make_batch(&memory, &call, layout);
    const bool has_beta = k->op == NB_OP_LAYERNORM || k->op == NB_OP_DYT || k->op == NB_OP_BATCHNORM;
    call.formula.affine = has_beta ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA;
    if (!nb_kernel_refuses(k, &call.formula)) {
        const size_t bytes = nb_kernel_scratch_bytes(k, &call);
        call.scratch = memset(keep(&memory, aligned_alloc(64, (bytes + 127) / 64 * 64)), 0xff, bytes);
        for (int phase = 0; phase < nb_kernel_n_phases(k, &call); phase++)
            cr_assert_eq(k->run(&call, phase, 0, nb_kernel_n_units(k, &call, phase)), 0, "%s", k->variant);
        hash = add_outputs(hash, &call, nb_formats[k->dtype].bytes);
    }
    while (memory.n > 0) free(memory.blocks[--memory.n]);
    return hash;
}

/* With both roots that IEEE defines, where the kernel has them, and both layouts. */
static uint64_t digest_of(const struct nb_kernel *k) {
    uint64_t hash = NB_HASH_EMPTY;
    for (uint32_t layout = NB_NCHW; layout <= NB_NHWC; layout++) {
        if (layout != NB_NCHW && k->op != NB_OP_BATCHNORM) break;
        hash = add_call(hash, k, NB_ROOT_MUL_RECIP, layout);
        hash = add_call(hash, k, NB_ROOT_DIV_SQRT, layout);
    }
    return hash;
}

/* Of every kernel that computes, in the widths that both architectures have. */
Test(digests, are_those_of_x86_on_every_architecture) {
    const char *known = get_file("tests/kernels", "digests.txt");
    int n_found = 0;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        const struct nb_kernel *k = entry->kernel;
        char line[160];
        if (k->width > NB_256 || k->op == NB_OP_COPY || nb_cpu_refuses(k->cpu_features, k->width)) continue;
        snprintf(line, sizeof line, "\n%s %016llx\n", entry->id, (unsigned long long)digest_of(k));
        cr_expect(strstr(known, line), "%s", line + 1);
        n_found++;
    }
    cr_expect_gt(n_found, 0);
}
