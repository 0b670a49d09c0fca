// SPDX-License-Identifier: Apache-2.0
/* What becomes of an improvement whose launches beside copies say that it is faster than they are, or that say nothing. */
#include <criterion/criterion.h>
#include <string.h>

#include "src/core/case.h"
#include "src/gate/gate.h"

static double ln_of_copies; /* the fastest copy's time against the candidate's; NaN: launches fail */
static int launches_made;   /* beside copies */
static double beside = 1;   /* how much longer the baseline takes beside the candidate */

static int launch_as_planned(const struct nb_gate_request *q, struct nb_gate_answer *out, cJSON **line) {
    *out = (struct nb_gate_answer){.status = isnan(ln_of_copies) ? NB_CRASHED : NB_OK};
    if (strncmp(q->keys[0], "baseline:", 9) == 0) {
        cr_expect_eq(q->n_files, q->n_arms);
        out->call_ns[0] = q->n_arms == 1 ? 1000 : 1000 * beside;
        return 0;
    }
    cr_assert_gt(q->n_arms, 1, "no copy beside the candidate");
    cr_assert_eq(strncmp(q->keys[0], "candidate:", 10), 0);
    for (int i = 1; i < q->n_arms; i++) {
        cr_expect_eq(strncmp(q->keys[i], "copy", 4), 0, "%s", q->keys[i]);
        out->launch[i].ratio = ln_of_copies + 0.01 * i + 0.001 * launches_made;
    }
    launches_made++;
    return 0;
}

#define nb_gate_launch_run launch_as_planned
#include "src/gate/gate_suspect.c"
#undef nb_gate_launch_run

static struct nb_gate_case case_of(double instructions, double ratio) {
    static char key[] = "candidate:any_v256_f32/shape:4x64", before[] = "baseline:any_v256_f32/shape:4x64";
    struct nb_gate_case c = {.verdict = NB_VERDICT_IMPROVED};
    if (nb_registry_size() == 0) cr_assert_eq(nb_registry_load_builtin(), 0);
    cr_assert_eq(nb_case_parse(&c.c, "rmsnorm_twopass_scalar_f32/shape:4x64"), 0);
    c.arm_keys[NB_BUILD_CANDIDATE] = key;
    c.arm_keys[NB_BUILD_BASELINE] = before;
    c.instructions[NB_BUILD_BASELINE] = 1000;
    c.instructions[NB_BUILD_CANDIDATE] = 1000 * instructions;
    c.judgement.ratio = (struct nb_interval){ratio, ratio, ratio};
    launches_made = 0;
    return c;
}

static enum nb_verdict verdict_of(double instructions, double ratio, double ln) {
    struct nb_gate g;
    struct nb_gate_case c = case_of(instructions, ratio);
    nb_gate_init(&g);
    g.subject = &nb_gate_kernels;
    g.builds.n_layouts = 1;
    ln_of_copies = ln;
    cr_assert_eq(nb_gate_doubt(&g, &c), 0);
    cr_expect_eq(c.verdict == NB_VERDICT_SUSPECT, c.reason[0] != '\0', "%s", c.reason);
    return c.verdict;
}

Test(gate_suspect, what_a_copy_takes_longer_for_is_suspect) {
    cr_expect_eq(verdict_of(0.5, 0.5, -0.2), NB_VERDICT_IMPROVED, "a copy is faster");
    cr_expect_eq(verdict_of(0.5, 0.5, 0.1), NB_VERDICT_SUSPECT, "every copy is slower");
    cr_expect_eq(launches_made, DOUBT_LAUNCHES);
    cr_expect_eq(verdict_of(0.5, 0.5, NAN), NB_VERDICT_IMPROVED, "launches that fail say nothing");
}

Test(gate_suspect, what_slows_the_baseline_is_suspect) {
    beside = 1.01;
    cr_expect_eq(verdict_of(0.9, 0.9, -1), NB_VERDICT_IMPROVED, "within the margin");
    beside = 1.2;
    cr_expect_eq(verdict_of(0.9, 0.9, -1), NB_VERDICT_SUSPECT);
    cr_expect_eq(launches_made, 0);
}

Test(gate_suspect, fewer_instructions_explain_less_time) {
    cr_expect_eq(verdict_of(1, 1 / (most_by_order - 0.1), -1), NB_VERDICT_IMPROVED);
    cr_expect_eq(verdict_of(1, 1 / (most_by_order + 0.1), -1), NB_VERDICT_SUSPECT);
    cr_expect_eq(launches_made, 0, "nothing is timed for what is suspect already");
    cr_expect_eq(verdict_of(0.1, 0.1, -1), NB_VERDICT_IMPROVED);
    cr_expect_eq(verdict_of(NAN, 0.001, -1), NB_VERDICT_IMPROVED, "instructions that were not counted say nothing");
}
