// SPDX-License-Identifier: Apache-2.0
/* From a key to a trial. */
#include "tests/support/trials.h"

#include <criterion/criterion.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "tests/support/files.h"

static void load(const char *plugin) {
    if (nb_registry_size() == 0) cr_assert_eq(nb_registry_load_builtin(), 0);
    if (plugin) cr_assert_eq(nb_registry_load(plugin_path(plugin)), 0, "%s", plugin);
}

const struct nb_entry *entry_of(const char *plugin, const char *variant) {
    nb_log_quiet(true); /* it may be loaded already */
    load(plugin);
    nb_log_quiet(false);
    const struct nb_entry *entry = nb_registry_find(variant);
    cr_assert(entry, "%s", variant);
    return entry;
}

bool start_trial(struct nb_trial *t, const char *key, const char *plugin) {
    struct nb_case c;
    *t = (struct nb_trial){0};
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
