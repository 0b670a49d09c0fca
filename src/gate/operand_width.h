// SPDX-License-Identifier: Apache-2.0
/* How many bytes does an x86-64 instruction read or write at the address that it names by a distance from itself? */
#ifndef NB_OPERAND_WIDTH_H
#define NB_OPERAND_WIDTH_H

#include <stdint.h>

#define NB_WIDEST_OPERAND 64

struct nb_operand {
    int bytes;  /* at most so many; 1 .. NB_WIDEST_OPERAND */
    int behind; /* bytes of the instruction behind the distance, which counts from its end; -1: not known, 0 to 4 */
};

/* field: where in the code the four bytes of the distance stand. Instructions are read from their end, so that bytes of the one
 * before may look like a prefix; where several readings are possible, the widest counts. Exact for loads of vector and scalar
 * floating-point code (VEX and EVEX); an upper bound for the rest. */
struct nb_operand nb_operand_at(const unsigned char *code, uint64_t field);

#endif
