// SPDX-License-Identifier: Apache-2.0
/* A small stress.json made by hand, for the tests of what is made of it. */
#pragma once

#include <cjson/cJSON.h>

/* layernorm_onepass in f32 (two widths) and f16, two grades, no bugs. */
cJSON *nb_test_stress(void);
/* A study with one of everything; its texts hold markup. */
void nb_test_add_study(cJSON *stress, const char *variant, const char *dtype);
/* text: why; all finite rows: F. */
void nb_test_add_grade(cJSON *stress, const char *variant, const char *kernel, const char *formula, const char *grade,
                       const char *text);
