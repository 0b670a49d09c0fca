// SPDX-License-Identifier: Apache-2.0
/* What a kernel declares, with the defaults of what it leaves out, and whether the declaration holds together. */
#include "src/core/kernel_fields.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/core/text.h"

#define FIELD_END(field) (offsetof(struct nb_kernel, field) + sizeof(((struct nb_kernel *)0)->field))
#define DECLARES(k, field) ((k)->struct_size >= FIELD_END(field) && (k)->field)

int nb_kernel_elsewhere(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    assert(!"a kernel is called in a process that only knows its description");
    return -1;
}
static bool is_here(const struct nb_kernel *k) { return k && k->run != nb_kernel_elsewhere; }

const char *nb_kernel_applicable(const struct nb_kernel *k, const struct nb_call *call) {
    assert(is_here(k) && call);
    if (k->run == nb_programs()->run) return nb_programs()->applicable(k, call);
    return DECLARES(k, applicable) ? k->applicable(call) : NULL;
}

int nb_kernel_row_local(const struct nb_kernel *k, const struct nb_call *call) {
    assert(is_here(k) && call);
    return DECLARES(k, row_local) ? k->row_local(call) : 0;
}

/* BatchNorm reduces a channel: n * hw elements; every other op a row. */
int64_t nb_kernel_chain(const struct nb_kernel *k, const struct nb_call *call) {
    assert(is_here(k) && call);
    if (DECLARES(k, chain)) return k->chain(call);
    return k->op == NB_OP_BATCHNORM ? call->n * call->hw : call->cols;
}

int64_t nb_kernel_column_chain(const struct nb_kernel *k, const struct nb_call *call) {
    assert(is_here(k) && call);
    if (DECLARES(k, column_chain)) return k->column_chain(call);
    return k->op == NB_OP_BATCHNORM ? call->n * call->hw : call->rows;
}

size_t nb_kernel_scratch_bytes(const struct nb_kernel *k, const struct nb_call *call) {
    assert(is_here(k) && call);
    return DECLARES(k, scratch_bytes) ? k->scratch_bytes(call) : 0;
}

int nb_kernel_n_phases(const struct nb_kernel *k, const struct nb_call *call) {
    assert(is_here(k) && call);
    return DECLARES(k, n_phases) ? k->n_phases(call) : 1;
}

int64_t nb_kernel_n_units(const struct nb_kernel *k, const struct nb_call *call, int phase) {
    assert(is_here(k) && call);
    return DECLARES(k, n_units) ? k->n_units(call, phase) : call->rows;
}

bool nb_kernel_range(const struct nb_kernel *k, const struct nb_call *call, struct nb_range *range) {
    assert(is_here(k) && call && range);
    *range = (struct nb_range){0, INFINITY, INFINITY};
    if (k->run == nb_programs()->run) *range = *nb_programs()->range(k);
    if (DECLARES(k, range)) k->range(call, range);
    if (DECLARES(k, range) || range->min_rms > 0 || isfinite(range->max_abs) || isfinite(range->max_rho)) return true;
    *range = (struct nb_range){call->eps < 0x1p-100 ? 0x1p-62 : 0, INFINITY, 1024};
    return false;
}

#define FUNCTION(field)                                                                                                \
    { #field, offsetof(struct nb_kernel, field) }
const struct nb_kernel_function nb_kernel_functions[NB_N_KERNEL_FUNCTIONS] = {
    FUNCTION(run),           FUNCTION(applicable), FUNCTION(row_local),   FUNCTION(chain),
    FUNCTION(scratch_bytes), FUNCTION(n_phases),   FUNCTION(n_units),     FUNCTION(open),
    FUNCTION(close),         FUNCTION(range),      FUNCTION(column_chain)};

void *nb_kernel_function(const struct nb_kernel *k, size_t i) {
    assert(is_here(k) && i < NB_N_KERNEL_FUNCTIONS);
    void *function = NULL;
    const size_t at = nb_kernel_functions[i].at;
    if (k->struct_size >= at + sizeof function) memcpy(&function, (const char *)k + at, sizeof function);
    return function;
}

/* ---- formulas ---- */

/* The refusals of each field, by value; a value beyond the table is unknown to this program. */
static const char *const root_refusals[NB_N_ROOTS] = {
    "kernel does not implement root div_sqrt", "kernel does not implement root mul_recip",
    "kernel does not implement root rsqrt_nr", "kernel does not implement root rsqrt_raw"};
static const char *const eps_place_refusals[NB_N_EPS_PLACES] = {"kernel does not implement eps_place inside",
                                                                "kernel does not implement eps_place outside",
                                                                "kernel does not implement eps_place clamp"};
static const char *const cast_refusals[NB_N_CASTS] = {
    "kernel does not implement cast after", "kernel does not implement cast before; the plain kernels (*_twopass) do"};
static const char *const weight_offset_refusals[2] = {
    "kernel does not implement weight_offset 0",
    "kernel does not implement weight_offset 1; the plain kernels (*_twopass) do"};
static const char *const affine_refusals[NB_N_AFFINES] = {"kernel does not implement affine none",
                                                          "kernel does not implement affine gamma",
                                                          "kernel does not implement affine gamma_beta"};
static const char *const param_refusals[NB_N_PARAMS] = {
    "kernel does not implement param_dtype f32",
    "kernel does not implement param_dtype x; the plain kernels (*_twopass) do"};
static const char *const round_sum_refusals[2] = {"kernel does not implement an unrounded residual sum",
                                                  "kernel does not implement a rounded residual sum"};

/* A mask of 0 stands for: only the value 0. */
static const char *refuse_value(uint32_t mask, uint32_t value, const char *const *refusals, uint32_t n) {
    if (value >= n) return "formula has a value that this program does not know";
    return (mask ? mask : 1u) >> value & 1u ? NULL : refusals[value];
}

const char *nb_kernel_refuses(const struct nb_kernel *k, const struct nb_formula *f) {
    const struct nb_formulas *has = &k->formulas;
    bool has_root = k->op != NB_OP_DYT;
    bool adds = k->op == NB_OP_ADD_RMSNORM || k->op == NB_OP_ADD_LAYERNORM;
    bool weighs = f->affine != NB_AFFINE_NONE, rounds = k->dtype != NB_F32;
    if (k->op == NB_OP_COPY) return NULL; /* no arithmetic: it serves every formula */
    const char *why = refuse_value(has->affines, f->affine, affine_refusals, NB_N_AFFINES);
    if (!why && has_root) why = refuse_value(has->roots, f->root, root_refusals, NB_N_ROOTS);
    if (!why && has_root) why = refuse_value(has->eps_places, f->eps_place, eps_place_refusals, NB_N_EPS_PLACES);
    if (!why && weighs) why = refuse_value(has->weight_offsets, f->weight_offset, weight_offset_refusals, 2);
    if (!why && weighs && rounds) why = refuse_value(has->casts, f->cast, cast_refusals, NB_N_CASTS);
    if (!why && weighs && rounds) why = refuse_value(has->params, f->param, param_refusals, NB_N_PARAMS);
    if (!why && adds && rounds) why = refuse_value(has->round_sums, f->round_sum, round_sum_refusals, 2);
    return why;
}

void nb_kernel_fit_formula(const struct nb_kernel *k, struct nb_formula *f) {
    const struct nb_formulas *has = &k->formulas;
    const struct {
        uint32_t mask, *value;
    } fields[] = {{has->roots, &f->root},          {has->eps_places, &f->eps_place},
                  {has->casts, &f->cast},          {has->weight_offsets, &f->weight_offset},
                  {has->affines, &f->affine},      {has->params, &f->param},
                  {has->round_sums, &f->round_sum}};
    for (size_t i = k->op == NB_OP_DYT; i < sizeof fields / sizeof fields[0]; i++) { /* which has no root */
        const uint32_t mask = fields[i].mask ? fields[i].mask : 1;
        if (!(mask >> *fields[i].value & 1)) *fields[i].value = (uint32_t)__builtin_ctz(mask);
    }
}

/* ---- validation ---- */

int nb_name_is_plain(const char *name) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
    return name && *name && name[strspn(name, plain)] == '\0';
}

struct range {
    const char *field;
    uint32_t value, n;
};

static int validate_ranges(const struct nb_kernel *k, char *reason, size_t n) {
    const struct range ranges[] = {
        {"op", k->op, NB_N_OPS},
        {"pass", k->pass, NB_N_PASSES},
        {"dtype", k->dtype, NB_N_DTYPES},
        {"width", k->width, NB_N_WIDTHS},
        {"style", k->style, NB_N_STYLES},
        {"stats", k->stats, NB_N_STATS},
        {"stats_dtype", k->stats_dtype, NB_N_STATS_DTYPES},
        {"variance", k->variance, NB_N_VARIANCES},
        {"backend", DECLARES(k, backend) ? k->backend : NB_BACKEND_CPU, NB_N_BACKENDS},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].value < ranges[i].n) continue;
        return nb_reason(reason, n, "%s is %u, but the values are 0 to %u", ranges[i].field, ranges[i].value,
                         ranges[i].n - 1);
    }
    return 0;
}

static int validate_byte_model(const struct nb_kernel *k, char *reason, size_t n) {
    const float model[] = {k->loads, k->stores, k->flops};
    static const char *const names[] = {"loads", "stores", "flops"};
    for (size_t i = 0; i < 3; i++) {
        if (isfinite(model[i]) && model[i] >= 0) continue;
        return nb_reason(reason, n, "%s per element is %g, not a number from 0", names[i], (double)model[i]);
    }
    return 0;
}

int nb_kernel_validate(const struct nb_kernel *k, char *reason, size_t n) {
    assert(k && reason && n > 0);
    /* Far more than the struct will ever grow to: what is beyond is not a size. */
    const uint32_t largest = 65536;
    if (k->struct_size < FIELD_END(run) || k->struct_size > largest)
        return nb_reason(reason, n, "struct_size is %u, but sizeof(struct nb_kernel) is %zu", k->struct_size,
                         sizeof(struct nb_kernel));
    if (!nb_name_is_plain(k->name))
        return nb_reason(reason, n, "its name must be letters, digits, '_', '.', '+' or '-'");
    if (k->variant && !nb_name_is_plain(k->variant))
        return nb_reason(reason, n, "its variant must be letters, digits, '_', '.', '+' or '-', or null");
    if (validate_ranges(k, reason, n) != 0 || validate_byte_model(k, reason, n) != 0) return -1;
    if (!k->run) return nb_reason(reason, n, "run is null");
    return 0;
}

/* ---- the one table of programs that this process was told of ---- */

static bool is_none(const char *file) { return false; }
static void free_none(struct nb_kernel_program *p) { (void)p; }

static const struct nb_program_api none = {.is = is_none, .free = free_none};
static const struct nb_program_api *programs = &none;

void nb_use_programs(const struct nb_program_api *api) { programs = api; }
const struct nb_program_api *nb_programs(void) { return programs; }
