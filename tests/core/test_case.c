// SPDX-License-Identifier: Apache-2.0
/* Cases: what they resolve to, what a kernel is called with, what they must move. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/names.h"
#include "tests/support/cases.h"

Test(case, k_is_the_smallest_count_that_is_no_less_than_the_share) {
    static const struct {
        const char *shape, *k;
        int64_t count;
    } wants[] = {{"1x512", "6.25%", 32}, {"1x240", "6.25%", 15},        {"1x513", "6.25%", 33}, {"1x1", "6.25%", 1},
                 {"1x100", "10%", 10},   {"1x1000", "0.1%", 1},         {"1x1001", "0.1%", 2},  {"1x384", "100%", 384},
                 {"1x384", "24", 24},    {"1x1048576", "33.3%", 349176}};
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        struct nb_case c = case_of(NB_OP_PRMSNORM, NB_F32);
        set(&c, "shape", wants[i].shape);
        set(&c, "k", wants[i].k);
        cr_expect_eq(c.k, wants[i].count, "%s of %s: %lld", wants[i].k, wants[i].shape, (long long)c.k);
    }
}

Test(case, conflicts_are_named) {
    struct nb_case c = case_of(NB_OP_RMSNORM, NB_F32);
    cr_expect_null(nb_case_conflict(&c));
    set(&c, "root", "rsqrt_nr");
    cr_expect_null(nb_case_conflict(&c));
    set(&c, "eps_place", "outside");
    cr_expect(strstr(nb_case_conflict(&c), "outside the root"));
    c = case_of(NB_OP_RMSNORM, NB_F32);
    set(&c, "shape", "nchw:2x3x4x5");
    cr_expect(strstr(nb_case_conflict(&c), "batchnorm"));
    c = case_of(NB_OP_PRMSNORM, NB_F32);
    set(&c, "k", "1025");
    cr_expect(strstr(nb_case_conflict(&c), "more than the row"));
    c = case_of(NB_OP_BATCHNORM, NB_F32);
    set(&c, "shape", "nchw:1x64");
    cr_expect(strstr(nb_case_conflict(&c), "two values per channel"));
    set(&c, "mode", "inference");
    cr_expect_null(nb_case_conflict(&c));
    c = case_of(NB_OP_RMSNORM, NB_F32);
    set(&c, "shape", "4294967296x1");
    set(&c, "stride", "1048576");
    cr_expect(strstr(nb_case_conflict(&c), "2^32"));
    c = case_of(NB_OP_RMSNORM, NB_F32);
    c.threads = 2;
    cr_expect_null(nb_case_conflict(&c));
    c.backend = NB_BACKEND_CUDA;
    cr_expect(strstr(nb_case_conflict(&c), "one thread"));
    c.threads = 1;
    cr_expect_null(nb_case_conflict(&c));
}

Test(case, compulsory_bytes_are_tensors_parameters_and_statistics) {
    struct nb_case c = case_of(NB_OP_RMSNORM, NB_F32);
    set(&c, "shape", "64x384");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 64 * 384 * 4 + 384 * 4);
    c = case_of(NB_OP_LAYERNORM, NB_BF16);
    set(&c, "shape", "64x384");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 64 * 384 * 2 + 2 * 384 * 4, "parameters in f32");
    set(&c, "param_dtype", "x");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 64 * 384 * 2 + 2 * 384 * 2);
    c = case_of(NB_OP_ADD_RMSNORM, NB_F16);
    set(&c, "shape", "64x384");
    cr_expect_eq(nb_case_bytes(&c), 4.0 * 64 * 384 * 2 + 384 * 4);
    c = case_of(NB_OP_BATCHNORM, NB_F32);
    set(&c, "shape", "nchw:4x32x14x14");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 4 * 32 * 196 * 4 + 2 * 32 * 4 + 4 * 32 * 4);
    set(&c, "mode", "inference");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 4 * 32 * 196 * 4 + 2 * 32 * 4 + 2 * 32 * 4);
    struct nb_kernel triad = kernel_of(NB_OP_COPY, NB_F32);
    triad.loads = 2;
    nb_case_init(&c);
    nb_case_set_kernel(&c, &triad, NULL);
    set(&c, "shape", "8x8");
    cr_expect_eq(nb_case_bytes(&c), 3.0 * 64 * 4);
}

Test(case, the_kernel_has_its_own_name_and_else_what_the_variant_says) {
    struct nb_kernel kernel = kernel_of(NB_OP_RMSNORM, NB_BF16);
    struct nb_case c;
    kernel.variant = "my_fast_kernel_v256x_bf16";
    kernel.width = NB_256X;
    kernel.name = "rms";
    nb_case_init(&c);
    nb_case_set_kernel(&c, &kernel, "mine");
    char *own_name = value_of(&c, "kernel");
    cr_expect_str_eq(own_name, "mine:rms");
    c.kernel[0] = '\0';
    char *kernel_name = value_of(&c, "kernel"), *backend = value_of(&c, "backend");
    cr_expect_str_eq(kernel_name, "mine:my_fast_kernel");
    cr_expect_str_eq(backend, "plugin:mine");
    cr_expect_str_eq(c.variant, "mine:my_fast_kernel_v256x_bf16");
    c.is_peer = true;
    backend = value_of(&c, "backend");
    cr_expect_str_eq(backend, "peer:mine");
}

Test(case, a_backend_other_than_the_cpu_stands_in_place_of_the_width) {
    static const char *const variants[] = {
        [NB_BACKEND_CUDA] = "my_rows_cuda_bf16", [NB_BACKEND_CUDA_EMULATED] = "my_rows_cuda_emulated_bf16"};
    struct nb_kernel kernel = kernel_of(NB_OP_RMSNORM, NB_BF16);
    for (uint32_t b = NB_BACKEND_CUDA; b < NB_N_BACKENDS; b++) {
        struct nb_case c;
        kernel.backend = b;
        kernel.variant = variants[b];
        nb_case_init(&c);
        nb_case_set_kernel(&c, &kernel, "mine");
        c.kernel[0] = '\0';
        char *name freed = nb_kernel_text(&c);
        cr_expect_str_eq(value_of(&c, "kernel"), "mine:my_rows");
        cr_expect_str_eq(name, "mine:my_rows");
        cr_expect_str_eq(value_of(&c, "backend"), nb_backend_names[b]);
    }
}

Test(case, the_shortest_text_reads_back_as_the_same_double) {
    const double values[] = {0, 0.1, 1.0 / 3, 1e-5, 123456789.25, 5e-324, 1.7976931348623157e308, 1e22, 0x1p-1022};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[32];
        nb_shortest_text(values[i], text);
        cr_expect_eq(strtod(text, NULL), values[i], "%s", text);
    }
    char text[32];
    nb_shortest_text(0.1, text);
    cr_expect_str_eq(text, "0.1");
}
