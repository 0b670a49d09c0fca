// SPDX-License-Identifier: Apache-2.0
/* The registry: what it takes, what it refuses and in which words. Every test is a process of its own. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/registry.h"
#include "tests/support/files.h"

/* What load(path) says on stderr; its result in *result. */
static const char *said(int (*load)(const char *file), const char *path, int *result) {
    begin_errors();
    nb_guard_end(); /* the next one writes there */
    *result = load(path);
    return end_errors();
}

static void refuses_by(int (*load)(const char *file), const char *path, const char *words) {
    int result;
    const char *text = said(load, path, &result);
    cr_expect_eq(result, strstr(words, "ABI version") ? NB_OTHER_ABI : -1, "%s: %d", path, result);
    cr_expect(strstr(text, words), "wanted \"%s\" in: %s", words, text);
    cr_expect(strstr(text, path), "the message does not name %s: %s", path, text);
    cr_expect_eq(nb_registry_size(), 0, "kernels of a refused file stay");
}

/* Here, and in the guard. */
static void refuses(const char *path, const char *words) {
    refuses_by(nb_registry_load, path, words);
    refuses_by(nb_registry_describe, path, words);
}

static char *temporary(const char *name, const void *bytes, size_t n) {
    char *dir = new_folder();
    put_file(dir, name, bytes, n);
    return kept(nb_path_join(dir, name));
}

static char *copy_of(const char *plugin, const char *name) {
    size_t n;
    char *bytes freed = nb_file_read(plugin_path(plugin), 1 << 24, &n), *path = temporary(name, bytes, n);
    return path;
}

Test(registry, a_missing_file_is_refused) { refuses("/nonexistent/kernels.so", "No such file"); }
Test(registry, a_folder_is_refused) { refuses("/tmp", "not a file"); }
Test(registry, a_file_without_the_export_is_refused) { refuses(plugin_path("no_export"), "does not export"); }

Test(registry, a_file_that_is_no_shared_object_is_refused) {
    refuses(temporary("text.so", "#include <stdio.h>\n", 19), "cannot be loaded as a shared object");
}

Test(registry, a_name_that_no_key_can_hold_is_refused) {
    refuses(copy_of("older", "two words.so"), "known by its file name");
}

struct fault {
    char name[16], words[64];
};
ParameterizedTestParameters(registry, a_faulty_table_is_refused_whole) {
    static struct fault faults[] = {{"abi", "does not serve kernel ABI version 1"},
                                    {"empty", "its table says 0 kernels"},
                                    {"count", "kernels"},
                                    {"null", "entry 1 of its table is null"},
                                    {"size", "entry 1 of its table (no name): struct_size is 8"},
                                    {"huge", "struct_size is 1073741824"},
                                    {"op", "(bad): op is 99"},
                                    {"pass", "pass is 2"},
                                    {"dtype", "dtype is 3"},
                                    {"width", "width is 6"},
                                    {"variance", "variance is 6"},
                                    {"backend", "backend is 3"},
                                    {"name", "its name must be"},
                                    {"slash", "its variant must be"},
                                    {"colon", "its name must be"},
                                    {"space", "its variant must be"},
                                    {"run", "run is null"},
                                    {"loads", "loads per element"},
                                    {"duplicate", "has invalid:good_scalar_f32 twice"},
                                    {"long", "longer than"}};
    return cr_make_param_array(struct fault, faults, sizeof faults / sizeof faults[0]);
}
ParameterizedTest(struct fault *fault, registry, a_faulty_table_is_refused_whole) {
    setenv("NORMBENCH_TEST_FAULT", fault->name, 1);
    refuses(plugin_path("invalid"), fault->words);
}

Test(registry, a_plugin_with_code_in_another_file_is_warned_about_and_the_builtin_refused) {
    int result;
    setenv("NORMBENCH_TEST_FAULT", "elsewhere", 1);
    const char *text = said(nb_registry_load, plugin_path("invalid"), &result);
    cr_expect_eq(result, 0);
    HAS(text, "warning: ", "its function close lies in");
    cr_expect_eq(nb_registry_size(), 2);
    nb_registry_release();
    setenv("NORMBENCH_KERNELS", plugin_path("invalid"), 1);
    cr_expect_eq(nb_registry_load_builtin(), -1);
}

Test(registry, a_plugin_of_an_older_header_gets_defaults) {
    int result;
    const char *text = said(nb_registry_load, plugin_path("older"), &result);
    cr_assert_eq(result, 0);
    cr_expect_str_eq(text, "");
    const struct nb_entry *e = nb_registry_find("older:copy_native_f32");
    cr_assert_not_null(e);
    cr_expect_str_eq(e->plugin, "older");
    cr_expect_str_eq(e->kernel_id, "older:copy");
    cr_expect_str_eq(e->kernel->variant, "copy_native_f32");
    cr_expect_str_eq(e->kernel->summary, "");
    struct nb_call call = {.struct_size = sizeof call, .rows = 3, .cols = 7};
    cr_expect_eq(nb_kernel_chain(e->kernel, &call), 7);
    cr_expect_eq(nb_kernel_row_local(e->kernel, &call), 0);
    cr_expect_eq(nb_kernel_n_units(e->kernel, &call, 0), 3);
    cr_expect_eq(nb_kernel_n_phases(e->kernel, &call), 1);
    cr_expect_eq(nb_kernel_scratch_bytes(e->kernel, &call), 0);
    cr_expect_null(nb_kernel_applicable(e->kernel, &call));
    nb_registry_release();
}

static void refuses_a_second(int (*load)(const char *file)) {
    int result;
    char *first = plugin_path("older"), *path;
    cr_assert_eq(load(first), 0);
    size_t n = nb_registry_size();
    cr_assert_gt(n, 0);
    const char *text = said(load, first, &result);
    cr_expect_eq(result, 0);
    cr_expect(strstr(text, "is loaded already"), "%s", text);
    cr_expect_eq(nb_registry_size(), n);
    path = copy_of("older", "libolder.so");
    text = said(load, path, &result);
    cr_expect_eq(result, -1);
    cr_expect(strstr(text, "a plugin named older is loaded from"), "%s", text);
    cr_expect_eq(nb_registry_size(), n);
    nb_registry_release();
}
Test(registry, the_same_file_twice_is_a_note_and_another_of_its_name_an_error) {
    refuses_a_second(nb_registry_load);
    refuses_a_second(nb_registry_describe);
}

/* ---- described kernels ---- */

Test(registry, a_described_kernel_is_asked_in_the_guard) {
    struct nb_call call = {.struct_size = sizeof call, .rows = 3, .cols = 7};
    cr_assert_eq(nb_registry_describe(plugin_path("question")), 0);
    cr_assert_eq(nb_registry_describe(plugin_path("example")), 0);
    const struct nb_entry *crashes = nb_registry_find("question:bad_question_f32"),
                          *answers = nb_registry_find("example:example_f32");
    cr_assert(crashes && answers);
    for (int i = 0; i < 2; i++) {
        cr_expect_null(nb_ask_applicable(crashes, &call), "planned as if it had said yes");
        cr_expect_null(nb_ask_applicable(answers, &call), "another guard answers");
        cr_expect_eq(nb_ask_row_local(answers, &call), false, "the default");
    }
}

struct harm {
    char fault[24], words[64];
};
ParameterizedTestParameters(registry, a_file_that_harms_its_process_is_refused) {
    static struct harm harms[] = {{"constructor:exit", "ended the process with exit code 0"},
                                  {"constructor:_exit", "ended the process with exit code 0"},
                                  {"constructor:crash", "Segmentation fault"},
                                  {"constructor:junk", "descriptor that is not its own"},
                                  {"constructor:child", "ended the process with exit code 0"},
                                  {"table:_exit", "ended the process with exit code 0"},
                                  {"table:crash", "Segmentation fault"},
                                  {"table:junk", "descriptor that is not its own"}};
    return cr_make_param_array(struct harm, harms, sizeof harms / sizeof harms[0]);
}
ParameterizedTest(struct harm *harm, registry, a_file_that_harms_its_process_is_refused) {
    setenv("NORMBENCH_TEST_FAULT", harm->fault, 1);
    refuses_by(nb_registry_describe, plugin_path("around"), harm->words);
}

Test(registry, formulas_outside_the_masks_are_refused_by_name) {
    struct nb_kernel k = {.struct_size = sizeof k, .op = NB_OP_RMSNORM, .dtype = NB_BF16};
    struct nb_formula f = {.struct_size = sizeof f};
    cr_expect_null(nb_kernel_refuses(&k, &f), "a mask of 0 stands for the value 0");
    f.root = NB_ROOT_RSQRT_RAW;
    cr_expect_str_eq(nb_kernel_refuses(&k, &f), "kernel does not implement root rsqrt_raw");
    k.formulas.roots = 1u << NB_ROOT_RSQRT_RAW;
    cr_expect_null(nb_kernel_refuses(&k, &f));
    f.root = NB_ROOT_DIV_SQRT;
    cr_expect_str_eq(nb_kernel_refuses(&k, &f), "kernel does not implement root div_sqrt");
    k.op = NB_OP_DYT;
    cr_expect_null(nb_kernel_refuses(&k, &f), "DyT has no root");
    f.cast = NB_CAST_BEFORE;
    cr_expect_null(nb_kernel_refuses(&k, &f), "without a weight there is no cast order");
    f.affine = NB_AFFINE_GAMMA;
    k.formulas.affines = 1u << NB_AFFINE_GAMMA;
    cr_expect_str_eq(nb_kernel_refuses(&k, &f),
                     "kernel does not implement cast before; the plain kernels (*_twopass) do");
    k.dtype = NB_F32;
    cr_expect_null(nb_kernel_refuses(&k, &f), "in f32 there is nothing to cast");
    f.affine = NB_AFFINE_NONE;
    cr_expect_str_eq(nb_kernel_refuses(&k, &f), "kernel does not implement affine none");
    f.affine = 31;
    cr_expect_not_null(nb_kernel_refuses(&k, &f));
    f.affine = UINT32_MAX;
    cr_expect_not_null(nb_kernel_refuses(&k, &f));
}
