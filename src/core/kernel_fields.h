// SPDX-License-Identifier: Apache-2.0
/* What a kernel declares, read safely: a field that its struct_size does not cover, or that is null, has the default
 * that kernels/kernel.h gives it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

const char *nb_kernel_applicable(const struct nb_kernel *k, const struct nb_call *call);
int nb_kernel_row_local(const struct nb_kernel *k, const struct nb_call *call);
int64_t nb_kernel_chain(const struct nb_kernel *k, const struct nb_call *call);
int64_t nb_kernel_column_chain(const struct nb_kernel *k, const struct nb_call *call);
size_t nb_kernel_scratch_bytes(const struct nb_kernel *k, const struct nb_call *call);
int nb_kernel_n_phases(const struct nb_kernel *k, const struct nb_call *call);
int64_t nb_kernel_n_units(const struct nb_kernel *k, const struct nb_call *call, int phase);
/* False: it declares none, and that of our own kernels is given: squares of f32 keep their digits, |mean| / sd is at most 1024. */
bool nb_kernel_range(const struct nb_kernel *k, const struct nb_call *call, struct nb_range *range);

/* run() of a kernel that is known by its description and loaded in another process (registry.h): it cannot be called, nor asked. */
int nb_kernel_elsewhere(const struct nb_call *call, int phase, int64_t begin, int64_t end);

/* Null, or why the kernel does not implement the formula: "kernel does not implement root rsqrt_raw". Static text, one
 * for each reason. Fields that mean nothing for the kernel's op, dtype or affine are not looked at. */
const char *nb_kernel_refuses(const struct nb_kernel *k, const struct nb_formula *f);
/* Where the kernel does not implement a field of the formula, the first value of it that it does. */
void nb_kernel_fit_formula(const struct nb_kernel *k, struct nb_formula *f);

/* Is the entry of a table fit for use? 0, or -1 with the reason written. */
int nb_kernel_validate(const struct nb_kernel *k, char *reason, size_t n);
/* May this be part of a variant's name: letters, digits, '_', '.', '+', '-'? Names stand in keys, filters and paths. */
int nb_name_is_plain(const char *name);

/* The functions of a kernel, for checks on where its code lies. */
#define NB_N_KERNEL_FUNCTIONS 11
extern const struct nb_kernel_function {
    const char *name; /* "run", .. */
    size_t at;
} nb_kernel_functions[NB_N_KERNEL_FUNCTIONS];
/* Its address; null: the kernel has no such function. */
void *nb_kernel_function(const struct nb_kernel *k, size_t i);

/* ---- files with kernels that are started, and not loaded ----
 *
 * What they are and how their kernels are asked is known in src/programs, which stands on this folder: whoever starts a process that may
 * meet such files tells the registry once. */

struct nb_kernel_program;

struct nb_program_api {
    bool (*is)(const char *file);                                    /* is it to be started? */
    double load_s;                                                   /* the longest that this may take, as usual */
    struct nb_kernel_program *(*start)(const char *file, size_t *n); /* its table has n kernels; null after nb_error */
    const struct nb_kernel *(*table)(const struct nb_kernel_program *p, size_t i);
    void (*rest)(struct nb_kernel_program *p); /* it ends, or is left to whom it belongs; its table stays */
    void (*free)(struct nb_kernel_program *p); /* null: nothing */

    int (*run)(const struct nb_call *call, int phase, int64_t begin, int64_t end); /* of all kernels of programs */
    const char *(*applicable)(const struct nb_kernel *k, const struct nb_call *call);
    const struct nb_range *(*range)(const struct nb_kernel *k);
};

void nb_use_programs(const struct nb_program_api *api);
/* Never null: as long as nothing was told, no file is a program. */
const struct nb_program_api *nb_programs(void);

/* A kernel as its table describes it, and where it comes from. */

#define NB_NO_FUNCTION UINT64_MAX

struct nb_entry {
    const struct nb_kernel *kernel; /* a copy in this program's own size: fields the file does not know are 0, variant
                                       is never null, summary neither */
    const char *plugin; /* null for the built-in kernels, else the plugin's name (file name without lib and .so) */
    bool is_peer;       /* an adapter to another library (peers.h); plugin is its name */
    const char *file;   /* the shared object, as the user named it, or "peer:NAME[=LIBRARY]" */
    char *id;           /* "[plugin:]variant" */
    char *kernel_id;    /* "[plugin:]kernel" */

    uint64_t functions[NB_N_KERNEL_FUNCTIONS]; /* where they lie in their file once that is loaded; or NB_NO_FUNCTION */
    char *code_file;                           /* the loaded file that run() lies in */
    bool is_apart;                             /* its functions lie in several files */
};
