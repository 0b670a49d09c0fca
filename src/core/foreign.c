// SPDX-License-Identifier: Apache-2.0
/* Loading of shared objects: RTLD_LOCAL, so that equal names in two builds stay apart, and by the resolved path, since
 * a name without a slash would be searched for in the system's folders. */
#include "src/core/guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "src/core/log.h"

void *nb_object_open(const char *path) {
    struct stat st;
    struct statvfs fs;
    char *resolved freed = realpath(path, NULL);
    void *handle = NULL;
    if (!resolved || stat(resolved, &st) != 0)
        nb_error("%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        nb_error("%s: not a file", path);
    else if (!(handle = dlopen(resolved, RTLD_NOW | RTLD_LOCAL)))
        nb_error(
            "%s: cannot be loaded as a shared object: %s%s", path, dlerror(),
            statvfs(resolved, &fs) == 0 && fs.f_flag & ST_NOEXEC
                ? "; it, or the copy of it that is used, lies on a file system that is mounted noexec: move it, or set TMPDIR"
                : "");
    return handle;
}

static bool is_same_file(const char *path, const char *other) {
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void *nb_object_symbol(void *handle, const char *path, const char *symbol) {
    const char *where = NULL;
    void *address = dlsym(handle, symbol);
    return address && nb_object_of(address, &where) && is_same_file(where, path) ? address : NULL;
}

const void *nb_object_of(const void *address, const char **name) {
    Dl_info info;
    if (!dladdr(address, &info)) return NULL;
    if (name) *name = info.dli_fname;
    return info.dli_fbase;
}

static const char *soname_of(const struct link_map *map) {
    const char *names = NULL;
    size_t at = 0; /* no name begins at 0, which is the empty one */
    for (const ElfW(Dyn) *e = map->l_ld; e->d_tag != DT_NULL; e++) {
        if (e->d_tag == DT_STRTAB) names = (const void *)e->d_un.d_ptr;
        if (e->d_tag == DT_SONAME) at = e->d_un.d_val;
    }
    return names && at ? names + at : NULL;
}

const char *nb_object_soname(const char *path) {
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    struct link_map *map;
    if (!handle) return NULL;
    const char *name = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? soname_of(map) : NULL;
    dlclose(handle);
    return name;
}

const char *nb_object_libraries(const char *path, void (*take)(const char *file, const char *soname, void *arg),
                                void *arg) {
    char *resolved freed = realpath(path, NULL);
    void *handle = resolved ? dlopen(resolved, RTLD_NOW | RTLD_LOCAL) : NULL;
    struct link_map *own;
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &own) != 0) {
        const char *why = dlerror();
        return why ? why : strerror(errno);
    }
    const struct link_map *map = own;
    while (map->l_prev) map = map->l_prev;
    for (; map; map = map->l_next) /* the program's name is empty, and the kernel's own has no slash */
        if (map != own && strchr(map->l_name, '/')) take(map->l_name, soname_of(map), arg);
    return NULL;
}

/* What the loader reads of an object. */
struct dynamic {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * relocations[2]; /* of data and of calls */
    size_t n[2];
    const uint32_t *hash, *gnu_hash; /* which alone say how many symbols there are */
};

static struct dynamic dynamic_of(const struct link_map *map) {
    struct dynamic d = {0};
    for (const ElfW(Dyn) *e = map->l_ld; e->d_tag != DT_NULL; e++) {
        if (e->d_tag == DT_SYMTAB) d.symbols = (const void *)e->d_un.d_ptr;
        if (e->d_tag == DT_STRTAB) d.names = (const void *)e->d_un.d_ptr;
        if (e->d_tag == DT_RELA) d.relocations[0] = (const void *)e->d_un.d_ptr;
        if (e->d_tag == DT_RELASZ) d.n[0] = e->d_un.d_val / sizeof(ElfW(Rela));
        if (e->d_tag == DT_JMPREL) d.relocations[1] = (const void *)e->d_un.d_ptr;
        if (e->d_tag == DT_PLTRELSZ) d.n[1] = e->d_un.d_val / sizeof(ElfW(Rela));
        if (e->d_tag == DT_HASH) d.hash = (const void *)e->d_un.d_ptr;
        if (e->d_tag == DT_GNU_HASH) d.gnu_hash = (const void *)e->d_un.d_ptr;
    }
    return d;
}

/* Does the relocation put an address of an own symbol into a word, and is it another object's now? */
static bool is_foreign(const struct link_map *map, const struct dynamic *d, const ElfW(Rela) * r, const char **where) {
    const unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
    const ElfW(Sym) *symbol = &d->symbols[ELF64_R_SYM(r->r_info)];
#if defined(__x86_64__)
    if (type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT && type != R_X86_64_64) return false;
#elif defined(__aarch64__)
    if (type != R_AARCH64_GLOB_DAT && type != R_AARCH64_JUMP_SLOT && type != R_AARCH64_ABS64) return false;
#endif
    if (ELF64_R_SYM(r->r_info) == 0 || symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS) return false;
    const void *bound = *(void *const *)(map->l_addr + r->r_offset);
    const void *base = nb_object_of(bound, where);
    return base && base != nb_object_of(map->l_ld, NULL);
}

/* One more than the last symbol that a chain of the GNU hash table ends with (its layout: buckets, first symbol, words of the filter). */
static size_t count_symbols(const struct dynamic *d) {
    if (d->hash) return d->hash[1];
    if (!d->gnu_hash) return 0;
    const uint32_t n_buckets = d->gnu_hash[0], first = d->gnu_hash[1];
    const uint32_t *buckets = d->gnu_hash + 4 + d->gnu_hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chains = buckets + n_buckets;
    size_t last = 0;
    for (uint32_t i = 0; i < n_buckets; i++)
        if (buckets[i] > last) last = buckets[i];
    if (last < first) return first;
    while (!(chains[last - first] & 1)) last++;
    return last + 1;
}

void nb_object_functions(void *handle, void (*take)(const char *name, void *arg), void *arg) {
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return;
    const struct dynamic d = dynamic_of(map);
    const size_t n = d.symbols && d.names ? count_symbols(&d) : 0;
    for (size_t i = 0; i < n; i++)
        if (ELF64_ST_TYPE(d.symbols[i].st_info) == STT_FUNC && d.symbols[i].st_shndx != SHN_UNDEF)
            take(d.names + d.symbols[i].st_name, arg);
}

bool nb_object_is_function(const void *address) {
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    return dladdr1(address, &info, (void **)(uintptr_t)&symbol, RTLD_DL_SYMENT) && symbol &&
           ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
}

const char *nb_object_foreign(void *handle, const char **where) {
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return NULL;
    const struct dynamic d = dynamic_of(map);
    for (int kind = 0; kind < 2 && d.symbols && d.names; kind++)
        for (size_t i = 0; i < d.n[kind]; i++) {
            const ElfW(Rela) *r = &d.relocations[kind][i];
            if (is_foreign(map, &d, r, where)) return d.names + d.symbols[ELF64_R_SYM(r->r_info)].st_name;
        }
    return NULL;
}
