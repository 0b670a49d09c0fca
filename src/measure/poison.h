// SPDX-License-Identifier: Apache-2.0
/* Memory filled with a known word, so that a write to it shows. */
#ifndef NB_POISON_H
#define NB_POISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two words of poison: a quiet NaN, and an ordinary number, in f32, f16 and bf16 alike. Results that differ between
 * them depend on memory that is not the kernel's. */
#define NB_POISON_NAN 0x7fc17fc1u
#define NB_POISON_NUMBER 0x42f742f7u

/* The word's bytes, in phase with addresses that are multiples of 4. */
void nb_poison(unsigned char *p, size_t bytes, uint32_t word);
bool nb_is_poison(const unsigned char *p, size_t bytes, uint32_t word);

#endif
