// SPDX-License-Identifier: Apache-2.0
/* From a key to a trial. */
#include "tests/support/trials.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/cpu.h"
#include "src/core/registry.h"

static void load(const char *plugin) {
    char path[512];
    const char *folder = getenv("NORMBENCH_TEST_PLUGINS");
    if (nb_registry_size() == 0) cr_assert_eq(nb_registry_load_builtin(), 0);
    if (!plugin) return;
    snprintf(path, sizeof path, "%s/%s.so", folder ? folder : ".", plugin);
    cr_assert_eq(nb_registry_load(path), 0, "%s", path);
}

bool start_trial(struct nb_trial *t, const char *key, const char *plugin) {
    struct nb_case c;
    load(plugin);
    cr_assert_eq(nb_case_parse(&c, key), 0);
    const struct nb_entry *entry = nb_registry_find(c.variant);
    if (!entry || nb_cpu_refuses(entry->kernel->cpu_features, entry->kernel->width)) {
        cr_assert(!plugin, "no kernel %s", c.variant);
        return false; /* built without this width, or for another CPU */
    }
    nb_case_set_entry(&c, entry);
    nb_case_normalize(&c);
    cr_assert_eq(nb_trial_init(t, &c, entry), 0, "%s", t->reason);
    return true;
}
