// SPDX-License-Identifier: Apache-2.0
/* Buffers notice what a kernel does outside its tensors. */
#include "src/measure/buffers.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "src/plan/inputs.h"

static struct nb_case make_case(uint32_t op, enum nb_dtype dtype, int64_t rows, int64_t cols) {
    struct nb_case c;
    nb_case_init(&c);
    c.op = op;
    c.dtype = dtype;
    c.shape = (struct nb_shape){.layout = NB_ROWS, .rows = rows, .cols = cols};
    c.formula.affine = NB_AFFINE_GAMMA_BETA;
    return c;
}

static struct nb_buffers lay_out(const struct nb_case *c, struct nb_inputs *in, enum nb_placement placement) {
    struct nb_buffers b;
    struct nb_layout_request q = {.wants = nb_buffers_wants(c, true),
                                  .placement = placement,
                                  .rows = c->shape.rows,
                                  .pad = c->pad,
                                  .n_stats = c->shape.rows,
                                  .scratch_bytes = 100,
                                  .seed = 7,
                                  .poison = NB_POISON_NAN};
    cr_assert_eq(nb_inputs_init(in, c), 0);
    cr_assert_eq(nb_buffers_init(&b, in, &q), 0);
    return b;
}

static const enum nb_placement placements[] = {NB_PLACE_INTERIOR, NB_PLACE_END, NB_PLACE_START, NB_PLACE_SLAB};

Test(buffers, hold_the_inputs_in_every_placement_and_dtype) {
    for (int dtype = 0; dtype < NB_N_DTYPES; dtype++)
        for (size_t p = 0; p < 4; p++) {
            struct nb_case c = make_case(NB_OP_ADD_RMSNORM, (enum nb_dtype)dtype, 5, 37);
            struct nb_inputs in;
            struct nb_buffers b = lay_out(&c, &in, placements[p]);
            const struct nb_tensor *x = &b.tensors[NB_T_X];
            for (int64_t r = 0; r < 5; r++)
                cr_assert_arr_eq(nb_tensor_row(x, r), (unsigned char *)in.x + (size_t)r * 37 * x->item, 37 * x->item);
            char where[200];
            cr_assert_eq(nb_buffers_verify(&b, where, sizeof where), NB_INTACT, "%s", where);
            nb_buffers_release(&b);
            nb_inputs_release(&in);
        }
}

Test(buffers, notice_a_byte_written_beside_the_scratch) {
    struct nb_case c = make_case(NB_OP_RMSNORM, NB_BF16, 4, 33);
    for (size_t p = 0; p < 4; p++) {
        struct nb_inputs in;
        struct nb_buffers b = lay_out(&c, &in, placements[p]);
        unsigned char *scratch = b.tensors[NB_T_SCRATCH].data;
        char where[200];
        memset(scratch, 1, 100);
        cr_assert_eq(nb_buffers_verify_margins(&b, where, sizeof where), NB_INTACT);
        scratch[100] ^= 1;
        cr_assert_eq(nb_buffers_verify(&b, where, sizeof where), NB_DAMAGED_OUTSIDE);
        cr_assert_str_eq(where, "wrote behind scratch");
        cr_assert_eq(nb_buffers_verify_margins(&b, where, sizeof where), NB_DAMAGED_OUTSIDE);
        nb_buffers_fill(&b);
        cr_assert_eq(nb_buffers_verify(&b, where, sizeof where), NB_INTACT);
        nb_buffers_release(&b);
        nb_inputs_release(&in);
    }
}

Test(buffers, refuse_more_scratch_than_there_are_addresses) {
    struct nb_case c = make_case(NB_OP_RMSNORM, NB_F32, 4, 33);
    struct nb_inputs in;
    struct nb_buffers b;
    cr_assert_eq(nb_inputs_init(&in, &c), 0);
    for (int p = 0; p < 4; p++) {
        struct nb_layout_request q = {.wants = nb_buffers_wants(&c, false),
                                      .placement = placements[p],
                                      .rows = 4,
                                      .n_stats = 4,
                                      .scratch_bytes = (size_t)-10,
                                      .poison = NB_POISON_NAN};
        cr_assert_eq(nb_buffers_init(&b, &in, &q), -1);
    }
    nb_inputs_release(&in);
}

Test(buffers, are_aligned_for_timing_and_misaligned_for_checking) {
    struct nb_case c = make_case(NB_OP_RMSNORM, NB_F32, 4, 33);
    struct nb_inputs in;
    struct nb_buffers b = lay_out(&c, &in, NB_PLACE_SLAB);
    cr_assert_eq((uintptr_t)b.tensors[NB_T_X].data % 64, 0);
    cr_assert_eq((uintptr_t)b.tensors[NB_T_SCRATCH].data % 64, 0);
    nb_buffers_release(&b);
    nb_inputs_release(&in);
    b = lay_out(&c, &in, NB_PLACE_INTERIOR);
    cr_assert_neq((uintptr_t)b.tensors[NB_T_X].data % 8, 0);
    cr_assert_gt(b.tensors[NB_T_X].stride, 33);
    nb_buffers_release(&b);
    nb_inputs_release(&in);
}

Test(buffers, tell_which_side_of_which_tensor_was_written) {
    struct nb_case c = make_case(NB_OP_RMSNORM, NB_F32, 4, 33);
    struct nb_inputs in;
    char where[200];
    struct nb_buffers b = lay_out(&c, &in, NB_PLACE_INTERIOR);
    float *y = b.tensors[NB_T_Y].data;
    float saved = y[-1];
    y[-1] = 1;
    cr_assert_eq(nb_buffers_verify(&b, where, sizeof where), NB_DAMAGED_OUTSIDE);
    cr_assert_str_eq(where, "wrote before y");
    y[-1] = saved;
    saved = y[33];
    y[33] = 1;
    cr_assert_eq(nb_buffers_verify(&b, where, sizeof where), NB_DAMAGED_OUTSIDE);
    cr_assert_str_eq(where, "wrote behind row 0 of y");
    y[33] = saved;
    y[3 * b.tensors[NB_T_Y].stride + 33] = 1;
    cr_assert_eq(nb_buffers_verify(&b, where, sizeof where), NB_DAMAGED_OUTSIDE);
    cr_assert_str_eq(where, "wrote behind y");
    nb_buffers_release(&b);
    nb_inputs_release(&in);
}

Test(buffers, tell_a_changed_input) {
    struct nb_case c = make_case(NB_OP_LAYERNORM, NB_BF16, 3, 8);
    struct nb_inputs in;
    char where[200];
    struct nb_buffers b = lay_out(&c, &in, NB_PLACE_SLAB);
    ((uint16_t *)nb_tensor_row(&b.tensors[NB_T_X], 2))[7] ^= 1;
    cr_assert_eq(nb_buffers_verify(&b, where, sizeof where), NB_DAMAGED_INPUT);
    cr_assert_str_eq(where, "changed row 2 of its input x");
    nb_buffers_release(&b);
    nb_inputs_release(&in);
}

Test(buffers, name_the_tensor_of_a_guard_page) {
    struct nb_case c = make_case(NB_OP_RMSNORM, NB_F32, 4, 33);
    struct nb_inputs in;
    bool after;
    struct nb_buffers b = lay_out(&c, &in, NB_PLACE_END);
    const struct nb_tensor *x = &b.tensors[NB_T_X];
    cr_assert_str_eq(nb_buffers_guard_of(&b, nb_tensor_row(x, 4), &after), "x");
    cr_assert(after);
    cr_assert_str_eq(nb_buffers_guard_of(&b, b.own[NB_T_X].map, &after), "x");
    cr_assert_not(after);
    cr_assert_null(nb_buffers_guard_of(&b, &after, &after));
    nb_buffers_release(&b);
    nb_inputs_release(&in);
}

Test(buffers, name_an_input_that_is_closed) {
    struct nb_case c = make_case(NB_OP_RMSNORM, NB_F32, 4, 33);
    struct nb_inputs in;
    struct nb_buffers b = lay_out(&c, &in, NB_PLACE_START);
    nb_buffers_close_inputs(&b);
    cr_assert_str_eq(nb_buffers_input_of(&b, nb_tensor_row(&b.tensors[NB_T_X], 3)), "x");
    cr_assert_str_eq(nb_buffers_input_of(&b, b.tensors[NB_T_GAMMA_F32].data), "gamma");
    cr_assert_null(nb_buffers_input_of(&b, b.tensors[NB_T_Y].data));
    cr_assert_null(nb_buffers_input_of(&b, b.own[NB_T_X].map), "that is its guard");
    nb_buffers_poison_outputs(&b); /* they are open */
    nb_buffers_release(&b);
    nb_inputs_release(&in);
}

Test(buffers, a_store_to_a_closed_input_faults, .signal = SIGSEGV) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn it into an exit */
    struct nb_case c = make_case(NB_OP_RMSNORM, NB_F32, 4, 33);
    struct nb_inputs in;
    struct nb_buffers b = lay_out(&c, &in, NB_PLACE_END);
    volatile float *x = b.tensors[NB_T_X].data;
    x[0] = x[1];
    nb_buffers_close_inputs(&b);
    x[0] = x[1];
}

Test(buffers, end_at_a_page_that_faults, .signal = SIGSEGV) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn it into an exit */
    struct nb_case c = make_case(NB_OP_RMSNORM, NB_F32, 1, 33);
    struct nb_inputs in;
    struct nb_buffers b = lay_out(&c, &in, NB_PLACE_END);
    volatile float *x = b.tensors[NB_T_X].data;
    cr_assert(x[32] == x[32]);
    x[33] = 0;
}

Test(buffers, start_behind_a_page_that_faults, .signal = SIGSEGV) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn it into an exit */
    struct nb_case c = make_case(NB_OP_RMSNORM, NB_F32, 1, 33);
    struct nb_inputs in;
    struct nb_buffers b = lay_out(&c, &in, NB_PLACE_START);
    volatile float *x = b.tensors[NB_T_X].data;
    x[-1] = 0;
}

Test(buffers, give_a_call_the_parameters_that_its_formula_asks_for) {
    struct nb_case c = make_case(NB_OP_LAYERNORM, NB_F16, 2, 16);
    struct nb_inputs in;
    struct nb_call call = {0};
    c.formula.param = NB_PARAM_X;
    struct nb_buffers b = lay_out(&c, &in, NB_PLACE_SLAB);
    nb_buffers_attach(&b, &c, &call);
    cr_assert_eq(call.gamma, b.tensors[NB_T_GAMMA_X].data);
    cr_assert_eq(call.beta, b.tensors[NB_T_BETA_X].data);
    c.formula.affine = NB_AFFINE_NONE;
    nb_buffers_attach(&b, &c, &call);
    cr_assert_null(call.gamma);
    cr_assert_null(call.beta);
    nb_buffers_release(&b);
    nb_inputs_release(&in);
}
