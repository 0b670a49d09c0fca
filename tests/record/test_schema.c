// SPDX-License-Identifier: Apache-2.0
/* The published schemas have the program's own names. What it writes is held against them by tests/check_schema.py, which scripts run. */
#include <criterion/criterion.h>
#include <string.h>

#include "src/core/names.h"
#include "src/measure/status.h"
#include "tests/support/files.h"

static const cJSON *names_of(const char *file, const char *what) {
    const cJSON *schema = kept_json(cJSON_Parse(get_file("reports/schema", file)));
    const cJSON *definition = cJSON_GetObjectItem(cJSON_GetObjectItem(schema, "$defs"), what);
    cr_assert(definition, "%s has no %s", file, what);
    return cJSON_GetObjectItem(definition, "enum");
}
static bool holds(const cJSON *names, const char *name) {
    const cJSON *item;
    cJSON_ArrayForEach(item, names) if (strcmp(item->valuestring, name) == 0) return true;
    return false;
}

Test(schema, names_are_those_of_the_program) {
    static const struct {
        const char *what;
        const char *const *names; /* then null */
    } known[] = {{"status", nb_status_names}, {"op", nb_op_names},       {"pass", nb_pass_names},
                 {"width", nb_width_names},   {"style", nb_style_names}, {"variance", nb_variance_names}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const cJSON *names = names_of("results.schema.json", known[i].what);
        int n = 0;
        for (; known[i].names[n]; n++)
            cr_expect(holds(names, known[i].names[n]), "%s %s", known[i].what, known[i].names[n]);
        cr_expect_eq(cJSON_GetArraySize(names), n, "%s", known[i].what);
    }
    const cJSON *failed = names_of("journal.schema.json", "failed");
    for (int s = 0; s < NB_N_STATUSES; s++)
        cr_expect_eq(holds(failed, nb_status_names[s]), nb_status_failed((enum nb_status)s) || s == NB_SKIPPED, "%s",
                     nb_status_names[s]);
}
