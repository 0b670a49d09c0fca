// SPDX-License-Identifier: Apache-2.0
/* Answers of a program with kernels: each is held against its question; and the memory that it shares. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/kernel_fields.h"

#include "src/programs/kernel_program.c"
#include "src/programs/program_memory.c"
#include "tests/support/files.h"

static const struct head question = {{'N', 'B', 'W', 'P'}, VERSION, CALL, 7, sizeof(struct call)};

static union message answer_of(uint16_t type, size_t body_bytes, const char *text) {
    union message m = {.head = {{'N', 'B', 'W', 'P'}, VERSION, type, 7, 0}};
    m.answer.text_bytes = (uint32_t)strlen(text);
    memcpy(m.bytes + body_bytes, text, strlen(text));
    m.head.bytes = (uint32_t)(body_bytes + strlen(text));
    return m;
}

Test(kernel_program, an_answer_that_fits_its_question_is_taken_with_its_text) {
    union message m = answer_of(CALL, sizeof m.call, "ValueError: a\033[31m\nb");
    cr_expect_null(refuse_answer(&m, m.head.bytes, &question, sizeof m.call));
    char *text = text_of(&m);
    cr_expect_str_eq(text, "ValueError: a\\x1B[31m\\x0Ab");
    free(text);
}

Test(kernel_program, an_answer_that_does_not_fit_is_refused_with_what_is_wrong) {
    const struct {
        size_t at; /* a byte that is changed */
        const char *words;
    } changes[] = {{0, "no message of the protocol"}, {4, "version 255"},    {6, "(type 251)"},
                   {8, "answered question 248"},      {12, "that they are"}, {20, "say they are"}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        union message m = answer_of(CALL, sizeof m.call, "");
        const size_t n = m.head.bytes;
        m.bytes[changes[i].at] ^= (char)(changes[i].at == 4 ? 254 : 255);
        const char *why = refuse_answer(&m, n, &question, sizeof m.call);
        cr_assert_not_null(why, "byte %zu", changes[i].at);
        cr_expect(i == 4 || strstr(why, changes[i].words), "byte %zu: %s", changes[i].at, why);
    }
    union message m = answer_of(CALL, sizeof m.call, "");
    for (size_t n = 0; n < m.head.bytes; n++) cr_expect_not_null(refuse_answer(&m, n, &question, sizeof m.call));
    cr_expect_not_null(refuse_answer(&m, m.head.bytes + 1u, &question, sizeof m.call));
}

Test(kernel_program, the_example_of_the_protocols_page_is_what_is_said) {
    const unsigned char hello[] = {0x4e, 0x42, 0x57, 0x50, 1, 0, 1, 0, 1, 0,    0, 0,
                                   0x18, 0,    0,    0,    0, 0, 0, 0, 0, 0x20, 0, 0};
    const struct hello ours = {{{'N', 'B', 'W', 'P'}, VERSION, HELLO, 1, sizeof ours}, (uint64_t)1 << 45};
    cr_expect_eq(sizeof ours, sizeof hello);
    cr_expect_eq(memcmp(&ours, hello, sizeof hello), 0);
}

Test(kernel_program, a_kernel_is_taken_as_the_table_has_it) {
    union message m = answer_of(DESCRIBE, sizeof m.described, "of a test");
    struct program_kernel k = {0};
    m.described.dtype = NB_BF16;
    m.described.flags = FLAG_ROW_LOCAL;
    strcpy(m.described.name, "mine");
    cr_expect_null(read_kernel(&k, &m));
    cr_expect_str_eq(k.kernel.name, "mine");
    cr_expect_str_eq(k.kernel.variant, "mine_bf16");
    cr_expect_str_eq(k.kernel.summary, "of a test");
    cr_expect(k.kernel.row_local && nb_kernel_is_of_program(&k.kernel));
    cr_expect_eq(own(&k.kernel), &k);
    free(k.summary);

    struct nb_range range;
    nb_use_programs(&nb_kernel_programs);
    nb_kernel_range(&k.kernel, &(struct nb_call){.rows = 1}, &range);
    cr_expect(isinf(range.max_abs) && range.max_rho == 1024); /* that of our own kernels */
    m.described.min_rms = 0.5, m.described.max_abs = 100;
    cr_expect_null(read_kernel(&k, &m));
    nb_kernel_range(&k.kernel, &(struct nb_call){.rows = 1}, &range);
    cr_expect(range.min_rms == 0.5 && range.max_abs == 100 && isinf(range.max_rho));
    free(k.summary);
    m.described.max_rho = NAN;
    cr_expect(strstr(read_kernel(&k, &m), "limits"));

    const struct nb_call packed = {.rows = 2, .cols = 8, .x_stride = 8, .n_threads = 1};
    struct nb_call apart = packed, threads = packed;
    apart.x_stride = 9;
    threads.n_threads = 2;
    cr_expect_null(refuse_call(&k.kernel, &packed));
    cr_expect(strstr(refuse_call(&k.kernel, &apart), "packed rows only"));
    cr_expect(strstr(refuse_call(&k.kernel, &threads), "several threads"));
}

Test(kernel_program, shared_memory_lies_apart_and_is_given_again) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    cr_expect_null(nb_program_memory_new(page), "before any program has been started");
    cr_assert(map_memory());
    unsigned char *a = nb_program_memory_new(page), *b = nb_program_memory_new(3 * page),
                  *c = nb_program_memory_new(page);
    cr_assert(a && b && c);
    const ptrdiff_t far = (ptrdiff_t)nb_buffer_distance();
    cr_expect(b - a >= far && c - b >= far);
    b[0] = b[3 * page - 1] = 42;
    cr_expect_eq(area_of(b + 3 * page - 1)->bytes, 3 * (int64_t)page);
    cr_expect_null(area_of(b + 3 * page));
    cr_expect(nb_program_memory_free(b));
    cr_expect_not(nb_program_memory_free(b));
    cr_expect_not(nb_program_memory_free(&page));
    cr_expect_eq((unsigned char *)nb_program_memory_new(page), b);
    cr_expect_eq(b[0], 0, "what was there is gone");
    cr_expect(ftruncate(memory.fd, 0) != 0 && ftruncate(memory.fd, (off_t)memory.bytes + 1) != 0, "its size stays");
}

static float *shared_floats(int n, float value) {
    float *to = nb_program_memory_new((size_t)sysconf(_SC_PAGESIZE));
    cr_assert(to);
    for (int i = 0; i < n; i++) to[i] = value;
    return to;
}

Test(kernel_program, a_program_is_started_and_called) {
    enum { ROWS = 2, COLS = 8 };
    size_t n = 0;
    char *path freed = nb_textf("%s/../programs/norms", getenv("NORMBENCH_TEST_PLUGINS"));
    struct nb_kernel_program *p = start_program(path, &n);
    cr_assert(p && n > 0);
    const struct nb_kernel *k = kernel_at(p, 0);
    cr_expect_str_eq(k->name, "norm");
    cr_expect_str_eq(nb_kernel_program_language(k), "C");

    struct nb_call call = {.struct_size = sizeof call, .rows = ROWS, .cols = COLS, .k = COLS, .n_threads = 1};
    call.formula.struct_size = sizeof call.formula;
    call.x_stride = call.y_stride = COLS;
    call.x = shared_floats(ROWS * COLS, 3);
    call.y = shared_floats(ROWS * COLS, 0);
    const struct nb_program_calls calls = {.calls = &call, .n = 1, .amount = 1};
    cr_assert_eq(nb_kernel_program_run(k, &calls), 0, "%s", nb_kernel_program_said(k));
    for (int i = 0; i < ROWS * COLS; i++) cr_expect_eq(((float *)call.y)[i], 1);
    free_program(p);
}

/* A file of that name that may be executed, or not. */
static bool starts(const char *dir, const char *name, const char *text, mode_t mode) {
    char *path freed = nb_path_join(dir, name);
    put_text(dir, name, text);
    chmod(path, mode);
    return nb_kernel_program_is(path);
}

Test(kernel_program, a_file_is_started_or_loaded_by_what_it_is) {
    char *dir = new_folder(), *folder = kept(nb_path_join(dir, "a.so.d"));
    cr_assert_eq(mkdir(folder, 0700), 0);
    cr_expect(nb_kernel_program_is("no_such.py"));
    cr_expect_not(nb_kernel_program_is("no_such"));
    cr_expect_not(nb_kernel_program_is(dir));
    cr_expect(nb_kernel_program_is("/proc/self/exe"));
    cr_expect_not(nb_kernel_program_is(plugin_path("example")));
    cr_expect_not(starts(dir, "text", "hello", 0600), "it may not be executed");
    cr_expect_not(starts(dir, "text", "hello", 0700), "nor is it a script");
    cr_expect(starts(dir, "script", "#!/bin/sh\n", 0700));
    cr_expect(starts(folder, "script", "#!/bin/sh\n", 0700), "the folder's name says nothing");
    cr_expect_not(starts(folder, "script.so.1", "#!/bin/sh\n", 0700));
}

Test(kernel_program, a_static_program_that_lies_anywhere_is_started) {
    char *dir = new_folder(), *path = kept(nb_path_join(dir, "static"));
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr part;
        Elf64_Dyn entries[3];
    } file = {.head = {.e_type = ET_DYN, .e_phoff = sizeof file.head, .e_phentsize = sizeof file.part, .e_phnum = 1},
              .part = {.p_type = PT_DYNAMIC,
                       .p_offset = sizeof file.head + sizeof file.part,
                       .p_filesz = sizeof file.entries},
              .entries = {{.d_tag = DT_DEBUG}, {.d_tag = DT_FLAGS_1, .d_un.d_val = DF_1_NOW | DF_1_PIE}}};
    memcpy(file.head.e_ident, ELFMAG, SELFMAG);
    file.head.e_ident[EI_CLASS] = ELFCLASS64;
    put_file(dir, "static", (const char *)&file, sizeof file);
    chmod(path, 0700);
    cr_expect(nb_kernel_program_is(path));
    file.entries[1].d_un.d_val = DF_1_NOW;
    put_file(dir, "static", (const char *)&file, sizeof file);
    cr_expect_not(nb_kernel_program_is(path), "a shared object");
}
