// SPDX-License-Identifier: Apache-2.0
/* What the first line says of a plan is enough to fold the journal without the plan and without its kernels. */
#include <criterion/criterion.h>
#include <string.h>

#include "src/core/json.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

/* Two cases in two parts of one group, with the first as reference of both; one cell without a kernel. */
static struct nb_results folded_plan(int shard, int n_shards) {
    struct nb_case cases[2];
    char key_rms[] = KEY_RMS, key_ln[] = KEY_LN, *keys[] = {key_rms, key_ln};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(nb_case_parse(&cases[i], keys[i]), 0);
        cases[i].op = i ? NB_OP_LAYERNORM : NB_OP_RMSNORM;
        cases[i].width = NB_256;
        cases[i].variance = i ? NB_VAR_WELFORD : NB_VAR_NONE;
    }
    size_t first[] = {0}, second[] = {0, 1};
    struct nb_group groups[] = {{.cases = first, .n = 1, .index = 5}, {.cases = second, .n = 2, .index = 5, .part = 1}};
    struct nb_skip skips[] = {{.reason = (char *)"no kernel", .n = 7}};
    struct nb_plan plan = {.cases = cases,
                           .keys = keys,
                           .n_cases = 2,
                           .groups = groups,
                           .n_groups = 2,
                           .skips = skips,
                           .n_skips = 1,
                           .launches = 6,
                           .blocks = 20,
                           .sample_ms = 0.3,
                           .order_seed = UINT64_MAX,
                           .hash = "00ff"};
    char *dir = new_folder();
    struct nb_journal journal;
    struct nb_results r;
    cJSON *run = kept_json(cJSON_CreateObject());
    nb_json_text(run, "type", "run");
    nb_json_text(run, "schema", NB_SCHEMA_VERSION);
    nb_journal_add_plan(run, &plan, shard, n_shards);
    cr_assert_eq(nb_journal_create(&journal, dir), 0);
    cr_assert_eq(nb_journal_write(&journal, run), 0);
    nb_journal_close(&journal);
    cr_assert_eq(nb_results_fold(&r, dir), 0);
    return r;
}

Test(journal_plan, folds_to_the_plans_cases_each_once) {
    struct nb_results r = folded_plan(2, 3);
    cr_assert_eq(r.n, 2);
    cr_assert_str_eq(r.records[0].key, KEY_RMS);
    cr_assert_str_eq(r.records[1].key, KEY_LN);
    cr_assert_eq(r.records[1].c.op, NB_OP_LAYERNORM);
    cr_assert_eq(r.records[1].c.variance, NB_VAR_WELFORD);
    cr_assert_eq(r.records[1].group, 5);
    cr_assert_eq(r.records[1].status, NB_NOT_RUN);
    cr_assert_gt(r.records[1].bytes, 2 * 4 * 8 * 4, "x and y at least");
    const cJSON *plan = cJSON_GetObjectItem(r.meta, "plan"), *shard = cJSON_GetObjectItem(r.meta, "shard");
    cr_assert_eq(nb_json_get_number(plan, "n_cases"), 2, "a reference that is repeated is one case");
    cr_assert_str_eq(nb_json_get_text(plan, "order_seed"), "18446744073709551615");
    cr_assert_str_eq(nb_json_get_text(plan, "hash"), "00ff");
    cr_assert_eq(cJSON_GetArrayItem(shard, 0)->valueint, 2);
    cr_assert_eq(cJSON_GetArrayItem(shard, 1)->valueint, 3);
    nb_results_release(&r);
}

Test(journal_plan, a_whole_plan_is_no_shard) {
    struct nb_results r = folded_plan(0, 0);
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(r.meta, "shard")));
    nb_results_release(&r);
}
