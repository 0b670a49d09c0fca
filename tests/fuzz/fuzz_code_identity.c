// SPDX-License-Identifier: Apache-2.0
/* Shared objects whose machine code is compared: broken ones give a reason, or the same digest twice. */
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/gate/code_identity.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_FUNCTIONS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    char reason[200] = "";
    uint64_t functions[MAX_FUNCTIONS], first[2], second[2];
    size_t n_functions = 0;
    char *path = nb_path_join(fuzz_file("code.so", bytes, n), "code.so");
    struct nb_code *code = nb_code_open(path, reason, sizeof reason);
    free(path);
    fuzz_check(code || reason[0] != '\0', "a refusal has a reason");
    for (uint64_t address = 0; code && address < 16384 && n_functions < MAX_FUNCTIONS; address += 16) {
        const struct nb_code_place *place = nb_code_place(code, address);
        if (place && place->address == address) functions[n_functions++] = address;
    }
    if (code && nb_code_digest_of(code, functions, n_functions, first, reason, sizeof reason) == 0) {
        fuzz_check(nb_code_digest_of(code, functions, n_functions, second, reason, sizeof reason) == 0, "twice");
        fuzz_check(memcmp(first, second, sizeof first) == 0, "the same code has the same digest");
    } else {
        fuzz_check(reason[0] != '\0', "no digest has a reason");
    }
    nb_code_close(code);
    return 0;
}
