// SPDX-License-Identifier: Apache-2.0
/* A table comes from outside: every entry is looked at before it is believed, and copied into this program's own size. */
#include "src/core/kernel_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/foreign.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/core/text.h"

typedef const struct nb_kernel *const *(*kernels_fn)(uint32_t abi_version, size_t *n);

/* ---- lists ---- */

static void slot_free(struct nb_slot *s) {
    free(s->variant);
    free(s->entry.id);
    free(s->entry.kernel_id);
    free(s);
}

void nb_slots_free(struct nb_slots *list) {
    for (size_t i = 0; i < list->n; i++) slot_free(list->items[i]);
    free(list->items);
    *list = (struct nb_slots){0};
}

void nb_slots_append(struct nb_slots *list, const struct nb_slots *more) {
    list->items = nb_realloc(list->items, list->n + more->n, sizeof *list->items);
    for (size_t i = 0; i < more->n; i++) list->items[list->n++] = more->items[i];
}

int nb_slots_by_id(const void *a, const void *b) {
    return strcmp((*(struct nb_slot *const *)a)->entry.id, (*(struct nb_slot *const *)b)->entry.id);
}

void nb_slots_sort(struct nb_slots *list, int (*compare)(const void *, const void *)) {
    if (list->n > 1) qsort(list->items, list->n, sizeof *list->items, compare);
}

/* ---- names ---- */

static char *variant_name(const struct nb_kernel *k) {
    static const char *const suffixes[NB_N_WIDTHS] = {"scalar", "v128", "v256", "v256x", "v512", "native"};
    if (k->variant) return nb_strdup(k->variant);
    struct nb_strbuf name = {0};
    nb_strbuf_addf(&name, "%s_%s_%s", k->name, suffixes[k->width], nb_formats[k->dtype].name);
    return name.text;
}

static char *qualified(const char *plugin, const char *name) {
    struct nb_strbuf id = {0};
    nb_strbuf_addf(&id, "%s%s%s", plugin ? plugin : "", plugin ? ":" : "", name);
    return id.text;
}

/* ---- where code lies ---- */

/* A built-in kernel whose code is elsewhere would be timed in the place of another build; a plugin may well hand out
 * the functions of a library that it wraps, which is said. */
static int check_functions(const struct nb_library *lib, const struct nb_kernel *k, const char *id, const void *base) {
    struct nb_kernel_function functions[NB_N_KERNEL_FUNCTIONS];
    size_t n = nb_kernel_functions(k, functions);
    for (size_t i = 0; i < n; i++) {
        const char *where = "no loaded file";
        if (nb_object_of(functions[i].address, &where) == base) continue;
        if (!lib->plugin)
            return nb_error("%s: %s: its function %s lies in %s; rebuild the kernels with -Bsymbolic", lib->file, id,
                            functions[i].name, where);
        nb_warn("%s: %s: its function %s lies in %s, which is what will be measured", lib->file, id, functions[i].name,
                where);
    }
    return 0;
}

/* ---- one table ---- */

static struct nb_slot *make_slot(const struct nb_library *lib, const struct nb_kernel *k) {
    struct nb_slot *s = nb_alloc(1, sizeof *s);
    memcpy(&s->kernel, k, k->struct_size < sizeof *k ? k->struct_size : sizeof *k);
    s->variant = variant_name(k);
    s->kernel.struct_size = sizeof s->kernel;
    s->kernel.variant = s->variant;
    if (!s->kernel.summary) s->kernel.summary = "";
    s->entry = (struct nb_entry){.kernel = &s->kernel,
                                 .plugin = lib->plugin,
                                 .is_peer = nb_peer_is(lib->file),
                                 .file = lib->file,
                                 .id = qualified(lib->plugin, s->variant),
                                 .kernel_id = qualified(lib->plugin, k->name)};
    return s;
}

/* The entry's name for a message, as far as its struct can be trusted to hold one. */
static const char *name_in_table(const struct nb_kernel *k) {
    bool has_name = k->struct_size >= offsetof(struct nb_kernel, run);
    return has_name && nb_name_is_plain(k->name) ? k->name : "no name";
}

static int read_entry(const struct nb_library *lib, const struct nb_kernel *k, const void *base, size_t i,
                      struct nb_slots *out) {
    char reason[160];
    if (!k) return nb_error("%s: entry %zu of its table is null", lib->file, i);
    if (nb_kernel_validate(k, reason, sizeof reason) != 0)
        return nb_error("%s: entry %zu of its table (%s): %s", lib->file, i, name_in_table(k), reason);
    if (!lib->plugin && !k->variant)
        return nb_error("%s: entry %zu of its table (%s): variant is null", lib->file, i, k->name);
    struct nb_slot *s = out->items[out->n++] = make_slot(lib, k);
    if (strlen(s->entry.id) >= NB_VARIANT_MAX)
        return nb_error("%s: the name %s is longer than %d characters", lib->file, s->entry.id, NB_VARIANT_MAX - 1);
    return check_functions(lib, &s->kernel, s->entry.id, base);
}

struct table_call {
    kernels_fn kernels;
    const struct nb_kernel *const *table;
    size_t n;
};
static void ask_for_table(void *arg) {
    struct table_call *t = arg;
    t->table = t->kernels(NB_ABI_VERSION, &t->n);
}

int nb_kernel_table_read(const struct nb_library *lib, struct nb_slots *out) {
    enum { MAX_KERNELS = 100000 };
    size_t n = 0;
    void *symbol = nb_object_symbol(lib->handle, lib->path, "normbench_kernels");
    if (!symbol)
        return nb_error("%s: does not export normbench_kernels(); a plugin defines it as kernels/kernel.h says",
                        lib->file);
    struct table_call asked = {.kernels = (kernels_fn)(uintptr_t)symbol};
    const char *why = nb_guarded(ask_for_table, &asked, 10);
    if (why) return nb_error("%s: normbench_kernels() does not return: %s", lib->file, why);
    const struct nb_kernel *const *table = asked.table;
    n = asked.n;
    if (!table) {
        nb_error("%s: does not serve kernel ABI version %d; rebuild it against this program's kernels/kernel.h",
                 lib->file, NB_ABI_VERSION);
        return NB_OTHER_ABI;
    }
    if (n == 0 || n > MAX_KERNELS) return nb_error("%s: its table says %zu kernels", lib->file, n);
    out->items = nb_alloc(n, sizeof *out->items);
    const void *base = nb_object_of(symbol, NULL);
    for (size_t i = 0; i < n; i++)
        if (read_entry(lib, table[i], base, i, out) != 0) return -1;
    nb_slots_sort(out, nb_slots_by_id);
    for (size_t i = 1; i < n; i++)
        if (strcmp(out->items[i - 1]->entry.id, out->items[i]->entry.id) == 0)
            return nb_error("%s: its table has %s twice", lib->file, out->items[i]->entry.id);
    return 0;
}
