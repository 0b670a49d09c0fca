// SPDX-License-Identifier: Apache-2.0
/* Inputs: the same numbers from the same seed, the distribution that the name promises, rows as the files have them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/plan/inputs.h"
#include "tests/support/files.h"

static struct nb_case a_case(const char *data, uint32_t dtype, int64_t rows, int64_t cols) {
    struct nb_case c = {.op = NB_OP_LAYERNORM, .dtype = dtype, .seed = 1};
    c.shape.rows = rows;
    c.shape.cols = cols;
    snprintf(c.data, sizeof c.data, "%s", data);
    return c;
}

static void release_inputs(void *inputs) { nb_inputs_release(inputs); }

static struct nb_inputs filled(const struct nb_case *c) {
    struct nb_inputs in;
    cr_assert_eq(nb_inputs_init(&in, c), 0, "%s", c->data);
    release_at_end(&in, sizeof in, release_inputs);
    return in;
}

/* The first values of seed 1, worked out in another language from the definition: splitmix64 by integers, the quantile by
 * 40-digit arithmetic. They hold on every machine. */
Test(inputs, the_first_values_are_those_of_the_definition) {
    static const double want[] = {-0.16939004260198792, -0.18750544353598966, 0.099598953250669378,
                                  0.90493718391593836,  -0.96149664283825442, -1.053964351725537,
                                  0.7180879444287287,   -0.30973761708713793};
    struct nb_random r = nb_random_stream(1, 0);
    for (uint64_t i = 0; i < sizeof want / sizeof want[0]; i++)
        cr_expect_float_eq(nb_random_normal(r, i), want[i], 1e-13, "value %d is %.17g", (int)i, nb_random_normal(r, i));
}

struct moments {
    double mean, variance, third, fourth, n;
};

Test(inputs, every_distribution_fills_every_dtype_with_what_it_can_hold) {
    for (size_t d = 0; d < nb_n_distributions; d++) {
        const char *name = nb_distributions[d].least > 0 ? "values(1,-2,3e4)" : nb_distributions[d].name;
        bool special = strcmp(name, "inf") == 0 || strcmp(name, "nan") == 0;
        cr_expect_gt(strlen(nb_distributions[d].help), 10, "%s", name);
        for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++) {
            struct nb_case c = a_case(name, dtype, 5, 67);
            char *why = nb_inputs_refuse(&c);
            cr_expect_null(why, "%s: %s", name, why);
            struct nb_inputs in = filled(&c);
            int n_special = 0;
            for (int64_t i = 0; i < 5 * 67; i++) n_special += !isfinite(nb_get(in.x, i, (enum nb_dtype)dtype));
            cr_expect_eq(n_special, special ? 5 : 0, "%s in %s: %d", name, nb_formats[dtype].name, n_special);
        }
    }
}

Test(inputs, wrong_names_and_numbers_are_refused_with_a_hint) {
    static const struct {
        const char *data, *words;
    } wrong[] = {
        {"nromal", "did you mean normal?"},
        {"", "list data"},
        {"zeros(3)", "takes no number"},
        {"offset()", "write a number"},
        {"offset(x)", "write a number"},
        {"sparse(2)", "from 0 to 1"},
        {"scale(nan)", "the number must be from"},
        {"./no/such_x.npy", "No such file"},
        {"/tmp", "is not a file"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct nb_case c = a_case(wrong[i].data, NB_F32, 2, 384);
        char *why freed = nb_inputs_refuse(&c);
        cr_expect_not_null(why, "%s was taken", wrong[i].data);
        if (why) cr_expect(strstr(why, wrong[i].words), "wanted \"%s\" in: %s", wrong[i].words, why);
    }
    struct nb_case c = a_case("minilm_embed", NB_F32, 2, 100);
    char *why freed = nb_inputs_refuse(&c);
    cr_assert_not_null(why);
    cr_expect(strstr(why, "rows of 384 values, the shape has 100 columns"), "%s", why);
}

Test(inputs, only_independent_draws_count_as_random) {
    static const struct {
        const char *data;
        int random;
    } cases[] = {{"normal", 1},      {"uniform", 1},      {"scale(2)", 1},     {"scale(1e-30)", 0},
                 {"scale(1e30)", 0}, {"offset(1000)", 0}, {"zeros", 0},        {"massive", 0},
                 {"heavy_tail", 0},  {"minilm_embed", 0}, {"./some_x.npy", 0}, {"big", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nb_case c = a_case(cases[i].data, NB_F32, 2, 384);
        cr_expect_eq(nb_inputs_is_random(&c), cases[i].random, "%s", cases[i].data);
    }
}
