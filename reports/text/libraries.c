// SPDX-License-Identifier: Apache-2.0
/* Records grouped by library, then by implementation; each variant named once. */
#include "reports/text/libraries.h"

#include <stdbool.h>
#include <string.h>

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* "onednn" of "onednn:layernorm_native_f32", 0 of a built-in kernel. */
static size_t plugin_length(const struct nb_record *r) {
    const char *colon = strchr(r->c.variant, ':');
    return colon ? (size_t)(colon - r->c.variant) : 0;
}

static bool same_owner(const struct nb_record *a, const struct nb_record *b) {
    const size_t n = plugin_length(a);
    return n == plugin_length(b) && strncmp(a->c.variant, b->c.variant, n) == 0 && same_text(a->library, b->library);
}

/* Was there a record before i that is equal to it in what matters? */
static bool is_first(const struct nb_results *r, size_t i,
                     bool (*equal)(const struct nb_record *, const struct nb_record *)) {
    for (size_t j = 0; j < i; j++)
        if (equal(&r->records[j], &r->records[i])) return false;
    return true;
}

static bool same_choice(const struct nb_record *a, const struct nb_record *b) {
    return same_owner(a, b) && same_text(a->implementation, b->implementation);
}

static bool same_variant(const struct nb_record *a, const struct nb_record *b) {
    return same_choice(a, b) && strcmp(a->c.variant, b->c.variant) == 0;
}

static void add_choices(const struct nb_results *r, const struct nb_record *owner, struct nb_strbuf *out) {
    for (size_t i = 0; i < r->n; i++) {
        const struct nb_record *first = &r->records[i];
        if (!first->implementation || !same_owner(first, owner) || !is_first(r, i, same_choice)) continue;
        nb_strbuf_addf(out, "; %s:", first->implementation);
        const char *separator = " ";
        for (size_t j = i; j < r->n; j++) {
            if (!same_choice(&r->records[j], first) || !is_first(r, j, same_variant)) continue;
            const size_t skip = plugin_length(first);
            nb_strbuf_addf(out, "%s%s", separator, r->records[j].c.variant + (skip ? skip + 1 : 0));
            separator = ", ";
        }
    }
}

void nb_libraries_print(const struct nb_results *results, struct nb_strbuf *out) {
    nb_strbuf_add(out, "");
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        struct nb_strbuf choices = {0};
        if ((!r->library && !r->implementation) || !is_first(results, i, same_owner)) continue;
        add_choices(results, r, &choices);
        const size_t n = plugin_length(r);
        if (n > 0)
            nb_strbuf_addf(out, "%.*s: %s%s\n", (int)n, r->c.variant, r->library ? r->library : "no version",
                           choices.text ? choices.text : "");
        else if (choices.len > 2)
            nb_strbuf_addf(out, "Chosen on this machine: %s\n", choices.text + 2);
        nb_strbuf_release(&choices);
    }
}
