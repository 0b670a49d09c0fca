// SPDX-License-Identifier: Apache-2.0
/* One cell of the matrix, and the table of the axes that span it.
 *
 * The table is the one place that knows how an axis is written: configs, --axis, the case key, `list axes`, the records and
 * the error messages all read it. A case and its key determine each other:
 *     rmsnorm_twopass_v512_bf16/shape:64x384/data:minilm_layer0_out/seed:1/eps:1e-6/eps_place:inside/root:mul_recip/...
 * Only axes that mean something for the case's op appear, always in the table's order; a '/' or '%' inside a value is written
 * %2F, %25. */
#ifndef NB_CASE_H
#define NB_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/text.h"

#define NB_VARIANT_MAX 128
#define NB_TEXT_MAX 32
#define NB_DATA_MAX 512
#define NB_MAX_DIMS 8

/* rows x cols as the kernels see them, and how the user wrote it: "64x384", "2x3x[4x5]" (normalized_shape in brackets, the
 * product of it is cols), "nchw:8x64x28x28" (rows = n*c, cols = hw), "nhwc:..." (rows = n*hw, cols = c). */
struct nb_shape {
    uint32_t layout; /* enum nb_layout */
    int64_t rows, cols;
    int64_t n, c, hw; /* NCHW, NHWC only */
    char text[96];
};

enum nb_cache { NB_HOT, NB_COLD };

struct nb_case {
    char variant[NB_VARIANT_MAX]; /* "[plugin:]rmsnorm_twopass_v512_bf16" */
    char kernel[NB_VARIANT_MAX];  /* "[plugin:]rmsnorm_twopass"; "": as the variant says (nb_kernel_name) */
    bool is_peer;                 /* the plugin is the adapter of a peer (src/core/peers.h) */
    uint32_t op, pass, dtype, width;
    uint32_t backend;                             /* enum nb_backend: where the kernel runs */
    uint32_t style, stats, stats_dtype, variance; /* the kernel's, for filters and reports */
    bool folded, flushes;                         /* the kernel's: NB_FLAG_FOLDED, NB_FLAG_FLUSHES */
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
    char params[NB_TEXT_MAX]; /* what gamma and beta hold (nb_params_parse); "": drawn */
    const struct nb_tuning
        *tuning; /* what its calls carry (tuning.h): the process's, unless somebody sets another; no axis */
};

/* What an axis does in a config block. */
enum nb_axis_kind {
    NB_AXIS_SELECT, /* chooses among the kernels of the registry (op, pass, kernel, dtype, width, stats, style, backend ...) */
    NB_AXIS_CELL, /* sets a field of the case */
};

struct nb_axis {
    const char *name;
    enum nb_axis_kind kind;
    const char *fallback;       /* the value of a block that leaves the axis out; null: all */
    const char *help;           /* one line */
    const char *const *choices; /* null-terminated, or null when the values are free text */
    size_t named; /* where in a case stands the uint32_t that is an index into choices; 0: set and print know */
    int (*set)(struct nb_case *c, const char *text, char *reason, size_t n);
    void (*print)(const struct nb_case *c, struct nb_strbuf *out);
    /* Does the axis mean anything for this case (its op, dtype)? Null: always. */
    bool (*applies)(const struct nb_case *c);
};
extern const struct nb_axis nb_axes[];
extern const size_t nb_n_axes;
const struct nb_axis *nb_axis_find(const char *name); /* also by alias; null */
/* Of an axis of cells: sets the field from text. On a bad value writes into reason how to go on after the value ("is not one of
 * inside, outside, clamp") and returns -1. */
int nb_axis_set(const struct nb_axis *axis, struct nb_case *c, const char *text, char *reason, size_t n);
/* The value as the key prints it. */
void nb_axis_print(const struct nb_axis *axis, const struct nb_case *c, struct nb_strbuf *out);

/* Does the op add a residual before it normalizes? Does it take the mean away? */
bool nb_op_adds(uint32_t op);
bool nb_op_centres(uint32_t op);

/* Defaults of every axis; op and dtype must be set before axes that depend on them are printed. */
void nb_case_init(struct nb_case *c);
/* Takes over what a kernel declares: variant, op, pass, dtype, width, properties. Of a kernel of the registry see
 * nb_case_set_entry(). */
void nb_case_set_kernel(struct nb_case *c, const struct nb_kernel *kernel, const char *plugin);
/* Fields that do not apply to the case's op get their defaults, so that equal cases have equal keys; what depends on other
 * fields is resolved: the op's usual affine, k as a count, ROWSxCOLS for BatchNorm as positions x channels. */
void nb_case_normalize(struct nb_case *c);
/* Why no kernel can run this combination ("rsqrt with eps outside the root is not defined"), or null. */
const char *nb_case_conflict(const struct nb_case *c);

/* "[plugin:]rmsnorm_twopass": the kernel's name, by which options, configs and claims select it; of a case read from its key alone the
 * variant without width and dtype. */
void nb_kernel_name(const struct nb_case *c, struct nb_strbuf *out);
void nb_case_key(const struct nb_case *c, struct nb_strbuf *out);
/* The value of one axis as text; "" when it does not apply. */
void nb_case_axis(const struct nb_case *c, const char *axis, struct nb_strbuf *out);
/* The inverse of nb_case_key for the cell axes; the fields that belong to the kernel stay 0 until nb_case_set_kernel.
 * Returns -1 after nb_error. */
int nb_case_parse(struct nb_case *c, const char *key);

/* May its time be measured? What an emulator takes says nothing of the device. */
static inline bool nb_case_is_timed(const struct nb_case *c) { return c->backend != NB_BACKEND_CUDA_EMULATED; }

/* The kernel's view: shape, strides, formula, parameters; tensors null. Of a backward case eps, and for DyT alpha, are what the forward
 * call had. */
void nb_case_call(const struct nb_case *c, struct nb_call *call);

/* Bytes that the op must move at least: tensor-sized inputs read once, outputs written once, parameters and statistics. */
double nb_case_bytes(const struct nb_case *c);

/* Tensors of the op, rows x cols each: how many it must read and write. */
void nb_op_tensors(uint32_t op, uint32_t pass, int *n_loads, int *n_stores);

/* ---- names ---- */

/* The words for what kernels and cases are: one null-terminated list for each enum of kernel.h, in its order. */

#define NB_VECTOR "vector" /* of the axis width: nb_registry_vector_width() */

extern const char *const nb_op_names[],
    *const nb_pass_names[],
        *const nb_dtype_names[],
            *const nb_width_names[],
                *const nb_backend_names[],
                    *const nb_style_names[],
                        *const nb_stats_names[],
                            *const nb_stats_dtype_names[],
                                *const nb_variance_names[],
                                    *const nb_root_names[],
                                        *const nb_eps_place_names[],
                                            *const nb_cast_names[],
                                                *const nb_affine_names[],
                                                    *const nb_param_names[],
                                                        *const nb_mode_names[],
                                                            *const nb_layout_names[],
                                                                *const nb_cache_names[],
                                                                    *const nb_switch_names[]; /* "0", "1" */

size_t nb_names_count(const char *const *names);
/* The index of a name or of another usual word for it ("ln", "fp32", "v512"); -1. */
int nb_name_find(const char *const *names, const char *text);
/* Writes "is not one of a, b, c; did you mean 'b'?". */
void nb_name_refuse(const char *const *names, const char *text, char *reason, size_t n);

/* The shortest decimal text that reads back as the same double. */
void nb_shortest_text(double value, char text[32]);

/* ---- lists of values ---- */

/* The list of values that a block gives to one axis. */

struct nb_values {
    char **texts;
    size_t n;
    int line; /* where it stands in the file; 0: from an option or a default */
};

/* Adds what a text stands for: one value, or all shapes of a preset or range. Choices are stored by their usual name ("fp32" as
 * "f32"), other values as typed. -1 with the reason written, as by nb_axis.set. */
int nb_values_add(struct nb_values *values, const struct nb_axis *axis, const char *text, char *reason, size_t n);
void nb_values_release(struct nb_values *values);

/* ---- what gamma and beta hold ---- */

/* What gamma and beta hold: the values of the params axis. Stored values; a weight_offset is added to them by the formula.
 *   drawn        1 + 0.3 N(0,1) and 0.1 N(0,1), or the files beside real rows
 *   negative     every gamma below 0
 *   zeros        every third gamma and beta 0, the others drawn
 *   tiny         2^-8 N(0,1): 1 + gamma is all but 1, and bf16 has few numbers there
 *   fixed(g,b)   g and b everywhere; fixed(g): beta 0 */

#define NB_PARAMS_DRAWN "drawn"

enum nb_params_kind { NB_PARAMS_OF_DRAWS, NB_PARAMS_NEGATIVE, NB_PARAMS_ZEROS, NB_PARAMS_TINY, NB_PARAMS_FIXED };

struct nb_params {
    enum nb_params_kind kind;
    double gamma, beta; /* of NB_PARAMS_FIXED */
};

/* "" is drawn. -1 with the reason written, as by nb_axis.set. */
int nb_params_parse(const char *text, struct nb_params *params, char *reason, size_t n);
/* Element i from a standard normal draw z. */
double nb_params_gamma(const struct nb_params *params, int64_t i, double z);
double nb_params_beta(const struct nb_params *params, int64_t i, double z);

#endif
