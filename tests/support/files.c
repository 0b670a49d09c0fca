// SPDX-License-Identifier: Apache-2.0
#include "tests/support/files.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { LARGEST = 1 << 26, MOST_OPEN = 8 };

/* A search for leaks finds what a list holds. */
struct list {
    void **items;
    size_t n;
};
static struct list all, folders;

static void *append(struct list *list, void *item) { return *NB_PUSH(list->items, list->n) = item; }

char *kept(char *text) { return append(&all, text); }
cJSON *kept_json(cJSON *json) { return append(&all, json); }

static struct object {
    void *copy;
    void (*release)(void *copy);
} * objects;
static size_t n_objects;

static void release_objects(void) {
    for (size_t i = 0; i < n_objects; i++) {
        objects[i].release(objects[i].copy);
        free(objects[i].copy);
    }
    free(objects);
}

void release_at_end(const void *object, size_t n, void (*release)(void *copy)) {
    if (n_objects == 0) atexit(release_objects);
    objects = nb_realloc(objects, n_objects + 1, sizeof *objects);
    objects[n_objects] = (struct object){nb_alloc(1, n), release};
    memcpy(objects[n_objects++].copy, object, n);
}

char *json_text(const cJSON *json) {
    struct nb_strbuf out = {0};
    nb_json_print(json, &out);
    return kept(out.text);
}

char *json_text_of(cJSON *json) {
    char *text = json_text(json);
    cJSON_Delete(json);
    return text;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) { return remove(path); }

static void remove_folders(void) {
    for (size_t i = 0; i < folders.n; i++) nftw(folders.items[i], remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
}

/* In memory where that can be: tests write thousands of small files. */
char *new_folder(void) {
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    char *path = nb_textf("%s/normbench-test-XXXXXX", parent);
    cr_assert_not_null(mkdtemp(path), "%s cannot be made", path);
    if (folders.n == 0) atexit(remove_folders);
    return append(&folders, path);
}

void put_file(const char *dir, const char *name, const void *bytes, size_t n) {
    char *path freed = nb_path_join(dir, name);
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fwrite(bytes, 1, n, f), n);
    cr_assert_eq(fclose(f), 0);
}

void put_text(const char *dir, const char *name, const char *text) { put_file(dir, name, text, strlen(text)); }

char *get_file(const char *dir, const char *name) {
    char *path freed = nb_path_join(dir, name), *text = nb_file_read(path, LARGEST, NULL);
    cr_assert_not_null(text, "%s", path);
    return kept(text);
}

bool has_file(const char *dir, const char *name) {
    char *path freed = nb_path_join(dir, name);
    return nb_path_exists(path);
}

char *plugin_path(const char *name) {
    const char *dir = getenv("NORMBENCH_TEST_PLUGINS");
    cr_assert_not_null(dir, "NORMBENCH_TEST_PLUGINS is not set");
    return kept(nb_textf("%s/%s.so", dir, name));
}

void change_file(const char *dir, const char *name, const char *old, const char *new) {
    char *text = get_file(dir, name), *hit = strstr(text, old);
    struct nb_strbuf out released_by(nb_strbuf_release) = {0};
    cr_assert_not_null(hit, "%s", old);
    nb_strbuf_addn(&out, text, (size_t)(hit - text));
    nb_strbuf_addf(&out, "%s%s", new, hit + strlen(old));
    put_file(dir, name, out.text, out.len);
}

void expect_parts(const char *text, bool wanted, const char *const *parts) {
    for (; *parts; parts++)
        cr_expect_eq(strstr(text, *parts) != NULL, wanted, "%s \"%s\" in:\n%s", wanted ? "no" : "there is", *parts,
                     text);
}

int times_in(const char *text, const char *part) {
    int n = 0;
    for (; (text = strstr(text, part)); text++) n++;
    return n;
}

static int errors = -1, usual = -1;

void begin_errors(void) {
    errors = memfd_create("stderr", MFD_CLOEXEC);
    usual = dup(STDERR_FILENO);
    cr_assert(errors >= 0 && usual >= 0);
    fflush(stderr);
    dup2(errors, STDERR_FILENO);
}

char *end_errors(void) {
    fflush(stderr);
    dup2(usual, STDERR_FILENO);
    close(usual);
    const off_t end = lseek(errors, 0, SEEK_END);
    char *text = nb_alloc((size_t)end + 1, 1);
    cr_assert_eq(pread(errors, text, (size_t)end, 0), end);
    close(errors);
    return kept(text);
}

void expect_refused_so(int result, const char *what, const char *words) {
    char *said = end_errors();
    cr_expect_eq(result, -1, "was taken: %s", what);
    cr_expect(strstr(said, words), "wanted \"%s\" for %s in: %s", words, what, said);
}

void quiet(void) { nb_log_quiet(true); }
