// SPDX-License-Identifier: Apache-2.0
/* Open addressing with linear probing, at most half full. */
#include "src/core/text_map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

/* FNV-1a, 64 bits. */
static uint64_t hash(const char *text) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

/* Where the text is, or belongs. */
static struct nb_text_slot *place(const struct nb_text_map *map, const char *text) {
    size_t i = hash(text) & (map->n_slots - 1);
    while (map->slots[i].text && strcmp(map->slots[i].text, text) != 0) i = (i + 1) & (map->n_slots - 1);
    return &map->slots[i];
}

static void grow(struct nb_text_map *map) {
    struct nb_text_map larger = {.n = map->n, .n_slots = map->n_slots ? 2 * map->n_slots : 64};
    larger.slots = nb_alloc(larger.n_slots, sizeof *larger.slots);
    for (size_t i = 0; i < map->n_slots; i++) {
        if (map->slots[i].text) *place(&larger, map->slots[i].text) = map->slots[i];
    }
    free(map->slots);
    *map = larger;
}

size_t nb_text_map_add(struct nb_text_map *map, const char *text, size_t value) {
    if (2 * (map->n + 1) > map->n_slots) grow(map);
    struct nb_text_slot *slot = place(map, text);
    if (slot->text) return slot->value;
    *slot = (struct nb_text_slot){text, value};
    map->n++;
    return NB_NOWHERE;
}

size_t nb_text_map_find(const struct nb_text_map *map, const char *text) {
    if (map->n_slots == 0) return NB_NOWHERE;
    const struct nb_text_slot *slot = place(map, text);
    return slot->text ? slot->value : NB_NOWHERE;
}

void nb_text_map_release(struct nb_text_map *map) {
    free(map->slots);
    *map = (struct nb_text_map){0};
}
