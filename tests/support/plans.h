// SPDX-License-Identifier: Apache-2.0
/* Plans for tests, from the inside of a "blocks" list; they last as long as the test's process. The kernels must be loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/plan/plan.h"

#define TWO_KERNELS "\"kernel\": [\"rmsnorm_twopass\", \"layernorm_twopass\"], \"width\": \"scalar\""
/* 24 groups of 24 cases. */
#define MANY                                                                                                           \
    "{ " TWO_KERNELS ", \"dtype\": [\"f32\", \"bf16\"], \"shape\": [\"4x8\", \"8x16\", \"16x24\"], \"eps\": [0, "      \
    "\"1e-8\", \"1e-5\", \"1e-3\"], "                                                                                  \
    "\"root\": [\"div_sqrt\", \"mul_recip\", \"rsqrt_nr\"], \"cache\": [\"hot\", \"cold\"], \"stride\": [\"packed\", " \
    "3] }"
struct request {
    const char *blocks; /* the list's inside; it begins on line 2 of dir/mine.json */
    const char *head;   /* more top-level keys, ending in a comma; or null */
    const char *axis;   /* --axis, or null */
    bool isolate_width; /* of the last block, as a claim asks */
    struct nb_plan_options options;
    struct nb_plan plan;
};

void load_kernels(void);
void load_kernels_quietly(void);
struct nb_plan made(struct request r);
struct nb_plan plan_of(const char *blocks);
size_t n_cases_of(const char *blocks);
/* The plan is refused with these words. */
void refused(struct request r, const char *words);
/* Cells that were left out for a reason with these words in it. */
size_t left_out(const struct nb_plan *plan, const char *words);
