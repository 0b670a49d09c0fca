// SPDX-License-Identifier: Apache-2.0
/* The header of a .npy file: magic, version, and a Python dict with the keys descr, fortran_order and shape
 * (numpy.lib.format). */
#ifndef NB_NPY_HEADER_H
#define NB_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NB_NPY_MAX_DIMS 32 /* NumPy's own limit */

struct nb_npy_header {
    char descr[16]; /* "<f4" */
    bool fortran_order;
    int64_t dims[NB_NPY_MAX_DIMS];
    int n_dims;
    size_t data_offset; /* where the values start in the file */
};

/* The longest header that is read; enough for any shape. */
#define NB_NPY_MAX_HEADER 65536

/* From the first n bytes of a file (as many as there are, at most NB_NPY_MAX_HEADER + 12). -1 with the reason written. */
int nb_npy_header_parse(struct nb_npy_header *h, const unsigned char *bytes, size_t n, char *reason, size_t reason_n);

#endif
