// SPDX-License-Identifier: Apache-2.0
/* NumPy .npy files (format 1.0 to 3.0, C order, f2/f4/f8, little endian) and raw arrays (.f16, .bf16, .f32, .f64). */
#ifndef NB_NPY_H
#define NB_NPY_H

#include <stddef.h>
#include <stdint.h>

struct nb_array {
    double *values;     /* all formats that are read fit into a double exactly; owned */
    int64_t rows, cols; /* the last dimension is cols; a 1-D array is one row */
    int item_bytes;
};
/* header_only: values stays null. Raw files (by their extension) need cols; for .npy it is ignored. -1 with the reason (file,
 * what is wrong, what would be right) written, and a empty. */
int nb_array_read(struct nb_array *a, const char *path, int64_t cols, int header_only, char *reason, size_t n);
/* Does the name say that the file is raw? */
int nb_array_is_raw(const char *path);
/* Packed values of the descr ("<f4") and dims, written to a temporary name and renamed. */
int nb_npy_write(const char *path, const void *values, const char *descr, const int64_t *dims, int n_dims);
void nb_array_release(struct nb_array *a);

#endif
