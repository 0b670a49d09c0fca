// SPDX-License-Identifier: Apache-2.0
/* Loads shared objects with kernels and keeps what their tables say. The lists of loaded files and entries are the process's
 * own: what is mapped is a property of the process too. */
#include "src/core/registry.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/foreign.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/core/text.h"

typedef const struct nb_kernel *const *(*kernels_fn)(uint32_t abi_version, size_t *n);

struct library {
    void *handle;
    char *file;   /* as the user named it: a path, or "peer:NAME[=LIBRARY]" */
    char *path;   /* of the shared object itself */
    char *plugin; /* null: built in */
};

/* An entry with what it owns. */
struct owned_entry {
    struct nb_entry entry;
    struct nb_kernel kernel;
    char *variant;
};

struct entry_list {
    struct owned_entry **items;
    size_t n;
};

static struct library *libraries;
static size_t n_libraries;
static struct entry_list by_order, by_id; /* the same entries, sorted twice */

/* ---- lists ---- */

static void free_entry(struct owned_entry *s) {
    free(s->variant);
    free(s->entry.id);
    free(s->entry.kernel_id);
    free(s);
}

static void free_entries(struct entry_list *list) {
    for (size_t i = 0; i < list->n; i++) free_entry(list->items[i]);
    free(list->items);
    *list = (struct entry_list){0};
}

static void append_entries(struct entry_list *list, const struct entry_list *more) {
    list->items = nb_realloc(list->items, list->n + more->n, sizeof *list->items);
    for (size_t i = 0; i < more->n; i++) list->items[list->n++] = more->items[i];
}

static int compare_by_id(const void *a, const void *b) {
    return strcmp((*(struct owned_entry *const *)a)->entry.id, (*(struct owned_entry *const *)b)->entry.id);
}

static void sort_entries(struct entry_list *list, int (*compare)(const void *, const void *)) {
    if (list->n > 1) qsort(list->items, list->n, sizeof *list->items, compare);
}

static int compare_by_order(const void *a, const void *b) {
    const struct nb_entry *p = &(*(struct owned_entry *const *)a)->entry,
                          *q = &(*(struct owned_entry *const *)b)->entry;
    int order = strcmp(p->plugin ? p->plugin : "", q->plugin ? q->plugin : "");
    if (order == 0) order = strcmp(p->kernel->name, q->kernel->name);
    if (order == 0) order = (int)p->kernel->dtype - (int)q->kernel->dtype;
    if (order == 0) order = (int)p->kernel->width - (int)q->kernel->width;
    return order ? order : strcmp(p->id, q->id);
}

/* ---- the table of a shared object: it comes from outside, so that every entry is checked before it is used,
 * and copied into this program's own size ---- */

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
static int check_functions(const struct library *lib, const struct nb_kernel *k, const char *id, const void *base) {
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

static struct owned_entry *make_entry(const struct library *lib, const struct nb_kernel *k) {
    struct owned_entry *s = nb_alloc(1, sizeof *s);
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

static int read_entry(const struct library *lib, const struct nb_kernel *k, const void *base, size_t i,
                      struct entry_list *out) {
    char reason[160];
    if (!k) return nb_error("%s: entry %zu of its table is null", lib->file, i);
    if (nb_kernel_validate(k, reason, sizeof reason) != 0)
        return nb_error("%s: entry %zu of its table (%s): %s", lib->file, i, name_in_table(k), reason);
    if (!lib->plugin && !k->variant)
        return nb_error("%s: entry %zu of its table (%s): variant is null", lib->file, i, k->name);
    struct owned_entry *s = out->items[out->n++] = make_entry(lib, k);
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

/* -1 after nb_error, or NB_OTHER_ABI; what was read until then is in out all the same. Sorted by id. */
static int read_table(const struct library *lib, struct entry_list *out) {
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
    sort_entries(out, compare_by_id);
    for (size_t i = 1; i < n; i++)
        if (strcmp(out->items[i - 1]->entry.id, out->items[i]->entry.id) == 0)
            return nb_error("%s: its table has %s twice", lib->file, out->items[i]->entry.id);
    return 0;
}

/* ---- one file ---- */

/* "dir/libfoo.so.1" -> "foo"; owned. */
static char *plugin_name(const char *path) {
    const char *slash = strrchr(path, '/');
    char *name = nb_strdup(slash ? slash + 1 : path);
    for (char *end = name; (end = strstr(end, ".so")) != NULL; end++) {
        if (end[3] != '\0' && end[3] != '.') continue;
        *end = '\0';
        break;
    }
    if (strncmp(name, "lib", 3) == 0 && name[3] != '\0') memmove(name, name + 3, strlen(name + 3) + 1);
    return name;
}

static int check_plugin_name(const struct library *lib) {
    if (!lib->plugin) return 0;
    if (!nb_name_is_plain(lib->plugin))
        return nb_error("%s: a plugin is known by its file name, which must be letters, digits, '_', '.', '+' or '-'",
                        lib->file);
    for (size_t i = 0; i < n_libraries; i++)
        if (libraries[i].plugin && strcmp(libraries[i].plugin, lib->plugin) == 0)
            return nb_error("%s: a plugin named %s is loaded from %s; rename one of the files", lib->file, lib->plugin,
                            libraries[i].file);
    return 0;
}

static bool is_loaded(void *handle) {
    for (size_t i = 0; i < n_libraries; i++)
        if (libraries[i].handle == handle) return true;
    return false;
}

/* Two versions of a library in one process would find each other's symbols. */
static int loaded_already(const struct library *lib) {
    for (size_t i = 0; i < n_libraries; i++)
        if (libraries[i].handle == lib->handle && nb_peer_is(lib->file) && strcmp(libraries[i].file, lib->file) != 0)
            return nb_error("%s and %s: one version of a peer's library at a time", libraries[i].file, lib->file);
    nb_note("%s: is loaded already", lib->file);
    return 0;
}

/* path, plugin: owned from now on; peer_library: what a peer is to load, or null. */
static int load(const char *file, char *path, char *plugin, const char *peer_library) {
    struct library lib = {.file = nb_strdup(file), .path = path, .plugin = plugin};
    struct entry_list found = {0};
    int result = -1;
    lib.handle = nb_object_open(path);
    if (!lib.handle) goto out;
    if (is_loaded(lib.handle)) {
        result = loaded_already(&lib);
        goto out;
    }
    if (check_plugin_name(&lib) != 0) goto out;
    if (nb_peer_is(file) && nb_peer_use(lib.handle, path, plugin, peer_library) != 0) goto out;
    if ((result = read_table(&lib, &found)) != 0) goto out;
    libraries = nb_realloc(libraries, n_libraries + 1, sizeof *libraries);
    libraries[n_libraries++] = lib;
    append_entries(&by_order, &found);
    append_entries(&by_id, &found);
    sort_entries(&by_order, compare_by_order);
    sort_entries(&by_id, compare_by_id);
    free(found.items);
    return 0;
out:
    free_entries(&found);
    if (lib.handle) dlclose(lib.handle);
    free(lib.file);
    free(lib.path);
    free(lib.plugin);
    return result;
}

int nb_registry_load(const char *file) {
    assert(file);
    const char *library = NULL;
    if (!nb_peer_is(file)) return load(file, nb_strdup(file), plugin_name(file), NULL);
    char *name = nb_peer_name(file, &library);
    return load(file, nb_peer_adapter(name), name, library);
}

int nb_registry_load_builtin(void) {
    static const char *const places[] = {"libnormkernels.so", "../lib/libnormkernels.so"};
    const char *named = getenv("NORMBENCH_KERNELS");
    if (named && *named) return load(named, nb_strdup(named), NULL, NULL);
    char *program = nb_program_dir(), *path = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        path = nb_path_join(program, places[i]);
        if (nb_path_exists(path)) break;
        free(path);
        path = NULL;
    }
    int result = path ? load(path, nb_strdup(path), NULL, NULL)
                      : nb_error("no libnormkernels.so in %s or its ../lib; build it with make, or name it in "
                                 "NORMBENCH_KERNELS",
                                 program);
    free(path);
    free(program);
    return result;
}

/* ---- reading ---- */

size_t nb_registry_size(void) { return by_order.n; }

const struct nb_entry *nb_registry_at(size_t i) { return i < by_order.n ? &by_order.items[i]->entry : NULL; }

const struct nb_entry *nb_registry_find(const char *id) {
    assert(id);
    size_t low = 0, high = by_id.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(id, by_id.items[middle]->entry.id);
        if (order == 0) return &by_id.items[middle]->entry;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

void nb_case_set_entry(struct nb_case *c, const struct nb_entry *entry) {
    assert(c && entry);
    nb_case_set_kernel(c, entry->kernel, entry->plugin);
    c->is_peer = entry->is_peer;
}

const char *nb_registry_file(size_t i) { return i < n_libraries ? libraries[i].path : NULL; }

void nb_registry_release(void) {
    free(by_id.items);
    by_id = (struct entry_list){0};
    free_entries(&by_order);
    for (size_t i = 0; i < n_libraries; i++) {
        dlclose(libraries[i].handle);
        free(libraries[i].file);
        free(libraries[i].path);
        free(libraries[i].plugin);
    }
    free(libraries);
    libraries = NULL;
    n_libraries = 0;
}

/* ---- questions ---- */

/* Questions to plugins go through a guard; the built-in kernels are ours. Who failed to answer is the process's own memory, as the
 * registry is. */

enum { LIMIT_S = 2 };

static const struct nb_entry **silent; /* entries that failed to answer */
static size_t n_silent;

struct question {
    const struct nb_kernel *kernel;
    const struct nb_call *call;
    char refusal[200];
    bool refused, row_local;
};

static void ask_applicable(void *arg) {
    struct question *q = arg;
    const char *reason = nb_kernel_applicable(q->kernel, q->call);
    if (!reason) return;
    snprintf(q->refusal, sizeof q->refusal, "%s", reason); /* read in here: it may point anywhere */
    q->refused = true;
}

static void ask_row_local(void *arg) {
    struct question *q = arg;
    q->row_local = nb_kernel_row_local(q->kernel, q->call) != 0;
}

/* False when there was no answer. */
static bool ask(const struct nb_entry *entry, void (*how)(void *arg), struct question *q, const char *what) {
    if (!entry->plugin) {
        how(q);
        return true;
    }
    for (size_t i = 0; i < n_silent; i++)
        if (silent[i] == entry) return false;
    const char *why = nb_guarded(how, q, LIMIT_S);
    if (!why) return true;
    nb_warn("%s: %s() does not answer: %s; its cases will say so", entry->id, what, why);
    silent = nb_realloc(silent, n_silent + 1, sizeof *silent);
    silent[n_silent++] = entry;
    return false;
}

const char *nb_ask_applicable(const struct nb_entry *entry, const struct nb_call *call) {
    assert(entry && call);
    static struct question q;
    q = (struct question){.kernel = entry->kernel, .call = call};
    return ask(entry, ask_applicable, &q, "applicable") && q.refused ? q.refusal : NULL;
}

bool nb_ask_row_local(const struct nb_entry *entry, const struct nb_call *call) {
    assert(entry && call);
    struct question q = {.kernel = entry->kernel, .call = call};
    return ask(entry, ask_row_local, &q, "row_local") && q.row_local;
}
