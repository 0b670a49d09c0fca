// SPDX-License-Identifier: Apache-2.0
/* A claim's text: one that can be read can be explained, and judged without a single measurement. */
#include <stdlib.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "src/claims/claims.h"
#include "src/core/log.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    char *text = fuzz_text(bytes, n);
    struct nb_claim claim;
    if (nb_claim_parse(&claim, "claim.json", text, strlen(text)) == 0) {
        struct nb_strbuf words = {0};
        struct nb_claim_result result = {.claim = &claim};
        result.findings = nb_alloc(claim.n_experiments + 1, sizeof *result.findings);
        nb_claim_explain(&claim, &words);
        nb_claim_judge(&result);
        fuzz_check(result.verdict == NB_NOT_TESTABLE, "nothing measured decides nothing");
        fuzz_check(result.reason && *result.reason, "a verdict has a reason");
        nb_claim_result_release(&result);
        nb_strbuf_release(&words);
    }
    nb_claim_release(&claim);
    free(text);
    return 0;
}
