// SPDX-License-Identifier: Apache-2.0
/* Offsets and counts are checked where they are read; sections are kept as they stand in the file. */
#include "src/gate/code_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"

enum { LARGEST_FILE = 512 << 20 };

struct nb_code {
    unsigned char *bytes;
    size_t len;
    const Elf64_Shdr *sections;
    unsigned n_sections;
    const Elf64_Sym *symbols;
    uint64_t n_symbols;
    const char *names;
    uint64_t names_len;
    struct nb_code_place *places; /* functions and objects with a size, by address */
    size_t n_places;
    const Elf64_Rela **relocations; /* of what is loaded, by address */
    size_t n_relocations;
};

/* n things of a size at an offset of the file, which tables of the linker's have aligned; or null. */
static const void *at(const struct nb_code *c, uint64_t offset, uint64_t n, uint64_t size) {
    if (size == 0 || n > c->len / size || offset > c->len || n * size > c->len - offset) return NULL;
    if (size % 8 == 0 && offset % 8 != 0) return NULL;
    return c->bytes + offset;
}

static bool is_loaded(const Elf64_Shdr *s) { return (s->sh_flags & SHF_ALLOC) != 0; }

const Elf64_Shdr *nb_code_section(const struct nb_code *c, uint64_t address) {
    for (unsigned i = 0; i < c->n_sections; i++) {
        const Elf64_Shdr *s = &c->sections[i];
        if (is_loaded(s) && !(s->sh_flags & SHF_TLS) && address >= s->sh_addr && address - s->sh_addr < s->sh_size)
            return s;
    }
    return NULL;
}

const unsigned char *nb_code_bytes(const struct nb_code *c, uint64_t address, uint64_t size) {
    const Elf64_Shdr *s = nb_code_section(c, address);
    if (!s || s->sh_type == SHT_NOBITS || size > s->sh_size - (address - s->sh_addr)) return NULL;
    return at(c, s->sh_offset + (address - s->sh_addr), size, 1);
}

const char *nb_code_name(const struct nb_code *c, const Elf64_Sym *s) {
    if (s->st_name >= c->names_len || !memchr(c->names + s->st_name, '\0', c->names_len - s->st_name)) return "";
    return c->names + s->st_name;
}

static bool find_symbols(struct nb_code *c) {
    for (unsigned i = 0; i < c->n_sections; i++) {
        const Elf64_Shdr *s = &c->sections[i];
        if (s->sh_type != SHT_SYMTAB || s->sh_link >= c->n_sections) continue;
        const Elf64_Shdr *strings = &c->sections[s->sh_link];
        c->n_symbols = s->sh_size / sizeof *c->symbols;
        c->symbols = at(c, s->sh_offset, c->n_symbols, sizeof *c->symbols);
        c->names_len = strings->sh_size;
        c->names = at(c, strings->sh_offset, strings->sh_size, 1);
        return c->symbols && c->names;
    }
    return false;
}

static int compare_places(const void *a, const void *b) {
    const struct nb_code_place *p = a, *q = b;
    if (p->address != q->address) return p->address < q->address ? -1 : 1;
    return p->size < q->size ? 1 : p->size > q->size ? -1 : 0; /* the larger first: it holds the other */
}

static void index_places(struct nb_code *c) {
    c->places = nb_alloc(c->n_symbols + 1, sizeof *c->places);
    unsigned file = 0; /* a linker writes what is local to one file behind its name */
    for (uint64_t i = 0; i < c->n_symbols; i++) {
        const Elf64_Sym *s = &c->symbols[i];
        const int type = ELF64_ST_TYPE(s->st_info);
        file += type == STT_FILE;
        if ((type != STT_FUNC && type != STT_OBJECT) || s->st_shndx == SHN_UNDEF || s->st_size == 0) continue;
        c->places[c->n_places++] =
            (struct nb_code_place){s->st_value, s->st_size, ELF64_ST_BIND(s->st_info) == STB_LOCAL ? file : 0};
    }
    qsort(c->places, c->n_places, sizeof *c->places, compare_places);
}

static int compare_relocations(const void *a, const void *b) {
    const Elf64_Rela *p = *(const Elf64_Rela *const *)a, *q = *(const Elf64_Rela *const *)b;
    return p->r_offset < q->r_offset ? -1 : p->r_offset > q->r_offset;
}

/* Those that --emit-relocs left: of loaded sections, in sections that are not loaded themselves. */
static bool is_kept(const struct nb_code *c, const Elf64_Shdr *s) {
    return s->sh_type == SHT_RELA && !is_loaded(s) && s->sh_info < c->n_sections && is_loaded(&c->sections[s->sh_info]);
}

/* Of a section; null: none, or not in the file. */
static const Elf64_Rela *kept(const struct nb_code *c, const Elf64_Shdr *s, uint64_t *n) {
    *n = s->sh_size / sizeof(Elf64_Rela);
    return is_kept(c, s) && *n > 0 ? at(c, s->sh_offset, *n, sizeof(Elf64_Rela)) : NULL;
}

static bool index_relocations(struct nb_code *c) {
    uint64_t total = 0, n;
    for (unsigned i = 0; i < c->n_sections; i++)
        if (kept(c, &c->sections[i], &n)) total += n;
    if (total == 0 || total > c->len) return false;
    c->relocations = nb_alloc(total, sizeof *c->relocations);
    for (unsigned i = 0; i < c->n_sections; i++) {
        const Elf64_Rela *first = kept(c, &c->sections[i], &n);
        for (uint64_t r = 0; first && r < n; r++) c->relocations[c->n_relocations++] = &first[r];
    }
    qsort(c->relocations, c->n_relocations, sizeof *c->relocations, compare_relocations);
    return true;
}

static bool has_marker(const struct nb_code *c) {
    for (uint64_t i = 0; i < c->n_symbols; i++)
        if (strcmp(nb_code_name(c, &c->symbols[i]), NB_CODE_MARKER) == 0) return true;
    return false;
}

static const char *read_file(struct nb_code *c, const char *path) {
    c->bytes = (unsigned char *)nb_file_read(path, LARGEST_FILE, &c->len);
    const Elf64_Ehdr *header = c->bytes ? at(c, 0, 1, sizeof *header) : NULL;
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_machine != EM_X86_64)
        return "no x86-64 ELF file";
    c->n_sections = header->e_shnum;
    c->sections = at(c, header->e_shoff, c->n_sections, sizeof *c->sections);
    if (!c->sections) return "no section headers";
    if (!find_symbols(c)) return "stripped: no symbol table";
    index_places(c);
    if (!index_relocations(c)) return "linked without --emit-relocs";
    if (!has_marker(c)) return "not built with a section for each function (no symbol " NB_CODE_MARKER ")";
    return NULL;
}

struct nb_code *nb_code_open(const char *path, char *reason, size_t n) {
    struct nb_code *c = nb_alloc(1, sizeof *c);
    const char *why = read_file(c, path);
    if (!why) return c;
    snprintf(reason, n, "%s", why);
    nb_code_close(c);
    return NULL;
}

void nb_code_close(struct nb_code *c) {
    if (!c) return;
    free(c->bytes);
    free(c->places);
    free(c->relocations);
    free(c);
}

/* ---- asking ----------------------------------------------------------------------------------------------------------- */

const struct nb_code_place *nb_code_place(const struct nb_code *c, uint64_t address) {
    size_t low = 0, high = c->n_places;
    while (low < high) { /* the first that begins behind the address */
        size_t middle = (low + high) / 2;
        if (c->places[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i-- > 0 && low - i < 64;)
        if (address - c->places[i].address < c->places[i].size) return &c->places[i];
    return NULL;
}

size_t nb_code_relocations_from(const struct nb_code *c, uint64_t address) {
    size_t low = 0, high = c->n_relocations;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->relocations[middle]->r_offset < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const Elf64_Rela *nb_code_relocation(const struct nb_code *c, size_t i) {
    return i < c->n_relocations ? c->relocations[i] : NULL;
}

const Elf64_Sym *nb_code_symbol(const struct nb_code *c, const Elf64_Rela *relocation) {
    const uint64_t index = ELF64_R_SYM(relocation->r_info);
    return index < c->n_symbols ? &c->symbols[index] : NULL;
}
