// SPDX-License-Identifier: Apache-2.0
/* Names to files, and whether the files fit the case. */
#include "src/plan/data_source.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/text.h"

static const char x_suffix[] = "_x.npy";

int64_t nb_case_n_params(const struct nb_case *c) {
    return c->shape.layout != NB_ROWS && c->shape.c > 0 ? c->shape.c : c->shape.cols;
}

char *nb_data_dir(void) {
    char *dir = nb_share_dir("NORMBENCH_DATA", "tests/data");
    return dir ? dir : nb_share_dir("NORMBENCH_DATA", "data");
}

static bool ends_in(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int nb_data_dir_list(char ***names) {
    char *path = nb_data_dir();
    DIR *dir = path ? opendir(path) : NULL;
    int n = 0;
    *names = NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (!ends_in(entry->d_name, x_suffix)) continue;
        *names = nb_realloc(*names, (unsigned long long)n + 1, sizeof **names);
        (*names)[n] = nb_strdup(entry->d_name);
        (*names)[n][strlen(entry->d_name) - strlen(x_suffix)] = '\0';
        n++;
    }
    if (n > 1) qsort(*names, (size_t)n, sizeof **names, compare_names);
    if (dir) closedir(dir);
    free(path);
    return n;
}

static bool is_path(const char *data) { return strchr(data, '/') || ends_in(data, ".npy") || nb_array_is_raw(data); }

/* The file of x of a name, as far as there is one; owned, or null. */
static char *x_path(const char *data) {
    if (is_path(data)) return nb_strdup(data);
    char *dir = nb_data_dir();
    if (!dir) return NULL;
    struct nb_strbuf path = {0};
    nb_strbuf_addf(&path, "%s/%s%s", dir, data, x_suffix);
    free(dir);
    if (!nb_path_exists(path.text)) nb_strbuf_release(&path);
    return path.text;
}

/* "a/foo_x.npy" and "a/foo.npy", "gamma" -> "a/foo_gamma.npy"; owned. */
static char *sibling_path(const char *x, const char *what) {
    const char *dot = strrchr(x, '.'), *slash = strrchr(x, '/');
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - x) : strlen(x);
    const char *extension = x + stem;
    if (stem > 2 && memcmp(x + stem - 2, "_x", 2) == 0) stem -= 2;
    struct nb_strbuf path = {0};
    nb_strbuf_addf(&path, "%.*s_%s%s", (int)stem, x, what, extension);
    return path.text;
}

/* With the names that a typing error may have meant. */
static void say_unknown(const char *data, char *reason, size_t n) {
    char **sets;
    int n_sets = nb_data_dir_list(&sets);
    size_t n_names = 0;
    const char **names = nb_alloc(nb_n_distributions + (size_t)n_sets, sizeof *names);
    for (size_t i = 0; i < nb_n_distributions; i++) names[n_names++] = nb_distributions[i].name;
    for (int i = 0; i < n_sets; i++) names[n_names++] = sets[i];
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(data, "("), data);
    const char *nearest = nb_nearest(name, names, n_names);
    if (nearest)
        snprintf(reason, n, "data %.80s is not known; did you mean %s?", data, nearest);
    else
        snprintf(reason, n, "data %.80s is not known; `normbench list data` shows what there is", data);
    free(names);
    for (int i = 0; i < n_sets; i++) free(sets[i]);
    free(sets);
}

static int open_rows(struct nb_array *a, const char *path, int64_t cols, bool header_only, char *reason, size_t n) {
    if (nb_array_read(a, path, cols, header_only, reason, n) != 0) return -1;
    if (a->cols == cols) return 0;
    snprintf(reason, n, "%s has rows of %lld values, the shape has %lld columns; use a shape such as %lldx%lld", path,
             (long long)a->cols, (long long)cols, (long long)a->rows, (long long)a->cols);
    return -1;
}

static int open_parameters(struct nb_array *a, const char *path, int64_t n_params, bool header_only, char *reason,
                           size_t n) {
    if (nb_array_read(a, path, n_params, header_only, reason, n) != 0) return -1;
    if (a->rows == 1 && a->cols == n_params) return 0;
    snprintf(reason, n, "%s has shape %lldx%lld, the case needs %lld values", path, (long long)a->rows,
             (long long)a->cols, (long long)n_params);
    return -1;
}

static int open_siblings(struct nb_source *s, const char *x, const struct nb_case *c, bool header_only, char *reason,
                         size_t n) {
    char *gamma = sibling_path(x, "gamma"), *beta = sibling_path(x, "beta"), *dy = sibling_path(x, "dy");
    int64_t n_params = nb_case_n_params(c);
    int result = 0;
    if (nb_path_exists(gamma)) result = open_parameters(&s->gamma, gamma, n_params, header_only, reason, n);
    if (result == 0 && nb_path_exists(beta)) result = open_parameters(&s->beta, beta, n_params, header_only, reason, n);
    if (result == 0 && c->pass == NB_BACKWARD && nb_path_exists(dy))
        result = open_rows(&s->dy, dy, c->shape.cols, header_only, reason, n);
    free(gamma);
    free(beta);
    free(dy);
    return result;
}

int nb_source_open(struct nb_source *s, const struct nb_case *c, bool header_only, char *reason, size_t n) {
    *s = (struct nb_source){0};
    if (!is_path(c->data)) {
        if (nb_distribution_parse(c->data, &s->recipe, reason, n) != 0) return -1;
        if (s->recipe.data) return 0;
    }
    char *path = x_path(c->data);
    if (!path) {
        say_unknown(c->data, reason, n);
        return -1;
    }
    int result = open_rows(&s->x, path, c->shape.cols, header_only, reason, n);
    if (result == 0) result = open_siblings(s, path, c, header_only, reason, n);
    if (result != 0) nb_source_release(s);
    free(path);
    return result;
}

int nb_source_size(const char *data, int64_t *rows, int64_t *cols, char *reason, size_t n) {
    struct nb_recipe recipe = {0};
    struct nb_array array = {0};
    *rows = *cols = 0;
    if (!is_path(data) && nb_distribution_parse(data, &recipe, reason, n) != 0) return -1;
    if (recipe.data) return 0;
    char *path = x_path(data);
    if (!path) {
        say_unknown(data, reason, n);
        return -1;
    }
    const bool raw = nb_array_is_raw(path);
    const int result = nb_array_read(&array, path, 1, true, reason, n);
    if (result == 0 && !raw) {
        *rows = array.rows;
        *cols = array.cols;
    }
    nb_array_release(&array);
    free(path);
    return result;
}

void nb_source_release(struct nb_source *s) {
    nb_array_release(&s->x);
    nb_array_release(&s->gamma);
    nb_array_release(&s->beta);
    nb_array_release(&s->dy);
}
