// SPDX-License-Identifier: Apache-2.0
/* Classes as tutorials print them, executed step by step in the formats that their dtypes imply (src/emulate/), against the exact
 * result: what is lost (NaN, Inf or 0 in place of a number), and how far off the rest is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/design_rows.h"
#include "src/lab/emulate/emulate.h"

struct tally {
    double n, n_lost, n_nan;
    double *errors; /* of rows: ||y - exact|| / ||exact|| of what is not lost */
    int64_t n_rows;
};

static bool is_number(double v) { return isfinite(v) && v != 0; }

static void take_row(struct tally *t, const double *y, const double *exact, int64_t cols) {
    double error = 0, whole = 0;
    for (int64_t i = 0; i < cols; i++) {
        t->n++;
        t->n_nan += !isfinite(y[i]);
        const bool lost = is_number(exact[i]) && !is_number(y[i]);
        t->n_lost += lost;
        if (lost || !isfinite(y[i]) || !isfinite(exact[i])) continue;
        error += pow(y[i] - exact[i], 2);
        whole += exact[i] * exact[i];
    }
    if (whole > 0) t->errors[t->n_rows++] = sqrt(error / whole);
}

static void add(const struct nb_property_call *call, const char *name, double value, const struct nb_design *d) {
    struct nb_finding *f = nb_property_add_or(call, name, "share", value, "every element is lost, or 0");
    nb_finding_tag(f, "op", nb_op_names[d->op]);
    nb_finding_tag(f, "store", nb_numbers[d->store].name);
    nb_finding_tag(f, "statistics", nb_numbers[d->stat].name);
    nb_finding_tag_number(f, "eps", d->eps);
}

static void execute(const struct nb_design *d, const struct nb_design_rows *rows, struct tally *t) {
    struct nb_case c;
    double *y = nb_alloc((unsigned long long)rows->cols, sizeof *y);
    double *exact = nb_alloc((unsigned long long)rows->cols, sizeof *exact);
    nb_design_case(&c, d, rows->rows, rows->cols, rows->affine);
    t->errors = nb_alloc((unsigned long long)rows->rows, sizeof *t->errors);
    for (int64_t row = 0; row < rows->rows; row++) {
        const double *x = rows->x + row * rows->cols;
        nb_emulate_row(d, rows->cols, x, rows->gamma, rows->beta, y, (uint64_t)row);
        nb_exact_row(&c, x, rows->gamma, rows->beta, NULL, exact, NULL);
        take_row(t, y, exact, rows->cols);
    }
    free(y);
    free(exact);
}

static void design_run(const struct nb_property_call *call) {
    const char *design = nb_param_text(call, "design"), *data = nb_param_text(call, "data");
    struct nb_design d;
    struct nb_design_rows rows;
    struct tally t = {0};
    struct nb_design_data source = {.data = data,
                                    .rows = nb_param_whole(call, "rows"),
                                    .cols = nb_param_whole(call, "cols"),
                                    .seed = 1,
                                    .affine = NB_AFFINE_NONE};
    if (nb_design_parse(&d, design) != 0 || nb_design_data_resolve(&source) != 0 ||
        nb_design_rows_init(&rows, &d, &source) != 0) {
        nb_findings_add_missing(call->out, "lost", "design '%.80s' on '%.80s' cannot be made", design, data);
        return;
    }
    execute(&d, &rows, &t);
    add(call, "lost", t.n_lost / t.n, &d);
    add(call, "not_finite", t.n_nan / t.n, &d);
    add(call, "error", t.n_rows ? nb_median(t.errors, (size_t)t.n_rows) : (double)NAN, &d);
    free(t.errors);
    nb_design_rows_release(&rows);
}

const struct nb_property nb_property_design = {
    .name = "design",
    .summary = "a class executed step by step in given formats",
    .params = {{"design", "[\"rmsnorm/store:f16\"]", "as `normbench emulate` takes them", false},
               {"data", "[\"normal\"]", "rows, as the data axis takes them", false},
               {"rows", "16", "", true},
               {"cols", "512", "", true}},
    .each = {{"design", "design"}, {"data", "data"}},
    .run = design_run,
};
