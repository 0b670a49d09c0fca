// SPDX-License-Identifier: Apache-2.0
/* UTF-8, and which characters are commands to whoever shows them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes one character. Returns its length in bytes; 0: not valid UTF-8 (overlong, surrogate, cut off). */
size_t nb_utf8_decode(const char *s, uint32_t *code);
/* A control character, or one that changes the direction of those behind it. */
bool nb_utf8_is_command(uint32_t code);
