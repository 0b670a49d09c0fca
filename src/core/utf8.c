// SPDX-License-Identifier: Apache-2.0
#include "src/core/utf8.h"

size_t nb_utf8_decode(const char *s, uint32_t *code) {
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)s;
    size_t len = u[0] < 0x80 ? 1 : (u[0] >> 5) == 6 ? 2 : (u[0] >> 4) == 14 ? 3 : (u[0] >> 3) == 30 ? 4 : 0;
    if (len == 0) return 0;
    *code = len == 1 ? u[0] : u[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80) return 0;
        *code = *code << 6 | (u[i] & 0x3F);
    }
    bool surrogate = *code >= 0xD800 && *code <= 0xDFFF;
    return *code < smallest[len] || surrogate || *code > 0x10FFFF ? 0 : len;
}

static bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

/* Directional overrides can make a name read as another; a terminal and a page both obey them. */
bool nb_utf8_is_command(uint32_t code) {
    return is_control(code) || (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xFEFF;
}
