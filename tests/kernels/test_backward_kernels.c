// SPDX-License-Identifier: Apache-2.0
/* Every backward kernel over rows against its formula in plain double: on every row length from 1 on, padded, misaligned, cut into ranges,
 * for one thread and for more, on machines of all kinds. Nothing of the harness's own oracle is used, and a new kernel needs no edit. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/kernel_fields.h"
#include "src/core/registry.h"
#include "src/measure/pool.h"
#include "tests/support/gradients.h"
#include "tests/support/sparsely.h"

enum { BEHIND_SCRATCH = 256 };

struct kind {
    uint32_t op, dtype;
};

static bool is_kind(const struct nb_kernel *k, const struct kind *kind) {
    return k->pass == NB_BACKWARD && k->op == kind->op && k->dtype == kind->dtype && k->stats_dtype == NB_STATS_F32 &&
           !nb_cpu_refuses(k->cpu_features, k->width);
}

/* Asked as the harness does, before the tensors are there. */
static size_t scratch_bytes(const struct nb_kernel *k, const struct nb_call *call) {
    struct nb_call bare = *call;
    bare.x = bare.dy = bare.dresidual_out = bare.gamma = NULL;
    bare.dx = NULL;
    bare.dgamma = bare.dbeta = bare.mean = bare.rstd = NULL;
    return nb_kernel_scratch_bytes(k, &bare);
}
/* Bytes that read as NaN. */
static unsigned char *scratch_for(const struct nb_kernel *k, const struct nb_call *call) {
    const size_t bytes = scratch_bytes(k, call) + BEHIND_SCRATCH;
    unsigned char *const scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    cr_assert_not_null(scratch);
    return memset(scratch, 0xff, bytes);
}

/* Hash of the outputs for ranges of so many units (0: whole), on so many threads. */
static uint64_t run(struct gradient_problem *p, const struct nb_kernel *k, int64_t range, int threads,
                    const struct nb_tuning *tuning) {
    struct nb_call call = p->call;
    call.n_threads = threads;
    call.tuning = tuning;
    unsigned char *const scratch = scratch_for(k, &call);
    const size_t bytes = scratch_bytes(k, &call);
    size_t behind = 0;
    call.scratch = scratch;
    gradient_problem_poison(p);
    cr_expect_eq(nb_run_in_ranges(k, &call, range), 0);
    for (size_t i = bytes; i < bytes + BEHIND_SCRATCH; i++) behind += scratch[i] != 0xff;
    cr_expect_eq(behind, 0, "%s: wrote behind its scratch", k->variant);
    free(scratch);
    return gradient_problem_hash(p);
}

static double column_chain(const struct nb_kernel *k, const struct nb_call *call) {
    return k->column_chain ? (double)k->column_chain(call) : (double)call->rows;
}

/* The CPU's own roundings, which may change bits, but not with the caches or the threads. */
static void check_native(struct gradient_problem *p, const struct nb_kernel *k) {
    const struct nb_call *call = &p->call;
    const uint32_t native = nb_cpu_light()->features & NB_CPU_AVX512BF16;
    const struct nb_tuning small = {.native = native, .l1_bytes = 1 << 10, .stream_bytes = 1};
    const struct nb_tuning usual = {.native = native}, large = {.native = native, .l1_bytes = 1 << 20};
    if (!native || !(k->flags & NB_FLAG_FLUSHES)) return;
    const uint64_t whole = run(p, k, 0, 1, &usual);
    const double error = gradient_problem_error(p, (double)nb_kernel_chain(k, call), column_chain(k, call));
    cr_expect_leq(error, 1, "%s, %ldx%ld, native: %g of what is allowed", k->variant, (long)call->rows,
                  (long)call->cols, error);
    cr_expect_eq(gradient_problem_damage(p), 0, "%s, %ldx%ld, native: wrote elsewhere", k->variant, (long)call->rows,
                 (long)call->cols);
    cr_expect_eq(run(p, k, 2, 2, &small), whole, "%s, %ldx%ld: native, out of cache", k->variant, (long)call->rows,
                 (long)call->cols);
    cr_expect_eq(run(p, k, 0, 1, &large), whole, "%s, %ldx%ld: native, in cache", k->variant, (long)call->rows,
                 (long)call->cols);
}

/* Against the formula, and against itself in other circumstances. */
static void check(struct gradient_problem *p, const struct nb_kernel *k, int64_t turn) {
    static const struct nb_tuning machines[] = {
        {.l1_bytes = 32 << 10, .l2_bytes = 1 << 20},
        {.l1_bytes = 48 << 10, .l2_bytes = 1 << 20, .stream_bytes = 1},
        {.l1_bytes = 1 << 10, .l2_bytes = 1 << 18, .column_tile = 64},
        {.l1_bytes = 1 << 20, .l2_bytes = 1 << 12},
    };
    const struct nb_call *call = &p->call;
    if (nb_kernel_refuses(k, &call->formula) || nb_kernel_applicable(k, call)) return;
    const uint64_t whole = run(p, k, 0, 1, NULL);
    const double error = gradient_problem_error(p, (double)nb_kernel_chain(k, call), column_chain(k, call));
    cr_expect_leq(error, 1, "%s, %ldx%ld, turn %ld: %g of what is allowed", k->variant, (long)call->rows,
                  (long)call->cols, (long)turn, error);
    cr_expect_eq(gradient_problem_damage(p), 0, "%s, %ldx%ld: wrote elsewhere", k->variant, (long)call->rows,
                 (long)call->cols);
    cr_expect_eq(run(p, k, 1, 1, NULL), whole, "%s, %ldx%ld: ranges of 1", k->variant, (long)call->rows,
                 (long)call->cols);
    cr_expect_eq(run(p, k, 3, 2, NULL), whole, "%s, %ldx%ld: 2 threads", k->variant, (long)call->rows,
                 (long)call->cols);
    const size_t machine = (size_t)turn % 7 % (sizeof machines / sizeof machines[0]);
    cr_expect_eq(run(p, k, 2, turn % 2 ? 16 : 1, &machines[machine]), whole, "%s, %ldx%ld: machine %zu", k->variant,
                 (long)call->rows, (long)call->cols, machine);
    check_native(p, k);
}

static int check_all(const struct kind *kind, int64_t rows, int64_t cols, int64_t turn) {
    int n = 0;
    struct gradient_problem p;
    gradient_problem_init(&p, kind->op, kind->dtype, rows, cols, turn);
    for (size_t i = 0; i < nb_registry_size(); i++)
        if (is_kind(nb_registry_at(i)->kernel, kind)) {
            check(&p, nb_registry_at(i)->kernel, turn);
            n++;
        }
    gradient_problem_release(&p);
    return n;
}

static const uint32_t row_ops[] = {NB_OP_RMSNORM, NB_OP_PRMSNORM,    NB_OP_LAYERNORM,
                                   NB_OP_L2NORM,  NB_OP_ADD_RMSNORM, NB_OP_ADD_LAYERNORM};
enum { N_ROW_OPS = sizeof row_ops / sizeof row_ops[0] };

static struct criterion_test_params kinds_of_rows(void) {
    struct kind *kinds = cr_malloc(N_ROW_OPS * NB_N_DTYPES * sizeof *kinds);
    for (uint32_t i = 0; i < N_ROW_OPS * NB_N_DTYPES; i++)
        kinds[i] = (struct kind){row_ops[i / NB_N_DTYPES], i % NB_N_DTYPES};
    return cr_make_param_array(struct kind, kinds, N_ROW_OPS * NB_N_DTYPES);
}

ParameterizedTestParameters(backward_kernels, keep_to_the_formula) { return kinds_of_rows(); }
ParameterizedTest(struct kind *kind, backward_kernels, keep_to_the_formula) {
    static const int64_t sizes[][2] = {{3, 1025},  {1, 3333},  {2, 4999},  {70, 1031}, {33, 2050},
                                       {1000, 37}, {1000, 3},  {300, 64},  {40, 512},  {5, 20001},
                                       {2, 4096},  {17, 3072}, {128, 129}, {600, 200}};
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (int64_t n = 1; n <= 300; n += n < 70 ? 1 : sparsely())
        if (check_all(kind, n < 20 || n % 4 == 0 ? 1 + n * 7 % 70 : 1 + n % 3, n, n) == 0) break;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int64_t turn = sparsely() > 1 ? (int64_t)i % 4 : 0; turn < 4; turn += sparsely())
            check_all(kind, sizes[i][0], sizes[i][1], (int64_t)i + 5 * turn);
}

/* ---- outputs in every choice ---------------------------------------------------------------------------------------- */

enum { WANTS_DX = 1, WANTS_DGAMMA = 2, WANTS_DBETA = 4, WANTS_ALL = 7 };

static void check_choice(struct gradient_problem *p, const struct nb_kernel *k, unsigned wanted) {
    const struct nb_call all = p->call;
    struct nb_call *call = &p->call;
    if (!(wanted & WANTS_DX)) call->dx = NULL;
    if (!(wanted & WANTS_DGAMMA)) call->dgamma = NULL;
    if (!(wanted & WANTS_DBETA)) call->dbeta = NULL;
    run(p, k, 0, 1, NULL);
    const double error = gradient_problem_error(p, (double)nb_kernel_chain(k, call), column_chain(k, call));
    cr_expect_leq(error, 1, "%s, %ldx%ld, outputs %u: %g of what is allowed", k->variant, (long)call->rows,
                  (long)call->cols, wanted, error);
    cr_expect_eq(gradient_problem_damage(p), 0, "%s, %ldx%ld, outputs %u: wrote elsewhere", k->variant,
                 (long)call->rows, (long)call->cols, wanted);
    *call = all;
}

/* Once more with dy of 2^row: f32 has their sums exactly, in whatever order they are taken. */
static void check_rows_counted(struct gradient_problem *p, const struct nb_kernel *k, unsigned wanted) {
    float *const dgamma = p->call.dgamma;
    if (!(wanted & WANTS_DGAMMA)) p->call.dgamma = NULL;
    run(p, k, 0, 1, NULL);
    for (int64_t i = 0; i < p->call.cols; i++)
        cr_expect_eq(p->call.dbeta[i], (float)((1 << p->call.rows) - 1), "%s, %ldx%ld, outputs %u: dbeta[%ld] %g",
                     k->variant, (long)p->call.rows, (long)p->call.cols, wanted, (long)i, (double)p->call.dbeta[i]);
    p->call.dgamma = dgamma;
}

static void check_choices(const struct kind *kind, int64_t rows, int64_t cols) {
    static const int64_t turns[] = {0, 1, 12}; /* with gamma and beta: in f32, in x's dtype, 1 + gamma */
    struct gradient_problem p;
    gradient_problem_init(&p, kind->op, kind->dtype, rows, cols, turns[(rows + cols) % 3]);
    for (int powers = 0; powers < 2; powers++) {
        if (powers) gradient_problem_powers(&p);
        for (size_t i = 0; i < nb_registry_size(); i++) {
            const struct nb_kernel *k = nb_registry_at(i)->kernel;
            if (!is_kind(k, kind) || nb_kernel_refuses(k, &p.call.formula) || nb_kernel_applicable(k, &p.call))
                continue;
            for (unsigned wanted = 1; !powers && wanted <= WANTS_ALL; wanted++) check_choice(&p, k, wanted);
            for (unsigned wanted = WANTS_DX | WANTS_DBETA; powers && wanted <= WANTS_ALL; wanted += WANTS_DGAMMA)
                check_rows_counted(&p, k, wanted);
        }
    }
    gradient_problem_release(&p);
}

/* Few rows are summed in an order of their own, and which outputs are wanted decides where the sums lie. */
ParameterizedTestParameters(backward_kernels, give_outputs_in_any_choice) { return kinds_of_rows(); }
ParameterizedTest(struct kind *kind, backward_kernels, give_outputs_in_any_choice) {
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (int64_t rows = 1; rows <= 9; rows++)
        for (int64_t cols = 1; cols <= 40; cols++) check_choices(kind, rows, cols);
    nb_registry_release();
}

Test(backward_kernels, refuse_statistics_of_more_elements_than_a_row_has) {
    int n_checked = 0;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_kernel *k = nb_registry_at(i)->kernel;
        struct nb_call call = {.struct_size = sizeof call, .rows = 2, .cols = 8, .k = 9};
        if (k->op != NB_OP_PRMSNORM) continue;
        cr_expect_not_null(nb_kernel_applicable(k, &call), "%s: k = 9 of 8", k->variant);
        call.k = 8;
        cr_expect_null(nb_kernel_applicable(k, &call), "%s: k = 8 of 8", k->variant);
        n_checked++;
    }
    cr_expect_gt(n_checked, 0);
    nb_registry_release();
}

/* Sums that are taken in x's dtype stall at 256 in bf16 and at 2048 in f16. */
Test(backward_kernels, count_many_rows) {
    enum { ROWS = 16384, COLS = 5 };
    int n_checked = 0;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++)
        for (int op = 0; op < N_ROW_OPS; op++) {
            const struct kind kind = {row_ops[op], dtype};
            struct gradient_problem p;
            gradient_problem_init(&p, kind.op, kind.dtype, ROWS, COLS, 0);
            gradient_problem_ones(&p);
            for (size_t i = 0; i < nb_registry_size(); i++) {
                const struct nb_kernel *k = nb_registry_at(i)->kernel;
                if (!is_kind(k, &kind)) continue;
                run(&p, k, 0, 1, NULL);
                n_checked++;
                for (int c = 0; c < COLS; c++)
                    cr_expect_eq(p.call.dbeta[c], ROWS, "%s: %g", k->variant, (double)p.call.dbeta[c]);
            }
            gradient_problem_release(&p);
        }
    cr_expect_gt(n_checked, 0);
}
