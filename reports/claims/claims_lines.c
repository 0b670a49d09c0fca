// SPDX-License-Identifier: Apache-2.0
/* Claims to lines. */
#include "reports/claims/claims_lines.h"

#include <stdlib.h>
#include <string.h>

#include "reports/claims/claims_text.h"
#include "src/claims/verdict.h"
#include "src/core/log.h"

static struct nb_claims_line *add(struct nb_claims_line **lines, size_t *n, const cJSON *claim, const cJSON *judged,
                                  const cJSON *figures_of) {
    struct nb_strbuf measured = {0}, published = {0};
    *lines = nb_realloc(*lines, *n + 1, sizeof **lines);
    nb_claims_measured(&measured, figures_of);
    nb_claims_published(&published, figures_of);
    (*lines)[*n] = (struct nb_claims_line){.claim = claim,
                                           .name = nb_claims_text(judged, "id"),
                                           .title = nb_claims_text(judged, "title"),
                                           .verdict = nb_claims_text(judged, "verdict"),
                                           .measured = measured.text,
                                           .published = published.text,
                                           .why = nb_strdup(nb_claims_text(judged, "reason"))};
    return &(*lines)[(*n)++];
}

/* What matters of a bug report is which kernels have the bug. */
static void add_bug(struct nb_claims_line **lines, size_t *n, const cJSON *claim) {
    struct nb_claims_line *line = add(lines, n, claim, claim, NULL);
    struct nb_strbuf broken = {0};
    nb_claims_broken(&broken, claim);
    free(line->measured);
    line->measured = line->why;
    line->why = broken.text;
}

static void add_claim(struct nb_claims_line **lines, size_t *n, const cJSON *claim) {
    const char *untested = nb_verdict_names[NB_NOT_TESTABLE];
    const cJSON *reading;
    add(lines, n, claim, claim, nb_claims_reading(claim));
    if (strcmp(nb_claims_text(claim, "verdict"), untested) != 0) return;
    cJSON_ArrayForEach(reading, cJSON_GetObjectItemCaseSensitive(claim, "readings")) {
        if (strcmp(nb_claims_text(reading, "verdict"), untested) == 0) continue;
        struct nb_claims_line *line = add(lines, n, claim, reading, reading);
        line->reading = reading;
        line->title = nb_claims_text(reading, "text");
    }
}

size_t nb_claims_lines(const cJSON *document, bool bugs, struct nb_claims_line **lines) {
    const cJSON *claim;
    size_t n = 0;
    *lines = NULL;
    cJSON_ArrayForEach(claim, cJSON_GetObjectItemCaseSensitive(document, "claims")) {
        if (nb_claims_is_bug(claim) != bugs) continue;
        if (bugs)
            add_bug(lines, &n, claim);
        else
            add_claim(lines, &n, claim);
    }
    return n;
}

void nb_claims_lines_release(struct nb_claims_line *lines, size_t n) {
    for (size_t i = 0; i < n; i++) {
        free(lines[i].measured);
        free(lines[i].published);
        free(lines[i].why);
    }
    free(lines);
}
