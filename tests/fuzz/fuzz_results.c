// SPDX-License-Identifier: Apache-2.0
/* A results.json, shown in every way. */
#include "src/record/record.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    fuzz_results(fuzz_file(NB_RESULTS_FILE, bytes, n));
    return 0;
}
