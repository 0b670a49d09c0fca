// SPDX-License-Identifier: Apache-2.0
/* Is the machine code of a kernel the same in two builds? A digest of all that its functions can reach: their bytes, the functions
 * they call and the constants they refer to, where every field that only says where the linker put a thing is replaced by
 * what that thing is. What the file does on loading (constructors, initialisers of C++, the libraries that it needs) is part of each digest:
 * it may set what a kernel reads. So is the function that lists its kernels, where both refer to a variable.
 *
 * Needs what the kernels' build keeps (Makefile): the symbol table, relocations (--emit-relocs), a section for each function, no jump
 * tables; a file built so says it by a symbol. Other files have no digest: a reference inside a section leaves no
 * relocation, and what it reaches could be left out. The file is data from outside: what does not lie inside it is not there.
 * x86-64; on other architectures no file can be opened, with that reason. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/kernel_fields.h"

#define NB_CODE_MARKER                                                                                                 \
    "nb_code_in_sections" /* the symbol of a file with a section for each function and no jump tables */

/* ---- a file ------------------------------------------------------------------------------------------------------------ */

struct nb_code;
/* An ELF file of kernels as its linker left it. Null with the reason written: not readable, not ELF, stripped, without
 * relocations or the marker. */
struct nb_code *nb_code_open(const char *path, char *reason, size_t n);
void nb_code_close(struct nb_code *code);

struct nb_code_place { /* a function or an object with a size */
    uint64_t address, size;
    unsigned file; /* the source file it is local to, counted from 1; 0: a symbol that all files share */
};
/* The innermost place that holds the address; null: none. */
const struct nb_code_place *nb_code_place(const struct nb_code *code, uint64_t address);

/* ---- digests ----------------------------------------------------------------------------------------------------------- */

enum nb_code_part {
    NB_CODE_TIMED, /* run() and the functions that say how it is called */
    NB_CODE_ALL    /* and those that say what its results are held to: chain(), range() */
};
/* Of a kernel that was loaded from this file. 0, or -1 with the reason. */
int nb_code_digest(const struct nb_code *code, const struct nb_entry *entry, enum nb_code_part part, uint64_t digest[2],
                   char *reason, size_t n);
/* The same of functions by their addresses in the file. */
int nb_code_digest_of(const struct nb_code *code, const uint64_t *functions, size_t n_functions, uint64_t digest[2],
                      char *reason, size_t n);

/* ---- an instruction ---------------------------------------------------------------------------------------------------- */

#define NB_WIDEST_OPERAND 64

/* What one instruction of 64-bit mode says of memory that it names by a distance from its own end. */
struct nb_instruction {
    int bytes;          /* its length, 1 to 15 */
    int distance;       /* where in it the four bytes of an operand's distance are; 0: no such operand */
    int jump;           /* where in it the four bytes of a jump's or a call's distance are; 0: none */
    int operand_bytes;  /* read or written at the operand; NB_WIDEST_OPERAND where there is none */
    bool takes_address; /* lea */
};
