// SPDX-License-Identifier: Apache-2.0
/* The tables of configs/claims/CHANGES.md and the claims agree: no rule changes without a line in changes.csv, and what was changed after data were
 * known is said in the claim's own file, from which every page shows it. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/core/json.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"

TestSuite(claims_log, .init = load_kernels_quietly, .fini = nb_registry_release);

/* Lines of the log that were made after data, "date,claim,...,yes"; date and id "": of any. */
static int n_logged(const char *log, const char *id, const char *date) {
    enum { DATE = 10 };
    int n = 0;
    for (const char *line = strchr(log, '\n') + 1; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t length = strcspn(line, "\n");
        const char *claim = line + DATE + 1, *last = line + length;
        while (last[-1] != ',') last--;
        const size_t n_last = (size_t)(line + length - last);
        cr_expect(strncmp(last, "yes", n_last) == 0 || strncmp(last, "no", n_last) == 0 ||
                      strncmp(last, "alternative", n_last) == 0,
                  "%.*s", (int)length, line);
        const bool mine = !*id || (strncmp(claim, id, strlen(id)) == 0 && claim[strlen(id)] == ',');
        n += mine && (!*date || strncmp(line, date, DATE) == 0) && strncmp(last, "yes", n_last) == 0;
    }
    return n;
}

static void drop_words(cJSON *node) {
    cJSON_DeleteItemFromObjectCaseSensitive(node, "text");
    cJSON_DeleteItemFromObjectCaseSensitive(node, "seen");
    if (cJSON_HasObjectItem(node, "experiment")) /* of a reading; a selector may have it as an axis */
        cJSON_DeleteItemFromObjectCaseSensitive(node, "under");
    for (cJSON *item = node ? node->child : NULL; item; item = item->next) drop_words(item);
}

static uint64_t fingerprint_of(const struct nb_claim *claim) {
    struct nb_jsonc file released_by(nb_jsonc_release);
    cr_assert_eq(nb_jsonc_read(&file, claim->path), 0);
    cJSON *readings = nb_json_get(file.root, "readings");
    const cJSON *experiment;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    drop_words(readings);
    nb_strbuf_addf(&text, "%s", readings ? json_text(readings) : "");
    cJSON_ArrayForEach(experiment, nb_json_get(file.root, "experiments")) {
        const cJSON *seeds = nb_json_get(experiment, "seeds");
        if (!seeds) seeds = nb_json_get(nb_json_get(experiment, "params"), "seeds");
        if (seeds) nb_strbuf_addf(&text, " %s %.0f", experiment->string, seeds->valuedouble);
    }
    return nb_hash_text(text.text);
}

Test(claims_log, no_rule_changes_without_a_line_in_the_log) {
    struct nb_claims claims released_by(nb_claims_release);
    const char *fingerprints = get_file("configs/claims", "fingerprints.csv");
    cr_assert_eq(nb_claims_read(&claims, NULL, 0), 0);
    for (size_t i = 0; i < claims.n; i++) {
        const struct nb_claim *c = &claims.items[i];
        char line[200];
        if (strncmp(c->id, NB_BUG_PREFIX, strlen(NB_BUG_PREFIX)) == 0) continue;
        snprintf(line, sizeof line, "\n%s,%016llx\n", c->id, (unsigned long long)fingerprint_of(c));
        cr_expect(
            strstr(fingerprints, line),
            "%s: its rules are not those of fingerprints.csv: log the change in changes.csv, then its fingerprint:%s",
            c->id, line);
    }
}

Test(claims_log, what_was_changed_after_data_is_said_in_the_claim) {
    struct nb_claims claims released_by(nb_claims_release);
    int n = 0;
    const char *log = get_file("configs/claims", "changes.csv");
    cr_assert_eq(nb_claims_read(&claims, NULL, 0), 0);
    for (size_t i = 0; i < claims.n; i++) {
        const struct nb_claim *c = &claims.items[i];
        for (size_t j = 0; j < c->changed_after_data.n; j++, n++) {
            const char *change = c->changed_after_data.items[j];
            int on_that_date = 0;
            for (size_t k = 0; k < c->changed_after_data.n; k++)
                on_that_date += strncmp(c->changed_after_data.items[k], change, 10) == 0;
            cr_expect_eq(n_logged(log, c->id, change), on_that_date, "%s: no line of the log for: %s", c->id, change);
        }
        cr_expect_eq(n_logged(log, c->id, ""), (int)c->changed_after_data.n,
                     "%s: the log has changes after data that the claim does not own up to", c->id);
    }
    cr_expect_eq(n_logged(log, "", ""), n, "a line of the log names no claim");
}
