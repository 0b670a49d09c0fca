// SPDX-License-Identifier: Apache-2.0
/* A journal, folded to results and shown in every way. */
#include <stdlib.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/measure/journal.h"
#include "src/record/record.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    const char *dir = fuzz_file(NB_JOURNAL_FILE, bytes, n);
    char *results = nb_path_join(dir, NB_RESULTS_FILE);
    unlink(results); /* else it would be read instead */
    free(results);
    fuzz_results(dir);
    return 0;
}
