// SPDX-License-Identifier: Apache-2.0
/* What a row norm does inside, from its outputs alone: which root, where eps stands, which variance. The op, the dtype and
 * the tensors that a caller passes are known; nothing that the kernel declares of itself is read.
 *
 * Rows are built such that one fact about the arithmetic changes an output by much more than all others together. Sums of squares
 * are weighed against eps (probe_box.h), which needs no knowledge of the root. An answer that the rows do not settle is "undetermined". */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/case.h"
#include "src/core/kernel_fields.h"

/* Null, or why this kernel cannot be asked ("probe asks row norms, forward"). */
const char *nb_probe_refuses(const struct nb_case *c);

/* The case that asks a kernel, with its own formula, gamma and beta as usual for the op, but for these axes. Null, or why this one cannot be
 * asked. */
const char *nb_probe_case(struct nb_case *c, const struct nb_entry *entry, const char *const *axes, size_t n);
/* Sets one, "root=div_sqrt". -1 with the reason: there is none such, or no such value. */
int nb_probe_set_axis(struct nb_case *c, const char *text, char *reason, size_t n);

struct nb_workplace;
/* {"status": "ok", "answers": [{"question", "value" (null: undetermined), "evidence", "confidence"}], "summary", "calls"}, or
 * {"status": "failed", "reason"}. The case: normalized, its kernel set; its eps is the one whose effect is reported. Calls the kernel in this
 * process. The worker (may be null) hears of every question, as of this case. */
cJSON *nb_probe_kernel(const struct nb_case *c, const struct nb_entry *entry, struct nb_workplace *worker, int at);

/* Of the answers those that differ from what the case asks for, in a wrong kernel the likely mistake: "eps is outside the root, not inside".
 * gave_nan: of finite rows; without
 * it a wrong variance may look like E[x^2] - mean^2 and be none (padding that is counted adds a multiple of mean^2, too). Appends nothing where
 * there is none. */
void nb_probe_differences(const struct nb_case *c, const cJSON *probe, bool gave_nan, struct nb_strbuf *out);

/* Appends what of sums, variance, eps and root is undetermined, and why: "; undetermined: sums (eps enters multiplied)". */
void nb_probe_undetermined(const cJSON *probe, struct nb_strbuf *out);

/* For --help: the questions in the order in which they are asked. */
struct nb_probe_question {
    const char *name, *help;
};
extern const struct nb_probe_question nb_probe_questions[];
extern const size_t nb_n_probe_questions;
