// SPDX-License-Identifier: Apache-2.0
/* A walk over references, from the kernel's functions on. Each piece (a function, an object, a constant) is numbered when it is first
 * met; a reference is digested as the number of the piece and the place in it, so that two builds agree when the same
 * pieces hang together in the same way, wherever they lie.
 *
 * How long is a piece? A function or an object has a size. The compiler's own constants have none, and labels do not end them, since
 * a compiler lets a small constant lie inside a large one; but the instruction that reads one says how much it reads. An
 * address of such data (lea) is taken of texts only; for anything else there is no digest. Bytes that are no part of a piece may make
 * two equal kernels differ, which costs their time, but never two different ones equal. */
#include "src/gate/code_identity.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/shared_object.h"
#include "src/gate/instruction.h"

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
    const Elf64_Shdr *s = nb_code_section(c, address);
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

/* An address is taken of what the file of the code itself holds: of what begins there, or of the end of what stands before. */
static bool mix_address(struct walk *w, uint64_t target, uint64_t from) {
    const struct nb_code_place *own = nb_code_place(w->code, from), *p = nb_code_place(w->code, target);
    const unsigned file = own ? own->file : 0;
    const bool is_own = p && (file == 0 || p->file == 0 || p->file == file), at_start = p && target == p->address;
    const struct nb_code_place *before = !p || at_start ? nb_code_place(w->code, target - 1) : NULL;
    if (is_own) mix_place(w, target);
    if (!before || (file != 0 && before->file != 0 && before->file != file)) return is_own;
    return mix_place(w, target - 1);
}

/* A text without a symbol, to its 0. Of anything else whose address is taken nothing says where it ends. */
static void mix_text(struct walk *w, uint64_t target) {
    const Elf64_Shdr *s = nb_code_section(w->code, target);
    const uint64_t most = s ? s->sh_addr + s->sh_size - target : 0;
    const unsigned char *bytes = nb_code_bytes(w->code, target, most);
    uint64_t n = 0;
    while (bytes && n < most && (bytes[n] >= ' ' || bytes[n] == '\n' || bytes[n] == '\t')) n++;
    if (n == 0 || n == most || bytes[n] != 0)
        w->failed = "it takes the address of data without a symbol";
    else
        mix_range(w, target, n + 1);
}

/* The instruction that holds the four bytes of a distance, either to its operand or to where it jumps; null: none that is known. */
static const struct nb_instruction *instruction_at(struct reading *r, const struct piece *piece,
                                                   const unsigned char *bytes, uint64_t field) {
    const struct nb_instruction *i = &r->instruction;
    while (r->at + (uint64_t)i->bytes <= field) {
        r->at += (uint64_t)i->bytes;
        if (nb_instruction_read(bytes + r->at, piece->size - r->at, &r->instruction) != 0) return NULL;
    }
    return field == r->at + (uint64_t)(i->distance > 0 ? i->distance : i->bytes - 4) ? i : NULL;
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
    const Elf64_Shdr *s = nb_code_section(w->code, target);
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
static uint64_t mix_field(struct walk *w, const struct piece *piece, const unsigned char *bytes, const Elf64_Rela *r) {
    const uint32_t type = ELF64_R_TYPE(r->r_info);
    const Elf64_Sym *symbol = nb_code_symbol(w->code, r);
    const uint64_t offset = r->r_offset - piece->address, width = type == R_X86_64_64 ? 8 : 4;
    if (!symbol || (!is_relative(type) && type != R_X86_64_64) || width > piece->size - offset) {
        w->failed = "a relocation of a kind that is not known here";
        return 0;
    }
    mix(w, offset);
    mix(w, type);
    const bool is_thing = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC || ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT;
    if (symbol->st_shndx == SHN_UNDEF) { /* of another library: by its name */
        const char *name = nb_code_name(w->code, symbol);
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

static void mix_piece(struct walk *w, const struct piece *piece) {
    const struct nb_code *c = w->code;
    const Elf64_Shdr *s = nb_code_section(c, piece->address);
    const unsigned char *bytes = nb_code_bytes(c, piece->address, piece->size);
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
    const Elf64_Rela *r;
    for (size_t i = nb_code_relocations_from(c, piece->address); (r = nb_code_relocation(c, i)) && !w->failed; i++) {
        const uint64_t offset = r->r_offset - piece->address;
        if (offset >= piece->size) break;
        if (ELF64_R_TYPE(r->r_info) == R_X86_64_NONE) continue;
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

/* Pieces join the list while it is walked. */
static int finish(struct walk *w, uint64_t digest[2], char *reason, size_t n) {
    for (size_t i = 0; i < w->n && !w->failed; i++) {
        const struct piece piece = w->pieces[i];
        mix_piece(w, &piece);
    }
    memcpy(digest, w->digest, sizeof w->digest);
    if (w->failed) snprintf(reason, n, "%s", w->failed);
    return w->failed ? -1 : 0;
}

int nb_code_digest_of(const struct nb_code *code, const uint64_t *functions, size_t n_functions, uint64_t digest[2],
                      char *reason, size_t n) {
    struct walk *w = nb_alloc(1, sizeof *w);
    w->code = code;
    for (size_t i = 0; i < n_functions; i++) add_root(w, functions[i]);
    const int result = finish(w, digest, reason, n);
    free(w);
    return result;
}

static bool is_timed(const char *function) {
    return strcmp(function, "chain") != 0 && strcmp(function, "column_chain") != 0 && strcmp(function, "range") != 0;
}

int nb_code_digest(const struct nb_code *code, const struct nb_entry *entry, enum nb_code_part part, uint64_t digest[2],
                   char *reason, size_t n) {
    struct walk *w = nb_alloc(1, sizeof *w);
    struct nb_kernel_function functions[NB_N_KERNEL_FUNCTIONS];
    const char *base = nb_object_of((void *)(uintptr_t)entry->kernel->run, NULL);
    const size_t n_functions = nb_kernel_functions(entry->kernel, functions);
    w->code = code;
    for (size_t i = 0; i < n_functions; i++) {
        if (part == NB_CODE_TIMED && !is_timed(functions[i].name)) continue;
        mix_bytes(w, (const unsigned char *)functions[i].name, strlen(functions[i].name));
        if (nb_object_of(functions[i].address, NULL) != base)
            w->failed = "its functions lie in several files";
        else
            add_root(w, (uint64_t)((const char *)functions[i].address - base));
    }
    mix(w, entry->kernel->flags);
    const int result = finish(w, digest, reason, n);
    free(w);
    return result;
}
