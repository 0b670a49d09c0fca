// SPDX-License-Identifier: Apache-2.0
/* Which groups of training jobs fit, and what comes in again when the others took less than was thought. */
#include <criterion/criterion.h>

#include "src/train/train_study.h"

/* 40, 30 and 100 s: four jobs of 10 s, six on two seats, ten. */
static struct nb_train_budget budget_of(struct nb_train_share shares[3]) {
    shares[0] = (struct nb_train_share){.job_s = 10, .n_left = 4, .n_seats = 1};
    shares[1] = (struct nb_train_share){.job_s = 10, .n_left = 6, .n_seats = 2};
    shares[2] = (struct nb_train_share){.job_s = 10, .n_left = 10, .n_seats = 1};
    return (struct nb_train_budget){shares, 3};
}

Test(train_budget, the_most_expensive_is_left_out_until_the_others_fit) {
    struct nb_train_share s[3];
    struct nb_train_budget b = budget_of(s);
    cr_expect_float_eq(nb_train_budget_cost(&b), 170, 1e-9);
    nb_train_budget_fit(&b, 170, 0);
    cr_expect(!s[0].dropped && !s[1].dropped && !s[2].dropped);
    nb_train_budget_fit(&b, 169, 1);
    cr_expect(!s[0].dropped && !s[1].dropped && s[2].dropped);
    cr_expect_eq(s[2].dropped_at, 1);
    nb_train_budget_fit(&b, 30, 2);
    cr_expect(s[0].dropped && !s[1].dropped);
    cr_expect_eq(s[0].dropped_at, 2);
    cr_expect_float_eq(nb_train_budget_cost(&b), 30, 1e-9);
    cr_expect_float_eq(nb_train_budget_wanted(&b, 20), 120, 1e-9, "140 s are out, 20 are left");
}

Test(train_budget, what_took_less_than_guessed_makes_room) {
    struct nb_train_share s[3];
    struct nb_train_budget b = budget_of(s);
    nb_train_share_settle(&s[2], 2);
    cr_expect_float_eq(nb_train_share_cost(&s[2]), 18, 1e-9, "nine more as long as the first");
    nb_train_share_settle(&s[2], 4);
    cr_expect_float_eq(nb_train_share_cost(&s[2]), 24, 1e-9, "the mean of both");
    nb_train_budget_fit(&b, 94, 0);
    cr_expect(!s[0].dropped && !s[1].dropped && !s[2].dropped);
}

Test(train_budget, what_is_out_comes_in_once_when_it_fits) {
    struct nb_train_share s[3];
    struct nb_train_budget b = budget_of(s);
    nb_train_budget_fit(&b, 35, 0);
    cr_expect(s[0].dropped && s[2].dropped);
    s[1].n_left = 0;
    cr_expect_not(nb_train_budget_readmit(&b, 39));
    cr_expect(nb_train_budget_readmit(&b, 40), "the cheapest");
    cr_expect(!s[0].dropped && s[2].dropped);
    s[0].job_s = 50; /* and is longer than thought */
    nb_train_budget_fit(&b, 40, 3);
    cr_expect(s[0].dropped);
    cr_expect_not(nb_train_budget_readmit(&b, 99), "not again, and the other does not fit");
    cr_expect(nb_train_budget_readmit(&b, 100));
    cr_expect_not(s[2].dropped);
    cr_expect_not(nb_train_budget_readmit(&b, 1000));
    nb_train_budget_fit(&b, 0, 4);
    cr_expect_geq(nb_train_budget_wanted(&b, 1e9), 1);
}
