// SPDX-License-Identifier: Apache-2.0
/* A walk over references, from the kernel's functions on. Each piece (a function, an object, a stretch of constants) is numbered
 * when it is first met; a reference is digested as the number of the piece and the place in it, so that two builds agree when
 * the same pieces hang together in the same way, wherever they lie.
 *
 * How long is a piece? A function or an object has a size. The compiler's own constants have but a label where each begins (kept by
 * --discard-none), so that one ends where the next thing begins. Where a reference names only a section, an instruction that
 * reads takes 64 bytes at most, and one that forms an address (lea) is taken to mean a text, to its end. Bytes that are no part
 * of it may make two equal kernels differ, which costs their time, but never two different ones equal. */
#include "src/code_identity.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/files.h"
#include "src/kernel_fields.h"
#include "src/log.h"
#include "src/random.h"
#include "src/shared_object.h"

enum { LARGEST_FILE = 512 << 20, MAX_PIECES = 4096, LONGEST_READ = 64 };

struct place {
    uint64_t address, size;
    const char *name;
};

struct nb_code {
    unsigned char *bytes;
    size_t len;
    const Elf64_Shdr *sections;
    unsigned n_sections;
    const Elf64_Sym *symbols;
    uint64_t n_symbols;
    const char *names;
    uint64_t names_len;
    struct place *places; /* functions and objects with a size, by address */
    size_t n_places;
    uint64_t *starts; /* where anything begins: places, labels of constants; sorted */
    size_t n_starts;
    const Elf64_Rela **relocations; /* of what is loaded, by address */
    size_t n_relocations;
};

/* ---- reading ---------------------------------------------------------------------------------------------------------- */

/* n things of a size at an offset of the file, or null. */
static const void *at(const struct nb_code *c, uint64_t offset, uint64_t n, uint64_t size) {
    if (size == 0 || n > c->len / size || offset > c->len || n * size > c->len - offset) return NULL;
    return c->bytes + offset;
}

static bool is_loaded(const Elf64_Shdr *s) { return (s->sh_flags & SHF_ALLOC) != 0; }

/* The section that holds an address, or null. */
static const Elf64_Shdr *section_of(const struct nb_code *c, uint64_t address) {
    for (unsigned i = 0; i < c->n_sections; i++) {
        const Elf64_Shdr *s = &c->sections[i];
        if (is_loaded(s) && !(s->sh_flags & SHF_TLS) && address >= s->sh_addr && address - s->sh_addr < s->sh_size)
            return s;
    }
    return NULL;
}

static const unsigned char *bytes_of(const struct nb_code *c, uint64_t address, uint64_t size) {
    const Elf64_Shdr *s = section_of(c, address);
    if (!s || s->sh_type == SHT_NOBITS || size > s->sh_size - (address - s->sh_addr)) return NULL;
    return at(c, s->sh_offset + (address - s->sh_addr), size, 1);
}

static const char *name_of(const struct nb_code *c, const Elf64_Sym *s) {
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
    const struct place *p = a, *q = b;
    if (p->address != q->address) return p->address < q->address ? -1 : 1;
    return p->size < q->size ? 1 : p->size > q->size ? -1 : 0; /* the larger first: it holds the other */
}

static void index_places(struct nb_code *c) {
    c->places = nb_alloc(c->n_symbols + 1, sizeof *c->places);
    for (uint64_t i = 0; i < c->n_symbols; i++) {
        const Elf64_Sym *s = &c->symbols[i];
        const int type = ELF64_ST_TYPE(s->st_info);
        if ((type != STT_FUNC && type != STT_OBJECT) || s->st_shndx == SHN_UNDEF || s->st_size == 0) continue;
        c->places[c->n_places++] = (struct place){s->st_value, s->st_size, name_of(c, s)};
    }
    qsort(c->places, c->n_places, sizeof *c->places, compare_places);
}

static int compare_addresses(const void *a, const void *b) {
    const uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return p < q ? -1 : p > q;
}

static void index_starts(struct nb_code *c) {
    c->starts = nb_alloc(c->n_symbols + 1, sizeof *c->starts);
    for (uint64_t i = 0; i < c->n_symbols; i++) {
        const int type = ELF64_ST_TYPE(c->symbols[i].st_info);
        if (c->symbols[i].st_shndx == SHN_UNDEF || c->symbols[i].st_shndx >= c->n_sections) continue;
        if (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE)
            c->starts[c->n_starts++] = c->symbols[i].st_value;
    }
    qsort(c->starts, c->n_starts, sizeof *c->starts, compare_addresses);
}

static int compare_relocations(const void *a, const void *b) {
    const Elf64_Rela *p = *(const Elf64_Rela *const *)a, *q = *(const Elf64_Rela *const *)b;
    return p->r_offset < q->r_offset ? -1 : p->r_offset > q->r_offset;
}

/* Those that --emit-relocs left: of loaded sections, in sections that are not loaded themselves. */
static bool is_kept(const struct nb_code *c, const Elf64_Shdr *s) {
    return s->sh_type == SHT_RELA && !is_loaded(s) && s->sh_info < c->n_sections && is_loaded(&c->sections[s->sh_info]);
}

static bool index_relocations(struct nb_code *c) {
    uint64_t total = 0;
    for (unsigned i = 0; i < c->n_sections; i++)
        if (is_kept(c, &c->sections[i])) total += c->sections[i].sh_size / sizeof(Elf64_Rela);
    if (total == 0 || total > c->len) return false;
    c->relocations = nb_alloc(total, sizeof *c->relocations);
    for (unsigned i = 0; i < c->n_sections; i++) {
        const Elf64_Shdr *s = &c->sections[i];
        if (!is_kept(c, s)) continue;
        const uint64_t n = s->sh_size / sizeof(Elf64_Rela);
        const Elf64_Rela *first = at(c, s->sh_offset, n, sizeof *first);
        if (!first && n > 0) return false;
        for (uint64_t r = 0; r < n; r++) c->relocations[c->n_relocations++] = &first[r];
    }
    qsort(c->relocations, c->n_relocations, sizeof *c->relocations, compare_relocations);
    return true;
}

static bool has_marker(const struct nb_code *c) {
    for (size_t i = 0; i < c->n_places; i++)
        if (strcmp(c->places[i].name, NB_CODE_MARKER) == 0) return true;
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
    if (!c->sections || header->e_shoff % _Alignof(Elf64_Shdr) != 0) return "no section headers";
    if (!find_symbols(c)) return "stripped: no symbol table";
    index_places(c);
    index_starts(c);
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
    free(c->starts);
    free(c->relocations);
    free(c);
}

/* ---- the walk --------------------------------------------------------------------------------------------------------- */

struct piece {
    uint64_t address, size;
};

struct walk {
    const struct nb_code *code;
    struct piece pieces[MAX_PIECES];
    size_t n;
    uint64_t digest[2];
    const char *failed;
};

static void mix(struct walk *w, uint64_t word) {
    w->digest[0] = nb_random_mix(w->digest[0] ^ word);
    w->digest[1] = nb_random_mix(w->digest[1] + 0x9e3779b97f4a7c15u * (word + 1));
}

static void mix_bytes(struct walk *w, const unsigned char *bytes, uint64_t n) {
    for (uint64_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, n - i < 8 ? n - i : 8);
        mix(w, word);
    }
}

/* The innermost place with a symbol that holds the address; null: none. */
static const struct place *place_of(const struct nb_code *c, uint64_t address) {
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

/* From an address to where the next thing begins, or the section's end. */
static uint64_t until_next(const struct nb_code *c, uint64_t address) {
    const Elf64_Shdr *s = section_of(c, address);
    uint64_t end = s ? s->sh_addr + s->sh_size : address;
    size_t low = 0, high = c->n_starts;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->starts[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < c->n_starts && c->starts[low] < end) end = c->starts[low];
    return end - address;
}

/* A text may share its end with another, which then has a label of its own: it goes on to the 0. */
static uint64_t until_zero(const struct nb_code *c, uint64_t address, uint64_t size) {
    const Elf64_Shdr *s = section_of(c, address);
    const uint64_t most = s ? s->sh_addr + s->sh_size - address : size;
    const unsigned char *bytes = s && s->sh_type != SHT_NOBITS ? bytes_of(c, address, most) : NULL;
    while (bytes && size > 0 && size < most && bytes[size - 1] != 0) size++;
    return size;
}

/* The number of the piece, which is put at the end of the list when it is new. */
static size_t piece_number(struct walk *w, uint64_t address, uint64_t size) {
    for (size_t i = 0; i < w->n; i++)
        if (w->pieces[i].address == address && w->pieces[i].size == size) return i;
    if (w->n == MAX_PIECES) {
        w->failed = "it reaches too much";
        return 0;
    }
    w->pieces[w->n] = (struct piece){address, size};
    return w->n++;
}

/* label: target is where a thing begins; else it is what the instruction makes of it, up to 4 bytes short of that. */
static void mix_reference(struct walk *w, uint64_t target, bool label, bool address_taken) {
    const struct place *p = place_of(w->code, target);
    const Elf64_Shdr *s = section_of(w->code, target);
    uint64_t first = target, size = 0;
    if (p) {
        first = p->address;
        size = p->size;
    } else if (!s || (s->sh_flags & SHF_EXECINSTR)) {
        w->failed = "it refers to code or data without a symbol";
        return;
    } else if (label || address_taken) {
        size = until_zero(w->code, target, until_next(w->code, target));
        if (!address_taken && (size = until_next(w->code, target)) > LONGEST_READ) size = LONGEST_READ;
    } else {
        const uint64_t rest = s->sh_addr + s->sh_size - target;
        size = rest < LONGEST_READ + 4 ? rest : LONGEST_READ + 4;
    }
    mix(w, piece_number(w, first, size));
    mix(w, target - first);
}

static bool is_relative(uint32_t type) {
    return type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX ||
           type == R_X86_64_REX_GOTPCRELX;
}

/* Is the instruction that ends in this field a lea? Its opcode stands before the byte that says how the operand is addressed. */
static bool is_lea(const unsigned char *bytes, uint64_t offset) {
    return offset >= 2 && bytes[offset - 2] == 0x8d && (bytes[offset - 1] & 0xc7) == 0x05;
}

/* One reference; returns the bytes of the field, 0 after a failure. */
static uint64_t mix_field(struct walk *w, const struct piece *piece, const unsigned char *bytes, const Elf64_Rela *r) {
    const uint32_t type = ELF64_R_TYPE(r->r_info);
    const uint64_t index = ELF64_R_SYM(r->r_info), offset = r->r_offset - piece->address;
    const uint64_t width = type == R_X86_64_64 ? 8 : 4;
    if (index >= w->code->n_symbols || (!is_relative(type) && type != R_X86_64_64) || width > piece->size - offset) {
        w->failed = "a relocation of a kind that is not known here";
        return 0;
    }
    const Elf64_Sym *symbol = &w->code->symbols[index];
    mix(w, offset);
    mix(w, type);
    const bool is_section = ELF64_ST_TYPE(symbol->st_info) == STT_SECTION;
    if (symbol->st_shndx == SHN_UNDEF) { /* of another library: by its name */
        const char *name = name_of(w->code, symbol);
        mix_bytes(w, (const unsigned char *)name, strlen(name));
        mix(w, (uint64_t)r->r_addend);
    } else if (!is_section) { /* the thing itself, and where in it */
        mix(w, (uint64_t)r->r_addend);
        mix_reference(w, symbol->st_value, true, type == R_X86_64_64 || is_lea(bytes, offset));
    } else if (type == R_X86_64_64) {
        mix_reference(w, symbol->st_value + (uint64_t)r->r_addend, true, true);
    } else {
        int32_t distance;
        memcpy(&distance, bytes + offset, sizeof distance);
        mix_reference(w, r->r_offset + 4 + (uint64_t)(int64_t)distance, false, is_lea(bytes, offset));
    }
    return width;
}

static size_t first_relocation(const struct nb_code *c, uint64_t address) {
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

static void mix_piece(struct walk *w, const struct piece *piece) {
    const struct nb_code *c = w->code;
    const Elf64_Shdr *s = section_of(c, piece->address);
    const unsigned char *bytes = bytes_of(c, piece->address, piece->size);
    mix(w, piece->size);
    if (s && s->sh_type == SHT_NOBITS) return; /* zeros */
    if (!bytes) {
        w->failed = "what it refers to lies outside of the file";
        return;
    }
    uint64_t done = 0;
    for (size_t r = first_relocation(c, piece->address); r < c->n_relocations && !w->failed; r++) {
        const uint64_t offset = c->relocations[r]->r_offset - piece->address;
        if (offset >= piece->size) break;
        if (ELF64_R_TYPE(c->relocations[r]->r_info) == R_X86_64_NONE) continue;
        if (offset < done) {
            w->failed = "two relocations of one field";
            return;
        }
        mix_bytes(w, bytes + done, offset - done);
        done = offset + mix_field(w, piece, bytes, c->relocations[r]);
    }
    if (!w->failed) mix_bytes(w, bytes + done, piece->size - done);
}

/* A function of the loaded kernel, as the file has it. */
static void add_root(struct walk *w, const void *function, const void *base) {
    mix(w, function ? 1 : 0);
    if (!function) return;
    const uint64_t address = (uint64_t)((const char *)function - (const char *)base);
    const struct place *p = nb_object_of(function, NULL) == base ? place_of(w->code, address) : NULL;
    if (!p || p->address != address) {
        w->failed = "its functions have no symbols in the file";
        return;
    }
    mix(w, piece_number(w, p->address, p->size));
}

int nb_code_digest(const struct nb_code *code, const struct nb_entry *entry, uint64_t digest[2], char *reason,
                   size_t n) {
    struct walk *w = nb_alloc(1, sizeof *w);
    struct nb_kernel_function functions[NB_N_KERNEL_FUNCTIONS];
    const void *base = nb_object_of((void *)(uintptr_t)entry->kernel->run, NULL);
    const size_t n_functions = nb_kernel_functions(entry->kernel, functions);
    w->code = code;
    for (size_t i = 0; i < n_functions; i++) {
        mix_bytes(w, (const unsigned char *)functions[i].name, strlen(functions[i].name));
        add_root(w, functions[i].address, base);
    }
    mix(w, entry->kernel->flags);
    for (size_t i = 0; i < w->n && !w->failed; i++) {
        const struct piece piece = w->pieces[i];
        mix_piece(w, &piece);
    }
    memcpy(digest, w->digest, sizeof w->digest);
    if (w->failed) snprintf(reason, n, "%s", w->failed);
    const int result = w->failed ? -1 : 0;
    free(w);
    return result;
}
