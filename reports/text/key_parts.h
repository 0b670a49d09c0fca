// SPDX-License-Identifier: Apache-2.0
/* Keys of cases are long and mostly the same: what all share is said once, and the rest names each. */
#ifndef NB_KEY_PARTS_H
#define NB_KEY_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/text.h"

struct nb_key_parts {
    struct nb_key_part {
        char *axis, *value; /* of the first key that has the axis; owned */
        bool varies;
    } * parts;
    size_t n;
};

void nb_key_parts_init(struct nb_key_parts *p, const char *const *keys, size_t n_keys);
void nb_key_parts_release(struct nb_key_parts *p);
/* "shape 64x1024, data normal": every axis that has one value wherever it is there. */
void nb_key_parts_common(const struct nb_key_parts *p, struct nb_strbuf *out);
/* "rmsnorm_twopass_v256_f32 eps:1e-6": the variant and what is not common. */
void nb_key_parts_short(const struct nb_key_parts *p, const char *key, struct nb_strbuf *out);

#endif
