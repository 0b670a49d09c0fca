// SPDX-License-Identifier: Apache-2.0
/* The oracle against 700 bits on every row that the grading suite and the public bug inputs have. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/plan/config.h"
#include "src/plan/plan.h"
#include "tests/support/cases.h"
#include "tests/support/mpfr.h"
#include "tests/support/plans.h"
#include "tests/support/sparsely.h"

enum { MOST_ELEMENTS = 8192 }; /* longer inputs meet the oracle's code no other way; test_oracle.c has long rows */

/* What the mathematics of a case depends on: all of its key but the kernel and what only changes how it is evaluated. */
static char *mathematics(const struct nb_case *c) {
    struct nb_case same = *c;
    same.formula.root = NB_ROOT_MUL_RECIP;
    same.formula.cast = NB_CAST_AFTER;
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%u %u%s", c->op, c->dtype, strchr(key_of(&same), '/'));
    return text.text;
}

/* Rows with Inf and NaN follow IEEE evaluation, which test_oracle.c holds. */
static bool is_finite_data(const struct nb_case *c) {
    return strncmp(c->data, "inf", 3) != 0 && strncmp(c->data, "nan", 3) != 0;
}

static double worst_of_config(const char *name, int *n_compared, char *where, size_t where_n) {
    struct nb_config config;
    struct nb_plan plan;
    const struct nb_plan_options options = {0};
    struct nb_text_map seen = {0};
    double worst = 0;
    cr_assert_eq(nb_config_read(&config, name), 0);
    cr_assert_eq(nb_config_axis(&config, "width=scalar"), 0);
    cr_assert_eq(nb_plan_make(&plan, &config, &options), 0);
    char **texts = nb_alloc(plan.n_cases + 1, sizeof *texts);
    size_t n_texts = 0;
    for (size_t i = 0; i < plan.n_cases; i++) {
        struct problem p = {.c = plan.cases[i]};
        if (p.c.pass != NB_FORWARD) continue; /* test_gradient.c has the others */
        if (!is_finite_data(&p.c) || p.c.shape.rows * p.c.shape.cols > MOST_ELEMENTS) continue;
        char *text = mathematics(&p.c);
        if (nb_text_map_add(&seen, text, i) != NB_NOWHERE) {
            free(text);
            continue;
        }
        texts[n_texts++] = text;
        if (n_texts % sparsely()) continue;
        cr_assert_eq(nb_inputs_init(&p.in, &p.c), 0);
        const double deviation = worst_deviation_from_mpfr(&p);
        if (!(deviation <= worst)) {
            worst = deviation;
            snprintf(where, where_n, "%s", text);
        }
        nb_inputs_release(&p.in);
        ++*n_compared;
    }
    for (size_t i = 0; i < n_texts; i++) free(texts[i]);
    free(texts);
    nb_text_map_release(&seen);
    nb_plan_release(&plan);
    nb_config_release(&config);
    return worst;
}

Test(oracle_suite, agrees_with_mpfr_on_the_grading_suite_and_the_public_bug_inputs, .init = load_kernels,
     .fini = nb_registry_release) {
    static const char *const configs[] = {"stress", "bugs"};
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        char where[400] = "";
        int n = 0;
        const double worst = worst_of_config(configs[i], &n, where, sizeof where);
        fprintf(stderr, "oracle against MPFR, %s: %d distinct problems, off by at most %.2g f32 ulp (%s)\n", configs[i],
                n, worst, where);
        cr_expect_gt(n, 30 / sparsely());
        cr_expect_lt(worst, 1e-6, "%s: %g ulp", where, worst);
    }
}
