// SPDX-License-Identifier: Apache-2.0
/* Every kernel of the sources in every width and dtype, whether it is built or not: the list that make writes from the kernels'
 * files. With it a kernel that is not built can be distinguished from one that does not exist, and a preset can say what it
 * needs before anything is built. */
#pragma once

#include <stddef.h>

#include "src/core/kernel_entry.h"

/* *n entries, as the registry's, but that run and all that follows it is null; sorted by kernel, then width, then dtype. They last as
 * long as the process. An entry is built when the registry has its id. */
const struct nb_entry *nb_catalogue(size_t *n);
/* How to get what is not built: the command and how long it takes in a source tree, what is wrong in an installation. */
const char *nb_catalogue_remedy(const struct nb_entry *entry);
