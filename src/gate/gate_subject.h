// SPDX-License-Identifier: Apache-2.0
/* What a gate compares: kernels, or functions that are none. All cases of a gate are of one subject, and each has parts of its own that only
 * the subject knows. What is not said returns 0, -1 after nb_error, or the number of a signal. */
#pragma once

#include "src/gate/code_identity.h"
#include "src/gate/gate.h"

struct nb_gate_subject {
    const char *noun;         /* "kernel" */
    const char *injects;      /* how the self-test slows a build down */
    const char *instructions; /* title of a column: of what they are counted */
    bool (*has)(const struct nb_gate_case *c, int build);
    /* Null, or why builds that both have it cannot be timed against each other. This one and the next two may be missing. */
    const char *(*refuses)(const struct nb_gate_case *c);
    /* Fills the case's instructions, or uncounted with the reason; missing: the check does. */
    int (*count)(const struct nb_gate *g, struct nb_gate_case *c);
    /* An improvement becomes SUSPECT for what only this subject knows. */
    int (*doubt)(const struct nb_gate *g, struct nb_gate_case *c);
    int (*digest)(const struct nb_code *code, const struct nb_gate_case *c, int build, enum nb_code_part part,
                  uint64_t digest[2], char *reason, size_t n);
    /* Decides the case where one of the builds fails, or the candidate is worse. */
    int (*check)(const struct nb_gate *g, struct nb_gate_case *c);
    const char *job; /* its kind */
    /* What the worker is told of the arms. Missing: they are cases of kernels. */
    void (*describe)(const struct nb_gate_request *q, cJSON *options);
    /* Instructions of 100 + percent rows / those of 100 - 1; NaN with the reason. Missing: time is injected. */
    double (*injected)(const struct nb_gate_case *c, int percent, char *reason, size_t n);
};
extern const struct nb_gate_subject nb_gate_kernels, nb_gate_functions;

/* Where the candidate takes less time than a copy of the same bytes in the same launches. */
int nb_gate_doubt_copy(const struct nb_gate *g, struct nb_gate_case *c);
