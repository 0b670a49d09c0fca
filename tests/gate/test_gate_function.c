// SPDX-License-Identifier: Apache-2.0
/* Functions that are no kernels: the names that C++ compilers give them, and what a file exports. What the gate says of them is
 * tests/cli/foreign_function.sh. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "src/gate/gate_function.c"
#include "tests/support/files.h"

/* As g++ 12 and clang++ 14 write void f(void *), void *f(void), const void *f(const void *, size_t *), int f(const void *, const void *). */
Test(gate_function, names_are_mangled_as_compilers_do) {
    static const struct {
        const char *name;
        enum nb_function_role role;
        const char *symbol;
    } known[] = {{"parse", NB_FUNCTION_TIMED, "_Z5parsePv"},
                 {"text::parse", NB_FUNCTION_TIMED, "_ZN4text5parseEPv"},
                 {"text::words::count_setup", NB_FUNCTION_SETUP, "_ZN4text5words11count_setupEv"},
                 {"text::words::count_bytes", NB_FUNCTION_BYTES, "_ZN4text5words11count_bytesEPKvPm"},
                 {"text::words::is_right", NB_FUNCTION_CHECK, "_ZN4text5words8is_rightEPKvS2_"},
                 {"text::is_right", NB_FUNCTION_CHECK, "_ZN4text8is_rightEPKvS1_"},
                 {"is_right", NB_FUNCTION_CHECK, "_Z8is_rightPKvS0_"},
                 {"is_right", NB_FUNCTION_TEARDOWN, "_Z8is_rightPv"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct nb_strbuf symbol released_by(nb_strbuf_release) = {0};
        mangle(known[i].name, known[i].role, &symbol);
        cr_expect_str_eq(symbol.text, known[i].symbol);
    }
}

/* Whatever is given on a command line. */
Test(gate_function, any_name_can_be_asked_for) {
    static const char *const strange[] = {"", ":", "::", "a::", "::a", ":::a:::b:", " ", "%s%n"};
    char *file freed = plugin_path("gate_old");
    void *handle = nb_object_open(file);
    cr_assert(handle);
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
        for (int role = 0; role < NB_N_FUNCTION_ROLES; role++)
            cr_expect_null(nb_function_find(handle, file, strange[i], (enum nb_function_role)role));
    dlclose(handle);
}

Test(gate_function, all_that_a_file_exports_is_listed) {
    static char list[LISTED_MOST];
    char *file freed = plugin_path("gate_old");
    void *handle = nb_object_open(file);
    cr_assert(handle);
    nb_object_functions(handle, list_function, list);
    cr_expect(strstr(list, "normbench_kernels\n"), "it lists: %s", list);
    cr_expect_not_null(nb_function_find(handle, file, "normbench_kernels", NB_FUNCTION_TIMED));
    cr_expect_null(nb_function_find(handle, file, "malloc", NB_FUNCTION_TIMED),
                   "a library's function is no function of the file");
    dlclose(handle);
}
