// SPDX-License-Identifier: Apache-2.0
/* No bit of a result depends on circumstances: the rows beside a row, the cut into ranges, the threads, what the CPU is said to be, padding,
 * alignment, or whether statistics are wanted. Of every fast kernel of rows, of all gradients and of BatchNorm; a new one needs no edit
 * here. test_kernels.c says that the bits are right. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/gradient.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/registry.h"
#include "src/measure/buffers.h"
#include "src/measure/pool.h"
#include "tests/support/cases.h"
#include "tests/support/plans.h"
#include "tests/support/sparsely.h"

TestSuite(circumstances, .init = load_kernels);

static const struct manner {
    const char *what;
    struct nb_tuning tuning; /* of l1_bytes 0: none */
    int64_t range;           /* 0: whole */
    int32_t threads;
} manners[] = {
    {"ranges of 1", {0}, 1, 2},
    {"no cache", {.l1_bytes = 1, .slab_bytes = 1}, 0, 1},
    {"no cache, ranges", {.l1_bytes = 1, .slab_bytes = 1}, 5, 2},
    {"out of the second cache", {.l1_bytes = 1 << 15, .l2_bytes = 1 << 10, .slab_bytes = 1 << 26}, 2, 1},
    {"big cache, ranges", {.l1_bytes = 1 << 24, .slab_bytes = 1 << 26}, 4, 16},
    {"streaming", {.l1_bytes = 1 << 15, .l2_bytes = 1 << 20, .stream_bytes = 1, .slab_bytes = 1}, 0, 1},
    {"streaming singly", {.l1_bytes = 1, .stream_bytes = 1, .slab_bytes = 1 << 26}, 3, 16},
    {"a small cache, tiles", {.l1_bytes = 1 << 10, .l2_bytes = 1 << 18, .column_tile = 64}, 37, 1},
    {"a big first cache", {.l1_bytes = 1 << 20, .l2_bytes = 1 << 12}, 7, 16},
};
enum { N_MANNERS = sizeof manners / sizeof manners[0] };
static const struct manner plain = {.what = "plain", .threads = 1};

/* Of the outputs that a caller may leave out. */
enum { STATISTICS = 1, DX = 2, DGAMMA = 4, DBETA = 8, EVERYTHING = 15 };

struct subject {
    const struct nb_entry *entry;
    struct nb_case c;
    struct nb_inputs in;
    uint32_t native; /* instructions beyond the variant's own */
    size_t scratch_bytes;
    const char *key;
};

static struct nb_call call_of(const struct subject *s, const struct manner *m, struct nb_tuning *tuning) {
    struct nb_call call;
    nb_case_call(&s->c, &call);
    *tuning = m->tuning;
    tuning->struct_size = sizeof *tuning;
    tuning->native = s->native;
    call.tuning = m->tuning.l1_bytes || s->native ? tuning : NULL;
    call.n_threads = m->threads;
    return call;
}

static void lay_out(const struct subject *s, struct nb_buffers *b, enum nb_placement placement, int64_t pad) {
    const struct nb_layout_request q = {.wants = nb_buffers_wants(&s->c, true),
                                        .placement = placement,
                                        .rows = s->in.rows,
                                        .pad = pad,
                                        .n_stats = s->c.op == NB_OP_BATCHNORM ? s->in.n_params : s->in.rows,
                                        .saved = nb_inputs_saved(&s->in, &s->c),
                                        .scratch_bytes = s->scratch_bytes,
                                        .poison = NB_POISON_NAN};
    cr_assert_eq(nb_buffers_init(b, &s->in, &q), 0);
}

/* The tensors of one row alone. */
static void keep_row(struct nb_call *call, const struct nb_buffers *b, int64_t row) {
    const struct nb_tensor *t = b->tensors;
    call->rows = 1;
    call->x = nb_tensor_row(&t[NB_T_X], row);
    call->y = nb_tensor_row(&t[NB_T_Y], row);
    if (call->residual) call->residual = nb_tensor_row(&t[NB_T_RESIDUAL], row);
    if (call->residual_out) call->residual_out = nb_tensor_row(&t[NB_T_RESIDUAL_OUT], row);
    if (call->mean) call->mean += row;
    if (call->rstd) call->rstd += row;
}

/* row: that one alone; -1: all. Scratch ends where any call's would end, so that what is written behind it is seen. */
static void call_in(const struct subject *s, struct nb_buffers *b, const struct manner *m, unsigned wanted,
                    int64_t row) {
    const struct nb_kernel *k = s->entry->kernel;
    struct nb_tuning tuning;
    struct nb_call call = call_of(s, m, &tuning);
    char where[200] = "";
    if (row >= 0) call.rows = 1;
    const size_t bytes = nb_kernel_scratch_bytes(k, &call);
    cr_assert_leq(bytes, s->scratch_bytes, "%s, %s", k->variant, m->what);
    nb_buffers_poison_outputs(b);
    nb_buffers_attach(b, &s->c, &call);
    if (row >= 0) keep_row(&call, b, row);
    if (call.scratch) call.scratch = (char *)call.scratch + (s->scratch_bytes - bytes) / 64 * 64;
    if (s->c.pass == NB_FORWARD && !(wanted & STATISTICS)) call.mean = call.rstd = NULL;
    if (!(wanted & DX)) call.dx = NULL;
    if (!(wanted & DGAMMA)) call.dgamma = NULL;
    if (!(wanted & DBETA)) call.dbeta = NULL;
    cr_assert_eq(nb_run_in_ranges(k, &call, m->range), 0);
    const enum nb_damage damage = nb_buffers_verify(b, where, sizeof where);
    cr_expect_eq(damage, NB_INTACT, "%s, %s, outputs %u, row %lld: %s", s->key, m->what, wanted, (long long)row, where);
}

/* The same bits; where an element is NaN, as in rows whose squares overflow, any NaN. */
static bool same_row(const void *a, const void *b, const struct nb_tensor *t, enum nb_dtype dtype) {
    if (memcmp(a, b, (size_t)t->cols * t->item) == 0) return true;
    const enum nb_dtype of = t->item == nb_formats[dtype].bytes ? dtype : NB_F32;
    for (int64_t i = 0; i < t->cols; i++)
        if (nb_bits(a, i, of) != nb_bits(b, i, of) && !(isnan(nb_get(a, i, of)) && isnan(nb_get(b, i, of))))
            return false;
    return true;
}

/* Of the row, or of all. */
static void expect_same(const struct subject *s, const struct nb_buffers *want, const struct nb_buffers *got,
                        int64_t row, const struct manner *m, unsigned wanted) {
    static const enum nb_tensor_id outputs[] = {
        NB_T_Y,  NB_T_RESIDUAL_OUT, NB_T_MEAN,  NB_T_RSTD,  NB_T_RUNNING_MEAN_OUT, NB_T_RUNNING_VAR_OUT,
        NB_T_DX, NB_T_DGAMMA,       NB_T_DBETA, NB_T_DALPHA};
    for (size_t o = 0; o < sizeof outputs / sizeof outputs[0]; o++) {
        const struct nb_tensor *a = &want->tensors[outputs[o]], *b = &got->tensors[outputs[o]];
        const bool of_statistics = outputs[o] == NB_T_MEAN || outputs[o] == NB_T_RSTD;
        if (!b->data || (of_statistics && (row >= 0 || !(wanted & STATISTICS)))) continue;
        for (int64_t r = row < 0 ? 0 : row; r < (row < 0 ? b->rows : row + 1); r++)
            cr_expect(same_row(nb_tensor_row(a, r), nb_tensor_row(b, r), b, s->in.dtype),
                      "%s, %s, native %u, pad %lld%s: tensor %d, row %lld differs", s->key, m->what, s->native,
                      (long long)got->request.pad, row < 0 ? "" : ", alone", (int)outputs[o], (long long)r);
    }
    for (int i = NB_T_MEAN; row >= 0 && i <= NB_T_RSTD; i++) {
        const float *a = want->tensors[i].data, *b = got->tensors[i].data;
        if (b)
            cr_expect(a[row] == b[row] || (isnan(a[row]) && isnan(b[row])), "%s: statistic of row %lld", s->key,
                      (long long)row);
    }
}

static void measure_scratch(struct subject *s) {
    struct nb_tuning tuning;
    s->scratch_bytes = 0;
    for (size_t m = 0; m <= N_MANNERS; m++) {
        const struct nb_call call = call_of(s, m < N_MANNERS ? &manners[m] : &plain, &tuning);
        const size_t bytes = nb_kernel_scratch_bytes(s->entry->kernel, &call);
        if (bytes > s->scratch_bytes) s->scratch_bytes = bytes;
    }
}

static void check_manners(struct subject *s, size_t turn) {
    struct nb_buffers want released_by(nb_buffers_release), b;
    struct nb_tuning tuning;
    measure_scratch(s);
    lay_out(s, &want, NB_PLACE_INTERIOR, 0);
    call_in(s, &want, &plain, EVERYTHING, -1);
    for (size_t p = 0; p < 2; p++) {
        const enum nb_placement placement = p == 0 ? NB_PLACE_INTERIOR : turn % 2 ? NB_PLACE_END : NB_PLACE_START;
        lay_out(s, &b, placement, (int64_t)(turn + p) % 4 * 5);
        for (size_t m = 0; m < N_MANNERS; m++) {
            if ((m + turn) % 2 != p) continue;
            const unsigned wanted = (m + turn) % 4 < 2 ? EVERYTHING : EVERYTHING & ~STATISTICS;
            call_in(s, &b, &manners[m], wanted, -1);
            expect_same(s, &want, &b, -1, &manners[m], wanted);
        }
        const struct nb_call call = call_of(s, &manners[1], &tuning);
        const bool rows_alone =
            s->c.pass == NB_FORWARD && s->c.op != NB_OP_BATCHNORM && nb_kernel_row_local(s->entry->kernel, &call);
        for (int64_t row = (int64_t)p; rows_alone && row < s->in.rows; row += 2) {
            call_in(s, &b, &manners[1], EVERYTHING, row);
            expect_same(s, &want, &b, row, &manners[1], EVERYTHING);
        }
        nb_buffers_release(&b);
    }
}

static bool differs_by_itself(const struct nb_kernel *k) {
    const size_t n = strlen(k->name);
    const bool is_fast = n > 5 && strcmp(k->name + n - 5, "_fast") == 0;
    return (is_fast || k->pass == NB_BACKWARD || k->op == NB_OP_BATCHNORM) && k->op != NB_OP_COPY &&
           !nb_cpu_refuses(k->cpu_features, k->width);
}

/* Formula and inputs of the turn; by the CPU's own roundings too, where the kernel has them. */
static void check_shape(const struct nb_entry *entry, const char *shape, size_t turn) {
    struct subject s = {.entry = entry};
    const uint32_t native = entry->kernel->dtype == NB_BF16 ? nb_cpu_light()->features & NB_CPU_AVX512BF16 : 0;
    if (!kernel_case(&s.c, entry, shape, turn)) return;
    cr_assert_eq(nb_inputs_init(&s.in, &s.c), 0);
    s.key = key_of(&s.c);
    if (turn % 4 && s.c.pass == NB_FORWARD) fill_with_kinds(&s.in, &s.c, (int)turn * 5);
    cr_assert_eq(nb_saved_statistics_add(&s.in, &s.c), 0);
    check_manners(&s, turn);
    s.native = native;
    if (native) check_manners(&s, turn);
    nb_inputs_release(&s.in);
}

static const char *const of_rows[] = {
    "9x1",    "5x2",   "8x3",   "2x5",    "4x7",    "9x8",     "3x9",     "6x12",    "7x15",    "9x16",
    "2x17",   "9x24",  "8x31",  "9x32",   "5x33",   "9x39",    "7x47",    "9x63",    "26x64",   "26x65",
    "9x71",   "9x96",  "8x100", "9x127",  "9x128",  "9x129",   "5x200",   "9x256",   "26x257",  "9x384",
    "26x512", "9x531", "9x768", "9x1031", "9x4165", "3x16384", "1x20011", "3x16391", "2x16640", "4x16384"};
static const char *const of_sums[] = {"1x1",   "3x2",    "5x7",    "1x33",   "9x16",   "4x65",    "70x31", "33x129",
                                      "9x300", "17x257", "2x1031", "3x4165", "300x37", "130x130", "2000x3"};
static const char *const of_channels[] = {"nchw:1x40x1x2",   "nchw:64x70x1x1",  "nhwc:3x5x7x7",   "nchw:9x33x1x15",
                                          "nchw:300x3x1x2",  "nhwc:5x20x2x30",  "nchw:2x2x1x513", "nhwc:2x1x9x130",
                                          "nchw:1x3x1x7000", "nchw:2x17x1x128", "nhwc:350x9x1x1", "nchw:1x3x1x17000"};

/* Every kernel meets every shape in one of its variants at least, and each variant one in so many. */
static void check_shapes(const struct nb_entry *entry, size_t variant) {
    const struct nb_kernel *k = entry->kernel;
    const bool channels = k->op == NB_OP_BATCHNORM, backward = k->pass == NB_BACKWARD;
    const char *const *shapes = channels ? of_channels : backward ? of_sums : of_rows;
    const size_t n = channels   ? sizeof of_channels / sizeof of_channels[0]
                     : backward ? sizeof of_sums / sizeof of_sums[0]
                                : sizeof of_rows / sizeof of_rows[0];
    const size_t step = (size_t)one_in(2) * (size_t)sparsely();
    for (size_t i = variant % step; i < n; i += step) check_shape(entry, shapes[i], i + variant);
}

ParameterizedTestParameters(circumstances, change_no_bit) {
    static uint32_t ops[NB_N_OPS];
    for (uint32_t op = 0; op < NB_N_OPS; op++) ops[op] = op;
    return cr_make_param_array(uint32_t, ops, NB_N_OPS);
}
ParameterizedTest(uint32_t *op, circumstances, change_no_bit) {
    size_t variant = 0;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        if (entry->kernel->op == *op && differs_by_itself(entry->kernel)) check_shapes(entry, variant++);
    }
    nb_registry_release();
}

/* ---- outputs in every choice ------------------------------------------------------------------------------------- */

static int64_t parameter_of(const struct nb_case *c, int64_t row, int64_t col) {
    return c->shape.layout == NB_NCHW ? row % c->shape.c : col;
}

/* dy of 2^row where rows are few, else of ones, whose sums f32 has exactly in whatever order they are taken. Returns those; owned. */
static double *set_dy(struct nb_inputs *in, const struct nb_case *c) {
    double *sums = calloc((size_t)in->n_params, sizeof *sums);
    for (int64_t row = 0; row < in->rows; row++)
        for (int64_t col = 0; col < in->cols; col++) {
            const double dy = in->rows < 10 ? ldexp(1, (int)row) : 1;
            nb_set(in->dy, row * in->cols + col, in->dtype, dy);
            sums[parameter_of(c, row, col)] += dy;
        }
    return sums;
}

/* Few rows are summed in an order of their own, and which outputs are wanted decides where sums lie. */
static void expect_near(const struct subject *s, const struct nb_tensor *want, const struct nb_tensor *got,
                        const char *name, unsigned wanted) {
    const enum nb_dtype dtype = want->item == nb_formats[s->in.dtype].bytes ? s->in.dtype : NB_F32;
    double most = 0;
    for (int64_t i = 0; i < want->rows * want->cols; i++) /* k of 1 makes a huge rstd, and Inf of f16 */
        if (isfinite(nb_get(nb_tensor_row(want, i / want->cols), i % want->cols, dtype)))
            most = fmax(most, fabs(nb_get(nb_tensor_row(want, i / want->cols), i % want->cols, dtype)));
    for (int64_t i = 0; i < want->rows * want->cols; i++) {
        const double a = nb_get(nb_tensor_row(want, i / want->cols), i % want->cols, dtype);
        const double b = nb_get(nb_tensor_row(got, i / want->cols), i % want->cols, dtype);
        cr_expect(a == b || fabs(a - b) <= 0x1p-17 * most + nb_ulp(a, dtype), "%s, outputs %u: %s %lld is %g, not %g",
                  s->key, wanted, name, (long long)i, b, a);
    }
}

static void check_choices(const struct nb_entry *entry, const char *shape) {
    static const struct {
        unsigned bit;
        enum nb_tensor_id id;
        const char *name;
    } outputs[] = {{DX, NB_T_DX, "dx"}, {DGAMMA, NB_T_DGAMMA, "dgamma"}, {DBETA, NB_T_DBETA, "dbeta"}};
    struct subject s = {.entry = entry};
    struct nb_buffers want, b;
    if (!kernel_case(&s.c, entry, shape, 0)) return;
    cr_assert_eq(nb_inputs_init(&s.in, &s.c), 0);
    s.key = key_of(&s.c);
    double *sums freed = set_dy(&s.in, &s.c);
    cr_assert_eq(nb_saved_statistics_add(&s.in, &s.c), 0);
    measure_scratch(&s);
    lay_out(&s, &want, NB_PLACE_INTERIOR, 0);
    lay_out(&s, &b, NB_PLACE_END, 0);
    call_in(&s, &want, &plain, EVERYTHING, -1);
    for (unsigned wanted = DX; wanted <= EVERYTHING; wanted += DX) {
        call_in(&s, &b, &plain, wanted, -1);
        for (int o = 0; o < 3; o++)
            if (wanted & outputs[o].bit && want.tensors[outputs[o].id].data)
                expect_near(&s, &want.tensors[outputs[o].id], &b.tensors[outputs[o].id], outputs[o].name, wanted);
        const float *dbeta = wanted & DBETA ? b.tensors[NB_T_DBETA].data : NULL;
        for (int64_t i = 0; dbeta && s.c.style == NB_FUSED && i < s.in.n_params; i++)
            cr_expect_eq(dbeta[i], sums[i], "%s, outputs %u: dbeta %lld is %g, not %g", s.key, wanted, (long long)i,
                         dbeta[i], sums[i]);
    }
    nb_buffers_release(&want);
    nb_buffers_release(&b);
    nb_inputs_release(&s.in);
}

Test(circumstances, gradients_are_given_in_any_choice) {
    static const char *const rows[] = {"1x1",  "2x5",  "3x8",  "4x17", "5x40", "6x3",
                                       "7x33", "8x16", "9x24", "3x9",  "2x31", "4200x3"};
    static const char *const channels[] = {"nchw:9x3x1x5", "nhwc:9x1x1x33", "nchw:700x2x1x3", "nchw:1x1x1x70001",
                                           "nhwc:530x1x1x17"};
    int n = 0;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        const bool batch = entry->kernel->op == NB_OP_BATCHNORM;
        if (entry->kernel->pass != NB_BACKWARD || !differs_by_itself(entry->kernel)) continue;
        for (size_t j = 0; j < (batch ? 5 : 12); j++, n++) check_choices(entry, batch ? channels[j] : rows[j]);
    }
    cr_expect_gt(n, 0);
}
