// SPDX-License-Identifier: Apache-2.0
/* A walk over references, from the kernel's functions and from what the loader calls. Each piece (a function, an object, a constant) is
 * numbered when it is first met; a reference is digested as the number of the piece and the place in it, so that two builds agree when the
 * same pieces refer to each other in the same way, wherever they lie.
 *
 * How long is a piece? A function or an object has a size. The compiler's own constants have none, and labels do not end them, since
 * a compiler lets a small constant lie inside a large one; but the instruction that reads one says how much it reads. An
 * address of such data (lea) is accepted for texts only; for anything else there is no digest. Bytes that are no part of a piece may make
 * two equal kernels differ, which costs their time, but never two different ones equal. */
#include "src/gate/code_identity.h"

#include <stdio.h>

#if defined(__x86_64__)

#include <Zydis/Decoder.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"

/* ---- the file ---------------------------------------------------------------------------------------------------------- */

enum { LARGEST_FILE = 512 << 20 };

/* Tables are copied out of libelf, which checks each against the file's size; bytes stay where libelf has them. */
struct nb_code {
    char *bytes;
    Elf *elf;
    GElf_Shdr *sections;
    size_t n_sections;
    GElf_Sym *symbols;
    size_t n_symbols;
    size_t symbol_section, name_section;
    struct nb_code_place *places; /* functions and objects with a size, by address */
    size_t n_places;
    GElf_Rela *relocations; /* of what is loaded, by address */
    size_t n_relocations;
};

static bool is_loaded(const GElf_Shdr *s) { return (s->sh_flags & SHF_ALLOC) != 0; }

/* The loaded section that holds an address, or null. */
static const GElf_Shdr *section_at(const struct nb_code *c, uint64_t address) {
    for (size_t i = 0; i < c->n_sections; i++) {
        const GElf_Shdr *s = &c->sections[i];
        if (is_loaded(s) && !(s->sh_flags & SHF_TLS) && address >= s->sh_addr && address - s->sh_addr < s->sh_size)
            return s;
    }
    return NULL;
}

/* Bytes of one section as the file has them, or null. */
static const unsigned char *bytes_at(const struct nb_code *c, uint64_t address, uint64_t size) {
    const GElf_Shdr *s = section_at(c, address);
    if (!s || s->sh_type == SHT_NOBITS || size > s->sh_size - (address - s->sh_addr)) return NULL;
    const Elf_Data *data = elf_rawdata(elf_getscn(c->elf, (size_t)(s - c->sections)), NULL);
    return data && data->d_buf && data->d_size == s->sh_size ? (unsigned char *)data->d_buf + (address - s->sh_addr)
                                                             : NULL;
}

/* Never null. */
static const char *name_of(const struct nb_code *c, const GElf_Sym *s) {
    const char *name = elf_strptr(c->elf, c->name_section, s->st_name);
    return name ? name : "";
}

static bool read_sections(struct nb_code *c) {
    if (elf_getshdrnum(c->elf, &c->n_sections) != 0 || c->n_sections == 0) return false;
    c->sections = nb_alloc(c->n_sections, sizeof *c->sections);
    for (size_t i = 0; i < c->n_sections; i++)
        if (!gelf_getshdr(elf_getscn(c->elf, i), &c->sections[i])) return false;
    return true;
}

/* How many entries a section's table has, and the table; 0: it is none, or not in the file. */
static size_t table_of(const struct nb_code *c, size_t section, Elf_Type type, Elf_Data **data) {
    *data = elf_getdata(elf_getscn(c->elf, section), NULL);
    return *data && (*data)->d_type == type && (*data)->d_buf
               ? (*data)->d_size / gelf_fsize(c->elf, type, 1, EV_CURRENT)
               : 0;
}

static bool read_symbols(struct nb_code *c) {
    Elf_Data *data;
    while (c->symbol_section < c->n_sections && c->sections[c->symbol_section].sh_type != SHT_SYMTAB)
        c->symbol_section++;
    if (c->symbol_section == c->n_sections) return false;
    c->name_section = c->sections[c->symbol_section].sh_link;
    const size_t n = table_of(c, c->symbol_section, ELF_T_SYM, &data);
    c->symbols = nb_alloc(n + 1, sizeof *c->symbols);
    while (c->n_symbols < n && gelf_getsym(data, (int)c->n_symbols, &c->symbols[c->n_symbols])) c->n_symbols++;
    return n > 0 && c->n_symbols == n;
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
        const GElf_Sym *s = &c->symbols[i];
        const int type = GELF_ST_TYPE(s->st_info);
        file += type == STT_FILE;
        if ((type != STT_FUNC && type != STT_OBJECT) || s->st_shndx == SHN_UNDEF || s->st_size == 0) continue;
        c->places[c->n_places++] =
            (struct nb_code_place){s->st_value, s->st_size, GELF_ST_BIND(s->st_info) == STB_LOCAL ? file : 0};
    }
    qsort(c->places, c->n_places, sizeof *c->places, compare_places);
}

static int compare_relocations(const void *a, const void *b) {
    const GElf_Rela *p = a, *q = b;
    return p->r_offset < q->r_offset ? -1 : p->r_offset > q->r_offset;
}

/* Those that --emit-relocs left: of loaded sections, in sections that are not loaded themselves. */
static bool is_kept(const struct nb_code *c, const GElf_Shdr *s) {
    return s->sh_type == SHT_RELA && !is_loaded(s) && s->sh_link == c->symbol_section && s->sh_info < c->n_sections &&
           is_loaded(&c->sections[s->sh_info]);
}

static bool read_relocations(struct nb_code *c) {
    for (size_t i = 0; i < c->n_sections; i++) {
        Elf_Data *data;
        const size_t n = is_kept(c, &c->sections[i]) ? table_of(c, i, ELF_T_RELA, &data) : 0;
        if (n == 0) continue;
        c->relocations = nb_realloc(c->relocations, c->n_relocations + n, sizeof *c->relocations);
        for (size_t r = 0; r < n; r++)
            if (gelf_getrela(data, (int)r, &c->relocations[c->n_relocations])) c->n_relocations++;
    }
    if (c->n_relocations == 0) return false;
    qsort(c->relocations, c->n_relocations, sizeof *c->relocations, compare_relocations);
    return true;
}

/* That the file itself defines; null: there is none of the name. */
static const GElf_Sym *symbol_named(const struct nb_code *c, const char *name) {
    for (size_t i = 0; i < c->n_symbols; i++)
        if (c->symbols[i].st_shndx != SHN_UNDEF && strcmp(name_of(c, &c->symbols[i]), name) == 0) return &c->symbols[i];
    return NULL;
}

static const char *read_file(struct nb_code *c, const char *path) {
    GElf_Ehdr header;
    size_t len = 0;
    elf_version(EV_CURRENT);
    c->bytes = nb_file_read(path, LARGEST_FILE, &len);
    c->elf = c->bytes && len > 0 ? elf_memory(c->bytes, len) : NULL;
    if (!c->elf || elf_kind(c->elf) != ELF_K_ELF || gelf_getclass(c->elf) != ELFCLASS64 ||
        !gelf_getehdr(c->elf, &header) || header.e_machine != EM_X86_64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
        return "no x86-64 ELF file";
    if (!read_sections(c)) return "no section headers";
    if (!read_symbols(c)) return "stripped: no symbol table";
    index_places(c);
    if (!read_relocations(c)) return "linked without --emit-relocs";
    if (!symbol_named(c, NB_CODE_MARKER))
        return "not built with a section for each function (no symbol " NB_CODE_MARKER ")";
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
    elf_end(c->elf);
    nb_free_all(c->bytes, c->sections, c->symbols, c->places, c->relocations, c);
}

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

/* The index of the first at or behind an address. */
static size_t relocations_from(const struct nb_code *c, uint64_t address) {
    size_t low = 0, high = c->n_relocations;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->relocations[middle].r_offset < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The symbol that a relocation names, or null. */
static const GElf_Sym *symbol_of(const struct nb_code *c, const GElf_Rela *r) {
    const uint64_t index = GELF_R_SYM(r->r_info);
    return index < c->n_symbols ? &c->symbols[index] : NULL;
}

/* ---- instructions ------------------------------------------------------------------------------------------------------ */

/* Of an operand at a distance from the instruction. -1: nothing says how much is read there. */
static int read_operand(const ZydisDecodedInstruction *decoded, const ZydisDecodedOperand *operand,
                        struct nb_instruction *out) {
    const bool is_of_thread = operand->mem.segment == ZYDIS_REGISTER_FS || operand->mem.segment == ZYDIS_REGISTER_GS;
    const int bytes = operand->size / 8;
    out->distance = decoded->raw.disp.offset;
    if (out->takes_address) return 0;
    if (operand->mem.type != ZYDIS_MEMOP_TYPE_MEM || is_of_thread || bytes < 1 || bytes > NB_WIDEST_OPERAND) return -1;
    out->operand_bytes = bytes;
    return 0;
}

/* Reads the instruction that begins at code, of which n bytes are there. -1: cut off, not an instruction, or one whose
 * operand is of no known size. */
static int instruction_read(const unsigned char *code, uint64_t n, struct nb_instruction *out) {
    ZydisDecoder decoder;
    ZydisDecoderContext context;
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT_VISIBLE];
    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, code, n, &decoded)))
        return -1;
    *out = (struct nb_instruction){.bytes = decoded.length,
                                   .operand_bytes = NB_WIDEST_OPERAND,
                                   .takes_address = decoded.mnemonic == ZYDIS_MNEMONIC_LEA};
    if (!(decoded.attributes & ZYDIS_ATTRIB_IS_RELATIVE)) return 0;
    if (decoded.raw.imm[0].is_relative && decoded.raw.imm[0].size == 32) out->jump = decoded.raw.imm[0].offset;
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeOperands(&decoder, &context, &decoded, operands, decoded.operand_count_visible)))
        return -1;
    for (int i = 0; i < decoded.operand_count_visible; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].mem.base == ZYDIS_REGISTER_RIP)
            return read_operand(&decoded, &operands[i], out);
    return 0;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------------- */

enum { MAX_PIECES = 4096, MOST_BYTES = 1 << 26 };
#define REACHES_TOO_MUCH "it reaches too much"

struct piece {
    uint64_t address, size;
};

/* The instruction of the piece at hand that was read last, and where in the piece it begins. */
struct reading {
    uint64_t at;
    struct nb_instruction instruction;
};

struct walk {
    const struct nb_code *code;
    struct reading reading;
    struct piece pieces[MAX_PIECES];
    size_t n;
    uint64_t bytes; /* digested so far */
    uint64_t digest[2];
    /* Functions of the file's kernels, to which the function that lists them leads: not followed from there. */
    const uint64_t *others;
    size_t n_others;
    bool has_table;      /* that function was added */
    bool looks_for_data; /* not the digest is wanted, but which data that function refers to */
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

/* The number of the piece, which is put at the end of the list when it is new. */
static size_t piece_number(struct walk *w, uint64_t address, uint64_t size) {
    for (size_t i = 0; i < w->n; i++)
        if (w->pieces[i].address == address && w->pieces[i].size == size) return i;
    if (w->n == MAX_PIECES) {
        w->failed = REACHES_TOO_MUCH;
        return 0;
    }
    w->pieces[w->n] = (struct piece){address, size};
    return w->n++;
}

static bool is_through_table(uint32_t type) { /* of addresses, which the loader fills */
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
}

static bool is_relative(uint32_t type) {
    return type == R_X86_64_PC32 || type == R_X86_64_PLT32 || is_through_table(type);
}

static bool is_code(const struct nb_code *c, uint64_t address) {
    const GElf_Shdr *s = section_at(c, address);
    return s && (s->sh_flags & SHF_EXECINSTR);
}

static void mix_range(struct walk *w, uint64_t address, uint64_t size) { mix(w, piece_number(w, address, size)); }

/* The function or object that holds the target, and where in it. */
static bool mix_place(struct walk *w, uint64_t target) {
    const struct nb_code_place *p = nb_code_place(w->code, target);
    if (!p) return false;
    mix_range(w, p->address, p->size);
    mix(w, target - p->address);
    return true;
}

/* An address is taken of what the file of the code itself holds: of what begins there, or of the end of what stands before, but by the function
 * that lists kernels, which tells of no file: what stands before its table is the linker's choice. */
static bool mix_address(struct walk *w, uint64_t target, uint64_t from) {
    const struct nb_code_place *own = nb_code_place(w->code, from), *p = nb_code_place(w->code, target);
    const unsigned file = own ? own->file : 0;
    const bool is_own = p && (file == 0 || p->file == 0 || p->file == file), at_start = p && target == p->address;
    const bool may_end = !p || (at_start && !w->looks_for_data && !w->has_table);
    const struct nb_code_place *before = may_end ? nb_code_place(w->code, target - 1) : NULL;
    if (is_own) mix_place(w, target);
    if (!before || (file != 0 && before->file != 0 && before->file != file)) return is_own;
    return mix_place(w, target - 1);
}

/* A text without a symbol, to its 0. Of anything else whose address is taken nothing says where it ends. */
static void mix_text(struct walk *w, uint64_t target) {
    const GElf_Shdr *s = section_at(w->code, target);
    const uint64_t most = s ? s->sh_addr + s->sh_size - target : 0;
    const unsigned char *bytes = bytes_at(w->code, target, most);
    uint64_t n = 0;
    while (bytes && n < most && (bytes[n] >= ' ' || bytes[n] == '\n' || bytes[n] == '\t')) n++;
    const bool is_text = n > 0 && n < most && bytes[n] == 0;
    if (!is_text && !w->looks_for_data) w->failed = "it takes the address of data without a symbol";
    if (is_text) mix_range(w, target, n + 1);
}

/* The instruction that holds the four bytes of a distance, either to its operand or to where it jumps; null: none that is known. */
static const struct nb_instruction *instruction_at(struct reading *r, const struct piece *piece,
                                                   const unsigned char *bytes, uint64_t field) {
    const struct nb_instruction *i = &r->instruction;
    while (r->at + (uint64_t)i->bytes <= field) {
        r->at += (uint64_t)i->bytes;
        if (instruction_read(bytes + r->at, piece->size - r->at, &r->instruction) != 0) return NULL;
    }
    const int at = i->distance > 0 ? i->distance : i->jump;
    return at > 0 && field == r->at + (uint64_t)at ? i : NULL;
}

/* What an instruction of the piece refers to by the distance from its end. */
static void mix_distance(struct walk *w, const struct piece *piece, const unsigned char *bytes, uint64_t offset) {
    const struct nb_instruction *i =
        is_code(w->code, piece->address) ? instruction_at(&w->reading, piece, bytes, offset) : NULL;
    int32_t distance;
    if (!i) {
        w->failed = "an instruction that is not known here";
        return;
    }
    memcpy(&distance, bytes + offset, sizeof distance);
    const uint64_t end = piece->address + w->reading.at + (uint64_t)i->bytes,
                   target = end + (uint64_t)(int64_t)distance;
    const bool address = i->takes_address;
    if (address && !is_code(w->code, target) ? mix_address(w, target, piece->address) : mix_place(w, target)) return;
    const GElf_Shdr *s = section_at(w->code, target);
    if (!s || (s->sh_flags & SHF_EXECINSTR)) {
        w->failed = "it refers to code or data without a symbol";
    } else if (address) {
        mix_text(w, target);
    } else {
        const uint64_t rest = s->sh_addr + s->sh_size - target, size = (uint64_t)i->operand_bytes;
        mix_range(w, target, size < rest ? size : rest);
    }
}

/* One reference; returns the bytes of the field, 0 after a failure. */
static uint64_t mix_field(struct walk *w, const struct piece *piece, const unsigned char *bytes, const GElf_Rela *r) {
    const uint32_t type = GELF_R_TYPE(r->r_info);
    const GElf_Sym *symbol = symbol_of(w->code, r);
    const uint64_t offset = r->r_offset - piece->address, width = type == R_X86_64_64 ? 8 : 4;
    if (!symbol || (!is_relative(type) && type != R_X86_64_64) || width > piece->size - offset) {
        w->failed = "a relocation of a kind that is not known here";
        return 0;
    }
    mix(w, offset);
    mix(w, type);
    const bool is_thing = GELF_ST_TYPE(symbol->st_info) == STT_FUNC || GELF_ST_TYPE(symbol->st_info) == STT_OBJECT;
    const char *const name = name_of(w->code, symbol);
    /* By its name: what lies in another library, and what says to the C++ library which file it is. */
    if (symbol->st_shndx == SHN_UNDEF || strcmp(name, "__dso_handle") == 0) {
        mix_bytes(w, (const unsigned char *)name, strlen(name));
        mix(w, (uint64_t)r->r_addend);
    } else if (is_thing &&
               symbol->st_size > 0) { /* the loader may yet find it elsewhere: nb_object_foreign() sees that */
        mix_place(w, symbol->st_value);
        mix(w, (uint64_t)r->r_addend);
    } else if (is_through_table(type)) {
        w->failed = "it reaches something without a size through the table of addresses";
    } else if (type == R_X86_64_64) {
        const uint64_t target = symbol->st_value + (uint64_t)r->r_addend;
        if (!mix_place(w, target)) mix_text(w, target);
    } else {
        mix_distance(w, piece, bytes, offset);
    }
    return width;
}

static bool is_left_out(const struct walk *w, uint64_t address) {
    for (size_t i = 0; i < w->n_others && (w->has_table || w->looks_for_data); i++)
        if (w->others[i] == address) return true;
    return false;
}

static void mix_piece(struct walk *w, const struct piece *piece) {
    const struct nb_code *c = w->code;
    const GElf_Shdr *s = section_at(c, piece->address);
    const unsigned char *bytes = bytes_at(c, piece->address, piece->size);
    if (is_left_out(w, piece->address)) return;
    mix(w, piece->size);
    w->bytes += piece->size;
    if (w->bytes > MOST_BYTES) w->failed = REACHES_TOO_MUCH;
    if (w->failed) return;
    if (s && s->sh_type == SHT_NOBITS) return; /* zeros */
    if (!bytes) {
        w->failed = "what it refers to lies outside of the file";
        return;
    }
    uint64_t done = 0;
    w->reading = (struct reading){0};
    for (size_t i = relocations_from(c, piece->address); i < c->n_relocations && !w->failed; i++) {
        const GElf_Rela *r = &c->relocations[i];
        const uint64_t offset = r->r_offset - piece->address;
        if (offset >= piece->size) break;
        if (GELF_R_TYPE(r->r_info) == R_X86_64_NONE) continue;
        if (offset < done) {
            w->failed = "two relocations of one field";
            return;
        }
        mix_bytes(w, bytes + done, offset - done);
        done = offset + mix_field(w, piece, bytes, r);
    }
    if (!w->failed) mix_bytes(w, bytes + done, piece->size - done);
}

static void add_root(struct walk *w, uint64_t address) {
    const struct nb_code_place *p = nb_code_place(w->code, address);
    if (!p || p->address != address)
        w->failed = "its functions have no symbols in the file";
    else
        mix_range(w, p->address, p->size);
}

/* ---- what is done on loading -------------------------------------------------------------------------------------------- */

/* Of the C runtime, in every shared object: an address in the table of initialisers, and no size. It registers frames for the unwinder. */
static bool is_frame_dummy(const struct nb_code *c, uint64_t address) {
    for (size_t i = 0; i < c->n_symbols; i++)
        if (c->symbols[i].st_value == address && c->symbols[i].st_size == 0 &&
            GELF_ST_TYPE(c->symbols[i].st_info) == STT_FUNC && strcmp(name_of(c, &c->symbols[i]), "frame_dummy") == 0)
            return true;
    return false;
}

/* A table of functions that the loader calls, in order: each is reached from everything, since it may set what any function reads. */
static void add_initialisers(struct walk *w, const GElf_Shdr *table) {
    const struct nb_code *c = w->code;
    uint64_t next = table->sh_addr;
    for (size_t i = relocations_from(c, table->sh_addr); i < c->n_relocations; i++) {
        const GElf_Rela *r = &c->relocations[i];
        const GElf_Sym *symbol = symbol_of(c, r);
        if (r->r_offset - table->sh_addr >= table->sh_size) break;
        if (r->r_offset != next || !symbol || GELF_R_TYPE(r->r_info) != R_X86_64_64) break;
        const uint64_t target = symbol->st_value + (uint64_t)r->r_addend;
        const bool is_here = symbol->st_shndx != SHN_UNDEF, is_runtime = is_here && is_frame_dummy(c, target);
        const struct nb_code_place *p = is_here ? nb_code_place(c, target) : NULL;
        if (!is_runtime && (!p || p->address != target)) break;
        if (!is_runtime) mix_range(w, p->address, p->size);
        next += 8;
    }
    if (next != table->sh_addr + table->sh_size) w->failed = "what it does on loading is not known";
}

/* Libraries that are loaded with it, and what replaces the C runtime's own function of initialisation. */
static void add_dynamic(struct walk *w, size_t section) {
    Elf_Data *data;
    const GElf_Shdr *strings = &w->code->sections[section];
    const size_t n = table_of(w->code, section, ELF_T_DYN, &data);
    for (size_t i = 0; i < n && !w->failed; i++) {
        GElf_Dyn d;
        if (!gelf_getdyn(data, (int)i, &d) || d.d_tag == DT_NULL) break;
        if (d.d_tag == DT_NEEDED || d.d_tag == DT_RPATH || d.d_tag == DT_RUNPATH) {
            const char *name = elf_strptr(w->code->elf, strings->sh_link, d.d_un.d_val);
            mix(w, (uint64_t)d.d_tag);
            if (name) mix_bytes(w, (const unsigned char *)name, strlen(name));
        } else if (d.d_tag == DT_INIT) {
            const GElf_Shdr *code = section_at(w->code, d.d_un.d_ptr);
            if (code && d.d_un.d_ptr == code->sh_addr)
                mix_range(w, code->sh_addr, code->sh_size);
            else
                add_root(w, d.d_un.d_ptr);
        }
    }
}

static void add_loading(struct walk *w) {
    for (size_t i = 0; i < w->code->n_sections && !w->failed; i++) {
        const GElf_Shdr *s = &w->code->sections[i];
        if (s->sh_type == SHT_INIT_ARRAY || s->sh_type == SHT_PREINIT_ARRAY) add_initialisers(w, s);
        if (s->sh_type == SHT_DYNAMIC) add_dynamic(w, i);
    }
}

/* Not what the loader alone writes. */
static bool is_variable(const struct nb_code *c, uint64_t address) {
    static const char written_once[] = ".data.rel.ro";
    const GElf_Shdr *s = section_at(c, address);
    size_t names;
    if (!s || !(s->sh_flags & SHF_WRITE)) return false;
    const char *name = elf_getshdrstrndx(c->elf, &names) == 0 ? elf_strptr(c->elf, names, s->sh_name) : NULL;
    return !name || strncmp(name, written_once, sizeof written_once - 1) != 0;
}

static void walk_on(struct walk *w, size_t from) {
    for (size_t i = from; i < w->n && !w->failed; i++) {
        const struct piece piece = w->pieces[i];
        mix_piece(w, &piece);
    }
}

static bool has_variable(const struct walk *w, size_t n, const struct piece *piece) {
    if (!is_variable(w->code, piece->address)) return false;
    for (size_t i = 0; i < n; i++)
        if (w->pieces[i].address == piece->address) return true;
    return false;
}

/* Does the function refer to a variable that the kernel, the first n pieces, refers to? It may have set it: dispatch by the CPU is often
 * written so. */
static bool shares_variable(const struct walk *w, size_t n, uint64_t function) {
    bool any = false, shares = false;
    for (size_t i = 0; i < n; i++) any |= is_variable(w->code, w->pieces[i].address);
    if (!any) return false;
    struct walk *t freed = nb_alloc(1, sizeof *t);
    *t = (struct walk){.code = w->code, .others = w->others, .n_others = w->n_others, .looks_for_data = true};
    add_root(t, function);
    walk_on(t, 0);
    for (size_t i = 0; i < t->n && !shares; i++) shares = has_variable(w, n, &t->pieces[i]);
    shares |= t->failed != NULL;
    return shares;
}

/* Pieces join the list while it is walked: those of the kernel, then what may have set what it reads. */
static int finish(struct walk *w, uint64_t digest[2], char *reason, size_t n) {
    const GElf_Sym *table = symbol_named(w->code, "normbench_kernels"); /* the function that lists the kernels */
    walk_on(w, 0);
    const size_t n_own = w->n;
    if (!w->failed) add_loading(w);
    walk_on(w, n_own);
    if (!w->failed && table && shares_variable(w, n_own, table->st_value)) {
        const size_t n_before = w->n;
        w->has_table = true;
        add_root(w, table->st_value);
        walk_on(w, n_before);
    }
    memcpy(digest, w->digest, sizeof w->digest);
    if (w->failed) snprintf(reason, n, "%s", w->failed);
    return w->failed ? -1 : 0;
}

int nb_code_digest_of(const struct nb_code *code, const uint64_t *functions, size_t n_functions, uint64_t digest[2],
                      char *reason, size_t n) {
    struct walk *w freed = nb_alloc(1, sizeof *w);
    w->code = code;
    for (size_t i = 0; i < n_functions; i++) add_root(w, functions[i]);
    return finish(w, digest, reason, n);
}

static bool is_timed(const char *function) {
    return strcmp(function, "chain") != 0 && strcmp(function, "column_chain") != 0 && strcmp(function, "range") != 0;
}

int nb_code_digest(const struct nb_code *code, const struct nb_entry *entry, enum nb_code_part part, uint64_t digest[2],
                   char *reason, size_t n) {
    struct walk *w freed = nb_alloc(1, sizeof *w);
    uint64_t *others freed = nb_alloc(nb_registry_size() * NB_N_KERNEL_FUNCTIONS + 1, sizeof *others);
    w->code = code;
    w->others = others;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *other = nb_registry_at(i);
        if (strcmp(other->code_file, entry->code_file) != 0) continue;
        memcpy(others + w->n_others, other->functions, sizeof other->functions);
        w->n_others += NB_N_KERNEL_FUNCTIONS;
    }
    if (entry->is_apart) w->failed = "its functions lie in several files";
    for (size_t i = 0; i < NB_N_KERNEL_FUNCTIONS && !entry->is_apart; i++) {
        const char *name = nb_kernel_functions[i].name;
        if (entry->functions[i] == NB_NO_FUNCTION || (part == NB_CODE_TIMED && !is_timed(name))) continue;
        mix_bytes(w, (const unsigned char *)name, strlen(name));
        add_root(w, entry->functions[i]);
    }
    mix(w, entry->kernel->flags);
    return finish(w, digest, reason, n);
}

#else /* no decoder */

struct nb_code *nb_code_open(const char *path, char *reason, size_t n) {
    snprintf(reason, n, "not on this architecture");
    return NULL;
}

void nb_code_close(struct nb_code *code) { (void)code; }

const struct nb_code_place *nb_code_place(const struct nb_code *code, uint64_t address) { return NULL; }

/* There is no file to digest. */
int nb_code_digest(const struct nb_code *code, const struct nb_entry *entry, enum nb_code_part part, uint64_t digest[2],
                   char *reason, size_t n) {
    return nb_reason(reason, n, "not on this architecture");
}

int nb_code_digest_of(const struct nb_code *code, const uint64_t *functions, size_t n_functions, uint64_t digest[2],
                      char *reason, size_t n) {
    return nb_code_digest(code, NULL, NB_CODE_ALL, digest, reason, n);
}

#endif
