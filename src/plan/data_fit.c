// SPDX-License-Identifier: Apache-2.0
/* Asking the inputs about data, once for each question. */
#include "src/plan/data_fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/plan/inputs.h"

bool nb_data_exists(const char *name, char *reason, size_t n) {
    struct nb_recipe recipe;
    char **sets;
    if (nb_distribution_parse(name, &recipe, reason, n) != 0) return false;
    bool exists = recipe.data || (strpbrk(name, "/.") && nb_path_exists(name));
    int n_sets = nb_inputs_list(&sets);
    for (int i = 0; i < n_sets; i++) {
        exists = exists || strcmp(sets[i], name) == 0;
        free(sets[i]);
    }
    free(sets);
    if (exists) return true;
    struct nb_case c;
    nb_case_init(&c);
    snprintf(c.data, sizeof c.data, "%s", name);
    char *why = nb_inputs_refuse(&c);
    snprintf(reason, n, "%s", why ? why : "cannot be read");
    free(why);
    return false;
}

const char *nb_data_refuses(struct nb_data_fits *fits, const struct nb_case *c) {
    struct nb_strbuf key = {0};
    nb_strbuf_addf(&key, "%s %d %u %s", c->shape.text, c->op == NB_OP_BATCHNORM, c->pass, c->data);
    size_t n = fits->known.n, found = nb_text_map_find(&fits->known, key.text);
    if (found != NB_NOWHERE) {
        nb_strbuf_release(&key);
        return fits->reasons[found];
    }
    fits->keys = nb_realloc(fits->keys, n + 1, sizeof *fits->keys);
    fits->reasons = nb_realloc(fits->reasons, n + 1, sizeof *fits->reasons);
    fits->keys[n] = key.text;
    fits->reasons[n] = nb_inputs_refuse(c);
    nb_text_map_add(&fits->known, fits->keys[n], n);
    return fits->reasons[n];
}

void nb_data_fits_release(struct nb_data_fits *fits) {
    for (size_t i = 0; i < fits->known.n; i++) {
        free(fits->keys[i]);
        free(fits->reasons[i]);
    }
    free(fits->keys);
    free(fits->reasons);
    nb_text_map_release(&fits->known);
    *fits = (struct nb_data_fits){0};
}
