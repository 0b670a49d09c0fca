// SPDX-License-Identifier: Apache-2.0
/* The kernels that this process knows, each as its table describes it, and where it comes from: libnormkernels.so beside the program, and
 * plugins named by the user. All of them are loaded the same way: RTLD_LOCAL, and every function pointer checked to lie in the file that was
 * named. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernel.h"
#include "src/core/case.h"
#include "src/core/kernel_fields.h"
#include "src/core/text.h"

/* What loading returns of a file that serves another kernel ABI. */
#define NB_OTHER_ABI (-2)

/* The built-in kernels: NORMBENCH_KERNELS names the file, else libnormkernels.so beside the program, else in ../lib/normbench. */
int nb_registry_load_builtin(void);
/* A plugin by its file, or a peer by "peer:NAME[=LIBRARY]". A bad file, a missing export, a table entry without run, or duplicate
 * names: nb_error, -1, and nothing of it is kept. Another ABI version: likewise, but NB_OTHER_ABI. A file that is loaded already: a
 * note, 0. */
int nb_registry_load(const char *file);
/* The library with our kernels of a backend that is not the CPU's: "libnormkernels_cuda.so", "libnormkernels_cuda_emulated.so", beside
 * the file that NORMBENCH_KERNELS names, beside the program or in its ../lib/normbench. It is loaded as plugins are, and its kernels are
 * known as "cuda:..", "cuda_emulated:..". Owned; null: it is not built. */
char *nb_backend_library(enum nb_backend backend);
/* The same, but the file is loaded in the guard (guard.h) and never here: its kernels are known by what their table says, and cannot be
 * called. For every process but workers, which is what decides, prints and must not end with what it measures. */
int nb_registry_describe(const char *file);
size_t nb_registry_size(void);
/* What a file's kernels are known by: "dir/libfoo.so.1" -> "foo", "libnormkernels_cuda.so" -> "cuda"; owned. */
char *nb_plugin_name(const char *path);
const struct nb_entry *nb_registry_at(size_t i); /* sorted: built-in first, then by plugin; by kernel, dtype, width */
const struct nb_entry *nb_registry_find(const char *id); /* by variant id; null */
/* Does what a user typed stand for this kernel? A name or a glob of the kernel or of its variant, each with its plugin before it
 * ("mine:rms", "mine:rms_f32") or without: whatever selects kernels selects them by this. */
bool nb_entry_is_named(const struct nb_entry *entry, const char *pattern);
/* For an error about a name that no kernel has: appends "; near it: a, b, c", of all kernels and variants that are loaded or in the
 * sources; nothing where none is near. */
void nb_registry_suggest(const char *name, struct nb_strbuf *out);
/* The one variant that a user means by its name or, where the kernel has no other that is loaded, by the kernel's. Null after nb_error, which
 * calls the name by `option`. */
const struct nb_entry *nb_registry_meant(const char *option, const char *name);
/* The widest variant of a kernel ("[plugin:]kernel", or the variant itself) that runs on this CPU; null. */
const struct nb_entry *nb_registry_widest(const char *kernel_id, enum nb_dtype dtype);
/* Is a kernel of this name ("[plugin:]kernel") loaded, in whatever width and dtype? */
bool nb_registry_has_kernel(const char *kernel_id);
/* What NB_VECTOR of the axis width means here: 256 bits where a kernel of that width is built and may run on this CPU, else 128 where one
 * is, else 256. */
enum nb_width nb_registry_vector_width(void);
/* The case takes over what the entry's kernel declares, and whose kernel it is. */
void nb_case_set_entry(struct nb_case *c, const struct nb_entry *entry);
/* The shared objects loaded, in order: null behind the last. */
const char *nb_registry_file(size_t i);
/* Leaves the programs of this process (program_api.h) to whom they belong, or ends them; their tables stay. */
void nb_registry_rest(void);
void nb_registry_release(void);

/* ---- questions ---- */

/* A kernel's answers about a call, while planning: those of kernels that were described come from the guard. A kernel that ends the guard,
 * or hangs, is not asked again, and its cases are planned as if it had said yes, so that a worker meets the same and their records
 * say so. */

/* Null: yes; else the reason why not, good until the next question. */
const char *nb_ask_applicable(const struct nb_entry *entry, const struct nb_call *call);
bool nb_ask_row_local(const struct nb_entry *entry, const struct nb_call *call);

/* ---- the catalogue: every kernel of the sources in every width and dtype, whether it is built or not ----
 *
 * The list that make writes from the kernels' files. With it a kernel that is not built can be distinguished from one that does not exist,
 * and a preset can say what it needs before anything is built. */

/* *n entries, as the registry's, but that run and all that follows it is null; sorted by kernel, then width, then dtype. They last as
 * long as the process. An entry is built when the registry has its id. */
const struct nb_entry *nb_catalogue(size_t *n);
/* How to get what is not built: the command and how long it takes in a source tree, what is wrong in an installation. */
const char *nb_catalogue_remedy(const struct nb_entry *entry);
