// SPDX-License-Identifier: Apache-2.0
/* Is the machine code of a kernel the same in two builds? A digest of all that its functions can reach: their bytes, the functions
 * they call and the constants they refer to, where every field that only says where the linker put a thing is replaced by
 * what that thing is.
 *
 * Needs what the kernels' build keeps (Makefile): the symbol table, relocations (--emit-relocs), a section for each function, no jump
 * tables; a file built so says it by a symbol. Of other files there is no digest: a reference inside a section leaves no
 * relocation, and what it reaches could be left out. x86-64. */
#ifndef NB_CODE_IDENTITY_H
#define NB_CODE_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "src/core/registry.h"
#include "src/gate/code_file.h"

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

#endif
