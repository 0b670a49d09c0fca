// SPDX-License-Identifier: Apache-2.0
/* A norm kernel on paper: which operation is done in which format, in which order, with which rounding. Written as one text,
 *     rmsnorm/store:bf16/acc:f32x16/cast:before/eps:1e-6
 * where everything left out has its default, or as a preset's name ("llama", "gemma", "all_bf16" ...) that may be followed by
 * changes: "llama/store:f16". `emulate` executes it, `limits` and `tolerance` reason about it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/text.h"

/* How a row is summed. */
enum nb_order {
    NB_ORDER_SEQUENTIAL, /* `lanes` running sums, element i in lane i mod lanes; neighbouring lanes combined as a tree */
    NB_ORDER_PAIRWISE,   /* halves, down to `leaf` elements, which are summed one after another */
    NB_ORDER_BLOCKED,    /* blocks of `leaf` one after another, then their sums one after another */
    NB_ORDER_KAHAN,      /* sequential, compensated in each lane */
};

struct nb_design {
    enum nb_op op;         /* rmsnorm, prmsnorm, layernorm, l2norm */
    enum nb_number store;  /* x and y */
    enum nb_number weight; /* gamma and beta as stored (after weight_offset, where that is rounded: offset) */
    enum nb_number square; /* x^2, (x - mean)^2 and the differences */
    enum nb_number acc;    /* running sums */
    enum nb_number stat;   /* mean, variance, eps, variance + eps */
    enum nb_number root;   /* sqrt and 1/sqrt */
    enum nb_number
        rstd; /* what 1/sqrt (or the sqrt that is divided by) is kept in: rounded again where it is narrower */
    enum nb_number scale;  /* x * rstd (or (x - mean) * rstd) and the affine products */
    enum nb_number offset; /* 1 + gamma */
    enum nb_order order;
    int64_t lanes, leaf;
    uint32_t fma;              /* 1: squares enter the sum unrounded, and the last product with beta is fused */
    enum nb_variance variance; /* LayerNorm: twopass, corrected, welford, onepass, shifted */
    enum nb_root root_form;    /* div_sqrt, mul_recip (rsqrt_nr, rsqrt_raw: emulated with an estimate of 12 bits) */
    enum nb_eps_place eps_place;
    enum nb_cast cast;               /* before: x * rstd rounded to store, times gamma rounded to store */
    uint32_t weight_offset;          /* 1: 1 + gamma */
    uint32_t folded;                 /* 1: y = x * a + (beta - mean * a) */
    uint32_t flush;                  /* 1: subnormal inputs and results of every operation become 0 (FTZ and DAZ) */
    enum nb_rounding rounding;       /* of every operation; */
    enum nb_rounding store_rounding; /* of the last one, to store */
    double k;                        /* pRMSNorm: share of the row, in (0, 1] */
    double eps;
    char eps_text[32];
};

/* Defaults: f32 throughout, sequential in one lane, twopass, mul_recip, eps 1e-5 inside, round to nearest. */
void nb_design_init(struct nb_design *d);
/* -1 after nb_error that names the part that is wrong and what may stand there. */
int nb_design_parse(struct nb_design *d, const char *text);
/* The shortest text that parses to it. */
void nb_design_print(const struct nb_design *d, struct nb_strbuf *out);
struct nb_design_preset {
    const char *name, *letter, *text, *help; /* letter: a second name, or null */
};
extern const struct nb_design_preset nb_design_presets[];
extern const size_t nb_n_design_presets;
/* A part `name:value` of the text, and the field that it sets. */
enum nb_design_key_kind {
    NB_KEY_NUMBER,  /* enum nb_number */
    NB_KEY_NAME,    /* an enum or uint32_t: the index in `names` */
    NB_KEY_COUNT,   /* int64_t, from 1 on */
    NB_KEY_TEXT,    /* char[] */
    NB_KEY_SHARE,   /* double */
    NB_KEY_SEVERAL, /* no field of its own */
};
struct nb_design_key {
    const char *name, *help, *values;
    enum nb_design_key_kind kind;
    size_t offset; /* in struct nb_design */
    const char *const *names;
    int (*set)(struct nb_design *d, const char *text, char *reason, size_t n); /* null: as the kind says */
};
extern const struct nb_design_key nb_design_keys[]; /* for --help and errors */
extern const size_t nb_n_design_keys;
/* Appends the value that the design has; nothing for a key that stands for several others. */
void nb_design_key_print(const struct nb_design_key *key, const struct nb_design *d, struct nb_strbuf *out);
/* How many elements of a row the statistics see: all, or pRMSNorm's share, rounded up. */
int64_t nb_design_elements(const struct nb_design *d, int64_t cols);
/* Longest chain of dependent roundings between an addend and the sum of n, as nb_kernel.chain. */
int64_t nb_design_chain(const struct nb_design *d, int64_t n);

/* ---- A design seen as a case, where oracle, bound and data are at home ---- */

/* Rows of so many columns. dtype and stats_dtype are only meant where the bound knows the design. */
void nb_design_case(struct nb_case *c, const struct nb_design *d, int64_t rows, int64_t cols, enum nb_affine affine);
/* Why the a-priori bound of bound.h cannot express the design, or null. It knows statistics in f32 and statistics in the stored
 * dtype; a step in a wider format than that is no worse. */
const char *nb_design_unbounded(const struct nb_design *d);
