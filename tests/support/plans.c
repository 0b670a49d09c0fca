// SPDX-License-Identifier: Apache-2.0
/* From a "blocks" list to a plan. */
#include "tests/support/plans.h"

#include <criterion/criterion.h>
#include <string.h>

#include "src/core/registry.h"
#include "tests/support/files.h"

void load_kernels(void) { cr_assert_eq(nb_registry_load_builtin(), 0); }

void load_kernels_quietly(void) {
    quiet();
    load_kernels();
}

static int make(struct request *r) {
    struct nb_config config released_by(nb_config_release);
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&text, "{ %s \"blocks\": [\n%s\n] }", r->head ? r->head : "", r->blocks);
    int result = nb_config_parse(&config, "dir/mine.json", text.text, text.len);
    if (result != 0) return -1;
    if (r->axis) result = nb_config_axis(&config, r->axis);
    config.blocks[config.n_blocks - 1].isolate_width = r->isolate_width;
    if (result == 0) result = nb_plan_make(&r->plan, &config, &r->options);
    return result;
}

static void release_plan(void *plan) { nb_plan_release(plan); }

struct nb_plan made(struct request r) {
    begin_errors();
    int result = make(&r);
    char *errors = end_errors();
    cr_assert_eq(result, 0, "%s\n%s", r.blocks, errors);
    release_at_end(&r.plan, sizeof r.plan, release_plan);
    return r.plan;
}

struct nb_plan plan_of(const char *blocks) {
    return made((struct request){.blocks = blocks});
}

void refused(struct request r, const char *words) {
    expect_refused(make(&r), r.blocks, words);
    nb_plan_release(&r.plan);
}

size_t left_out(const struct nb_plan *plan, const char *words) {
    size_t n = 0;
    for (size_t i = 0; i < plan->skips.n; i++)
        if (strstr(plan->skips.items[i].reason, words)) n += plan->skips.items[i].n;
    return n;
}

size_t n_cases_of(const char *blocks) { return plan_of(blocks).n_cases; }
