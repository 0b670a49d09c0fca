// SPDX-License-Identifier: Apache-2.0
/* What the files of this folder share. */
#pragma once

#include "kernels/kernel.h"

/* `then` in the build of this change, `usual` in all others. */
#define IF(change, then, usual) (__builtin_strcmp(CHANGE, #change) == 0 ? (then) : (usual))

extern const struct nb_kernel identity_first, identity_second;
float identity_helper(float x); /* calls identity_deeper */
float identity_deeper(float x);

/* Set where the file is asked for its kernels. */
extern float (*identity_chosen)(float x);
extern int identity_repeats;
