// SPDX-License-Identifier: Apache-2.0
/* The bits of what kernels compute. Their arithmetic is spelt out in IEEE operations, in an order that the source and the number of lanes fix, so
 * that a variant gives the same bits on every CPU and architecture: the digests below were made on x86-64 and hold on aarch64 too. Roots by the
 * hardware's estimate are each CPU's own, and not in them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/text.h"
#include "tests/support/batchnorm.h"
#include "tests/support/plans.h"

TestSuite(digests, .init = load_kernels);

static const struct {
    const char *variant, *digest;
} known[] = {
    {"rmsnorm_twopass_scalar_f32", "499b647d9b4bafc8"},
    {"rmsnorm_twopass_scalar_f16", "ef6c3ee15b0b2c90"},
    {"rmsnorm_twopass_scalar_bf16", "0a39ffc3fccb74d5"},
    {"rmsnorm_twopass_v128_f32", "ed1267e446284075"},
    {"rmsnorm_twopass_v256_f32", "ed1267e446284075"},
    {"rmsnorm_fast_scalar_f32", "a12b7b4cb22d1289"},
    {"rmsnorm_fast_scalar_bf16", "d6e0218affef4fe3"},
    {"rmsnorm_lowp_scalar_bf16", "36cbf0c8bd593d89"},
    {"rmsnorm_composed_scalar_f32", "b9aeba7e034a5fb0"},
    {"layernorm_twopass_scalar_f32", "d8ec651a7820967d"},
    {"layernorm_twopass_scalar_f16", "a2c3e309eebcf045"},
    {"layernorm_twopass_v128_f32", "9914ff85c0bf9b67"},
    {"layernorm_twopass_v256_f32", "eea3e804cb199c5b"},
    {"layernorm_welford_scalar_f32", "406fdf1e389658a4"},
    {"layernorm_welford_scalar_bf16", "08f50e78133b072d"},
    {"layernorm_corrected_scalar_f32", "9a0f5b48c5904133"},
    {"layernorm_fast_scalar_f32", "2ae73d828769740e"},
    {"layernorm_fast_scalar_f16", "5bcb74de6b6cbb5d"},
    {"add_rmsnorm_twopass_scalar_bf16", "449d0df31be09d49"},
    {"l2norm_twopass_scalar_f16", "fefbe6a75bccda52"},
    {"dyt_fused_scalar_f32", "6553ef07470a44b5"},
    {"rmsnorm_backward_plain_scalar_f32", "85691bc223b0b32e"},
    {"rmsnorm_backward_fast_scalar_f32", "3d0d1b24d4309fda"},
    {"layernorm_backward_plain_scalar_bf16", "e21e49e80f2c61e8"},
    {"layernorm_backward_fast_scalar_f32", "94ecc9d0ae46506d"},
};
enum { N_KNOWN = sizeof known / sizeof known[0], ROWS = 5, COLS = 1003 };

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
    call.dgamma = take_floats(m, COLS, 0);
    call.dbeta = take_floats(m, COLS, 0);
    call.dalpha = take_floats(m, 1, 0);
    call.mean = some(m, ROWS, NB_F32, 7, 0);
    call.rstd = some(m, ROWS, NB_F32, 8, 8);
    return call;
}

static uint64_t add_outputs(uint64_t hash, const struct nb_call *call, size_t item) {
    const size_t n = ROWS * COLS * item;
    const void *const tensors[] = {call->y, call->residual_out, call->dx, call->dresidual};
    const float *const columns[] = {call->dgamma, call->dbeta};
    for (int i = 0; i < 4; i++) hash = nb_hash(hash, tensors[i], n);
    for (int i = 0; i < 2; i++) hash = nb_hash(hash, columns[i], COLS * sizeof(float));
    hash = nb_hash(hash, call->mean, ROWS * sizeof(float));
    return nb_hash(hash, call->rstd, ROWS * sizeof(float));
}

/* With both roots that IEEE defines, where the kernel has them. */
static uint64_t digest_of(const struct nb_kernel *k) {
    static const uint32_t roots[] = {NB_ROOT_MUL_RECIP, NB_ROOT_DIV_SQRT};
    uint64_t hash = NB_HASH_EMPTY;
    for (int i = 0; i < 2; i++) {
        struct memory memory = {0};
        struct nb_call call = call_of(&memory, (enum nb_dtype)k->dtype, roots[i]);
        call.formula.affine = k->op == NB_OP_LAYERNORM || k->op == NB_OP_DYT ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA;
        if (!nb_kernel_refuses(k, &call.formula)) {
            take_scratch(&memory, k, &call);
            for (int phase = 0; phase < nb_kernel_n_phases(k, &call); phase++)
                cr_assert_eq(k->run(&call, phase, 0, nb_kernel_n_units(k, &call, phase)), 0, "%s", k->variant);
            hash = add_outputs(hash, &call, nb_formats[k->dtype].bytes);
        }
        release_memory(&memory);
    }
    return hash;
}

Test(digests, are_those_of_x86_on_every_architecture) {
    int n_found = 0;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        for (int j = 0; j < N_KNOWN; j++) {
            if (strcmp(entry->id, known[j].variant) != 0) continue;
            if (nb_cpu_refuses(entry->kernel->cpu_features, entry->kernel->width)) continue;
            char text[20];
            snprintf(text, sizeof text, "%016llx", (unsigned long long)digest_of(entry->kernel));
            cr_expect_str_eq(text, known[j].digest, "%s: %s", known[j].variant, text);
            n_found++;
        }
    }
    cr_expect_geq(n_found, 10, "of the kernels that have digests %d are built", n_found);
}
