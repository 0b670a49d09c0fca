// SPDX-License-Identifier: Apache-2.0
/* configs/claims/CHANGES.md and the claims agree: no rule changes without a line in the log, and what was changed after data were known
 * is said in the claim's own file, from which every page shows it. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "src/claims/claims.h"
#include "src/claims/claims_document.h"
#include "src/core/json.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"

static void set_up(void) {
    quiet();
    load_kernels();
}
TestSuite(claims_log, .init = set_up, .fini = nb_registry_release);

enum { CELLS = 7, CELL = 400 };
struct row {
    char cells[CELLS][CELL]; /* date, claim, change, known then, before, after, after data */
};

/* "| a | b |": true for a line of the log, not of its head. */
static bool read_row(const char *line, struct row *row) {
    memset(row, 0, sizeof *row);
    if (strncmp(line, "| 20", 4) != 0) return false;
    for (int i = 0; i < CELLS; i++) {
        const char *end = strchr(line + 1, '|');
        cr_assert(end, "a line of the log has %d cells: %s", CELLS, line);
        snprintf(row->cells[i], CELL, "%.*s", (int)(end - line - 1), line + 1);
        char *cell = row->cells[i], *last = cell + strlen(cell);
        while (last > cell && last[-1] == ' ') *--last = '\0';
        memmove(cell, cell + strspn(cell, " "), strlen(cell + strspn(cell, " ")) + 1);
        line = end;
    }
    return true;
}

/* Lines of the log about the claim on that date that were made after data; the date null: on any. */
static int n_logged(const char *log, const char *id, const char *date) {
    int n = 0;
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        struct row row;
        if (!read_row(line, &row)) continue;
        const char *after = row.cells[CELLS - 1];
        cr_expect(strcmp(after, "yes") == 0 || strcmp(after, "no") == 0 || strcmp(after, "alternative") == 0, "%s",
                  after);
        n += strcmp(row.cells[1], id) == 0 && (!date || strncmp(row.cells[0], date, 10) == 0) &&
             strcmp(after, "yes") == 0;
    }
    return n;
}

static void drop_words(cJSON *node) {
    cJSON_DeleteItemFromObjectCaseSensitive(node, "text");
    cJSON_DeleteItemFromObjectCaseSensitive(node, "seen");
    for (cJSON *item = node ? node->child : NULL; item; item = item->next) drop_words(item);
}

static uint64_t fingerprint_of(const struct nb_claim *claim) {
    struct nb_jsonc file;
    cr_assert_eq(nb_jsonc_read(&file, claim->path), 0);
    cJSON *readings = cJSON_GetObjectItemCaseSensitive(file.root, "readings");
    const cJSON *experiment;
    struct nb_strbuf text = {0};
    drop_words(readings);
    nb_strbuf_addf(&text, "%s", readings ? json_text(readings) : "");
    cJSON_ArrayForEach(experiment, cJSON_GetObjectItemCaseSensitive(file.root, "experiments")) {
        const cJSON *seeds = cJSON_GetObjectItemCaseSensitive(experiment, "seeds");
        if (seeds) nb_strbuf_addf(&text, " %s %.0f", experiment->string, seeds->valuedouble);
    }
    const uint64_t hash = nb_hash_text(text.text);
    nb_strbuf_release(&text);
    nb_jsonc_release(&file);
    return hash;
}

Test(claims_log, no_rule_changes_without_a_line_in_the_log) {
    struct nb_claims claims;
    const char *log = get_file("configs/claims", "CHANGES.md");
    cr_assert_eq(nb_claims_read(&claims, NULL, 0), 0);
    for (size_t i = 0; i < claims.n; i++) {
        const struct nb_claim *c = &claims.items[i];
        char line[200];
        if (strncmp(c->id, NB_BUG_PREFIX, strlen(NB_BUG_PREFIX)) == 0) continue;
        snprintf(line, sizeof line, "\n%s %016llx\n", c->id, (unsigned long long)fingerprint_of(c));
        cr_expect(strstr(log, line),
                  "%s: its rules are not those of CHANGES.md: log the change, then its fingerprint:%s", c->id, line);
    }
    nb_claims_release(&claims);
}

Test(claims_log, what_was_changed_after_data_is_said_in_the_claim) {
    struct nb_claims claims;
    int n = 0, n_rows = 0;
    const char *log = get_file("configs/claims", "CHANGES.md");
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
        cr_expect_eq(n_logged(log, c->id, NULL), (int)c->changed_after_data.n,
                     "%s: the log has changes after data that the claim does not own up to", c->id);
    }
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        struct row row;
        n_rows += read_row(line, &row) && strcmp(row.cells[CELLS - 1], "yes") == 0;
    }
    cr_expect_eq(n_rows, n, "a line of the log names no claim");
    nb_claims_release(&claims);
}
