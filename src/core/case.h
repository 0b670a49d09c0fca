// SPDX-License-Identifier: Apache-2.0
/* One cell of the matrix, from its axes: defaults, what follows from other fields, and its key, which determines it:
 *     rmsnorm_twopass_v512_bf16/shape:64x384/data:minilm_layer0_out/seed:1/eps:1e-6/eps_place:inside/root:mul_recip/...
 * Only axes that mean something for the case's op appear, always in the table's order (axes.h); a '/' or '%' inside a value is written
 * %2F, %25. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/shape.h"
#include "src/core/text.h"

#define NB_VARIANT_MAX 128
#define NB_TEXT_MAX 32
#define NB_DATA_MAX 512
#define NB_DY_MAX 192
#define NB_DY_PARALLEL "parallel" /* dy = x */

enum nb_cache { NB_HOT, NB_COLD };

struct nb_case {
    char variant[NB_VARIANT_MAX]; /* "[plugin:]rmsnorm_twopass_v512_bf16" */
    char kernel[NB_VARIANT_MAX];  /* "[plugin:]rmsnorm_twopass"; "": as the variant says (nb_kernel_name) */
    bool is_peer;                 /* the plugin is the adapter of a peer (src/core/peers.h) */
    uint32_t op, pass, dtype, width;
    uint32_t backend;                             /* enum nb_backend: where the kernel runs */
    uint32_t style, stats, stats_dtype, variance; /* the kernel's, for filters and reports */
    bool folded, flushes, recomputes;             /* the kernel's: NB_FLAG_FOLDED, _FLUSHES, _RECOMPUTES */
    double copy_loads, copy_stores;               /* the tensors that a copy reads and writes; 0 for other ops */
    struct nb_shape shape;
    struct nb_formula formula;
    double eps, alpha, momentum;
    char eps_text[NB_TEXT_MAX]; /* as typed */
    char k_text[NB_TEXT_MAX];   /* pRMSNorm: "6.25%" or a count */
    int64_t k;
    uint32_t mode;
    int64_t pad; /* stride axis: elements between the end of a row and the start of the next */
    int threads;
    uint32_t cache; /* enum nb_cache */
    char data[NB_DATA_MAX];
    uint64_t seed;
    char dy[NB_DY_MAX]; /* backward: as data, or NB_DY_PARALLEL; "" or "drawn": normal, or the file beside real rows */
    char params[NB_TEXT_MAX]; /* what gamma and beta hold (nb_params_parse); "": drawn */
    const struct nb_tuning
        *tuning; /* what its calls carry (tuning.h): the process's, unless the caller sets another; no axis */
};

/* Does the op add a residual before it normalizes? Does it take the mean away? */
bool nb_op_adds(uint32_t op);
bool nb_op_centres(uint32_t op);
/* The parameters that it has as usual. */
enum nb_affine nb_usual_affine(uint32_t op);

/* Has it a dy that is not the usual one? */
bool nb_case_chooses_dy(const struct nb_case *c);

/* Why no kernel can run this combination ("rsqrt with eps outside the root is not defined"), or null. */
const char *nb_case_conflict(const struct nb_case *c);

/* "[plugin:]rmsnorm_twopass": the kernel's name, by which options, configs and claims select it; of a case read from its key alone the
 * variant without width and dtype. */
void nb_kernel_name(const struct nb_case *c, struct nb_strbuf *out);
char *nb_kernel_text(const struct nb_case *c); /* owned */

/* May its time be measured? What an emulator takes says nothing of the device. */
static inline bool nb_case_is_timed(const struct nb_case *c) { return c->backend != NB_BACKEND_CUDA_EMULATED; }

/* The kernel's view: shape, strides, formula, parameters; tensors null. Of a backward case eps, and for DyT alpha, are what the forward
 * call had. */
void nb_case_call(const struct nb_case *c, struct nb_call *call);

/* Bytes that the op must move at least: tensor-sized inputs read once, outputs written once, parameters and statistics. */
double nb_case_bytes(const struct nb_case *c);

/* Tensors of the op, rows x cols each: how many it must read and write. */
void nb_op_tensors(uint32_t op, uint32_t pass, int *n_loads, int *n_stores);

/* Defaults of every axis; op and dtype must be set before axes that depend on them are printed. */
void nb_case_init(struct nb_case *c);
/* Takes over what a kernel declares: variant, op, pass, dtype, width, properties. Of a kernel of the registry see
 * nb_case_set_entry(). */
void nb_case_set_kernel(struct nb_case *c, const struct nb_kernel *kernel, const char *plugin);
/* Fields that do not apply to the case's op get their defaults, so that equal cases have equal keys; what depends on other
 * fields is resolved: the op's usual affine, k as a count, ROWSxCOLS for BatchNorm as positions x channels. */
void nb_case_normalize(struct nb_case *c);

char *nb_case_key(const struct nb_case *c); /* owned */
/* The value of one axis as text; "" when it does not apply. */
void nb_case_axis(const struct nb_case *c, const char *axis, struct nb_strbuf *out);
char *nb_case_axis_text(const struct nb_case *c, const char *axis); /* owned */
/* Undoes %XX in place; -1: not such a text. */
int nb_case_key_unescape(char *text);
/* The inverse of nb_case_key for the cell axes; the fields that belong to the kernel stay 0 until nb_case_set_kernel.
 * Returns -1 after nb_error. */
int nb_case_parse(struct nb_case *c, const char *key);
