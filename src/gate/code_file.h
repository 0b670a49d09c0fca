// SPDX-License-Identifier: Apache-2.0
/* An ELF file of kernels as its linker left it: sections, symbols by address, and the relocations that --emit-relocs keeps.
 * Nothing in the file is trusted: what does not lie inside it is not there. x86-64. */
#ifndef NB_CODE_FILE_H
#define NB_CODE_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NB_CODE_MARKER                                                                                                 \
    "nb_code_in_sections" /* the symbol of a file with a section for each function and no jump tables */

struct nb_code;
/* Null with the reason written: not readable, no ELF, stripped, without relocations or the marker. */
struct nb_code *nb_code_open(const char *path, char *reason, size_t n);
void nb_code_close(struct nb_code *code);

struct nb_code_place { /* a function or an object with a size */
    uint64_t address, size;
    unsigned file; /* which source file's, counted from 1; 0: of a symbol that all share */
};
/* The innermost place that holds the address; null: none. */
const struct nb_code_place *nb_code_place(const struct nb_code *code, uint64_t address);
/* The loaded section that holds an address, or null. */
const Elf64_Shdr *nb_code_section(const struct nb_code *code, uint64_t address);
/* Bytes of one section as the file has them, or null. */
const unsigned char *nb_code_bytes(const struct nb_code *code, uint64_t address, uint64_t size);

/* Relocations of what is loaded, sorted by address: the index of the first at or behind one; the i-th, or null. */
size_t nb_code_relocations_from(const struct nb_code *code, uint64_t address);
const Elf64_Rela *nb_code_relocation(const struct nb_code *code, size_t i);
/* The symbol that a relocation names, or null; its name, never null. */
const Elf64_Sym *nb_code_symbol(const struct nb_code *code, const Elf64_Rela *relocation);
const char *nb_code_name(const struct nb_code *code, const Elf64_Sym *symbol);

#endif
