// SPDX-License-Identifier: Apache-2.0
#include "tests/support/folder.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/files.h"

enum { LARGEST = 1 << 24 };

char folder[] = "/tmp/normbench-page-XXXXXX";

void make_folder(void) { cr_assert_not_null(mkdtemp(folder)); }

void remove_folder(void) {
    pid_t child = fork();
    if (child == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    if (child > 0) waitpid(child, NULL, 0);
}

char *read_in(const char *name) {
    char *path = nb_path_join(folder, name), *text = nb_file_read(path, LARGEST, NULL);
    cr_assert_not_null(text, "%s", name);
    free(path);
    return text;
}

bool exists_in(const char *name) {
    char *path = nb_path_join(folder, name);
    bool exists = nb_path_exists(path);
    free(path);
    return exists;
}
