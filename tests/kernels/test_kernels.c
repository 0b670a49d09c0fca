// SPDX-License-Identifier: Apache-2.0
/* Every kernel of the registry that this machine can run, on every awkward row length and a rotation of formulas, through the
 * same check that stands before a measurement: against the oracle, at guard pages, in padding, cut into ranges. A new kernel
 * needs no edit here. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "src/accuracy/gradient.h"
#include "src/core/cpu.h"
#include "src/core/registry.h"
#include "src/core/shape.h"
#include "src/measure/check.h"
#include "tests/support/cases.h"

struct kernel_name {
    char text[NB_VARIANT_MAX];
};

static const int64_t lengths[] = {1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129, 255, 257, 384, 1000, 1025};

/* One value of each field; a kernel that does not implement it is given the first value. */
static const struct nb_formula formulas[] = {
    {.root = NB_ROOT_MUL_RECIP, .affine = NB_AFFINE_GAMMA_BETA},
    {.root = NB_ROOT_DIV_SQRT, .eps_place = NB_EPS_OUTSIDE, .cast = NB_CAST_BEFORE, .affine = NB_AFFINE_GAMMA},
    {.root = NB_ROOT_RSQRT_NR, .weight_offset = 1, .affine = NB_AFFINE_GAMMA, .param = NB_PARAM_X, .round_sum = 1},
    {.root = NB_ROOT_DIV_SQRT, .eps_place = NB_EPS_CLAMP, .affine = NB_AFFINE_NONE, .round_sum = 1},
    {.root = NB_ROOT_MUL_RECIP,
     .cast = NB_CAST_BEFORE,
     .weight_offset = 1,
     .affine = NB_AFFINE_GAMMA_BETA,
     .param = NB_PARAM_X},
    {.root = NB_ROOT_RSQRT_RAW, .eps_place = NB_EPS_CLAMP, .cast = NB_CAST_BEFORE, .affine = NB_AFFINE_GAMMA_BETA},
    {.root = NB_ROOT_DIV_SQRT, .cast = NB_CAST_BEFORE, .weight_offset = 1, .affine = NB_AFFINE_GAMMA, .round_sum = 1},
    {.root = NB_ROOT_MUL_RECIP, .eps_place = NB_EPS_OUTSIDE, .affine = NB_AFFINE_GAMMA, .param = NB_PARAM_X},
};
enum { N_FORMULAS = sizeof formulas / sizeof formulas[0], N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* What the kernel implements of a field stays, what it does not becomes its lowest value. */
static uint32_t implemented(uint32_t mask, uint32_t value) {
    if (mask == 0) return 0;
    return mask & 1u << value ? value : (uint32_t)__builtin_ctz(mask);
}
static struct nb_formula fit(const struct nb_formulas *can, struct nb_formula f) {
    f.struct_size = sizeof f;
    f.root = implemented(can->roots, f.root);
    f.eps_place = implemented(can->eps_places, f.eps_place);
    f.cast = implemented(can->casts, f.cast);
    f.weight_offset = implemented(can->weight_offsets, f.weight_offset);
    f.affine = implemented(can->affines, f.affine);
    f.param = implemented(can->params, f.param);
    f.round_sum = implemented(can->round_sums, f.round_sum);
    return f;
}

static void check(const struct nb_case *c, const struct nb_entry *entry) {
    struct nb_inputs in = {0};
    struct nb_oracle oracle = {0};
    struct nb_gradient gradient = {0};
    struct nb_checked checked;
    const bool differentiates = c->pass == NB_BACKWARD && c->op != NB_OP_COPY;
    const char *key = key_of(c);
    cr_assert_eq(nb_inputs_init(&in, c), 0, "%s: no inputs", key);
    cr_assert_eq(nb_saved_statistics_add(&in, c), 0, "%s: no statistics", key);
    cr_assert_eq(nb_oracle_init(&oracle, c, &in), 0, "%s: no oracle", key);
    const struct nb_exact exact = {.oracle = &oracle, .gradient = differentiates ? &gradient : NULL};
    if (differentiates) cr_assert_eq(nb_saved_statistics_gradient(&gradient, c, &in), 0, "%s: no gradient", key);
    nb_check_case(c, entry, &in, &exact, &checked);
    cr_expect(checked.status == NB_OK, "%s is %s: %s", key, nb_status_name(checked.status), checked.reason);
    free(checked.digests);
    nb_gradient_release(&gradient);
    nb_oracle_release(&oracle);
    nb_inputs_release(&in);
}

/* One case; a combination that is not defined, or that the kernel refuses with a reason, is left out. Returns 1 when checked. */
static int check_one(const struct nb_entry *entry, const char *shape, size_t turn) {
    struct nb_case c;
    struct nb_call call;
    char reason[200];
    nb_case_init(&c);
    cr_assert_eq(nb_shape_parse(&c.shape, shape, reason, sizeof reason), 0, "%s: %s", shape, reason);
    snprintf(c.data, sizeof c.data, "normal");
    c.seed = turn + 1;
    c.pad = (int64_t)(turn % 3) * 5;
    c.formula = fit(&entry->kernel->formulas, formulas[turn % N_FORMULAS]);
    c.mode = turn % 4 == 3 ? NB_INFERENCE : NB_TRAINING;
    c.k = c.shape.cols / 2 > 0 ? c.shape.cols / 2 : 1;
    snprintf(c.k_text, sizeof c.k_text, "%lld", (long long)c.k);
    nb_case_set_entry(&c, entry);
    nb_case_call(&c, &call);
    if (nb_case_conflict(&c) || nb_kernel_refuses(entry->kernel, &c.formula)) return 0;
    if (nb_kernel_applicable(entry->kernel, &call)) return 0;
    check(&c, entry);
    return 1;
}

static int check_lengths(const struct nb_entry *entry) {
    int n_checked = 0;
    for (size_t i = 0; i < N_LENGTHS; i++) {
        char shape[64];
        const long long n = (long long)lengths[i];
        if (entry->kernel->op == NB_OP_BATCHNORM) {
            snprintf(shape, sizeof shape, i % 2 ? "nchw:3x4x1x%lld" : "nchw:5x3x%lldx1", n);
            n_checked += check_one(entry, shape, i);
            snprintf(shape, sizeof shape, "nhwc:3x%lldx2x2", n);
        } else {
            /* Gradients of parameters are sums over rows: some more of them. */
            const int rows = entry->kernel->pass == NB_BACKWARD ? 37 : 3;
            snprintf(shape, sizeof shape, "%dx%lld", i % 4 == 0 ? 1 : rows, n);
            n_checked += check_one(entry, shape, i + N_FORMULAS / 2);
        }
        n_checked += check_one(entry, shape, i);
    }
    return n_checked;
}

/* A test for each kernel; Criterion wants the parameters in memory of its own. */
ParameterizedTestParameters(kernels, keep_to_the_oracle_and_to_their_memory) {
    static size_t n;
    static struct kernel_name *names;
    if (nb_registry_load_builtin() != 0) return cr_make_param_array(struct kernel_name, NULL, 0);
    names = cr_malloc(nb_registry_size() * sizeof *names);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const char *id = nb_registry_at(i)->kernel_id;
        if (n > 0 && strcmp(names[n - 1].text, id) == 0) continue;
        snprintf(names[n++].text, sizeof names[0].text, "%s", id);
    }
    nb_registry_release();
    return cr_make_param_array(struct kernel_name, names, n);
}
ParameterizedTest(struct kernel_name *name, kernels, keep_to_the_oracle_and_to_their_memory) {
    cr_assert_eq(nb_registry_load_builtin(), 0);
    int n_variants = 0, n_checked = 0, n_refused = 0;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        if (strcmp(entry->kernel_id, name->text) != 0) continue;
        if (nb_cpu_refuses(entry->kernel->cpu_features, entry->kernel->width)) continue;
        int n = check_lengths(entry);
        n_variants++;
        n_checked += n;
        if (n == 0) n_refused++;
    }
    cr_expect(n_variants == 0 || n_checked > 0, "%s: none of %d variants took any case", name->text, n_variants);
    cr_expect(n_refused * 2 <= n_variants, "%s: %d of %d variants refuse every case", name->text, n_refused,
              n_variants);
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

enum { COPY_ROWS = 3, COPY_BYTES = COPY_ROWS * (300 + 8) * 4 + 64 };

/* Elements are bits: every pattern is moved as it is, at every misalignment of an element; with a shift of 0 all tensors are aligned. */
static void check_copy(const struct nb_kernel *k, int64_t cols, int64_t pad, size_t shift) {
    static _Alignas(64) unsigned char x[COPY_BYTES], residual[COPY_BYTES], third[COPY_BYTES], y[COPY_BYTES],
        out[COPY_BYTES];
    const int64_t item = k->dtype == NB_F32 ? 4 : 2, stride = cols + pad;
    const size_t apart = shift > 0 ? (size_t)item : 0;
    for (size_t i = 0; i < COPY_BYTES; i++) {
        x[i] = (unsigned char)(i * 37 + 11);
        residual[i] = (unsigned char)(i * 101 + 3);
        third[i] = (unsigned char)(i * 53 + 29);
        y[i] = out[i] = 0xa5;
    }
    struct nb_call call = {.struct_size = sizeof call, .rows = COPY_ROWS, .cols = cols};
    call.x = x + shift * (size_t)item;
    call.residual = residual + (size_t)item * shift + 3 * apart;
    call.y = y + (size_t)item * shift + apart;
    call.residual_out = out + (size_t)item * shift + 6 * apart;
    call.x_stride = call.residual_stride = call.y_stride = call.residual_out_stride = stride;
    call.dy = call.residual;
    call.dresidual_out = third + (size_t)item * shift + 2 * apart;
    call.dx = call.y;
    call.dy_stride = call.dresidual_out_stride = call.dx_stride = stride;
    cr_assert_eq(k->run(&call, 0, 0, 2), 0);
    cr_assert_eq(k->run(&call, 0, 2, COPY_ROWS), 0);
    for (int64_t i = 0; i < COPY_ROWS * stride * item; i++) {
        const bool inside = i / item % stride < cols;
        const unsigned char a = ((const unsigned char *)call.x)[i], b = ((const unsigned char *)call.residual)[i];
        const unsigned char c = k->loads == 3 ? ((const unsigned char *)call.dresidual_out)[i] : 0;
        const unsigned char want_y = k->loads >= 2 && k->stores == 1 ? a | b | c : a;
        const unsigned char got_y = ((unsigned char *)call.y)[i], got_out = ((unsigned char *)call.residual_out)[i];
        cr_assert_eq(got_y, inside && k->stores > 0 ? want_y : 0xa5, "%s, %lld columns: y", k->variant,
                     (long long)cols);
        cr_assert_eq(got_out, inside && k->stores > 1 ? b : 0xa5, "%s, %lld columns: residual_out", k->variant,
                     (long long)cols);
    }
}

Test(kernels, copies_move_every_bit_and_nothing_else) {
    cr_assert_eq(nb_registry_load_builtin(), 0);
    int n_copies = 0;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_kernel *k = nb_registry_at(i)->kernel;
        if (k->op != NB_OP_COPY || nb_cpu_refuses(k->cpu_features, k->width)) continue;
        for (int64_t cols = 1; cols <= 300; cols += cols < 70 ? 1 : 23)
            for (size_t shift = 0; shift < 4; shift++) {
                check_copy(k, cols, 0, shift * 5);
                check_copy(k, cols, shift == 0 ? 8 : 3, shift * 5);
            }
        n_copies++;
    }
    cr_expect_gt(n_copies, 0);
}
