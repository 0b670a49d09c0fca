// SPDX-License-Identifier: Apache-2.0
/* The first bytes of a .npy file. */
#include <string.h>

#include "src/plan/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct nb_npy_header h;
    char reason[256] = "";
    if (nb_npy_header_parse(&h, bytes, n, reason, sizeof reason) != 0) {
        fuzz_check(reason[0] != '\0', "a refusal has a reason");
        return 0;
    }
    fuzz_check(h.data_offset <= n, "the values begin inside the file or at its end");
    fuzz_check(h.n_dims >= 0 && h.n_dims <= NB_NPY_MAX_DIMS, "the dimensions fit");
    fuzz_check(memchr(h.descr, '\0', sizeof h.descr) != NULL, "descr is a text");
    for (int i = 0; i < h.n_dims; i++) fuzz_check(h.dims[i] >= 0, "no dimension is negative");
    return 0;
}
