// SPDX-License-Identifier: Apache-2.0
/* Every kernel of the registry that this machine can run, on every awkward row length and a rotation of formulas, through the
 * same check that stands before a measurement: against the oracle, at guard pages, in padding, cut into ranges. A new kernel
 * needs no edit here. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/accuracy/gradient.h"
#include "src/core/cpu.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/measure/check.h"
#include "tests/support/cases.h"
#include "tests/support/numerics.h"
#include "tests/support/sparsely.h"

enum { N_LENGTHS = 19 };
static const int64_t lengths[N_LENGTHS] = {1,  2,  3,   5,   7,   15,  16,  17,   31,  33,
                                           63, 65, 127, 129, 255, 257, 384, 1000, 1025};

/* Rows of every kind, or the inputs as they were drawn. */
static void check(struct nb_case *c, const struct nb_entry *entry, bool of_all_kinds) {
    struct solved s released_by(solved_release) = {.c = *c, .entry = entry};
    const char *key = key_of(c);
    solve(&s, of_all_kinds);
    const struct nb_checked checked = checked_by(&s);
    const bool is_lost = checked.status == NB_OUT_OF_RANGE && /* as the formula predicts, of one value too */
                         (of_all_kinds || c->shape.cols < 4 || checked.accuracy.loss == NB_LOSS_UNBOUNDED);
    cr_expect(checked.status == NB_OK || is_lost, "%s is %s: %s", key, nb_status_name(checked.status), checked.reason);
    free(checked.digests);
}

/* A kernel's cases: of every length one in `step`, with the formula that comes next, so that the variants of a kernel have all of them
 * between them; of every other variant a long one, which is split, or whose sums are of several blocks; and rows of every kind. */
static int check_cases(const struct nb_entry *entry, size_t variant) {
    static const char *const long_rows[] = {"1x20011", "2x16391", "5x4165"},
                             *const long_sums[] = {"600x37", "5x5001", "130x129", "2x16391"},
                             *const long_channels[] = {"nchw:1x2x17000", "nhwc:530x17x1", "nchw:600x3x2",
                                                       "nchw:40x1x1000"};
    const struct nb_kernel *k = entry->kernel;
    const bool channels = k->op == NB_OP_BATCHNORM, backward = k->pass == NB_BACKWARD;
    const size_t step = (size_t)one_in(5);
    struct nb_case c;
    char shape[64];
    int n = 0;
    for (size_t i = variant % step; i < N_LENGTHS; i += step) {
        const long long cols = lengths[i], rows = i % 4 == 0 ? 1 : backward && cols < 200 ? 37 : 3;
        if (channels)
            snprintf(shape, sizeof shape,
                     i % 3 == 2 ? "nhwc:3x%lldx2x2"
                     : i % 3    ? "nchw:3x4x1x%lld"
                                : "nchw:5x3x%lldx1",
                     cols);
        else
            snprintf(shape, sizeof shape, "%lldx%lld", rows, cols);
        if (kernel_case(&c, entry, shape, 3 * i + variant)) check(&c, entry, false), n++;
    }
    snprintf(shape, sizeof shape, "%s",
             channels   ? long_channels[variant / 2 % 4]
             : backward ? long_sums[variant / 2 % 4]
                        : long_rows[variant / 2 % 3]);
    if (n > 0 && variant % 2 && !strstr(k->name, "_lowp") && kernel_case(&c, entry, shape, variant))
        check(&c, entry, false);
    snprintf(shape, sizeof shape, channels ? "nchw:3x%dx70" : "%dx131", N_HARD_KINDS);
    if (n > 0 && !backward && kernel_case(&c, entry, shape, channels ? 1 + 4 * variant : 3 + 2 * variant))
        check(&c, entry, true);
    return n;
}

/* Each implements some case in half of its variants at least. Returns how many there are. */
static size_t check_kernel(size_t first) {
    const char *const id = nb_registry_at(first)->kernel_id;
    size_t n_variants = 0, n_here = 0, n_refused = 0;
    for (const struct nb_entry *e; (e = nb_registry_at(first + n_variants)) && strcmp(e->kernel_id, id) == 0;
         n_variants++) {
        if (nb_cpu_refuses(e->kernel->cpu_features, e->kernel->width)) continue;
        n_refused += check_cases(e, n_here++) == 0;
    }
    cr_expect(n_refused * 2 <= n_here && (n_here == 0 || n_refused < n_here),
              "%s: %zu of %zu variants refuse every case", id, n_refused, n_here);
    return n_variants;
}

/* A test for each op; Criterion wants the parameters in memory of its own. */
ParameterizedTestParameters(kernels, keep_to_the_oracle_and_to_their_memory) {
    uint32_t *ops = cr_malloc(NB_N_OPS * sizeof *ops);
    for (uint32_t op = 0; op < NB_N_OPS; op++) ops[op] = op;
    return cr_make_param_array(uint32_t, ops, NB_N_OPS);
}
ParameterizedTest(uint32_t *op, kernels, keep_to_the_oracle_and_to_their_memory) {
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (size_t i = 0, n; i < nb_registry_size(); i += n)
        n = nb_registry_at(i)->kernel->op == *op ? check_kernel(i) : 1;
}

Test(kernels, refuse_what_has_no_answer) {
    static const struct {
        uint32_t op;
        struct nb_call call;
        const char *what;
    } calls[] = {
        {NB_OP_PRMSNORM, {.rows = 2, .cols = 8, .k = 9}, "statistics of more elements than a row has"},
        {NB_OP_BATCHNORM,
         {.n = 1, .c = 3, .hw = 1, .rows = 3, .cols = 1, .layout = NB_NCHW},
         "the variance of one value"},
        {NB_OP_BATCHNORM, {.n = 1, .c = 3, .hw = 1, .rows = 3, .cols = 1, .mode = NB_INFERENCE}, "channels of rows"},
    };
    int n = 0;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (size_t i = 0; i < nb_registry_size(); i++)
        for (size_t j = 0; j < sizeof calls / sizeof calls[0]; j++) {
            const struct nb_kernel *k = nb_registry_at(i)->kernel;
            struct nb_call call = calls[j].call;
            if (k->op != calls[j].op || (j == 1 && k->pass == NB_BACKWARD)) continue;
            call.struct_size = sizeof call;
            cr_expect_not_null(nb_kernel_applicable(k, &call), "%s: %s", k->variant, calls[j].what);
            n++;
        }
    cr_expect_gt(n, 0);
}

/* Rows whose sum or squares overflow f32, two of them of numbers next to each other; the third is no such row. */
static bool is_corrected(const struct nb_kernel *k) {
    return strcmp(k->name, "layernorm_corrected") == 0 && k->dtype != NB_F16;
}
static void check_overflow(const struct nb_kernel *k) {
    static const double rows[][4] = {{0x1p126, 0x1.000002p126, 0x1p126, 0x1.000002p126},
                                     {0x1p126, 0x1.02p126, 0x1p126, 0x1.02p126},
                                     {-1, 1, -1, 1},
                                     {-0x1p100, 0x1p100, -0x1p100, 0x1p100}};
    float x[16], y[16], rstd[4];
    struct nb_call call = {
        .struct_size = sizeof call, .rows = 4, .cols = 4, .eps = 0x1p-40, .x = x, .y = y, .rstd = rstd};
    call.x_stride = call.y_stride = 4;
    for (uint32_t root = 0; root <= NB_ROOT_MUL_RECIP; root++)
        for (uint32_t place = 0; place < NB_N_EPS_PLACES; place++) {
            call.formula = (struct nb_formula){.struct_size = sizeof call.formula, .root = root, .eps_place = place};
            for (int e = 0; e < 16; e++) nb_set(x, e, (enum nb_dtype)k->dtype, rows[e / 4][e % 4]);
            if (k->dtype == NB_BF16) nb_set(x, 0, NB_BF16, (double)INFINITY);
            cr_assert_eq(k->run(&call, 0, 0, 4), 0);
            for (int e = 0; e < 16; e++) {
                const double got = nb_get(y, e, (enum nb_dtype)k->dtype), want = e % 2 ? 1 : -1;
                cr_expect(k->dtype == NB_BF16 && e < 4 ? isnan(got) : got == want, "%s: y[%d] is %g", k->variant, e,
                          got);
            }
            cr_expect_eq(rstd[3], 0x1p-100f);
        }
}
Test(kernels, corrected_two_passes_are_right_where_squares_overflow) { each_kernel(is_corrected, check_overflow); }

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

static bool is_copy(const struct nb_kernel *k) { return k->op == NB_OP_COPY; }
static void check_copies(const struct nb_kernel *k) {
    for (int64_t cols = 1; cols <= 300; cols += cols < 70 ? 1 : 23)
        for (size_t shift = 0; shift < 4; shift++) {
            check_copy(k, cols, 0, shift * 5);
            check_copy(k, cols, shift == 0 ? 8 : 3, shift * 5);
        }
}
Test(kernels, copies_move_every_bit_and_nothing_else) { each_kernel(is_copy, check_copies); }
