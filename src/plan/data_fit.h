// SPDX-License-Identifier: Apache-2.0
/* Whether the data of a block exists, and whether it fits a case; asked for each cell, answered once for each shape. */
#ifndef NB_DATA_FIT_H
#define NB_DATA_FIT_H

#include <stdbool.h>

#include "src/core/case.h"
#include "src/core/text.h"

/* Is there such a distribution, data set or file? Whether it fits a shape is another question. */
bool nb_data_exists(const char *data, char *reason, size_t n);

/* Zero-initialise. */
struct nb_data_fits {
    struct nb_text_map known;
    char **keys, **reasons;
};
/* Why the data does not fit the case, or null; the text lives as long as fits. */
const char *nb_data_refuses(struct nb_data_fits *fits, const struct nb_case *c);
void nb_data_fits_release(struct nb_data_fits *fits);

#endif
