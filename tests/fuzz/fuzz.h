// SPDX-License-Identifier: Apache-2.0
/* What the fuzz targets share. A target is one file fuzz_NAME.c with libFuzzer's entry point and seeds in corpus/NAME/; `make fuzz`
 * builds and runs all of them under AddressSanitizer and UndefinedBehaviorSanitizer. */
#ifndef NB_FUZZ_H
#define NB_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A property that has to hold for every input; ends the process when it does not, so that the input is kept. */
void fuzz_check(int holds, const char *property);
/* Two texts are equal; else shows where they part. */
void fuzz_same(const char *a, const char *b, const char *property);
/* The bytes up to the first null as an owned text. */
char *fuzz_text(const uint8_t *bytes, size_t n);
/* Writes bytes as the file NAME of the folder $FUZZ_FOLDER, which no other process may use, or of one in /tmp; returns the
 * folder. */
const char *fuzz_file(const char *name, const uint8_t *bytes, size_t n);
/* Reads the results of a folder, prints them in every format, makes figures of them and reads them again. */
void fuzz_results(const char *dir);

#endif
