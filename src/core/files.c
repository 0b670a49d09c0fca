// SPDX-License-Identifier: Apache-2.0
/* Paths and whole files. */
#include "src/core/files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/log.h"
#include "src/core/text.h"

char *nb_file_read(const char *path, size_t limit, size_t *len) {
    assert(path);
    struct nb_strbuf text = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        nb_error("%s: %s", path, strerror(errno));
        return NULL;
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        nb_error("%s: is a folder", path);
        goto fail;
    }
    nb_strbuf_addn(&text, "", 0);
    for (;;) {
        char chunk[65536];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            nb_error("%s: %s", path, strerror(errno));
            goto fail;
        }
        if (n == 0) break;
        if (text.len + (size_t)n > limit) {
            nb_error("%s: larger than %zu bytes", path, limit);
            goto fail;
        }
        nb_strbuf_addn(&text, chunk, (size_t)n);
    }
    close(fd);
    if (len) *len = text.len;
    return text.text;
fail:
    close(fd);
    nb_strbuf_release(&text);
    return NULL;
}

int nb_file_write(const char *path, const char *text, size_t len) {
    assert(path && text);
    struct nb_strbuf temporary = {0};
    nb_strbuf_addf(&temporary, "%s.%d.tmp", path, (int)getpid());
    int result = -1;
    FILE *f = fopen(temporary.text, "wbe");
    if (!f) {
        nb_error("%s: %s", temporary.text, strerror(errno));
        goto out;
    }
    bool written = fwrite(text, 1, len, f) == len;
    written = fflush(f) == 0 && fsync(fileno(f)) == 0 && written;
    written = fclose(f) == 0 && written;
    if (!written || rename(temporary.text, path) != 0) {
        nb_error("%s: %s", path, strerror(errno));
        unlink(temporary.text);
        goto out;
    }
    result = 0;
out:
    nb_strbuf_release(&temporary);
    return result;
}

int nb_dir_make(const char *dir) {
    assert(dir);
    char *path = nb_strdup(dir);
    int result = 0;
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0') continue;
        char end = *p;
        *p = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            result = nb_error("%s: %s", path, strerror(errno));
            break;
        }
        if (!end) break;
        *p = end;
    }
    struct stat st;
    if (result == 0 && (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))) result = nb_error("%s: not a folder", dir);
    free(path);
    return result;
}

bool nb_path_exists(const char *path) {
    assert(path);
    return access(path, F_OK) == 0;
}

static int compare_texts(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

struct nb_strings nb_dir_list(const char *dir, const char *end) {
    struct nb_strings names = {0};
    DIR *folder = dir ? opendir(dir) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        const size_t n = strlen(entry->d_name), m = strlen(end);
        if (entry->d_name[0] == '.' || n <= m || strcmp(entry->d_name + n - m, end) != 0) continue;
        nb_strings_add(&names, entry->d_name);
        names.items[names.n - 1][n - m] = '\0';
    }
    if (folder) closedir(folder);
    if (names.n > 1) qsort(names.items, names.n, sizeof *names.items, compare_texts);
    return names;
}

char *nb_path_join(const char *dir, const char *name) {
    assert(dir && name);
    struct nb_strbuf path = {0};
    size_t n = strlen(dir);
    nb_strbuf_addf(&path, "%s%s%s", dir, n > 0 && dir[n - 1] == '/' ? "" : "/", name);
    return path.text;
}

char *nb_program_dir(void) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return nb_strdup(".");
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    return nb_strdup(path);
}

char *nb_share_dir(const char *environment, const char *folder) {
    assert(environment && folder);
    const char *named = getenv(environment);
    if (named && *named) return nb_strdup(named);
    static const char *const places[] = {"", "../", "../share/normbench/"};
    char *program = nb_program_dir();
    struct nb_strbuf path = {0};
    char *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !found; i++) {
        nb_strbuf_clear(&path);
        nb_strbuf_addf(&path, "%s/%s%s", program, places[i], folder);
        found = realpath(path.text, NULL); /* without the "..", for people read it in messages */
    }
    nb_strbuf_release(&path);
    free(program);
    return found;
}
