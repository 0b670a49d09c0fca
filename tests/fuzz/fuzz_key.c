// SPDX-License-Identifier: Apache-2.0
/* A case's key: what is read prints as a key that reads as the same. */
#include <stdlib.h>

#include "src/core/case.h"
#include "tests/fuzz/fuzz.h"

static const uint32_t ops[] = {NB_OP_RMSNORM, NB_OP_PRMSNORM,      NB_OP_BATCHNORM,
                               NB_OP_DYT,     NB_OP_ADD_LAYERNORM, NB_OP_COPY};

/* The kernel says op and dtype; here the first byte does. */
static int read_key(struct nb_case *c, const char *key, uint8_t kernel) {
    if (nb_case_parse(c, key) != 0) return -1;
    c->op = ops[kernel % (sizeof ops / sizeof ops[0])];
    c->dtype = kernel & 0x80 ? NB_BF16 : NB_F32;
    nb_case_normalize(c);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct nb_case c, again;
    struct nb_strbuf once = {0}, twice = {0};
    if (n == 0) return 0;
    char *text = fuzz_text(bytes + 1, n - 1);
    if (read_key(&c, text, bytes[0]) == 0) {
        nb_case_key(&c, &once);
        fuzz_check(read_key(&again, once.text, bytes[0]) == 0, "a printed key can be read");
        nb_case_key(&again, &twice);
        fuzz_same(once.text, twice.text, "a key reads as the case that it was printed from");
        fuzz_check(c.shape.rows > 0 && c.shape.cols > 0 && nb_case_bytes(&c) >= 0, "a case has a size");
        nb_case_conflict(&c);
    }
    nb_strbuf_release(&once);
    nb_strbuf_release(&twice);
    free(text);
    return 0;
}
