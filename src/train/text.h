// SPDX-License-Identifier: Apache-2.0
/* Real bytes to train on: of a file that the user names, else of one that every Debian has. */
#ifndef NB_TRAIN_TEXT_H
#define NB_TRAIN_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct nb_text {
    unsigned char *bytes;
    size_t n;
    char path[256];
};

/* path null: NORMBENCH_TEXT, else the first of a list of files that every Debian has (licences). -1 after nb_error. */
int nb_text_open(struct nb_text *text, const char *path);
/* Sequence number i of so many bytes, the start drawn from i alone, and the byte behind each as its target; past the end the text begins
 * again. */
void nb_text_sequence(const struct nb_text *text, uint64_t i, int64_t length, int32_t *tokens, int32_t *targets);
void nb_text_release(struct nb_text *text);

#endif
