// SPDX-License-Identifier: Apache-2.0
/* The kernels that this process knows: libnormkernels.so beside the program, and plugins named by the user. All of them are
 * loaded the same way: RTLD_LOCAL, and every function pointer checked to lie in the file that was asked for. */
#ifndef NB_REGISTRY_H
#define NB_REGISTRY_H

#include <stddef.h>

#include "kernels/kernel.h"

struct nb_entry {
    const struct nb_kernel *kernel;
    const char *plugin; /* null for the built-in kernels, else the plugin's name (file name without lib and .so) */
    const char *file;   /* the shared object */
    char *id;           /* "[plugin:]variant" */
    char *kernel_id;    /* "[plugin:]kernel" */
};

/* The built-in kernels: NORMBENCH_KERNELS names the file, else libnormkernels.so beside the program, else in ../lib. */
int nb_registry_load_builtin(void);
/* A plugin. A bad file, a missing export, another ABI version, a table entry without run, or duplicate names: nb_error, -1. */
int nb_registry_load(const char *path);
size_t nb_registry_size(void);
const struct nb_entry *nb_registry_at(size_t i); /* sorted: built-in first, by kernel, dtype, width */
const struct nb_entry *nb_registry_find(const char *id); /* by variant id; null */
void nb_registry_release(void);

/* Field access that honours struct_size: a null function pointer and zero for what an older plugin does not know. */
const char *nb_kernel_applicable(const struct nb_kernel *k, const struct nb_call *call);
int nb_kernel_row_local(const struct nb_kernel *k, const struct nb_call *call);
int64_t nb_kernel_chain(const struct nb_kernel *k, const struct nb_call *call);
size_t nb_kernel_scratch_bytes(const struct nb_kernel *k, const struct nb_call *call);
int nb_kernel_n_phases(const struct nb_kernel *k, const struct nb_call *call);
int64_t nb_kernel_n_units(const struct nb_kernel *k, const struct nb_call *call, int phase);
/* Null, or why the kernel does not implement the formula: "kernel does not implement root rsqrt_raw". Static text per reason. */
const char *nb_kernel_refuses(const struct nb_kernel *k, const struct nb_formula *f);

#endif
