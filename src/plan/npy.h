// SPDX-License-Identifier: Apache-2.0
/* NumPy .npy files (format 1.0 to 3.0, C order, f2/f4/f8, little endian). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nb_array {
    double *values;     /* all formats that are read fit into a double exactly; owned */
    int64_t rows, cols; /* the last dimension is cols; a 1-D array is one row */
};
/* header_only: values stays null. -1 with the reason (file, what is wrong, what would be right) written, and a empty. */
int nb_array_read(struct nb_array *a, const char *path, bool header_only, char *reason, size_t n);
/* Packed values of the descr ("<f4") and dims, written to a temporary name and renamed. */
int nb_npy_write(const char *path, const void *values, const char *descr, const int64_t *dims, int n_dims);
void nb_array_release(struct nb_array *a);

/* ---- the header ---- */

/* The header of a .npy file: magic, version, and a Python dict with the keys descr, fortran_order and shape
 * (numpy.lib.format). */

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
