// SPDX-License-Identifier: Apache-2.0
/* From the name of the data to files or a distribution, whether they fit the case, and the tensors filled from them. */
#include "src/plan/inputs.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/params.h"
#include "src/core/text.h"

/* ---- where rows come from ---- */

static const char x_suffix[] = "_x.npy";

int64_t nb_case_n_params(const struct nb_case *c) {
    return c->shape.layout != NB_ROWS && c->shape.c > 0 ? c->shape.c : c->shape.cols;
}

char *nb_data_dir(void) {
    char *dir = nb_share_dir("NORMBENCH_DATA", "tests/data");
    return dir ? dir : nb_share_dir("NORMBENCH_DATA", "data");
}

struct nb_strings nb_inputs_list(void) {
    char *dir freed = nb_data_dir();
    return nb_dir_list(dir, x_suffix);
}

static bool is_path(const char *data) { return strchr(data, '/') || nb_text_ends(data, ".npy"); }

/* The file of x of a name, as far as there is one; owned, or null. */
static char *x_path(const char *data) {
    if (is_path(data)) return nb_strdup(data);
    char *dir freed = nb_data_dir();
    return nb_path_found(dir ? nb_textf("%s/%s%s", dir, data, x_suffix) : NULL);
}

/* "a/foo_x.npy" and "a/foo.npy", "gamma" -> "a/foo_gamma.npy"; owned. */
static char *sibling_path(const char *x, const char *what) {
    const char *dot = strrchr(x, '.'), *slash = strrchr(x, '/');
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - x) : strlen(x);
    const char *extension = x + stem;
    if (stem > 2 && memcmp(x + stem - 2, "_x", 2) == 0) stem -= 2;
    return nb_textf("%.*s_%s%s", (int)stem, x, what, extension);
}

/* With the names that a typing error may have meant. */
static void say_unknown(const char *data, char *reason, size_t n) {
    struct nb_strings sets released_by(nb_strings_release) = nb_inputs_list();
    size_t n_names = 0;
    const char **names freed = nb_alloc(nb_n_distributions + sets.n, sizeof *names);
    for (size_t i = 0; i < nb_n_distributions; i++) names[n_names++] = nb_distributions[i].name;
    for (size_t i = 0; i < sets.n; i++) names[n_names++] = sets.items[i];
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(data, "("), data);
    const char *nearest = nb_nearest(name, names, n_names);
    if (nearest)
        snprintf(reason, n, "data %.80s is not known; did you mean %s?", data, nearest);
    else
        snprintf(reason, n, "data %.80s is not known; `normbench list data` shows what there is", data);
}

static int open_rows(struct nb_array *a, const char *path, int64_t cols, bool header_only, char *reason, size_t n) {
    if (nb_array_read(a, path, header_only, reason, n) != 0) return -1;
    if (cols == 0 || a->cols == cols) return 0;
    return nb_reason(reason, n, "%s has rows of %lld values, the shape has %lld columns; use a shape such as %lldx%lld",
                     path, (long long)a->cols, (long long)cols, (long long)a->rows, (long long)a->cols);
}

static int open_parameters(struct nb_array *a, const char *path, int64_t n_params, bool header_only, char *reason,
                           size_t n) {
    if (nb_array_read(a, path, header_only, reason, n) != 0) return -1;
    if (a->rows == 1 && a->cols == n_params) return 0;
    return nb_reason(reason, n, "%s has shape %lldx%lld, the case needs %lld values", path, (long long)a->rows,
                     (long long)a->cols, (long long)n_params);
}

static int open_siblings(struct nb_source *s, const char *x, const struct nb_case *c, bool header_only, char *reason,
                         size_t n) {
    char *gamma freed = sibling_path(x, "gamma"), *beta freed = sibling_path(x, "beta"),
                *dy freed = sibling_path(x, "dy");
    int64_t n_params = nb_case_n_params(c);
    int result = 0;
    if (nb_path_exists(gamma)) result = open_parameters(&s->gamma, gamma, n_params, header_only, reason, n);
    if (result == 0 && nb_path_exists(beta)) result = open_parameters(&s->beta, beta, n_params, header_only, reason, n);
    if (result == 0 && c->pass == NB_BACKWARD && nb_path_exists(dy))
        result = open_rows(&s->dy, dy, c->shape.cols, header_only, reason, n);
    return result;
}

/* A distribution's recipe, or the rows of a file, with its path; cols: 0: any. */
static int open_named(const char *name, struct nb_recipe *recipe, struct nb_array *rows, char **path, int64_t cols,
                      bool header_only, char *reason, size_t n) {
    if (!is_path(name)) {
        if (nb_distribution_parse(name, recipe, reason, n) != 0) return -1;
        if (recipe->data) return 0;
    }
    *path = x_path(name);
    if (*path) return open_rows(rows, *path, cols, header_only, reason, n);
    say_unknown(name, reason, n);
    return -1;
}

static int open_dy(struct nb_source *s, const struct nb_case *c, bool header_only, char *reason, size_t n) {
    char *path freed = NULL;
    nb_array_release(&s->dy);
    if (strcmp(c->dy, NB_DY_PARALLEL) == 0) return 0;
    return open_named(c->dy, &s->dy_recipe, &s->dy, &path, c->shape.cols, header_only, reason, n);
}

int nb_source_open(struct nb_source *s, const struct nb_case *c, bool header_only, char *reason, size_t n) {
    *s = (struct nb_source){0};
    char *path freed = NULL;
    int result = open_named(c->data, &s->recipe, &s->x, &path, c->shape.cols, header_only, reason, n);
    if (result == 0 && path) result = open_siblings(s, path, c, header_only, reason, n);
    if (result == 0 && nb_case_chooses_dy(c)) result = open_dy(s, c, header_only, reason, n);
    if (result != 0) nb_source_release(s);
    return result;
}

int nb_source_size(const char *data, int64_t *rows, int64_t *cols, char *reason, size_t n) {
    struct nb_recipe recipe = {0};
    struct nb_array array released_by(nb_array_release) = {0};
    char *path freed = NULL;
    *rows = *cols = 0;
    if (open_named(data, &recipe, &array, &path, 0, true, reason, n) != 0) return -1;
    *rows = array.rows;
    *cols = array.cols;
    return 0;
}

void nb_source_release(struct nb_source *s) {
    nb_array_release(&s->x);
    nb_array_release(&s->gamma);
    nb_array_release(&s->beta);
    nb_array_release(&s->dy);
}

/* ---- filling ---- */

enum stream {
    STREAM_X,
    STREAM_RESIDUAL,
    STREAM_DY,
    STREAM_GAMMA,
    STREAM_BETA,
    STREAM_MEAN,
    STREAM_VAR,
    STREAM_DRESIDUAL_OUT
};

/* Data can be larger than the machine, unlike all else that is allocated. */
static void *new_tensor(int64_t rows, int64_t cols, size_t item) {
    void *tensor = calloc((size_t)rows * (size_t)cols, item);
    if (!tensor)
        nb_error("no memory for %lld x %lld values of %zu bytes; choose a smaller shape", (long long)rows,
                 (long long)cols, item);
    return tensor;
}

static void *drawn(const struct nb_inputs *in, const struct nb_case *c, const struct nb_recipe *recipe,
                   enum stream stream) {
    void *tensor = new_tensor(in->rows, in->cols, nb_formats[in->dtype].bytes);
    const struct nb_draw draw = nb_draw_of(recipe, &nb_formats[in->dtype], in->cols, nb_random_stream(c->seed, stream));
    if (!tensor) return NULL;
    for (int64_t row = 0; row < in->rows; row++)
        for (int64_t col = 0; col < in->cols; col++)
            nb_set(tensor, row * in->cols + col, in->dtype, nb_draw_value(recipe->data, &draw, row, col));
    return tensor;
}

/* Row r of the tensor is row first + r of the array, cycled. */
static void *cycled(const struct nb_inputs *in, const struct nb_array *a, int64_t first) {
    void *tensor = new_tensor(in->rows, in->cols, nb_formats[in->dtype].bytes);
    if (!tensor) return NULL;
    for (int64_t row = 0; row < in->rows; row++) {
        const double *from = a->values + (first + row) % a->rows * a->cols;
        for (int64_t col = 0; col < in->cols; col++) nb_set(tensor, row * in->cols + col, in->dtype, from[col]);
    }
    return tensor;
}

static void *rows_of(const struct nb_inputs *in, const struct nb_case *c, const struct nb_source *s,
                     enum stream stream) {
    if (s->recipe.data) return drawn(in, c, &s->recipe, stream);
    return cycled(in, &s->x, stream == STREAM_RESIDUAL ? (s->x.rows + 1) / 2 : 0);
}

/* Of a stream of normal draws, or the file's values. */
static int fill_parameter(const struct nb_inputs *in, const struct nb_case *c, const struct nb_array *file,
                          enum stream stream, float **f32, void **in_x) {
    struct nb_random random = nb_random_stream(c->seed, stream);
    struct nb_params params;
    char reason[128];
    if (nb_params_parse(c->params, &params, reason, sizeof reason) != 0)
        return nb_error("params: '%s' %s", c->params, reason);
    const bool from_file = file->rows && params.kind == NB_PARAMS_OF_DRAWS;
    *f32 = new_tensor(1, in->n_params, sizeof **f32);
    *in_x = new_tensor(1, in->n_params, nb_formats[in->dtype].bytes);
    if (!*f32 || !*in_x) return -1;
    for (int64_t i = 0; i < in->n_params; i++) {
        const double z = nb_random_normal(random, (uint64_t)i);
        const double value = from_file                ? file->values[i]
                             : stream == STREAM_GAMMA ? nb_params_gamma(&params, i, z)
                                                      : nb_params_beta(&params, i, z);
        (*f32)[i] = (float)value;
        nb_set(*in_x, i, in->dtype, (double)(*f32)[i]);
    }
    return 0;
}

/* Mean and standard deviation of x as a whole, from at most a million of its finite values. */
static void measure_x(const struct nb_inputs *in, double *mean, double *variance) {
    const int64_t most = 1 << 20;
    int64_t total = in->rows * in->cols, n = 0;
    if (total > most) total = most;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < total; i++) {
        double value = nb_get(in->x, i, in->dtype);
        if (!isfinite(value)) continue;
        sum += value;
        n++;
    }
    *mean = n ? sum / (double)n : 0;
    for (int64_t i = 0; i < total; i++) {
        double from_mean = nb_get(in->x, i, in->dtype) - *mean;
        if (isfinite(from_mean)) squares += from_mean * from_mean;
    }
    *variance = n ? squares / (double)n : 0;
    if (!(*variance > 0)) *variance = 1;
}

static int fill_running(struct nb_inputs *in, const struct nb_case *c) {
    struct nb_random of_mean = nb_random_stream(c->seed, STREAM_MEAN), of_var = nb_random_stream(c->seed, STREAM_VAR);
    double mean, variance;
    in->running_mean = new_tensor(1, in->n_params, sizeof *in->running_mean);
    in->running_var = new_tensor(1, in->n_params, sizeof *in->running_var);
    if (!in->running_mean || !in->running_var) return -1;
    measure_x(in, &mean, &variance);
    for (int64_t i = 0; i < in->n_params; i++) {
        in->running_mean[i] = (float)(mean + 0.1 * sqrt(variance) * nb_random_normal(of_mean, (uint64_t)i));
        in->running_var[i] = (float)(variance * (0.8 + 0.4 * nb_random_open(of_var, (uint64_t)i)));
    }
    return 0;
}

/* A copy moves the tensors of whatever op its group has. Backward, x is the sum. */
static bool takes_residual(const struct nb_case *c) {
    return c->pass == NB_FORWARD && (nb_op_adds(c->op) || c->op == NB_OP_COPY);
}

static void *gradient_of(const struct nb_inputs *in, const struct nb_case *c, const struct nb_source *s,
                         enum stream stream) {
    const struct nb_recipe normal = {.data = &nb_distributions[0]};
    const bool chosen = nb_case_chooses_dy(c);
    if (chosen && stream == STREAM_DY && s->dy_recipe.data) return drawn(in, c, &s->dy_recipe, stream);
    if (chosen && stream == STREAM_DY && !s->dy.rows) return rows_of(in, c, s, STREAM_X);
    if (!s->dy.rows || (chosen && stream == STREAM_DRESIDUAL_OUT)) return drawn(in, c, &normal, stream);
    return cycled(in, &s->dy, stream == STREAM_DRESIDUAL_OUT ? (s->dy.rows + 1) / 2 : 0);
}

static int fill_gradients(struct nb_inputs *in, const struct nb_case *c, const struct nb_source *s) {
    const bool adds = nb_op_adds(c->op) || c->op == NB_OP_COPY;
    if (!in->dy && !(in->dy = gradient_of(in, c, s, STREAM_DY))) return -1;
    if (adds && !in->dresidual_out && !(in->dresidual_out = gradient_of(in, c, s, STREAM_DRESIDUAL_OUT))) return -1;
    return 0;
}

static int fill_missing(struct nb_inputs *in, const struct nb_case *c, const struct nb_source *s) {
    if (!in->x && !(in->x = rows_of(in, c, s, STREAM_X))) return -1;
    if (takes_residual(c) && !in->residual && !(in->residual = rows_of(in, c, s, STREAM_RESIDUAL))) return -1;
    if (c->pass == NB_BACKWARD && fill_gradients(in, c, s) != 0) return -1;
    if (!in->gamma_f32) {
        if (fill_parameter(in, c, &s->gamma, STREAM_GAMMA, &in->gamma_f32, &in->gamma_x) != 0) return -1;
        if (fill_parameter(in, c, &s->beta, STREAM_BETA, &in->beta_f32, &in->beta_x) != 0) return -1;
    }
    return c->op == NB_OP_BATCHNORM && !in->running_mean ? fill_running(in, c) : 0;
}

int nb_inputs_add(struct nb_inputs *in, const struct nb_case *c) {
    struct nb_source source released_by(nb_source_release) = {0};
    char reason[1024];
    assert((uint32_t)in->dtype == c->dtype && in->rows == c->shape.rows && in->cols == c->shape.cols);
    assert(in->n_params == nb_case_n_params(c));
    if (nb_source_open(&source, c, false, reason, sizeof reason) != 0) return nb_error("%s", reason);
    return fill_missing(in, c, &source);
}

int nb_inputs_init(struct nb_inputs *in, const struct nb_case *c) {
    *in = (struct nb_inputs){.dtype = (enum nb_dtype)c->dtype,
                             .rows = c->shape.rows,
                             .cols = c->shape.cols,
                             .n_params = nb_case_n_params(c)};
    if (nb_inputs_add(in, c) == 0) return 0;
    nb_inputs_release(in);
    return -1;
}

static bool same_statistics(const struct nb_case *a, const struct nb_case *b) {
    return a->op == b->op && a->eps == b->eps && a->k == b->k && a->mode == b->mode;
}

int nb_inputs_saved(const struct nb_inputs *in, const struct nb_case *c) {
    for (int i = 0; i < in->n_saved; i++)
        if (same_statistics(&in->saved[i].c, c)) return i;
    return -1;
}

void nb_inputs_drop_saved(struct nb_inputs *in) {
    for (int i = 0; i < in->n_saved; i++) nb_free_all(in->saved[i].mean, in->saved[i].rstd);
    free(in->saved);
    in->saved = NULL;
    in->n_saved = 0;
}

void nb_inputs_release(struct nb_inputs *in) {
    nb_inputs_drop_saved(in);
    nb_free_all(in->x, in->residual, in->dy, in->dresidual_out, in->gamma_f32, in->beta_f32, in->gamma_x, in->beta_x,
                in->running_mean, in->running_var);
    *in = (struct nb_inputs){0};
}

char *nb_inputs_refuse(const struct nb_case *c) {
    struct nb_source source released_by(nb_source_release) = {0};
    char reason[1024];
    return nb_source_open(&source, c, true, reason, sizeof reason) == 0 ? NULL : nb_strdup(reason);
}

/* Squares must stay among the normal numbers for the draws to be no extreme. */
static bool is_random(const char *name, const struct nb_format *format) {
    struct nb_recipe recipe;
    char reason[256];
    if (nb_distribution_parse(name, &recipe, reason, sizeof reason) != 0 || !recipe.data || !recipe.data->random)
        return false;
    return recipe.data->most == 0 ||
           (recipe.numbers[0] > ldexp(1, format->emin / 2) && recipe.numbers[0] < ldexp(1, format->emax / 2));
}

int nb_inputs_is_random(const struct nb_case *c) {
    const struct nb_format *format = &nb_formats[c->dtype];
    return is_random(c->data, format) && (!nb_case_chooses_dy(c) || is_random(c->dy, format));
}
