// SPDX-License-Identifier: Apache-2.0
/* How labels travel from blocks to records (of a plan that times nothing: tests/cli/check_only.sh). */
#include <criterion/criterion.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/journal.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"
#include "tests/support/runs.h"

#define LABELLED                                                                                                       \
    "{ \"label\": \"a#1\", \"source\": \"a/a#1\", \"text\": \"first\", " TWO_KERNELS ", \"shape\": \"4x8\" }, "        \
    "{ \"label\": \"b\", \"kernel\": \"rmsnorm_twopass\", \"width\": \"scalar\", \"shape\": [\"4x8\", \"4x9\"] }, "    \
    "{ \"kernel\": \"rmsnorm_twopass\", \"width\": \"scalar\", \"shape\": \"4x10\" }, "                                \
    "{ \"label\": \"a#1\", \"kernel\": \"rmsnorm_twopass\", \"width\": \"scalar\", \"shape\": \"4x9\" }"

Test(labels, are_refused_where_they_say_nothing) {
    load_kernels();
    refused((struct request){.blocks = "{ \"label\": \"\", " TWO_KERNELS " }"}, "not empty");
    refused((struct request){.blocks = "{ \"text\": \"why\", " TWO_KERNELS " }"}, "belong to a \"label\"");
    refused((struct request){.blocks = "{ \"label\": 3, " TWO_KERNELS " }"}, "text");
    refused((struct request){.blocks = "{ \"label\": \"a\", \"label\": \"b\", " TWO_KERNELS " }"}, "twice");
    refused((struct request){.blocks = "{ \"lable\": \"a\", " TWO_KERNELS " }"}, "did you mean \"label\"");
}

/* The first line of its journal has all of a plan: launches that may be added, what this machine refuses, labels. */
Test(labels, stand_in_the_journal_with_the_plan) {
    load_kernels();
    struct nb_plan plan = made((struct request){
        .blocks = LABELLED
        ", { \"kernel\": \"*_twopass\", \"op\": \"rmsnorm\", \"width\": [\"scalar\", \"vector\"], \"threads\": [1, 1024] }",
        .head = "\"launches\": [6, 8],",
        .isolate_width = true});
    cJSON *run = kept_json(cJSON_CreateObject());
    nb_journal_add_plan(run, &plan, 1, 2);
    cr_expect_eq(nb_json_get_number(cJSON_GetObjectItem(run, "plan"), "most_launches"), 8);
    cr_expect_eq(cJSON_GetArraySize(cJSON_GetObjectItem(run, "labels")), 2);
    cr_expect_eq(cJSON_GetArraySize(cJSON_GetObjectItem(run, "groups")), (int)plan.n_groups);
    cr_expect(strstr(json_text(cJSON_GetObjectItem(run, "skips")), "/threads:1024/"), "%s", json_text(run));
    cr_expect_str_eq(json_text(cJSON_GetObjectItem(run, "shard")), "[1,2]");
    cJSON *whole = kept_json(cJSON_CreateObject());
    nb_journal_add_plan(whole, &plan, 0, 0);
    cr_expect(cJSON_IsNull(cJSON_GetObjectItem(whole, "shard")), "no shard but all of it");
}

/* ---- the fold ---- */

static struct nb_results with_labels(const char *labels) {
    static const char *const keys[] = {KEY_RMS, KEY_LN};
    struct nb_strbuf journal released_by(nb_strbuf_release) = {0};
    char *groups freed =
        nb_textf("[{\"index\":0,\"part\":0,\"keys\":[\"" KEY_RMS "\",\"" KEY_LN "\"],\"reference\":0%s}],"
                 "\"labels\":[{\"name\":\"a#1\",\"source\":null,\"text\":\"first\"}]",
                 labels);
    nb_strbuf_add(&journal, run_line(groups, "[]", "null", 0));
    add_check(&journal, 0, keys, 2);
    return folded(journal.text);
}

Test(labels, come_out_in_the_records_and_survive_json) {
    struct nb_results r = with_labels(",\"labels\":[[0],[]]");
    cr_assert_eq(r.n, 2);
    cr_assert_eq(r.records[0].labels.n, 1);
    cr_expect_str_eq(r.records[0].labels.items[0], "a#1");
    cr_expect_eq(r.records[1].labels.n, 0);
    cr_expect(nb_json_get_bool(r.meta, "complete") && r.records[0].status == NB_OK && !r.records[0].has_timing);
    struct nb_record again released_by(nb_record_release);
    cJSON *json = kept_json(nb_record_to_json(&r.records[0]));
    cr_assert_eq(nb_record_from_json(&again, json), 0);
    cr_expect_str_eq(again.labels.items[0], "a#1");
    cr_expect_str_eq(again.timing_reason, "not timed: the plan has no launches");
}
