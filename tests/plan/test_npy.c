// SPDX-License-Identifier: Apache-2.0
/* Arrays from files: what is written is read back, and no file whatever leads to more than a reason. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "src/plan/npy.h"
#include "tests/support/files.h"

static char *dir, path[PATH_MAX], reason[512];

static const char *in_dir(const char *name) {
    if (!dir) dir = new_folder();
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* A version 1.0 file with this dict and n bytes of zeros behind it. */
static void write_dict(const char *dict, size_t n) {
    unsigned char bytes[1024] = "\x93NUMPY\x01";
    size_t length = strlen(dict);
    bytes[8] = (unsigned char)length;
    bytes[9] = (unsigned char)(length >> 8);
    memcpy(bytes + 10, dict, length);
    in_dir("dict.npy");
    put_file(dir, "dict.npy", bytes, 10 + length + n);
}

static struct nb_array written_and_read(const void *values, const char *descr, const int64_t *dims, int n_dims,
                                        bool head_only) {
    struct nb_array a;
    cr_assert_eq(nb_npy_write(in_dir("a.npy"), values, descr, dims, n_dims), 0);
    cr_assert_eq(nb_array_read(&a, path, head_only, reason, sizeof reason), 0, "%s", reason);
    return a;
}

Test(npy, what_is_written_is_read_back) {
    const float singles[] = {1.5f, -0.0f, 3e38f, 1e-45f, 2, 3};
    const double doubles[24] = {[23] = 7};
    const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7bff};
    const double of_halves[] = {1, -2, 0x1p-24, 65504};
    struct nb_array a = written_and_read(singles, "<f4", (const int64_t[]){2, 3}, 2, false);
    cr_expect(a.rows == 2 && a.cols == 3);
    for (int i = 0; i < 6; i++) cr_expect_eq(a.values[i], (double)singles[i]);
    nb_array_release(&a);
    a = written_and_read(halves, "<f2", (const int64_t[]){1, 4}, 2, false);
    for (int i = 0; i < 4; i++) cr_expect_eq(a.values[i], of_halves[i]);
    nb_array_release(&a);
    a = written_and_read(doubles, "<f8", (const int64_t[]){2, 3, 4}, 3, false);
    cr_expect(a.rows == 6 && a.cols == 4 && a.values[23] == 7, "dimensions but the last are rows");
    nb_array_release(&a);
    a = written_and_read(doubles, "<f8", (const int64_t[]){24}, 1, true);
    cr_expect(a.rows == 1 && a.cols == 24 && !a.values);
}

/* Each: a header, and what the reason must say. */
static const struct {
    const char *dict, *words;
} wrong[] = {
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "big-endian"},
    {"{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", "astype('<f4')"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }", "astype('<f4')"},
    {"{'descr': '', 'fortran_order': False, 'shape': (2,), }", "astype('<f4')"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "several fields"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }", "ascontiguousarray"},
    {"{'descr': '<f4', 'fortran_order': 1, 'shape': (2,), }", "fortran_order"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "promises 12"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "promises 4"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", "is empty"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "2^28"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296), }", "2^28"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", "key other than"},
    {"{'descr': '<f4', 'fortran_order': False}", "lacks"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "not closed"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", "after the dict"},
    {"['descr']", "not a Python dict"},
    {"", "not a Python dict"},
};

Test(npy, wrong_headers_are_named) {
    struct nb_array a;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_dict(wrong[i].dict, 8);
        cr_expect_eq(nb_array_read(&a, path, false, reason, sizeof reason), -1, "%s was taken", wrong[i].dict);
        cr_expect(strstr(reason, wrong[i].words), "wanted \"%s\" in: %s", wrong[i].words, reason);
        cr_expect(strstr(reason, path), "no path in: %s", reason);
        cr_expect_null(a.values);
    }
}

Test(npy, scalars_newer_formats_and_old_python_are_read) {
    struct nb_npy_header h;
    const char v1[] = "\x93NUMPY\x01\x00\x39\x00{\"shape\": (3L, 4L,), 'fortran_order':False,'descr':'<f8'}";
    const char v2[] = "\x93NUMPY\x02\x00\x37\x00\x00\x00{'descr': '<f4', 'fortran_order': False, 'shape': ()}  ";
    const char v4[] = "\x93NUMPY\x04\x00\x00\x00\x00\x00";
    cr_assert_eq(nb_npy_header_parse(&h, (const unsigned char *)v1, sizeof v1 - 1, reason, sizeof reason), 0, "%s",
                 reason);
    cr_expect_eq(h.n_dims, 2);
    cr_expect_eq(h.dims[1], 4);
    cr_expect_str_eq(h.descr, "<f8");
    cr_assert_eq(nb_npy_header_parse(&h, (const unsigned char *)v2, sizeof v2 - 1, reason, sizeof reason), 0, "%s",
                 reason);
    cr_expect_eq(h.n_dims, 0);
    cr_expect_eq(nb_npy_header_parse(&h, (const unsigned char *)v4, sizeof v4 - 1, reason, sizeof reason), -1);
    cr_expect(strstr(reason, "format 4.0"), "%s", reason);
}

Test(npy, what_is_no_array_is_refused) {
    struct nb_array a;
    cr_expect_eq(nb_array_read(&a, in_dir("none.npy"), false, reason, sizeof reason), -1);
    cr_expect(strstr(reason, "No such file"), "%s", reason);
    in_dir("a.npy");
    put_file(dir, "a.npy", "hello", 5);
    cr_expect_eq(nb_array_read(&a, path, false, reason, sizeof reason), -1);
    cr_expect(strstr(reason, "magic"), "%s", reason);
    cr_expect_eq(nb_array_read(&a, dir, false, reason, sizeof reason), -1);
    cr_expect(strstr(reason, "is not a file"), "%s", reason);
    cr_assert_eq(mkfifo(in_dir("pipe.npy"), 0600), 0);
    cr_expect_eq(nb_array_read(&a, path, false, reason, sizeof reason), -1, "a pipe must not be waited for");
}
