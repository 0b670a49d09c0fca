// SPDX-License-Identifier: Apache-2.0
/* After a call: is all that the kernel must not have touched as it was laid there? */
#include <stdio.h>
#include <string.h>

#include "src/measure/buffers.h"
#include "src/measure/poison.h"

static enum nb_damage outside(char *where, size_t n, const char *name, const char *side, int64_t row) {
    if (row < 0)
        snprintf(where, n, "wrote %s %s", side, name);
    else
        snprintf(where, n, "wrote %s row %lld of %s", side, (long long)row, name);
    return NB_DAMAGED_OUTSIDE;
}

static enum nb_damage verify_margins(const struct nb_tensor *t, const char *name, uint32_t word, char *where,
                                     size_t n) {
    const unsigned char *end = (unsigned char *)t->data + nb_tensor_bytes(t);
    if (!nb_is_poison(t->area, (size_t)((unsigned char *)t->data - t->area), word))
        return outside(where, n, name, "before", -1);
    if (!nb_is_poison(end, (size_t)(t->area + t->area_bytes - end), word)) return outside(where, n, name, "behind", -1);
    return NB_INTACT;
}

static enum nb_damage verify_tensor(const struct nb_tensor *t, const char *name, uint32_t word, char *where, size_t n) {
    const size_t row_bytes = (size_t)t->cols * t->item, gap = (size_t)(t->stride - t->cols) * t->item;
    if (verify_margins(t, name, word, where, n) != NB_INTACT) return NB_DAMAGED_OUTSIDE;
    for (int64_t r = 0; r < t->rows; r++) {
        const unsigned char *row = nb_tensor_row(t, r);
        if (r + 1 < t->rows && !nb_is_poison(row + row_bytes, gap, word)) return outside(where, n, name, "behind", r);
        if (t->source && memcmp(row, (const unsigned char *)t->source + (size_t)r * row_bytes, row_bytes) != 0) {
            snprintf(where, n, "changed row %lld of its input %s", (long long)r, name);
            return NB_DAMAGED_INPUT;
        }
    }
    return NB_INTACT;
}

typedef enum nb_damage (*verify_fn)(const struct nb_tensor *t, const char *name, uint32_t word, char *where, size_t n);
static enum nb_damage verify_all(const struct nb_buffers *b, verify_fn verify, char *where, size_t n) {
    enum nb_damage damage = NB_INTACT;
    for (int i = 0; i < NB_N_TENSORS && damage == NB_INTACT; i++)
        if (b->tensors[i].data)
            damage = verify(&b->tensors[i], nb_tensor_name((enum nb_tensor_id)i), b->request.poison, where, n);
    return damage;
}

enum nb_damage nb_buffers_verify(const struct nb_buffers *b, char *where, size_t n) {
    return verify_all(b, verify_tensor, where, n);
}
enum nb_damage nb_buffers_verify_margins(const struct nb_buffers *b, char *where, size_t n) {
    return verify_all(b, verify_margins, where, n);
}

enum nb_tensor_id nb_buffers_guard_of(const struct nb_buffers *b, const void *address, bool *after) {
    const unsigned char *p = address;
    for (int i = 0; i < NB_N_TENSORS; i++) {
        const struct nb_tensor *t = &b->tensors[i];
        if (!t->map || p < t->map || p >= t->map + t->map_bytes) continue;
        *after = p >= t->area;
        return (enum nb_tensor_id)i;
    }
    return NB_N_TENSORS;
}
