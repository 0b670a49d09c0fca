// SPDX-License-Identifier: Apache-2.0
/* A shape's text, plain, by name or a range: every text that it stands for is a shape. */
#include <stdlib.h>
#include <string.h>

#include "src/core/shape.h"
#include "tests/fuzz/fuzz.h"

static void read_plain(const char *text) {
    char reason[256];
    struct nb_shape shape, again;
    if (nb_shape_parse(&shape, text, reason, sizeof reason) != 0) return;
    fuzz_check(shape.rows > 0 && shape.cols > 0, "a shape is not empty");
    fuzz_check(nb_shape_parse(&again, shape.text, reason, sizeof reason) == 0, "a printed shape can be read");
    fuzz_check(memcmp(&shape, &again, sizeof shape) == 0, "a shape reads as what it was printed from");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    char *text = fuzz_text(bytes, n), reason[256];
    struct nb_strings texts;
    read_plain(text);
    nb_shape_expand(text, &texts, reason, sizeof reason);
    for (size_t i = 0; i < texts.n; i++) {
        struct nb_shape shape;
        fuzz_check(nb_shape_parse(&shape, texts.items[i], reason, sizeof reason) == 0,
                   "what a name stands for is a shape");
    }
    nb_strings_release(&texts);
    free(text);
    return 0;
}
