// SPDX-License-Identifier: Apache-2.0
/* Loads shared objects with kernels and keeps what their tables say. The lists of loaded files and entries are the process's
 * own: what is mapped is a property of the process too. */
#include "src/core/registry.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/foreign.h"
#include "src/core/kernel_table.h"
#include "src/core/log.h"
#include "src/core/peers.h"

static struct nb_library *libraries;
static size_t n_libraries;
static struct nb_slots by_order, by_id; /* the same slots, sorted twice */

static int compare_by_order(const void *a, const void *b) {
    const struct nb_entry *p = &(*(struct nb_slot *const *)a)->entry, *q = &(*(struct nb_slot *const *)b)->entry;
    int order = strcmp(p->plugin ? p->plugin : "", q->plugin ? q->plugin : "");
    if (order == 0) order = strcmp(p->kernel->name, q->kernel->name);
    if (order == 0) order = (int)p->kernel->dtype - (int)q->kernel->dtype;
    if (order == 0) order = (int)p->kernel->width - (int)q->kernel->width;
    return order ? order : strcmp(p->id, q->id);
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

static int check_plugin_name(const struct nb_library *lib) {
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
static int loaded_already(const struct nb_library *lib) {
    for (size_t i = 0; i < n_libraries; i++)
        if (libraries[i].handle == lib->handle && nb_peer_is(lib->file) && strcmp(libraries[i].file, lib->file) != 0)
            return nb_error("%s and %s: one version of a peer's library at a time", libraries[i].file, lib->file);
    nb_note("%s: is loaded already", lib->file);
    return 0;
}

/* path, plugin: owned from now on; peer_library: what a peer is to load, or null. */
static int load(const char *file, char *path, char *plugin, const char *peer_library) {
    struct nb_library lib = {.file = nb_strdup(file), .path = path, .plugin = plugin};
    struct nb_slots found = {0};
    int result = -1;
    lib.handle = nb_object_open(path);
    if (!lib.handle) goto out;
    if (is_loaded(lib.handle)) {
        result = loaded_already(&lib);
        goto out;
    }
    if (check_plugin_name(&lib) != 0) goto out;
    if (nb_peer_is(file) && nb_peer_use(lib.handle, path, plugin, peer_library) != 0) goto out;
    if ((result = nb_kernel_table_read(&lib, &found)) != 0) goto out;
    libraries = nb_realloc(libraries, n_libraries + 1, sizeof *libraries);
    libraries[n_libraries++] = lib;
    nb_slots_append(&by_order, &found);
    nb_slots_append(&by_id, &found);
    nb_slots_sort(&by_order, compare_by_order);
    nb_slots_sort(&by_id, nb_slots_by_id);
    free(found.items);
    return 0;
out:
    nb_slots_free(&found);
    if (lib.handle) dlclose(lib.handle);
    free(lib.file);
    free(lib.path);
    free(lib.plugin);
    return result;
}

int nb_registry_load(const char *file) {
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
    nb_case_set_kernel(c, entry->kernel, entry->plugin);
    c->is_peer = entry->is_peer;
}

const char *nb_registry_file(size_t i) { return i < n_libraries ? libraries[i].path : NULL; }

void nb_registry_release(void) {
    free(by_id.items);
    by_id = (struct nb_slots){0};
    nb_slots_free(&by_order);
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
