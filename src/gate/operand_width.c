// SPDX-License-Identifier: Apache-2.0
/* Encodings after Intel's Software Developer's Manual, volume 2, sections 2.3 (VEX), 2.7 (EVEX) and appendix A. An operand that
 * is relative to the instruction has no SIB byte: opcode, ModRM, distance stand next to each other. */
#include "src/gate/operand_width.h"

#include <stdbool.h>
#include <string.h>

/* What a prefix says, whichever it is. */
struct prefix {
    int map;        /* 1: 0F, 2: 0F 38, 3: 0F 3A */
    int mandatory;  /* 0: none, 1: 66, 2: F3, 3: F2 */
    bool wide;      /* W */
    bool broadcast; /* EVEX.b: one element */
    int vector;     /* bytes */
};

static bool is_one_of(unsigned char opcode, const char *list, size_t n) { return memchr(list, opcode, n) != NULL; }
#define ONE_OF(opcode, list) is_one_of(opcode, list, sizeof(list) - 1)

static bool has_immediate(int map, unsigned char opcode) {
    return map == 3 || (map == 1 && ONE_OF(opcode, "\x70\x71\x72\x73\xc2\xc4\xc5\xc6"));
}

/* Of opcodes that take one element, or another part of a vector; 0: a whole one. */
static int part_of_vector(const struct prefix *p, unsigned char opcode) {
    const int element = p->wide ? 8 : 4;
    if (p->map == 1 && p->mandatory >= 2 && ONE_OF(opcode, "\x10\x51\x52\x53\x58\x59\x5a\x5c\x5d\x5e\x5f\xc2\x2c\x2d"))
        return p->mandatory == 2 ? 4 : 8;                                                                 /* ss, sd */
    if (p->map == 1 && p->mandatory >= 2 && opcode == 0x2a) return element;                               /* cvtsi2ss */
    if (p->map == 1 && p->mandatory <= 1 && ONE_OF(opcode, "\x2e\x2f")) return p->mandatory == 1 ? 8 : 4; /* comiss */
    if (p->map == 1 && p->mandatory <= 1 && ONE_OF(opcode, "\x12\x13\x16\x17")) return 8;           /* movlps, movhps */
    if (p->map == 1 && p->mandatory == 3 && opcode == 0x12) return p->vector == 16 ? 8 : p->vector; /* movddup */
    if (p->map == 1 && p->mandatory == 1 && opcode == 0xc4) return 2;                               /* pinsrw */
    if (p->map == 1 && p->mandatory == 1 && opcode == 0x6e) return element;                         /* movd */
    if (p->map == 1 && p->mandatory == 2 && opcode == 0x7e) return 8;                               /* movq */
    if (p->map != 2 || p->mandatory != 1) return 0;
    if (ONE_OF(opcode, "\x99\x9b\x9d\x9f\xa9\xab\xad\xaf\xb9\xbb\xbd\xbf\x4d\x4f"))
        return element;                       /* scalar fma, rcp14 */
    if (ONE_OF(opcode, "\x18\x58")) return 4; /* broadcasts */
    if (ONE_OF(opcode, "\x19\x59")) return 8;
    if (ONE_OF(opcode, "\x1a\x5a")) return 16;
    if (ONE_OF(opcode, "\x1b\x5b")) return 32;
    if (opcode == 0x78) return 1;
    if (opcode == 0x79) return 2;
    return opcode == 0x13 ? p->vector / 2 : 0; /* cvtph2ps */
}

static struct nb_operand operand_of(const struct prefix *p, unsigned char opcode) {
    struct nb_operand o = {.bytes = part_of_vector(p, opcode), .behind = has_immediate(p->map, opcode)};
    if (o.bytes == 0) o.bytes = p->broadcast ? (p->wide ? 8 : 4) : p->vector;
    return o;
}

/* c: the opcode's place. */
static bool read_vex2(const unsigned char *c, struct prefix *p) {
    *p = (struct prefix){.map = 1, .mandatory = c[-1] & 3, .vector = c[-1] & 4 ? 32 : 16};
    return c[-2] == 0xc5;
}

static bool read_vex3(const unsigned char *c, struct prefix *p) {
    *p = (struct prefix){.map = c[-2] & 31, .mandatory = c[-1] & 3, .wide = c[-1] & 128, .vector = c[-1] & 4 ? 32 : 16};
    return c[-3] == 0xc4 && p->map >= 1 && p->map <= 3;
}

static bool read_evex(const unsigned char *c, struct prefix *p) {
    *p = (struct prefix){.map = c[-3] & 7,
                         .mandatory = c[-2] & 3,
                         .wide = c[-2] & 128,
                         .broadcast = c[-1] & 16,
                         .vector = 16 << (c[-1] >> 5 & 3)};
    if (p->vector > NB_WIDEST_OPERAND) p->vector = NB_WIDEST_OPERAND;
    return c[-4] == 0x62 && (c[-3] & 8) == 0 && p->map != 0 && (c[-2] & 4) != 0;
}

/* Without VEX: general registers, or SSE with a 16-byte operand at most. */
static bool read_legacy(const unsigned char *c, struct nb_operand *o) {
    const bool three = c[-2] == 0x0f && (c[-1] == 0x38 || c[-1] == 0x3a), two = c[-1] == 0x0f;
    *o = (struct nb_operand){16, has_immediate(three ? (c[-1] == 0x3a ? 3 : 2) : 1, *c)};
    if (two && ONE_OF(*c, "\xb6\xb7\xbe\xbf")) o->bytes = 1 + (*c & 1); /* movzx, movsx */
    return two || three;
}

static void join(struct nb_operand *all, const struct nb_operand *one, bool *found) {
    if (one->bytes > all->bytes) all->bytes = one->bytes;
    all->behind = *found && all->behind != one->behind ? -1 : one->behind;
    *found = true;
}

struct nb_operand nb_operand_at(const unsigned char *code, uint64_t field) {
    static bool (*const readers[])(const unsigned char *, struct prefix *) = {read_vex2, read_vex3, read_evex};
    struct nb_operand all = {0, -1}, one;
    unsigned char window[6] = {0}; /* before the field; the first instruction of a function has nothing before it */
    const uint64_t n = field < sizeof window ? field : sizeof window;
    const unsigned char *c = window + 4;
    bool found = false;
    memcpy(window + sizeof window - n, code + field - n, n);
    if (n < 2 || (c[1] & 0xc7) != 5) return (struct nb_operand){NB_WIDEST_OPERAND, -1};
    for (unsigned i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        struct prefix p;
        if (!readers[i](c, &p)) continue;
        one = operand_of(&p, *c);
        join(&all, &one, &found);
    }
    if (read_legacy(c, &one)) join(&all, &one, &found);
    if (found) return all;
    /* mov, add, or, and, sub, xor, cmp, movsxd with one general register */
    if (ONE_OF(*c, "\x03\x0b\x23\x2b\x33\x3b\x63\x8b")) return (struct nb_operand){8, 0};
    return (struct nb_operand){NB_WIDEST_OPERAND, -1};
}
