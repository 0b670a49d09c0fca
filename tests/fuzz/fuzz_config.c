// SPDX-License-Identifier: Apache-2.0
/* A config's text; what follows its first null byte is an --axis option. */
#include <stdlib.h>
#include <string.h>

#include "src/plan/config.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    char *text = fuzz_text(bytes, n);
    size_t len = strlen(text);
    struct nb_config config = {0};
    if (nb_config_parse(&config, "config.json", text, len) == 0) {
        fuzz_check(config.n_blocks > 0, "a config that is read has blocks");
        if (len < n) nb_config_axis(&config, text + len + 1);
    }
    nb_config_release(&config);
    free(text);
    return 0;
}
