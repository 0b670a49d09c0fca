// SPDX-License-Identifier: Apache-2.0
/* What a person needs to know of a run besides its figures: how many cases ended how, what was left out and why, how
 * far the noise can be trusted, on which machine it was. */
#pragma once

#include "src/record/record.h"

struct nb_reason {
    const char *text; /* borrowed from the results */
    size_t n;
};

struct nb_summary {
    size_t counts[NB_N_STATUSES];
    size_t n_cases;          /* records, skipped ones included */
    struct nb_reason *skips; /* cells left out, most frequent reason first; owned */
    size_t n_skips, n_skipped_cells;
    size_t *failures; /* indices of failed records; owned */
    size_t n_failures;
    size_t n_timed, n_noisy, n_suspect, n_without_interval;
    size_t n_throttled; /* with launches during which the GPU's clocks were lowered */
    long n_samples, n_preempted;
    double n_probed, n_contended; /* samples of which the state of the core is known, and those of the contended one */
    size_t n_uncontended;         /* timed cases whose figures are of the uncontended core */
    double clock_ghz,
        sum_ghz;      /* the highest, at which times are given; the cases' median clocks, summed; NaN: not known */
    size_t n_clocked; /* summands */
    /* Texts, owned, "" where there is nothing to say. */
    char *footer;      /* "AMD EPYC 9R14, 2025-01-31" */
    char *machines;    /* as nb_meta_machines() has them, where there are several */
    char *counts_text; /* "212 cases: 208 ok, 3 skipped, 1 crashed" */
    char *noise;       /* sentences, one a line */
    char *
        libraries; /* where the work was done, one line a library: "onednn: oneDNN 3.13.2, SYCL; jit:uni: layernorm_native_f32, .."; built-in
                       * kernels that chose an implementation are lines without a library */
    char *
        overheads; /* one line a kernel with a ladder of row counts (src/record/call_overhead.h): the overhead of a call with its
                       * interval, and the time of a byte */
};

void nb_summary_init(struct nb_summary *summary, const struct nb_results *results);
double nb_summary_contended(const struct nb_summary *summary); /* n_contended / n_probed; 0: nothing was probed */
/* "The core was shared during 87% of the samples; all figures are from the other 13%. Times are given at 2.99 GHz; the core ran at 2.82.";
 * nothing below 1 %, and where the clock kept within 2 %. */
void nb_summary_core(const struct nb_summary *summary, struct nb_strbuf *out);
void nb_summary_release(struct nb_summary *summary);

/* What went wrong in one failed case, one sentence: the reason, and for a wrong result where it is worst. */
void nb_failure_reproducer(const struct nb_record *r, struct nb_strbuf *out);
/* Is an element of y or dx beyond its bound? Else it is something beside it, a relation, or how the kernel ended. */
bool nb_is_beyond_bound(const struct nb_record *r);
/* "only with columns that are no multiple of 8: 20 of 24 such cases, none of 123 others"; nothing where no such part of a variant's cases tells
 * those that fail by what they compute from the others beyond chance. more: a second run's, of other cases; may be null. */
void nb_failure_pattern(const struct nb_results *results, const struct nb_results *more, const char *variant,
                        struct nb_strbuf *out);

/* "every row is too small by a factor of 1.0034 to 1.0092, as if the sum were divided by n - 7"; nothing where less than half of a variant's
 * failures by what it computes are right but for a factor in each row. */
void nb_failure_factor(const struct nb_results *results, const struct nb_results *more, const char *variant,
                       struct nb_strbuf *out);

/* What the meta data have by dotted path ("fingerprint.cpu.model"): null when absent; as a text "" when absent. */
const cJSON *nb_meta(const struct nb_results *results, const char *path);
const char *nb_meta_text(const struct nb_results *results, const char *path);
/* "AMD EPYC 9R14, 2025-01-31": for footers; either part may be missing. */
void nb_meta_footer(const struct nb_results *results, struct nb_strbuf *out);
/* "machine 1", whose the record is, between before and after, where there are several; else nothing is appended. */
void nb_meta_whose(const struct nb_results *results, const struct nb_record *r, const char *before, const char *after,
                   struct nb_strbuf *out);
/* A part of a machine's fingerprint, "cpu" or "gpu"; null when absent. */
const cJSON *nb_meta_of_machine(const struct nb_results *results, int machine, const char *part);
/* "AMD EPYC 9R14 (Genoa)", of the fingerprint's "cpu". */
void nb_cpu_name(const cJSON *cpu, struct nb_strbuf *out);
/* Of merged results or claims a line for each machine: "machine 1: AMD EPYC 9R14; unlike machine 0 in cpu.l3_bytes"; else "". */
void nb_meta_machines(const cJSON *meta, struct nb_strbuf *out);
