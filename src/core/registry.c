// SPDX-License-Identifier: Apache-2.0
/* Loads shared objects with kernels, here or in the guard, and keeps what their tables say. The lists of loaded files and entries are the
 * process's own: what is mapped is a property of the process too. */
#include "src/core/registry.h"

#include <assert.h>
#include <dlfcn.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/log.h"
#include "src/core/peers.h"

typedef const struct nb_kernel *const *(*kernels_fn)(uint32_t abi_version, size_t *n);

struct library {
    void *handle; /* null: loaded in the guard, or a program */
    struct nb_kernel_program *program;
    char *file;   /* as the user named it: a path, or "peer:NAME[=LIBRARY]" */
    char *path;   /* of the shared object itself */
    char *plugin; /* null: built in */
};

/* An entry with what it owns. */
struct owned_entry {
    struct nb_entry entry;
    struct nb_kernel kernel;
    char *variant, *name, *summary; /* name, summary: null where they are the file's own */
    bool is_described;              /* in the guard's place */
    bool is_silent;                 /* it failed to answer a question */
};

enum { MAX_KERNELS = 100000 };

struct entry_list {
    struct owned_entry **items;
    size_t n;
};

static struct library *libraries;
static size_t n_libraries;
static struct entry_list by_order;
static struct nb_text_map by_id; /* their places there */

/* ---- lists ---- */

static void free_entry(struct owned_entry *s) {
    nb_free_all(s->variant, s->name, s->summary, s->entry.id, s->entry.kernel_id, s->entry.code_file, s);
}

static void free_entries(struct entry_list *list) {
    for (size_t i = 0; i < list->n; i++) free_entry(list->items[i]);
    free(list->items);
    *list = (struct entry_list){0};
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

static void index_entries(void) {
    if (by_order.n > 1) qsort(by_order.items, by_order.n, sizeof *by_order.items, compare_by_order);
    nb_text_map_release(&by_id);
    for (size_t i = 0; i < by_order.n; i++) nb_text_map_add(&by_id, by_order.items[i]->entry.id, i);
}

/* ---- the table of a shared object: it comes from outside, so that every entry is checked before it is used,
 * and copied into this program's own size ---- */

static char *variant_name(const struct nb_kernel *k) {
    static const char *const suffixes[NB_N_WIDTHS] = {"scalar", "v128", "v256", "v256x", "v512", "native"};
    if (k->variant) return nb_strdup(k->variant);
    return nb_textf("%s_%s_%s", k->name, suffixes[k->width], nb_formats[k->dtype].name);
}

static char *qualified(const char *plugin, const char *name) {
    return nb_textf("%s%s%s", plugin ? plugin : "", plugin ? ":" : "", name);
}

/* ---- where code lies ---- */

/* A built-in kernel whose code is elsewhere would be timed in the place of another build; a plugin may well hand out
 * the functions of a library that it wraps, which is said. */
static int place_functions(const struct library *lib, struct nb_entry *e, const void *base) {
    const char *file = "no loaded file";
    const void *code = nb_object_of((void *)(uintptr_t)e->kernel->run, &file);
    if (lib->program) file = lib->path;
    e->code_file = nb_strdup(file);
    for (size_t i = 0; i < NB_N_KERNEL_FUNCTIONS; i++) {
        const char *where = "no loaded file", *name = nb_kernel_functions[i].name;
        void *const function = nb_kernel_function(e->kernel, i);
        e->functions[i] = NB_NO_FUNCTION;
        if (!function || lib->program) continue;
        const void *object = nb_object_of(function, &where);
        e->is_apart |= object != code;
        e->functions[i] = (uint64_t)((uintptr_t)function - (uintptr_t)object);
        if (object == base) continue;
        if (!lib->plugin)
            return nb_error("%s: %s: its function %s lies in %s; rebuild the kernels with -Bsymbolic", lib->file, e->id,
                            name, where);
        nb_warn("%s: %s: its function %s lies in %s, which is what will be measured", lib->file, e->id, name, where);
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
    return place_functions(lib, &s->entry, base);
}

static int refuse_twins(const struct library *lib, const struct entry_list *out) {
    struct nb_text_map ids released_by(nb_text_map_release) = {0};
    for (size_t i = 0; i < out->n; i++)
        if (nb_text_map_add(&ids, out->items[i]->entry.id, i) != NB_NOWHERE)
            return nb_error("%s: its table has %s twice", lib->file, out->items[i]->entry.id);
    return 0;
}

/* -1 after nb_error, or NB_OTHER_ABI; what was read until then is in out all the same. */
static int read_table(const struct library *lib, struct entry_list *out) {
    size_t n = 0;
    void *symbol = nb_object_symbol(lib->handle, lib->path, "normbench_kernels");
    if (!symbol)
        return nb_error("%s: does not export normbench_kernels(); a plugin defines it as kernels/kernel.h says",
                        lib->file);
    const struct nb_kernel *const *table = ((kernels_fn)(uintptr_t)symbol)(NB_ABI_VERSION, &n);
    if (!table)
        return nb_error("%s: does not serve kernel ABI version %d; rebuild it against this program's kernels/kernel.h",
                        lib->file, NB_ABI_VERSION),
               NB_OTHER_ABI;
    if (n == 0 || n > MAX_KERNELS) return nb_error("%s: its table says %zu kernels", lib->file, n);
    out->items = nb_alloc(n, sizeof *out->items);
    const void *base = nb_object_of(symbol, NULL);
    for (size_t i = 0; i < n; i++)
        if (read_entry(lib, table[i], base, i, out) != 0) return -1;
    return refuse_twins(lib, out);
}

/* The same of a program. */
static int read_program(struct library *lib, struct entry_list *out) {
    size_t n;
    lib->program = nb_programs()->start(lib->file, &n);
    if (!lib->program) return -1;
    out->items = nb_alloc(n, sizeof *out->items);
    for (size_t i = 0; i < n; i++)
        if (read_entry(lib, nb_programs()->table(lib->program, i), NULL, i, out) != 0) return -1;
    return refuse_twins(lib, out);
}

/* ---- one file ---- */

static const char own_prefix[] = "libnormkernels_"; /* of our libraries for other backends */

char *nb_plugin_name(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    const size_t n = sizeof own_prefix - 1;
    char *name = nb_strdup(strncmp(file, own_prefix, n) == 0 && file[n] != '.' ? file + n : file);
    const size_t len = strlen(name);
    if (len > 3 && strcmp(name + len - 3, ".py") == 0) name[len - 3] = '\0';
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

static bool is_loaded(const struct library *lib) {
    for (size_t i = 0; i < n_libraries; i++)
        if (lib->handle ? libraries[i].handle == lib->handle : strcmp(libraries[i].file, lib->file) == 0) return true;
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

static void free_library(struct library *lib) {
    if (lib->handle) dlclose(lib->handle);
    nb_programs()->free(lib->program);
    nb_free_all(lib->file, lib->path, lib->plugin);
}

static void keep(const struct library *lib, struct entry_list *found) {
    *NB_PUSH(libraries, n_libraries) = *lib;
    by_order.items = nb_realloc(by_order.items, by_order.n + found->n, sizeof *by_order.items);
    for (size_t i = 0; i < found->n; i++) by_order.items[by_order.n++] = found->items[i];
    index_entries();
    free(found->items);
}

/* path, plugin: owned from now on; peer_library: what a peer is to load, or null. */
static int load(const char *file, char *path, char *plugin, const char *peer_library) {
    struct library lib = {.file = nb_strdup(file), .path = path, .plugin = plugin};
    struct entry_list found = {0};
    const bool is_program = plugin && !nb_peer_is(file) && nb_programs()->is(file);
    int result = -1;
    if (!is_program && !(lib.handle = nb_object_open(path))) goto out;
    if (is_loaded(&lib)) {
        result = loaded_already(&lib);
        goto out;
    }
    if (check_plugin_name(&lib) != 0) goto out;
    if (nb_peer_is(file) && nb_peer_use(lib.handle, path, plugin, peer_library) != 0) goto out;
    if ((result = is_program ? read_program(&lib, &found) : read_table(&lib, &found)) != 0) goto out;
    keep(&lib, &found);
    return 0;
out:
    free_entries(&found);
    free_library(&lib);
    return result;
}

/* The shared object that the user means, and the name that its kernels are known by. */
static void resolve(const char *file, char **path, char **plugin, const char **peer_library) {
    *peer_library = NULL;
    *plugin = nb_peer_is(file) ? nb_peer_name(file, peer_library) : nb_plugin_name(file);
    *path = nb_peer_is(file) ? nb_peer_adapter(*plugin) : nb_strdup(file);
}

int nb_registry_load(const char *file) {
    char *path, *plugin;
    const char *peer_library;
    resolve(file, &path, &plugin, &peer_library);
    return load(file, path, plugin, peer_library);
}

static char *beside_program(const char *program, const char *file) {
    char *path = nb_path_found(nb_path_join(program, file));
    return path ? path : nb_path_found(nb_textf("%s/../lib/normbench/%s", program, file));
}

int nb_registry_load_builtin(void) {
    const char *named = getenv("NORMBENCH_KERNELS");
    if (named && *named) return load(named, nb_strdup(named), NULL, NULL);
    char *program freed = nb_program_dir(), *path freed = beside_program(program, "libnormkernels.so");
    if (path) return load(path, nb_strdup(path), NULL, NULL);
    return nb_error(
        "no libnormkernels.so in %s or its ../lib/normbench; build it with make, or name it in NORMBENCH_KERNELS",
        program);
}

char *nb_backend_library(enum nb_backend backend) {
    static const char *const names[NB_N_BACKENDS] = {
        NULL, "libnormkernels_cuda.so", "libnormkernels_cuda_emulated.so"}; /* own_prefix and the plugin's name */
    assert(backend > NB_BACKEND_CPU && backend < NB_N_BACKENDS);
    const char *named = getenv("NORMBENCH_KERNELS"), *slash = named ? strrchr(named, '/') : NULL;
    char *program freed = nb_program_dir();
    char *path = slash ? nb_path_found(nb_textf("%.*s/%s", (int)(slash - named), named, names[backend])) : NULL;
    return path ? path : beside_program(program, names[backend]);
}

/* ---- reading ---- */

size_t nb_registry_size(void) { return by_order.n; }

const struct nb_entry *nb_registry_at(size_t i) { return i < by_order.n ? &by_order.items[i]->entry : NULL; }

const struct nb_entry *nb_registry_find(const char *id) {
    const size_t at = nb_text_map_find(&by_id, id);
    return at == NB_NOWHERE ? NULL : nb_registry_at(at);
}

static bool is_name_of(const char *pattern, const char *qualified_name) {
    const char *colon = strchr(qualified_name, ':');
    return fnmatch(pattern, qualified_name, 0) == 0 || (colon && fnmatch(pattern, colon + 1, 0) == 0);
}

bool nb_entry_is_named(const struct nb_entry *entry, const char *pattern) {
    return is_name_of(pattern, entry->kernel_id) || is_name_of(pattern, entry->id);
}

static const char **all_names(size_t *n) {
    size_t n_known;
    const struct nb_entry *catalogue = nb_catalogue(&n_known);
    const char **names = nb_alloc(2 * (by_order.n + n_known) + 1, sizeof *names);
    *n = 0;
    for (size_t i = 0; i < by_order.n + n_known; i++) {
        const struct nb_entry *e = i < by_order.n ? nb_registry_at(i) : &catalogue[i - by_order.n];
        names[(*n)++] = e->kernel_id;
        names[(*n)++] = e->id;
    }
    return names;
}

void nb_registry_suggest(const char *name, struct nb_strbuf *out) {
    enum { MOST = 3 };
    size_t n;
    const char **names freed = all_names(&n), *nearest;
    for (int i = 0; i < MOST && (nearest = nb_nearest(name, names, n)) != NULL; i++) {
        size_t kept = 0;
        nb_strbuf_addf(out, "%s%s", i ? ", " : "; near it: ", nearest);
        for (size_t k = 0; k < n; k++)
            if (strcmp(names[k], nearest) != 0) names[kept++] = names[k];
        n = kept;
    }
}

/* What is wrong with a name that stands for none, or for several. */
static void refuse_name(const char *option, const char *name, size_t n) {
    struct nb_strbuf why released_by(nb_strbuf_release) = {0};
    size_t n_known;
    const struct nb_entry *catalogue = nb_catalogue(&n_known), *absent = NULL;
    for (size_t i = 0; i < n_known && n == 0; i++)
        if (strcmp(catalogue[i].id, name) == 0) absent = &catalogue[i];
    if (absent) {
        nb_strbuf_addf(&why, "is not built: %s", nb_catalogue_remedy(absent));
    } else if (n == 0) {
        nb_strbuf_add(&why, "no kernel has this name");
        nb_registry_suggest(name, &why);
        nb_strbuf_addf(&why, "; %s",
                       strchr(name, ':') ? "--plugin FILE or --peer NAME loads other kernels"
                                         : "`normbench list kernels` has the names");
    } else {
        nb_strbuf_addf(&why, "name one of its %zu variants:", n);
        for (size_t i = 0, said = 0; i < by_order.n; i++)
            if (nb_entry_is_named(nb_registry_at(i), name))
                nb_strbuf_addf(&why, "%s %s", said++ ? "," : "", nb_registry_at(i)->id);
    }
    nb_error("%s'%s': %s", option, name, why.text);
}

const struct nb_entry *nb_registry_meant(const char *option, const char *name) {
    const struct nb_entry *found = nb_registry_find(name);
    size_t n = 0;
    if (found) return found;
    for (size_t i = 0; i < by_order.n; i++) {
        if (!nb_entry_is_named(nb_registry_at(i), name)) continue;
        found = nb_registry_at(i);
        n++;
    }
    if (n == 1) return found;
    refuse_name(option, name, n);
    return NULL;
}

const struct nb_entry *nb_registry_widest(const char *kernel_id, enum nb_dtype dtype) {
    const struct nb_entry *widest = NULL;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        const struct nb_kernel *k = e->kernel;
        if ((strcmp(e->kernel_id, kernel_id) != 0 && strcmp(e->id, kernel_id) != 0) || k->dtype != (uint32_t)dtype)
            continue;
        if (nb_cpu_refuses(k->cpu_features, k->width)) continue;
        if (!widest || k->width > widest->kernel->width) widest = e;
    }
    return widest;
}

bool nb_registry_has_kernel(const char *kernel_id) {
    for (size_t i = 0; i < by_order.n; i++)
        if (strcmp(by_order.items[i]->entry.kernel_id, kernel_id) == 0) return true;
    return false;
}

static bool may_run(enum nb_width width) {
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (!e->plugin && e->kernel->width == (uint32_t)width && !nb_cpu_refuses(e->kernel->cpu_features, width))
            return true;
    }
    return false;
}

enum nb_width nb_registry_vector_width(void) { return !may_run(NB_256) && may_run(NB_128) ? NB_128 : NB_256; }

void nb_case_set_entry(struct nb_case *c, const struct nb_entry *entry) {
    nb_case_set_kernel(c, entry->kernel, entry->plugin);
    c->is_peer = entry->is_peer;
}

const char *nb_registry_file(size_t i) { return i < n_libraries ? libraries[i].path : NULL; }

void nb_registry_release(void) {
    nb_guard_end();
    nb_text_map_release(&by_id);
    free_entries(&by_order);
    for (size_t i = 0; i < n_libraries; i++) free_library(&libraries[i]);
    free(libraries);
    libraries = NULL;
    n_libraries = 0;
}

void nb_registry_rest(void) {
    for (size_t i = 0; i < n_libraries; i++)
        if (libraries[i].program) nb_programs()->rest(libraries[i].program);
}

/* ---- in the guard ---- */

enum { LOAD_LIMIT_S = 10, PEER_LIMIT_S = 120 /* half a GB of libraries from a cold disk */, ANSWER_LIMIT_S = 2 };

struct loading {
    char file[PATH_MAX + NB_VARIANT_MAX];
    int result;
    size_t n; /* kernels of the file */
};

static void load_there(void *arg) {
    struct loading *l = arg;
    const size_t before = by_order.n;
    l->result = nb_registry_load(l->file);
    nb_registry_rest(); /* what their tables say is all that is asked of programs here */
    l->n = by_order.n - before;
}

/* What this process, forked, knew of the guard before. */
static void forget_described(void) {
    struct entry_list kept = {.items = nb_alloc(by_order.n + 1, sizeof *kept.items)};
    for (size_t i = 0; i < by_order.n; i++)
        if (!by_order.items[i]->is_described) kept.items[kept.n++] = by_order.items[i];
    by_order = kept;
    index_entries();
}

/* A new guard loads again what the last one had. */
static void load_again(void) {
    struct library *known = libraries;
    const size_t n = n_libraries;
    forget_described();
    libraries = NULL;
    n_libraries = 0;
    for (size_t i = 0; i < n; i++)
        if (known[i].handle) keep(&known[i], &(struct entry_list){0});
    const bool was_quiet = nb_log_quiet(true);
    for (size_t i = 0; i < n; i++)
        if (!known[i].handle) nb_registry_load(known[i].file);
    nb_log_quiet(was_quiet);
    nb_registry_rest();
}

/* An entry as it goes from the guard to this process: no address in it is good here. */
struct description {
    char file[PATH_MAX + NB_VARIANT_MAX];
    size_t i; /* of the file's kernels */
    struct nb_kernel kernel;
    char name[NB_VARIANT_MAX], variant[NB_VARIANT_MAX], summary[400], code_file[PATH_MAX];
    uint64_t functions[NB_N_KERNEL_FUNCTIONS];
    bool is_apart, is_found;
};

static const struct nb_entry *entry_of_file(const char *file, size_t i) {
    for (size_t at = 0; at < by_order.n; at++)
        if (strcmp(by_order.items[at]->entry.file, file) == 0 && i-- == 0) return &by_order.items[at]->entry;
    return NULL;
}

static void describe_there(void *arg) {
    struct description *d = arg;
    const struct nb_entry *e = entry_of_file(d->file, d->i);
    if (!(d->is_found = e != NULL)) return;
    d->kernel = *e->kernel;
    snprintf(d->name, sizeof d->name, "%s", e->kernel->name);
    snprintf(d->variant, sizeof d->variant, "%s", e->kernel->variant);
    snprintf(d->summary, sizeof d->summary, "%s", e->kernel->summary);
    snprintf(d->code_file, sizeof d->code_file, "%s", e->code_file);
    memcpy(d->functions, e->functions, sizeof d->functions);
    d->is_apart = e->is_apart;
}

/* ---- here, of what is loaded there ---- */

/* A text from there: it ends, and no terminal takes it for a command. */
static char *plain_text(char *text, size_t size) {
    text[size - 1] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
    return nb_strdup(text);
}

static struct owned_entry *described_entry(const struct library *lib, struct description *d) {
    struct nb_kernel kernel = d->kernel;
    char *name = plain_text(d->name, sizeof d->name), *variant freed = plain_text(d->variant, sizeof d->variant);
    kernel.struct_size = offsetof(struct nb_kernel, applicable); /* what stands behind are functions */
    kernel.run = nb_kernel_elsewhere;
    kernel.name = name;
    kernel.variant = variant;
    kernel.summary = NULL;
    struct owned_entry *s = make_entry(lib, &kernel);
    s->is_described = true;
    s->name = name;
    s->kernel.struct_size = kernel.struct_size;
    s->kernel.backend = d->kernel.backend;
    s->kernel.summary = s->summary = plain_text(d->summary, sizeof d->summary);
    s->entry.code_file = plain_text(d->code_file, sizeof d->code_file);
    s->entry.is_apart = d->is_apart;
    memcpy(s->entry.functions, d->functions, sizeof d->functions);
    return s;
}

static int describe_entry(const struct library *lib, size_t i, struct entry_list *out) {
    char reason[160];
    static struct description d;
    d = (struct description){.i = i};
    snprintf(d.file, sizeof d.file, "%s", lib->file);
    const char *why = nb_guarded(describe_there, &d, sizeof d, ANSWER_LIMIT_S);
    if (why) return nb_error("%s: its code %s while its kernels were listed", lib->file, why);
    if (!d.is_found) return nb_error("%s: its kernels are gone while they are listed", lib->file);
    struct owned_entry *s = out->items[out->n++] = described_entry(lib, &d);
    if (nb_kernel_validate(&s->kernel, reason, sizeof reason) != 0 || strlen(s->entry.id) >= NB_VARIANT_MAX)
        return nb_error("%s: entry %zu of its table is not what it was", lib->file, i);
    return 0;
}

static bool is_described(const char *file) {
    for (size_t i = 0; i < n_libraries; i++)
        if (!libraries[i].handle && strcmp(libraries[i].file, file) == 0) return true;
    return false;
}

int nb_registry_describe(const char *file) {
    static struct loading l;
    struct library lib = {.file = nb_strdup(file)};
    struct entry_list found = {0};
    const char *peer_library;
    l = (struct loading){.result = -1};
    snprintf(l.file, sizeof l.file, "%s", file);
    nb_guard_begins_with(load_again);
    resolve(file, &lib.path, &lib.plugin, &peer_library);
    const double limit_s = nb_load_timeout_s(nb_peer_is(file)          ? PEER_LIMIT_S
                                             : nb_programs()->is(file) ? nb_programs()->load_s
                                                                       : LOAD_LIMIT_S);
    const char *why =
        strlen(file) < sizeof l.file ? nb_guarded(load_there, &l, sizeof l, limit_s) : "has too long a name";
    if (why) {
        nb_error("%s: cannot be loaded: its code %s%s", file, why,
                 strstr(why, "did not end") ? "; --load-timeout gives it longer" : "");
        l.result = -1;
    }
    if (l.result == 0 && l.n > MAX_KERNELS)
        l.result = nb_error("%s: its table says %zu kernels; at most %d are allowed", file, l.n, MAX_KERNELS);
    bool is_new = l.result == 0 && !is_described(file) && l.n > 0;
    if (is_new) found.items = nb_alloc(l.n, sizeof *found.items);
    for (size_t i = 0; is_new && i < l.n && l.result == 0; i++) l.result = describe_entry(&lib, i, &found);
    if (is_new && l.result == 0) {
        keep(&lib, &found);
        return 0;
    }
    free_entries(&found);
    free_library(&lib);
    return l.result;
}

/* ---- questions ---- */

struct question {
    char id[NB_VARIANT_MAX];
    struct nb_call call;
    struct nb_tuning tuning;
    bool is_of_rows; /* row_local(), or applicable() */
    char refusal[200];
    bool refused, row_local;
};

static void answer(void *arg) {
    struct question *q = arg;
    const struct nb_entry *entry = nb_registry_find(q->id);
    if (q->call.tuning) q->call.tuning = &q->tuning;
    if (q->is_of_rows) {
        q->row_local = entry && nb_kernel_row_local(entry->kernel, &q->call) != 0;
        return;
    }
    const char *reason = entry ? nb_kernel_applicable(entry->kernel, &q->call) : "its file is not loaded any more";
    snprintf(q->refusal, sizeof q->refusal, "%s", reason ? reason : "");
    q->refused = reason != NULL;
}

/* False when there was no answer. */
static bool ask(const struct nb_entry *entry, const struct nb_call *call, bool is_of_rows, struct question *q) {
    struct owned_entry *s = (struct owned_entry *)((char *)(uintptr_t)entry - offsetof(struct owned_entry, entry));
    if (s->is_silent) return false;
    *q = (struct question){.call = *call, .is_of_rows = is_of_rows};
    snprintf(q->id, sizeof q->id, "%s", entry->id);
    if (call->tuning) q->tuning = *call->tuning;
    const char *why = nb_guarded(answer, q, sizeof *q, ANSWER_LIMIT_S);
    if (!why) return true;
    nb_warn("%s: %s() does not answer: it %s; its cases will say so", entry->id,
            is_of_rows ? "row_local" : "applicable", why);
    s->is_silent = true;
    return false;
}

const char *nb_ask_applicable(const struct nb_entry *entry, const struct nb_call *call) {
    static struct question q;
    if (entry->kernel->run != nb_kernel_elsewhere) return nb_kernel_applicable(entry->kernel, call);
    if (!ask(entry, call, false, &q) || !q.refused) return NULL;
    q.refusal[sizeof q.refusal - 1] = '\0';
    return q.refusal;
}

bool nb_ask_row_local(const struct nb_entry *entry, const struct nb_call *call) {
    struct question q;
    if (entry->kernel->run != nb_kernel_elsewhere) return nb_kernel_row_local(entry->kernel, call) != 0;
    return ask(entry, call, true, &q) && q.row_local;
}
