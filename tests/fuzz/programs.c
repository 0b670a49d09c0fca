// SPDX-License-Identifier: Apache-2.0
/* A target of the way between a kernel's own process and the harness: the answers of the program. */
#include "src/core/kernel_fields.h"
#include "src/programs/kernel_program.c"
#include "tests/fuzz/fuzz.h"

/* An answer to each question in turn, of the bytes up to 0xff 0xff or the end. */
void fuzz_program(const uint8_t *bytes, size_t n) {
    static const struct {
        uint16_t type;
        size_t body_bytes;
    } questions[] = {{HELLO, sizeof(struct hello_answer)},
                     {DESCRIBE, sizeof(struct described)},
                     {OPEN, sizeof(struct answer_head)},
                     {CALL, sizeof(struct call_answer)}};
    static union message m;
    uint32_t sequence = 0;
    for (size_t at = 0; at < n; sequence++) {
        size_t len = 0;
        while (at + len < n && !(bytes[at + len] == 0xff && at + len + 1 < n && bytes[at + len + 1] == 0xff)) len++;
        const struct head question = {{'N', 'B', 'W', 'P'}, VERSION, questions[sequence % 4].type, sequence + 1, 0};
        memset(&m, 0, sizeof m);
        memcpy(&m, bytes + at, len < sizeof m ? len : sizeof m);
        at += len + 2;
        if (len > sizeof m || refuse_answer(&m, len, &question, questions[sequence % 4].body_bytes)) continue;
        struct program_kernel k = {0};
        char *text freed = text_of(&m), reason[200];
        fuzz_check(strlen(text) <= 4 * len, "a text ends");
        if (question.type == DESCRIBE && !read_kernel(&k, &m) &&
            nb_kernel_validate(&k.kernel, reason, sizeof reason) == 0)
            fuzz_check(nb_name_is_plain(k.kernel.variant) && own(&k.kernel) == &k, "a kernel that is valid has names");
        free(k.summary);
    }
}
