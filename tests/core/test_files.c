// SPDX-License-Identifier: Apache-2.0
/* Whole files: what stands in the place of one that is written. */
#include <criterion/criterion.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/files.h"
#include "tests/support/files.h"

static void writes(const char *path) { cr_expect_eq(nb_file_write(path, "new", 3), 0, "%s", path); }

static void holds(const char *path, const char *expected) {
    struct stat st;
    cr_assert_eq(lstat(path, &st), 0, "%s", path);
    cr_expect(S_ISREG(st.st_mode), "%s is no file", path);
    char *text freed = nb_file_read(path, 100, NULL);
    cr_expect_str_eq(text, expected, "%s", path);
}

static bool is_link(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

Test(files, a_link_is_written_through) {
    cr_assert_eq(chdir(new_folder()), 0);
    cr_assert_eq(mkdir("sub", 0777), 0);
    cr_assert_eq(nb_file_write("sub/there", "old", 3), 0);
    cr_assert(symlink("there", "sub/beside") == 0 && symlink("sub/beside", "far") == 0 &&
              symlink("sub/fresh", "ahead") == 0);
    const char *const links[] = {"far", "ahead"}, *const targets[] = {"sub/there", "sub/fresh"};
    for (int i = 0; i < 2; i++) {
        writes(links[i]);
        holds(targets[i], "new");
        cr_expect(is_link(links[i]), "%s was replaced", links[i]);
    }
    cr_expect(is_link("sub/beside"));
}

Test(files, what_is_no_file_stays_what_it_is) {
    struct stat st;
    cr_assert_eq(chdir(new_folder()), 0);
    cr_assert(mkfifo("pipe", 0600) == 0 && symlink("pipe", "link") == 0 && mkdir("folder", 0777) == 0);
    for (const char *const *path = (const char *const[]){"pipe", "link", "folder", NULL}; *path; path++) {
        cr_expect_eq(nb_file_check_place(*path), -1, "%s", *path);
        cr_expect_eq(nb_file_write(*path, "new", 3), -1, "%s", *path);
    }
    cr_expect(lstat("pipe", &st) == 0 && S_ISFIFO(st.st_mode));
    cr_expect(is_link("link"));
    cr_expect_eq(nb_file_check_place("not there"), 0);
}
