// SPDX-License-Identifier: Apache-2.0
/* Buffers notice what a kernel does outside its tensors. */
#include "src/core/case.h"
#include "src/measure/buffers.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "src/plan/inputs.h"

/* What a test lays out. */
static struct nb_case c;
static struct nb_inputs in;
static struct nb_buffers b;

static void release(void) {
    nb_buffers_release(&b);
    nb_inputs_release(&in);
}
TestSuite(buffers, .fini = release);

static void lay_out(uint32_t op, enum nb_dtype dtype, int64_t rows, int64_t cols, enum nb_placement placement) {
    release();
    nb_case_init(&c);
    c.op = op;
    c.dtype = dtype;
    c.shape = (struct nb_shape){.layout = NB_ROWS, .rows = rows, .cols = cols};
    c.formula.affine = NB_AFFINE_GAMMA_BETA;
    struct nb_layout_request q = {.wants = nb_buffers_wants(&c, true),
                                  .placement = placement,
                                  .rows = c.shape.rows,
                                  .pad = c.pad,
                                  .n_stats = c.shape.rows,
                                  .scratch_bytes = 100,
                                  .seed = 7,
                                  .poison = NB_POISON_NAN};
    cr_assert_eq(nb_inputs_init(&in, &c), 0);
    cr_assert_eq(nb_buffers_init(&b, &in, &q), 0);
}

static void expect_found(enum nb_damage damage, const char *wanted) {
    char where[200] = "";
    cr_expect_eq(nb_buffers_verify(&b, where, sizeof where), damage, "%s", where);
    if (damage != NB_INTACT) cr_expect_str_eq(where, wanted);
}

static const enum nb_placement placements[] = {NB_PLACE_INTERIOR, NB_PLACE_END, NB_PLACE_START, NB_PLACE_SLAB};

Test(buffers, hold_the_inputs_in_every_placement_and_dtype) {
    for (int dtype = 0; dtype < NB_N_DTYPES; dtype++)
        for (size_t p = 0; p < 4; p++) {
            lay_out(NB_OP_ADD_RMSNORM, (enum nb_dtype)dtype, 5, 37, placements[p]);
            const struct nb_tensor *x = &b.tensors[NB_T_X];
            for (int64_t r = 0; r < 5; r++)
                cr_assert_arr_eq(nb_tensor_row(x, r), (unsigned char *)in.x + (size_t)r * 37 * x->item, 37 * x->item);
            expect_found(NB_INTACT, "");
        }
}

Test(buffers, notice_a_byte_written_beside_the_scratch) {
    char where[200];
    for (size_t p = 0; p < 4; p++) {
        lay_out(NB_OP_RMSNORM, NB_BF16, 4, 33, placements[p]);
        unsigned char *scratch = b.tensors[NB_T_SCRATCH].data;
        memset(scratch, 1, 100);
        cr_assert_eq(nb_buffers_verify_margins(&b, where, sizeof where), NB_INTACT);
        scratch[100] ^= 1;
        expect_found(NB_DAMAGED_OUTSIDE, "wrote behind scratch");
        cr_assert_eq(nb_buffers_verify_margins(&b, where, sizeof where), NB_DAMAGED_OUTSIDE);
        nb_buffers_fill(&b);
        expect_found(NB_INTACT, "");
    }
}

Test(buffers, are_aligned_for_timing_and_misaligned_for_checking) {
    lay_out(NB_OP_RMSNORM, NB_F32, 4, 33, NB_PLACE_SLAB);
    cr_assert_eq((uintptr_t)b.tensors[NB_T_X].data % 64, 0);
    cr_assert_eq((uintptr_t)b.tensors[NB_T_SCRATCH].data % 64, 0);
    lay_out(NB_OP_RMSNORM, NB_F32, 4, 33, NB_PLACE_INTERIOR);
    cr_assert_neq((uintptr_t)b.tensors[NB_T_X].data % 8, 0);
    cr_assert_gt(b.tensors[NB_T_X].stride, 33);
}

Test(buffers, lie_beside_others_where_these_have_room) {
    enum { MORE = 40 };
    struct nb_buffers more[MORE + 1];
    bool after, beside;
    lay_out(NB_OP_RMSNORM, NB_F32, 4, 33, NB_PLACE_SLAB);
    struct nb_layout_request q = b.request;
    nb_buffers_release(&b);
    q.scratch_bytes = 100;
    cr_assert_eq(nb_buffers_init(&b, &in, &q), 0);
    q.room_bytes = MORE * nb_slab_bytes_at_most(&b); /* whatever the distances are that are drawn */
    nb_buffers_release(&b);
    cr_assert_eq(nb_buffers_init(&b, &in, &q), 0);
    q.room_bytes = 0;
    q.beside = &b;
    for (int i = 0; i <= MORE; i++) {
        q.seed++;
        if (i == MORE) q.scratch_bytes = 4 << 20; /* too large for the room */
        cr_assert_eq(nb_buffers_init(&more[i], &in, &q), 0);
        beside = more[i].slab.map == NULL;
        cr_expect_eq(beside, i < MORE);
        cr_expect_str_eq(nb_buffers_guard_of(&more[i], beside ? b.slab.map : more[i].slab.map, &after), "the buffers");
    }
    for (int i = 0; i <= MORE; i++) nb_buffers_poison_outputs(&more[i]);
    expect_found(NB_INTACT, "");
    for (int i = 0; i <= MORE; i++) {
        char where[200] = "";
        cr_expect_eq(nb_buffers_verify(&more[i], where, sizeof where), NB_INTACT, "%s", where);
        nb_buffers_release(&more[i]);
    }
}

Test(buffers, tell_what_was_written_and_where) {
    lay_out(NB_OP_RMSNORM, NB_F32, 4, 33, NB_PLACE_INTERIOR);
    const int64_t last = 3 * b.tensors[NB_T_Y].stride + 33;
    const struct {
        int64_t at;
        const char *where;
    } writes[] = {{-1, "wrote before y"}, {33, "wrote behind row 0 of y"}, {last, "wrote behind y"}};
    float *y = b.tensors[NB_T_Y].data;
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        const float saved = y[writes[i].at];
        y[writes[i].at] = 1;
        expect_found(NB_DAMAGED_OUTSIDE, writes[i].where);
        y[writes[i].at] = saved;
    }
    lay_out(NB_OP_LAYERNORM, NB_BF16, 3, 8, NB_PLACE_SLAB);
    ((uint16_t *)nb_tensor_row(&b.tensors[NB_T_X], 2))[7] ^= 1;
    expect_found(NB_DAMAGED_INPUT, "changed row 2 of its input x");
}

Test(buffers, name_the_tensor_of_a_page_that_faults) {
    bool after;
    lay_out(NB_OP_RMSNORM, NB_F32, 4, 33, NB_PLACE_END);
    const struct nb_tensor *x = &b.tensors[NB_T_X];
    cr_assert_str_eq(nb_buffers_guard_of(&b, nb_tensor_row(x, 4), &after), "x");
    cr_assert(after);
    cr_assert_str_eq(nb_buffers_guard_of(&b, b.own[NB_T_X].map, &after), "x");
    cr_assert_not(after);
    cr_assert_null(nb_buffers_guard_of(&b, &after, &after));
    lay_out(NB_OP_RMSNORM, NB_F32, 4, 33, NB_PLACE_START);
    nb_buffers_close_inputs(&b);
    cr_assert_str_eq(nb_buffers_input_of(&b, nb_tensor_row(&b.tensors[NB_T_X], 3)), "x");
    cr_assert_str_eq(nb_buffers_input_of(&b, b.tensors[NB_T_GAMMA_F32].data), "gamma");
    cr_assert_null(nb_buffers_input_of(&b, b.tensors[NB_T_Y].data));
    cr_assert_null(nb_buffers_input_of(&b, b.own[NB_T_X].map), "that is its guard");
    nb_buffers_poison_outputs(&b); /* they are open */
}

/* A sanitizer would turn the signal into an exit. */
static volatile float *x_at(enum nb_placement placement) {
    signal(SIGSEGV, SIG_DFL);
    lay_out(NB_OP_RMSNORM, NB_F32, 1, 33, placement);
    return b.tensors[NB_T_X].data;
}

Test(buffers, a_store_to_a_closed_input_faults, .signal = SIGSEGV) {
    volatile float *x = x_at(NB_PLACE_END);
    x[0] = x[1];
    nb_buffers_close_inputs(&b);
    x[0] = x[1];
}

Test(buffers, end_at_a_page_that_faults, .signal = SIGSEGV) { x_at(NB_PLACE_END)[33] = 0; }

Test(buffers, start_behind_a_page_that_faults, .signal = SIGSEGV) { x_at(NB_PLACE_START)[-1] = 0; }
