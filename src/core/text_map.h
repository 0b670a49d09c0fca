// SPDX-License-Identifier: Apache-2.0
/* Which number belongs to a text: a hash table for keys and variants, of which a matrix may have hundreds of thousands. */
#ifndef NB_TEXT_MAP_H
#define NB_TEXT_MAP_H

#include <stddef.h>

#define NB_NOWHERE ((size_t)-1)

/* Zero-initialise. Texts are borrowed. */
struct nb_text_map {
    struct nb_text_slot {
        const char *text; /* null: free */
        size_t value;
    } * slots;
    size_t n, n_slots; /* n_slots: a power of two, more than n */
};
/* Adds the text with its value, and returns NB_NOWHERE; a text that is there keeps its value, which is returned. */
size_t nb_text_map_add(struct nb_text_map *map, const char *text, size_t value);
size_t nb_text_map_find(const struct nb_text_map *map, const char *text); /* its value, or NB_NOWHERE */
void nb_text_map_release(struct nb_text_map *map);

#endif
