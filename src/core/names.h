// SPDX-License-Identifier: Apache-2.0
/* The words for what kernels and cases are. */
#pragma once

#include <stddef.h>

/* One null-terminated list for each enum of kernel.h, in its order. */

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
/* Writes "is not one of a, b, c"; -1. */
int nb_name_refuse(const char *const *names, char *reason, size_t n);
