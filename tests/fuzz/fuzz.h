// SPDX-License-Identifier: Apache-2.0
/* Every reader of text or files that others wrote is a target: a function of the bytes, a row of the table in fuzz.c, and seeds in
 * corpus/NAME/. One program has them all; $FUZZ_TARGET names the one that it feeds. `make fuzz` builds it with libFuzzer,
 * AddressSanitizer and UndefinedBehaviorSanitizer, and run.sh gives each target its time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef void fuzz_target(const uint8_t *bytes, size_t n);

/* A property that has to hold for every input; ends the process when it does not, so that the input is kept. */
void fuzz_check(bool holds, const char *property);
/* Two texts are equal; else shows where they part. */
void fuzz_same(const char *a, const char *b, const char *property);
/* The bytes up to the first null as an owned text; *rest: how many bytes follow that null. */
char *fuzz_text(const uint8_t *bytes, size_t n, size_t *rest);
/* Writes bytes as the file NAME of the folder $FUZZ_FOLDER, which no other process may use, or of one in /tmp; returns its path, owned. */
char *fuzz_file(const char *name, const uint8_t *bytes, size_t n);
/* The same below a folder of that one; returns that folder, owned. */
char *fuzz_file_in(const char *folder, const char *name, const uint8_t *bytes, size_t n);

/* A stream into memory, of which there is one at a time. At its end the property holds, and what was written has no command of a terminal. */
FILE *fuzz_page_begin(void);
void fuzz_page_end(bool holds, const char *property);

/* texts.c */
fuzz_target fuzz_key, fuzz_shape, fuzz_shapes, fuzz_config, fuzz_design, fuzz_tuning, fuzz_claim, fuzz_model,
    fuzz_npy_header, fuzz_npy, fuzz_elf;
/* folders.c */
fuzz_target fuzz_journal, fuzz_results, fuzz_merge, fuzz_compare, fuzz_stress, fuzz_claims, fuzz_training;
/* workers.c */
fuzz_target fuzz_job, fuzz_answers;
/* programs.c */
fuzz_target fuzz_program;
