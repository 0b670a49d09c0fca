// SPDX-License-Identifier: Apache-2.0
/* One x86-64 instruction of 64-bit mode: how long it is, and how many bytes it reads or writes at an address that it names by a
 * distance from itself. */
#ifndef NB_INSTRUCTION_H
#define NB_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>

#define NB_WIDEST_OPERAND 64

struct nb_instruction {
    int bytes;         /* of all of it, 1 to 15 */
    int distance;      /* where in it the four bytes of the distance stand; 0: it names nothing so */
    int operand_bytes; /* what is read or written there, at most: exact for what compilers make of arithmetic; 1 .. 64 */
    bool takes_address; /* lea */
};

/* Reads the instruction that begins at code, of which n bytes are there. -1: cut off, or none that a compiler makes. */
int nb_instruction_read(const unsigned char *code, uint64_t n, struct nb_instruction *instruction);

#endif
