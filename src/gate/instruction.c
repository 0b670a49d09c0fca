// SPDX-License-Identifier: Apache-2.0
/* Encodings after Intel's Software Developer's Manual, volume 2, chapter 2 (prefixes, VEX, EVEX, ModRM and SIB) and appendix A
 * (opcode maps). Instructions of the system, of segments and of other modes count as unknown. */
#include "src/gate/instruction.h"

#include <string.h>

enum { LONGEST = 15, LONGEST_READ = LONGEST + 16 };

/* What stands before the operands. */
struct opcode {
    int map;        /* 0: one byte, 1: 0F, 2: 0F 38, 3: 0F 3A, 5 and 6: EVEX's */
    int mandatory;  /* 0: none, 1: 66, 2: F3, 3: F2 */
    bool is_vex;    /* or EVEX */
    bool half;      /* 66: 16-bit operands */
    bool wide;      /* W */
    bool broadcast; /* EVEX.b: one element */
    int vector;     /* bytes */
    unsigned char code;
};

static bool is_one_of(unsigned char code, const char *list, size_t n) { return memchr(list, code, n) != NULL; }
#define ONE_OF(code, list) is_one_of(code, list, sizeof(list) - 1)
static bool is_within(unsigned char code, int first, int last) { return code >= first && code <= last; }

/* ---- how long: what follows an opcode -------------------------------------------------------------------------------- */

/* '.': nothing; m: ModRM; immediates: b 1 byte, w 2, r 4, z 4 or 2 by the operands, v 8 with W, else z; capitals: ModRM and the
 * immediate; G: ModRM, and an immediate for test alone; blank: unknown here, or a prefix. */
static const char one_byte_map[256 + 1] = "mmmmbz  mmmmbz  "
                                          "mmmmbz  mmmmbz  "
                                          "mmmmbz  mmmmbz  "
                                          "mmmmbz  mmmmbz  "
                                          "                "
                                          "................"
                                          "   m    zZbB    "
                                          "bbbbbbbbbbbbbbbb"
                                          "BZ Bmmmmmmmmmmmm"
                                          ".......... ....."
                                          "    ....bz......"
                                          "bbbbbbbbvvvvvvvv"
                                          "BBw.  BZ .  .   "
                                          "mmmm   .mmmmmmmm"
                                          "bbbb    rr b    "
                                          "    ..GG......mm";

static char two_byte_map(unsigned char code) {
    if (ONE_OF(code, "\x05\x0b\x31\x77\xa2") || is_within(code, 0xc8, 0xcf)) return '.';
    if (is_within(code, 0x80, 0x8f)) return 'r';
    return ONE_OF(code, "\x70\x71\x72\x73\xa4\xac\xba\xc2\xc4\xc5\xc6") ? 'B' : 'm';
}

static char what_follows(const struct opcode *o) {
    if (o->map == 0) return one_byte_map[o->code];
    return o->map == 1 ? two_byte_map(o->code) : o->map == 3 ? 'B' : 'm';
}

static int immediate_bytes(const struct opcode *o, char follows, unsigned char modrm) {
    const int word = o->half ? 2 : 4;
    switch (follows) {
    case 'b':
    case 'B':
        return 1;
    case 'w':
        return 2;
    case 'r':
        return 4;
    case 'z':
    case 'Z':
        return word;
    case 'v':
        return o->wide ? 8 : word;
    case 'G':
        return (modrm >> 3 & 7) > 1 ? 0 : o->code & 1 ? word : 1;
    default:
        return 0;
    }
}

/* ModRM with SIB and displacement. */
static int address_bytes(const unsigned char *modrm) {
    const int mode = *modrm >> 6, base = *modrm & 7;
    const bool has_sib = mode != 3 && base == 4;
    const bool has_long = mode == 2 || (mode == 0 && (base == 5 || (has_sib && (modrm[1] & 7) == 5)));
    return 1 + has_sib + (mode == 1 ? 1 : has_long ? 4 : 0);
}

/* ---- how much is read ----------------------------------------------------------------------------------------------- */

static int general_bytes(const struct opcode *o) {
    const int word = o->wide ? 8 : o->half ? 2 : 4;
    const unsigned char c = o->code;
    if (o->map == 1) {
        if (ONE_OF(c, "\xb6\xbe")) return 1; /* movzx, movsx */
        if (ONE_OF(c, "\xb7\xbf")) return 2;
        if (is_within(c, 0x40, 0x4f) || c == 0xaf) return word; /* cmov, imul */
        return 16;
    }
    if (c == 0x63) return 4; /* movsxd */
    if (c == 0xff) return 8; /* a call by way of memory */
    if (c < 0x40 || is_within(c, 0x69, 0x6b) || is_within(c, 0x80, 0x8b) || is_within(c, 0xc0, 0xd3) ||
        is_within(c, 0xf6, 0xf7))
        return c & 1 ? word : 1;
    return NB_WIDEST_OPERAND;
}

/* Of opcodes that take one element, or another part of a vector; 0: a whole one. */
static int part_of_vector(const struct opcode *o) {
    const int element = o->wide ? 8 : 4, m = o->mandatory;
    const unsigned char c = o->code;
    if (o->map == 1) {
        if (m >= 2 && ONE_OF(c, "\x10\x51\x52\x53\x58\x59\x5a\x5c\x5d\x5e\x5f\xc2\x2c\x2d"))
            return m == 2 ? 4 : 8;                                                       /* ss, sd */
        if (m >= 2 && c == 0x2a) return element;                                         /* cvtsi2ss */
        if (m <= 1 && ONE_OF(c, "\x2e\x2f")) return m == 1 ? 8 : 4;                      /* comiss, comisd */
        if (m <= 1 && ONE_OF(c, "\x12\x13\x16\x17")) return 8;                           /* movlps, movhps */
        if (m == 3 && c == 0x12) return o->vector == 16 ? 8 : o->vector;                 /* movddup */
        if (m == 1 && c == 0xc4) return 2;                                               /* pinsrw */
        if (m == 1 && c == 0x6e) return element;                                         /* movd */
        if (m == 2 && c == 0x7e) return 8;                                               /* movq */
        if (o->is_vex && c == 0x90) return m == 1 ? (o->wide ? 4 : 1) : o->wide ? 8 : 2; /* kmov */
    }
    if (o->map != 2 || m != 1) return 0;
    if (ONE_OF(c, "\x20\x23\x25\x30\x33\x35")) return o->vector / 2; /* pmovsx, pmovzx */
    if (ONE_OF(c, "\x21\x24\x31\x34")) return o->vector / 4;
    if (ONE_OF(c, "\x22\x32")) return o->vector / 8;
    if (!o->is_vex) return 0;
    if (ONE_OF(c, "\x99\x9b\x9d\x9f\xa9\xab\xad\xaf\xb9\xbb\xbd\xbf\x4d\x4f")) return element; /* scalar fma, rcp14 */
    if (ONE_OF(c, "\x18\x58")) return 4;                                                       /* broadcasts */
    if (ONE_OF(c, "\x19\x59")) return 8;
    if (ONE_OF(c, "\x1a\x5a")) return 16;
    if (ONE_OF(c, "\x1b\x5b")) return 32;
    if (c == 0x78) return 1;
    if (c == 0x79) return 2;
    return c == 0x13 ? o->vector / 2 : 0; /* cvtph2ps */
}

static int operand_bytes(const struct opcode *o) {
    const int part = part_of_vector(o);
    if (part > 0) return part;
    if (o->broadcast) return o->wide ? 8 : 4;
    return o->is_vex ? o->vector : general_bytes(o);
}

/* ---- the opcode ------------------------------------------------------------------------------------------------------ */

/* Each returns the bytes up to the opcode and with it, 0 for what is no instruction. */
static int read_vex(const unsigned char *c, struct opcode *o) {
    const bool is_short = c[0] == 0xc5;
    const unsigned char last = is_short ? c[1] : c[2];
    *o = (struct opcode){.map = is_short ? 1 : c[1] & 31,
                         .mandatory = last & 3,
                         .is_vex = true,
                         .wide = !is_short && (last & 128),
                         .vector = last & 4 ? 32 : 16,
                         .code = is_short ? c[2] : c[3]};
    return o->map >= 1 && o->map <= 3 ? (is_short ? 3 : 4) : 0;
}

static int read_evex(const unsigned char *c, struct opcode *o) {
    *o = (struct opcode){.map = c[1] & 7,
                         .mandatory = c[2] & 3,
                         .is_vex = true,
                         .wide = c[2] & 128,
                         .broadcast = c[3] & 16,
                         .vector = 16 << (c[3] >> 5 & 3),
                         .code = c[4]};
    if (o->vector > NB_WIDEST_OPERAND) o->vector = NB_WIDEST_OPERAND; /* L'L = 3 is the rounding of registers */
    return (c[1] & 8) == 0 && (c[2] & 4) != 0 && o->map != 0 && o->map != 4 && o->map != 7 ? 5 : 0;
}

static int read_legacy(const unsigned char *c, struct opcode *o) {
    int n = 0;
    *o = (struct opcode){.vector = 16};
    for (; n < LONGEST - 4 && ONE_OF(c[n], "\x26\x2e\x36\x3e\x64\x65\x66\xf0\xf2\xf3"); n++) {
        o->half |= c[n] == 0x66;
        if (c[n] >= 0xf2) o->mandatory = c[n] == 0xf3 ? 2 : 3;
    }
    if (o->half && o->mandatory == 0) o->mandatory = 1;
    if ((c[n] & 0xf0) == 0x40) o->wide = c[n++] & 8;
    if (o->wide) o->half = false;
    if (c[n] == 0x0f) o->map = c[n + 1] == 0x38 ? 2 : c[n + 1] == 0x3a ? 3 : 1;
    n += o->map == 0 ? 0 : o->map == 1 ? 1 : 2;
    o->code = c[n];
    return n + 1;
}

static int read_opcode(const unsigned char *c, struct opcode *o) {
    if (*c == 0xc4 || *c == 0xc5) return read_vex(c, o);
    return *c == 0x62 ? read_evex(c, o) : read_legacy(c, o);
}

int nb_instruction_read(const unsigned char *code, uint64_t n, struct nb_instruction *instruction) {
    unsigned char window[LONGEST_READ] = {0};
    struct opcode o;
    memcpy(window, code, n < LONGEST ? n : LONGEST);
    const int head = read_opcode(window, &o);
    const char follows = head > 0 ? what_follows(&o) : ' ';
    if (follows == ' ') return -1;
    const unsigned char *modrm = window + head;
    const bool has_modrm = follows == 'm' || (follows >= 'A' && follows <= 'Z');
    const bool is_distance = has_modrm && (*modrm & 0xc7) == 0x05;
    *instruction = (struct nb_instruction){.bytes = head + (has_modrm ? address_bytes(modrm) : 0) +
                                                    immediate_bytes(&o, follows, *modrm),
                                           .distance = is_distance ? head + 1 : 0,
                                           .operand_bytes = operand_bytes(&o),
                                           .takes_address = o.map == 0 && o.code == 0x8d};
    return instruction->bytes <= LONGEST && (uint64_t)instruction->bytes <= n ? 0 : -1;
}
