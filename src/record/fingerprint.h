// SPDX-License-Identifier: Apache-2.0
/* What machine, system and build a result belongs to. */
#pragma once

#include <cjson/cJSON.h>

/* Only what stays the same from run to run, so that equal fingerprints are one machine and one build: build, cpu, system, kernels, libraries,
 * tuning and gpu, as reports/schema/results.schema.json has them. Null is what the machine does not say. */
cJSON *nb_fingerprint(void);
/* The members of cpu that decide how fast code runs; null ends them. CPUs that have all of these alike are one kind: brand strings of
 * virtual CPUs do not distinguish generations. */
extern const char *const nb_cpu_identity[];
/* Hex digest of a file's bytes (FNV-1a, 64 bits): "" when it cannot be read. */
void nb_file_hash(const char *path, char out[20]);
/* Hash of a string, same function. */
void nb_text_hash(const char *text, char out[20]);

/* ---- differences ------------------------------------------------------------------------------------------------- */

/* Two JSON values side by side, path by path. */

/* Calls found for every path ("cpu.model") at which two values differ. Objects are compared by their members, those of both sides;
 * all else as a whole. A side that has no such member is null. */
void nb_json_differences(const cJSON *a, const cJSON *b,
                         void (*found)(const char *path, const cJSON *a, const cJSON *b, void *arg), void *arg);

/* ---- everything that can be said of this machine before a run, for `normbench info` ---- */

/* The sections of nb_fingerprint(), then
 *   load       what changes: load_average [3], memory_available_bytes
 *   n_allowed  CPUs that this process may use
 *   widths     [{name, runs, reason, n_variants}]: which SIMD widths of the loaded kernels run here
 *   counters   [{name, source, available, reason}]
 *   warnings   [text]: what will make timings here noisy, with what can be done
 *   gpu        {refusal, device, kernels, emulation, results}: why none can be used, or what it is; the libraries that are built; whether
 *              our kernels have run on one
 *   tools      [{name, path, purpose, install}]: path null where it is missing
 *   folders    {configs, data}: null where there is none */
cJSON *nb_survey(void);
/* A program's file by PATH; owned, or null. */
char *nb_program_find(const char *name);
