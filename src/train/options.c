// SPDX-License-Identifier: Apache-2.0
/* Names of what a training option can be. */
#include "src/train/options.h"

#include <assert.h>
#include <string.h>

static const char *const kinds[NB_N_NORM_KINDS] = {"none",      "layernorm", "rmsnorm", "prmsnorm",
                                                   "batchnorm", "centre",    "scale"};
static const char *const places[NB_N_NORM_PLACES] = {"pre", "post"};
static const char *const paddings[NB_N_PADDINGS] = {"unpadded", "padded", "masked"};

const char *nb_norm_kind_name(enum nb_norm_kind kind) {
    assert(kind < NB_N_NORM_KINDS);
    return kinds[kind];
}

const char *nb_norm_place_name(enum nb_norm_place place) {
    assert(place < NB_N_NORM_PLACES);
    return places[place];
}

const char *nb_padding_name(enum nb_train_padding padding) {
    assert(padding < NB_N_PADDINGS);
    return paddings[padding];
}

const char *nb_padding_refused(const struct nb_train_options *o) {
    return o->padding != NB_NOT_PADDED || o->norm.by_position ? "padding and statistics by position are of transformers"
                                                              : NULL;
}

static int find(const char *const *names, int n, const char *text) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0) return i;
    return -1;
}

int nb_norm_kind_find(const char *text) { return find(kinds, NB_N_NORM_KINDS, text); }
int nb_norm_place_find(const char *text) { return find(places, NB_N_NORM_PLACES, text); }
