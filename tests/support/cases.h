// SPDX-License-Identifier: Apache-2.0
/* Cases made by hand. */
#ifndef NB_TEST_SUPPORT_CASES_H
#define NB_TEST_SUPPORT_CASES_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/case.h"

struct nb_kernel kernel_of(uint32_t op, uint32_t dtype);
struct nb_case case_of(uint32_t op, uint32_t dtype); /* defaults, with that kernel */
char *key_of(const struct nb_case *c);
char *value_of(const struct nb_case *c, const char *axis);
void set(struct nb_case *c, const char *axis, const char *text);
bool same_case(const struct nb_case *a, const struct nb_case *b);

#endif
