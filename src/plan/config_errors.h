// SPDX-License-Identifier: Apache-2.0
/* What every reader of a config says when it does not understand: file, line, key, and what would be right. All return -1 after
 * nb_error, but nb_config_read_number 0 where it is right. */
#ifndef NB_CONFIG_ERRORS_H
#define NB_CONFIG_ERRORS_H

#include <stdbool.h>

#include "src/core/jsonc.h"

int nb_config_wrong_type(const struct nb_jsonc *file, const cJSON *node, const char *key, const char *wanted);
int nb_config_unknown_key(const struct nb_jsonc *file, const cJSON *node, const char *const *names, size_t n);
int nb_config_twice(const struct nb_jsonc *file, const cJSON *node);
int nb_config_read_number(const struct nb_jsonc *file, const cJSON *node, double low, double high, bool whole,
                          double *value);

#endif
