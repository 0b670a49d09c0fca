// SPDX-License-Identifier: Apache-2.0
/* Filling and comparing by doubling and by overlap: as fast as memory goes. */
#include "src/measure/poison.h"

#include <string.h>

enum { PATTERN = 64 };

void nb_poison(unsigned char *p, size_t bytes, uint32_t word) {
    size_t done = bytes < PATTERN ? bytes : PATTERN;
    for (size_t i = 0; i < done; i++) p[i] = (unsigned char)(word >> 8 * ((uintptr_t)(p + i) % 4));
    for (; done < bytes; done += done < bytes - done ? done : bytes - done)
        memcpy(p + done, p, done < bytes - done ? done : bytes - done);
}

bool nb_is_poison(const unsigned char *p, size_t bytes, uint32_t word) {
    for (size_t i = 0; i < bytes && i < 4; i++)
        if (p[i] != (unsigned char)(word >> 8 * ((uintptr_t)(p + i) % 4))) return false;
    return bytes <= 4 || memcmp(p, p + 4, bytes - 4) == 0;
}
