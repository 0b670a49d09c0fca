// SPDX-License-Identifier: Apache-2.0
/* What kernels say of where their work was done: the libraries behind adapters, the implementations chosen for the calls. */
#ifndef NB_LIBRARIES_H
#define NB_LIBRARIES_H

#include "src/record/results.h"

/* One line a library: "onednn: oneDNN 3.13.2, SYCL; jit:uni: layernorm_native_f32, ..". Built-in kernels that chose
 * something are lines without a library. Empty when there is nothing to say. */
void nb_libraries_print(const struct nb_results *results, struct nb_strbuf *out);

#endif
