// SPDX-License-Identifier: Apache-2.0
/* Three sets of tests, so that nothing is judged by what it was made from: the line is drawn above the first; its scale is calibrated
 * on correct kernels' outputs for the same; rates are counted on the second. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/bound.h"
#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/stats.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"
#include "src/lab/stress/trial.h"
#include "src/lab/tolerance/tolerance.h"
#include "src/lab/tolerance/tolerance_test.h"
#include "src/measure/process.h"
#include "src/plan/inputs.h"

/* The lowest line above points at x = X is the edge of their upper convex hull over X. */

enum { PER_OCTAVE = 256, LEAST_EXPONENT = -160, OCTAVES = 320, BINS = PER_OCTAVE * OCTAVES };

/* Bin 0 is y = 0 and what is below all bins. */
static int bin_of(double y) {
    if (!(y >= ldexp(1, LEAST_EXPONENT))) return 0;
    int e;
    const double share = frexp(y, &e); /* [1/2, 1) */
    const int bin = 1 + (e - 1 - LEAST_EXPONENT) * PER_OCTAVE + (int)((share - 0.5) * 2 * PER_OCTAVE);
    return bin < BINS ? bin : BINS;
}
static double least_of(int bin) {
    if (bin == 0) return 0;
    const int octave = (bin - 1) / PER_OCTAVE, part = (bin - 1) % PER_OCTAVE;
    return ldexp(1 + (double)part / PER_OCTAVE, octave + LEAST_EXPONENT);
}

/* ---- The line atol + rtol |y| above a cloud of points (|y|, allowed error) that is lowest at a given |y| ---- */

/* Points in bins of |y|, 256 to the octave; each bin keeps its largest error and counts it at its smallest |y|. All 0 at first. */
struct nb_cloud {
    double *largest; /* owned; null: no point yet */
    double sum_squares;
    int64_t n;
};

static void cloud_add(struct nb_cloud *c, double y, double error) {
    const int bin = bin_of(fabs(y));
    if (!c->largest) c->largest = nb_alloc(BINS + 1, sizeof *c->largest);
    if (error > c->largest[bin]) c->largest[bin] = error;
    c->sum_squares += y * y;
    c->n++;
}

static double cloud_rms(const struct nb_cloud *c) { return c->n > 0 ? sqrt(c->sum_squares / (double)c->n) : 0; }

/* v rounded up to three significant decimal digits. */
static double round_up(double v) {
    if (!(v > 0) || isinf(v)) return v;
    char text[32];
    snprintf(text, sizeof text, "%.2e", v);
    double rounded = strtod(text, NULL);
    if (rounded >= v) return rounded;
    const double step = pow(10, floor(log10(v)) - 2);
    snprintf(text, sizeof text, "%.2e", rounded + step);
    return strtod(text, NULL);
}

struct point {
    double x, y;
};

static double cross(struct point o, struct point a, struct point b) {
    return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

/* Not negative; both rounded up to three digits. */
static void cloud_line(const struct nb_cloud *c, double *rtol, double *atol) {
    assert(c->largest);
    struct point *hull freed = nb_alloc(BINS + 2, sizeof *hull);
    const double at = cloud_rms(c);
    int n = 0;
    hull[n++] = (struct point){0, c->largest[0]};
    for (int bin = 1; bin <= BINS; bin++) {
        if (c->largest[bin] <= 0) continue;
        const struct point p = {least_of(bin), c->largest[bin]};
        while (n >= 2 && cross(hull[n - 2], hull[n - 1], p) >= 0) n--;
        hull[n++] = p;
    }
    int i = 1;
    while (i < n - 1 && hull[i].x < at) i++;
    double slope = n > 1 ? (hull[i].y - hull[i - 1].y) / (hull[i].x - hull[i - 1].x) : 0;
    if (slope < 0) slope = 0;
    *rtol = round_up(slope);
    double above = 0; /* with the slope as printed */
    for (int k = 0; k < n; k++) above = fmax(above, hull[k].y - *rtol * hull[k].x);
    *atol = round_up(above);
}

/* ---- Truth and bound of generated rows, as for a design's report ---- */

const char *const nb_reference_kind_names[] = {"exact", "rounded", "peer", NULL};

struct correct {
    struct nb_design design;       /* emulated, unless */
    const struct nb_entry *kernel; /* not null */
};

struct run {
    struct nb_tolerance *t;
    struct nb_tolerance_request q;
    struct correct correct[NB_MAX_SUBJECTS];
    int64_t in_file; /* rows of the file; not above 0: the data are no file */
    double *worst;   /* by subject, then by test of the first set: |error| / derived */
    double *got, *other;
    int64_t first_tests; /* of the first set */
    double *mean_errors; /* the same: mean relative error */
    double *emulated;    /* outputs of the design itself */
    double done, total;  /* for the bar */
};

static enum nb_number store_of(const struct run *r) { return r->q.design.store; }

/* A file's rows are cut into tests. */
static int load(struct nb_tolerance_test *t, const struct run *r, int64_t index) {
    const struct nb_tolerance_request *q = &r->q;
    struct nb_design_data data = {.data = q->data,
                                  .rows = r->in_file > 0 ? (index + 1) * q->rows : q->rows,
                                  .cols = q->cols,
                                  .seed = q->seed + (r->in_file > 0 ? 0 : (uint64_t)index),
                                  .affine = q->affine};
    if (nb_design_data_resolve(&data) != 0 || nb_design_rows_init(&t->rows, &q->design, &data) != 0) return -1;
    const int64_t skipped = t->rows.rows - q->rows, n = q->rows * t->rows.cols;
    if (skipped > 0) memmove(t->rows.x, t->rows.x + skipped * t->rows.cols, (size_t)n * sizeof *t->rows.x);
    t->rows.rows = q->rows;
    t->n = n;
    return 0;
}

/* |want - exact| comes on top of what the kernel may be off. */
static void set_reference(struct nb_tolerance_test *t, const struct nb_tolerance_request *q) {
    const enum nb_number store = q->design.store;
    for (int64_t i = 0; i < t->n && q->reference == NB_REFERENCE_ROUNDED; i++) {
        t->allowed[i] += nb_number_ulp(t->want[i], store) / 2;
        t->want[i] = nb_number_round(t->want[i], 0, store, NB_ROUND_NEAREST, 0);
    }
    if (q->reference == NB_REFERENCE_PEER) {
        nb_test_emulate(&q->design, t, t->want);
        for (int64_t i = 0; i < t->n; i++) t->allowed[i] *= 2;
    }
}

static void judge_rows(struct nb_tolerance_test *t) {
    const struct nb_design_rows *r = &t->rows;
    for (int64_t row = 0; row < r->rows; row++) {
        double *y = t->want + row * r->cols;
        nb_exact_row(&t->judge.c, r->x + row * r->cols, r->gamma, r->beta, &t->judge.oracle.truth[row], y, NULL);
        nb_bound_row(&t->judge.bound, row, y, t->allowed + row * r->cols);
    }
}

/* Test number `index`. -1 after nb_error. */
static int test_init(struct nb_tolerance_test *t, const struct run *r, int64_t index) {
    *t = (struct nb_tolerance_test){0};
    if (load(t, r, index) != 0) return -1;
    nb_design_judge_init(&t->judge, &r->q.design, &t->rows, r->t->chain);
    t->want = nb_alloc((unsigned long long)t->n, 2 * sizeof *t->want);
    t->allowed = t->want + t->n;
    judge_rows(t);
    set_reference(t, &r->q);
    return 0;
}

static void test_release(struct nb_tolerance_test *t) {
    nb_design_rows_release(&t->rows);
    nb_design_judge_release(&t->judge);
    free(t->want);
    *t = (struct nb_tolerance_test){0};
}

/* ---- The comparison functions that tests are written with ---- */

/* This program's, and those in common use for outputs of the format: torch.testing.assert_close and numpy.testing.assert_allclose without rtol and
 * atol; numpy.allclose; ggml's test-backend-ops; the atol and rtol of vLLM's layernorm test. */
static void set_criteria(struct nb_tolerance *t, enum nb_number store) {
    const double torch_rtol = store == NB_NUM_F32 ? 1.3e-6 : store == NB_NUM_F16 ? 1e-3 : 1.6e-2;
    const struct nb_criterion all[] = {
        [NB_DERIVED] = {"derived", NB_CRITERION_ALLCLOSE, 0, 0, NAN},
        [NB_CALIBRATED] = {"calibrated", NB_CRITERION_ALLCLOSE, 0, 0, NAN},
        [NB_ULPS] = {"ulp", NB_CRITERION_ULP, NAN, NAN, 0},
        [NB_MEAN_ERROR_TEST] = {"mean error", NB_CRITERION_MEAN_ERROR, NAN, NAN, NAN},
        {"torch assert_close", NB_CRITERION_ALLCLOSE, torch_rtol, 1e-5, NAN},
        {"numpy assert_allclose", NB_CRITERION_ALLCLOSE, 1e-7, 0, NAN},
        {"numpy allclose", NB_CRITERION_ALLCLOSE, 1e-5, 1e-8, NAN},
        {"ggml NMSE 1e-7", NB_CRITERION_NMSE, NAN, NAN, 1e-7},
        {"vLLM 1e-2", NB_CRITERION_ALLCLOSE, 1e-2, 1e-2, NAN},
    };
    t->n_criteria = sizeof all / sizeof all[0];
    memcpy(t->criteria, all, sizeof all);
}

/* Else a loss is predicted, and any value is right. */
static bool is_usable(const struct nb_tolerance_test *t, int64_t i) { return isfinite(t->allowed[i]); }

static bool element_fails(const struct nb_criterion *c, enum nb_number store, double got, double want) {
    const double error = fabs(got - want);
    if (got == want) return false;
    if (c->kind == NB_CRITERION_ULP) return !(error <= c->limit * nb_number_ulp(want, store));
    return !(error <= c->atol + c->rtol * fabs(want));
}

static bool nmse_fails(const struct nb_criterion *c, const struct nb_tolerance_test *t, const double *got) {
    double errors = 0, squares = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (!is_usable(t, i)) continue;
        errors += (got[i] - t->want[i]) * (got[i] - t->want[i]);
        squares += t->want[i] * t->want[i];
    }
    return !(errors <= c->limit * squares);
}

/* Mean over |want| > rms(want) / 4 of each row of (|got| - |want|) / |want|; NaN without such elements. */
static double mean_error(const struct nb_tolerance_test *t, const double *got) {
    const double *want = t->want;
    double sum = 0;
    int64_t n = 0;
    for (int64_t first = 0; first < t->n; first += t->rows.cols) {
        const int64_t end = first + t->rows.cols;
        double squares = 0;
        for (int64_t i = first; i < end; i++) squares += is_usable(t, i) ? want[i] * want[i] : 0;
        const double least = sqrt(squares / (double)t->rows.cols) / 4;
        for (int64_t i = first; i < end; i++) {
            if (!is_usable(t, i) || !(fabs(want[i]) > least)) continue;
            sum += (fabs(got[i]) - fabs(want[i])) / fabs(want[i]);
            n++;
        }
    }
    return n > 0 ? sum / (double)n : NAN;
}

/* True: the test of these outputs fails. */
static bool criterion_alarms(const struct nb_criterion *c, enum nb_number store, const struct nb_tolerance_test *t,
                             const double *got) {
    if (c->kind == NB_CRITERION_MEAN_ERROR) return !isnan(c->limit) && fabs(mean_error(t, got)) > c->limit;
    if (c->kind == NB_CRITERION_ALLCLOSE && isnan(c->rtol)) return false;
    if (c->kind == NB_CRITERION_NMSE) return nmse_fails(c, t, got);
    for (int64_t i = 0; i < t->n; i++)
        if (is_usable(t, i) && element_fails(c, store, got[i], t->want[i])) return true;
    return false;
}

/* ---- Correct kernels: designs that differ in order alone, and the built-in kernels of the same formula. Kernels are called in this
 * process, so that only those of this program are ---- */

/* ---- designs ------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum nb_order order;
    int64_t lanes, leaf;
} orders[] = {
    {"one running sum", NB_ORDER_SEQUENTIAL, 1, 8}, {"4 lanes", NB_ORDER_SEQUENTIAL, 4, 8},
    {"16 lanes", NB_ORDER_SEQUENTIAL, 16, 8},       {"pairwise", NB_ORDER_PAIRWISE, 1, 8},
    {"blocks of 128", NB_ORDER_BLOCKED, 1, 128},    {"compensated", NB_ORDER_KAHAN, 1, 8},
};

static bool same_order(const struct nb_design *a, const struct nb_design *b) {
    return a->order == b->order && a->lanes == b->lanes && a->leaf == b->leaf;
}

/* Where there is room. kernel null: the design is emulated. */
static void add_subject(struct run *r, const struct nb_entry *kernel, const struct nb_design *d, const char *name) {
    if (r->t->n_subjects == NB_MAX_SUBJECTS) return;
    struct nb_subject *s = &r->t->subjects[r->t->n_subjects];
    snprintf(s->name, sizeof s->name, "%s%s", kernel ? "" : "emulated: ", name);
    r->correct[r->t->n_subjects++] = (struct correct){*d, kernel};
}

static void add_designs(struct run *r) {
    const struct nb_design *own = &r->q.design;
    const int64_t n = nb_design_elements(own, r->q.cols);
    if (!r->q.kernel || nb_design_chain(own, n) <= r->t->chain) add_subject(r, NULL, own, "the design itself");
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        struct nb_design d = *own;
        d.order = orders[i].order;
        d.lanes = orders[i].lanes;
        d.leaf = orders[i].leaf;
        if (!same_order(&d, own) && nb_design_chain(&d, n) <= r->t->chain) add_subject(r, NULL, &d, orders[i].name);
    }
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

/* The case of a kernel for the rows of a test; shape and formula as the design has them. */
static void kernel_case(struct nb_case *c, const struct nb_design *d, const struct nb_entry *entry, int64_t rows,
                        int64_t cols, enum nb_affine affine) {
    nb_design_case(c, d, rows, cols, affine);
    snprintf(c->k_text, sizeof c->k_text, "%lld", (long long)c->k);
    nb_case_set_entry(c, entry);
}

/* Has the kernel the arithmetic that the bound was asked for? */
static bool fits(const struct nb_entry *entry, const struct nb_tolerance_request *q, int64_t chain) {
    const struct nb_kernel *k = entry->kernel;
    struct nb_case c;
    struct nb_call call;
    nb_design_case(&c, &q->design, q->rows, q->cols, q->affine);
    if (entry->plugin || k->op != c.op || k->dtype != c.dtype || k->pass != NB_FORWARD) return false;
    if (nb_cpu_refuses(k->cpu_features, k->width) || nb_kernel_refuses(k, &c.formula)) return false;
    if (k->stats_dtype != c.stats_dtype || (k->stats_dtype == NB_STATS_X && k->style != c.style)) return false;
    if (k->op == NB_OP_LAYERNORM && k->variance != c.variance) return false;
    if (((k->flags & NB_FLAG_FOLDED) != 0) != c.folded) return false;
    kernel_case(&c, &q->design, entry, q->rows, q->cols, q->affine);
    nb_case_call(&c, &call);
    return !nb_kernel_applicable(k, &call) && nb_kernel_chain(k, &call) <= chain;
}

/* Those whose chain of roundings is no longer than that of the bound; the request's own kernel, or design, first. */
static void list_correct(struct run *r) {
    if (r->q.kernel) add_subject(r, r->q.kernel, &r->q.design, r->q.kernel->id);
    add_designs(r);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        if (entry != r->q.kernel && fits(entry, &r->q, r->t->chain)) add_subject(r, entry, &r->q.design, entry->id);
    }
}

static int call_kernel(const struct correct *s, const struct nb_tolerance_test *t, double *got, char *reason,
                       size_t size) {
    const int64_t rows = t->rows.rows, cols = t->rows.cols;
    struct nb_trial trial released_by(nb_trial_release) = {0};
    struct nb_case c;
    if (s->kernel->kernel->run == nb_kernel_elsewhere)
        return nb_reason(reason, size, "a plugin is not called in this process");
    kernel_case(&c, &s->design, s->kernel, rows, cols, t->rows.affine);
    int result = nb_trial_init(&trial, &c, s->kernel);
    if (result == 0) {
        nb_trial_set_params(&trial, t->rows.gamma, t->rows.beta);
        nb_trial_set_x(&trial, t->rows.x, NULL);
        result = nb_trial_run(&trial);
    }
    if (result != 0) snprintf(reason, size, "%s", trial.reason ? trial.reason : "it could not be called");
    for (int64_t i = 0; result == 0 && i < t->n; i++) got[i] = nb_trial_y(&trial, i / cols, i % cols);
    return result;
}

/* r->got: the outputs of the test's rows. False: there are none, and the subject's reason says why. */
static bool run_subject(struct run *r, int s, const struct nb_tolerance_test *t) {
    const struct correct *c = &r->correct[s];
    char *reason = r->t->subjects[s].reason;
    if (reason[0]) return false;
    if (c->kernel) return call_kernel(c, t, r->got, reason, sizeof r->t->subjects[s].reason) == 0;
    nb_test_emulate(&c->design, t, r->got);
    return true;
}

static int step(struct run *r, const char *what) {
    nb_progress(++r->done, r->total, 0, what);
    const int signal = nb_interrupted();
    return signal ? 128 + signal : 0;
}

/* ---- how many ------------------------------------------------------------------------------------------------------------ */

static int64_t clamp(double v, int64_t least, int64_t most) {
    return v < (double)least ? least : v > (double)most ? most : (int64_t)v;
}

static int plan(struct run *r) {
    const double elements = (double)r->q.rows * (double)r->q.cols;
    int64_t cols;
    char reason[1024];
    if (nb_source_size(r->q.data, &r->in_file, &cols, reason, sizeof reason) != 0) return nb_error("%s", reason);
    /* Of a distribution as many tests as one likes, of a file what its rows suffice for. */
    const int64_t available = r->in_file > 0 ? r->in_file / r->q.rows : INT64_MAX;
    if (available < 2)
        return nb_error("tolerance: %s has fewer rows than two tests of %lld take; --rows asks for fewer", r->q.data,
                        (long long)r->q.rows);
    int64_t tests = r->q.trials > 0 ? r->q.trials : clamp(0x1.8p20 / elements, 16, 1000);
    if (tests > available / 2) tests = available / 2;
    r->first_tests = tests;
    r->t->bug_trials = clamp(0x1p20 / elements, 8, 200);
    if (r->t->bug_trials > tests) r->t->bug_trials = tests;
    r->total = (double)tests * 3;
    return 0;
}

/* ---- derived ------------------------------------------------------------------------------------------------------------- */

static void add_to_cloud(struct run *r, struct nb_cloud *cloud, const struct nb_tolerance_test *test) {
    for (int64_t i = 0; i < test->n; i++) {
        r->t->n_lost += !is_usable(test, i);
        if (!is_usable(test, i)) continue;
        cloud_add(cloud, test->want[i], test->allowed[i]);
        const double ulps = test->allowed[i] / nb_number_ulp(test->want[i], store_of(r));
        if (ulps > r->t->max_ulp) r->t->max_ulp = ulps;
    }
    r->t->n_elements += test->n;
}

static int derive(struct run *r) {
    struct nb_cloud cloud = {0};
    int result = 0;
    for (int64_t i = 0; i < r->first_tests && result == 0; i++) {
        struct nb_tolerance_test test released_by(test_release);
        if ((result = test_init(&test, r, i)) != 0) break;
        add_to_cloud(r, &cloud, &test);
        result = step(r, "bounds");
    }
    struct nb_criterion *derived = &r->t->criteria[NB_DERIVED];
    r->t->rms = cloud_rms(&cloud);
    if (cloud.largest) cloud_line(&cloud, &derived->rtol, &derived->atol);
    if (result == 0 && r->t->n_lost == r->t->n_elements)
        result = nb_error("tolerance: every row of %s is lost in this arithmetic, so that any output is right; "
                          "`normbench limits` says where it ends",
                          r->q.data);
    free(cloud.largest);
    return result;
}

/* ---- calibrated ---------------------------------------------------------------------------------------------------------- */

/* Largest |error| / derived tolerance of a test; *at: the element. */
static double largest_share(const struct nb_criterion *derived, const struct nb_tolerance_test *test, const double *got,
                            int64_t *at) {
    double worst = 0;
    for (int64_t i = 0; i < test->n; i++) {
        if (!is_usable(test, i) || got[i] == test->want[i]) continue;
        const double share = fabs(got[i] - test->want[i]) / (derived->atol + derived->rtol * fabs(test->want[i]));
        if (share <= worst) continue;
        worst = isnan(share) ? (double)INFINITY : share;
        *at = i;
    }
    return worst;
}

/* The share of the derived tolerance that so many tests of a kernel exceed that no more than `alarm` of all do, at 95 %. Where
 * there are too few tests to say so: the largest seen. */
static double share_for(double *worst, int64_t n, double alarm) {
    nb_sort(worst, (size_t)n);
    int64_t beyond = 0;
    while (beyond + 1 < n && nb_proportion_upper(beyond + 1, n, 0.95) <= alarm) beyond++;
    return worst[n - 1 - beyond];
}

/* The mean error of a test is a sum of many small ones: |mean| and six standard deviations, as measured. */
static double mean_error_limit(const double *errors, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += errors[i] / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (errors[i] - sum) * (errors[i] - sum);
    return fabs(sum) + 6 * sqrt(squares / (double)(n - 1));
}

static int run_correct(struct run *r, int64_t index) {
    struct nb_tolerance_test test released_by(test_release);
    if (test_init(&test, r, index) != 0) return -1;
    for (int s = 0; s < r->t->n_subjects; s++) {
        if (!run_subject(r, s, &test)) continue;
        const int64_t at = (int64_t)s * r->first_tests + index;
        int64_t element;
        r->worst[at] = largest_share(&r->t->criteria[NB_DERIVED], &test, r->got, &element);
        r->mean_errors[at] = mean_error(&test, r->got);
    }
    return step(r, "calibrating");
}

static int calibrate(struct run *r) {
    for (int64_t i = 0; i < r->first_tests; i++) {
        const int result = run_correct(r, i);
        if (result != 0) return result;
    }
    double share = NAN, limit = NAN;
    for (int s = 0; s < r->t->n_subjects && r->first_tests >= NB_FEWEST_TESTS; s++) {
        if (r->t->subjects[s].reason[0] || r->t->subjects[s].under_test) continue;
        const int64_t at = (int64_t)s * r->first_tests;
        const double own = mean_error_limit(r->mean_errors + at, r->first_tests);
        share = fmax(share, share_for(r->worst + at, r->first_tests, r->q.alarm));
        limit = fmax(limit, own);
    }
    const double sure = nb_proportion_upper(0, r->first_tests, 0.95);
    const struct nb_criterion *derived = &r->t->criteria[NB_DERIVED];
    struct nb_criterion *calibrated = &r->t->criteria[NB_CALIBRATED];
    calibrated->rtol = round_up(derived->rtol * share);
    calibrated->atol = round_up(derived->atol * share);
    r->t->criteria[NB_MEAN_ERROR_TEST].limit = round_up(limit);
    r->t->calibrated_share = share;
    r->t->calibrated_alarm = fmax(r->q.alarm, sure);
    return 0;
}

/* ---- rates --------------------------------------------------------------------------------------------------------------- */

static void count(struct nb_rate *rate, bool seen) {
    rate->n++;
    rate->seen += seen;
}

static void finish_rate(struct nb_rate *rate) {
    rate->low = rate->n ? nb_proportion_lower(rate->seen, rate->n, 0.95) : NAN;
    rate->high = rate->n ? nb_proportion_upper(rate->seen, rate->n, 0.95) : NAN;
}

static void count_held_out(struct run *r, const struct nb_tolerance_test *test) {
    const struct nb_criterion *derived = &r->t->criteria[NB_DERIVED];
    for (int64_t i = 0; i < test->n; i++) {
        if (!is_usable(test, i)) continue;
        r->t->n_held_out++;
        r->t->n_uncovered += test->allowed[i] > derived->atol + derived->rtol * fabs(test->want[i]);
    }
}

static void count_alarms(struct run *r, const struct nb_tolerance_test *test, const double *got,
                         struct nb_rate *rates) {
    for (int c = 0; c < r->t->n_criteria; c++)
        count(&rates[c], criterion_alarms(&r->t->criteria[c], store_of(r), test, got));
}

static bool differ(const double *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i]))) return true;
    return false;
}

static void run_bugs(struct run *r, const struct nb_tolerance_test *test) {
    nb_test_emulate(&r->q.design, test, r->emulated);
    nb_test_round(&r->q.design, test, r->other);
    for (size_t b = 0; b < nb_n_bugs && b < NB_MAX_BUGS; b++) {
        struct nb_bug_result *result = &r->t->bugs[b];
        result->name = nb_bugs[b].name;
        result->help = nb_bugs[b].help;
        if (!nb_bug_run(&nb_bugs[b], &r->q.design, test, r->got)) continue;
        count(&result->changed, differ(r->got, nb_bugs[b].change ? r->emulated : r->other, test->n));
        count_alarms(r, test, r->got, result->caught);
    }
}

static void note_worst(const struct run *r, struct nb_subject *subject, const struct nb_tolerance_test *test,
                       int64_t index) {
    int64_t at = 0;
    const double share = largest_share(&r->t->criteria[NB_DERIVED], test, r->got, &at);
    if (share <= subject->worst) return;
    subject->worst = share;
    subject->worst_row = at / test->rows.cols;
    subject->worst_col = at % test->rows.cols;
    subject->worst_seed = r->q.seed + (uint64_t)(r->first_tests + index);
}

static int measure(struct run *r, int64_t index) {
    struct nb_tolerance_test test released_by(test_release);
    if (test_init(&test, r, r->first_tests + index) != 0) return -1;
    count_held_out(r, &test);
    for (int s = 0; s < r->t->n_subjects; s++) {
        if (!run_subject(r, s, &test)) continue;
        note_worst(r, &r->t->subjects[s], &test, index);
        count_alarms(r, &test, r->got, r->t->subjects[s].alarms);
    }
    if (index < r->t->bug_trials) run_bugs(r, &test);
    return step(r, "counting alarms");
}

void nb_tolerance_finish(struct nb_tolerance *t) {
    if (t->bug_trials > t->trials) t->bug_trials = t->trials;
    for (int c = 0; c < t->n_criteria; c++) {
        for (int s = 0; s < t->n_subjects; s++) finish_rate(&t->subjects[s].alarms[c]);
        for (int b = 0; b < t->n_bugs; b++) finish_rate(&t->bugs[b].caught[c]);
    }
    for (int b = 0; b < t->n_bugs; b++) finish_rate(&t->bugs[b].changed);
}

/* ---- all --------------------------------------------------------------------------------------------------------------- */

static void set_chain(struct run *r) {
    const int64_t n = nb_design_elements(&r->q.design, r->q.cols);
    r->t->chain = nb_design_chain(&r->q.design, n);
    if (!r->q.kernel) return;
    struct nb_case c;
    struct nb_call call;
    kernel_case(&c, &r->q.design, r->q.kernel, r->q.rows, r->q.cols, r->q.affine);
    nb_case_call(&c, &call);
    r->t->chain = nb_kernel_chain(r->q.kernel->kernel, &call);
}

static int all_steps(struct run *r) {
    int result;
    if ((result = derive(r)) != 0) return result;
    r->t->criteria[NB_ULPS].limit = round_up(r->t->max_ulp);
    if ((result = calibrate(r)) != 0) return result;
    for (int64_t i = 0; i < r->first_tests && result == 0; i++) {
        result = measure(r, i);
        r->t->trials += result >= 0;
    }
    nb_tolerance_finish(r->t);
    return result;
}

bool nb_tolerance_is_kept(const struct nb_tolerance *t) {
    for (int s = 0; s < t->n_subjects; s++) {
        const struct nb_rate *alarms = t->subjects[s].alarms, *bias = &alarms[NB_MEAN_ERROR_TEST];
        if (alarms[NB_DERIVED].seen > 0 || (t->subjects[s].under_test && 2 * bias->seen > bias->n)) return false;
    }
    return true;
}

int nb_tolerance_run(struct nb_tolerance *t, const struct nb_tolerance_request *request) {
    assert(request->data);
    struct run *r freed = nb_alloc(1, sizeof *r);
    *t = (struct nb_tolerance){0};
    r->t = t;
    r->q = *request;
    if (r->q.rows == 0) r->q.rows = 16;
    if (r->q.affine == NB_N_AFFINES) r->q.affine = nb_usual_affine(r->q.design.op);
    t->rows = r->q.rows;
    t->n_bugs = nb_n_bugs < NB_MAX_BUGS ? (int)nb_n_bugs : NB_MAX_BUGS;
    const char *why = nb_design_unbounded(&r->q.design);
    int result = why ? nb_error("tolerance: %s; `normbench emulate` measures such designs", why) : plan(r);
    if (result == 0) {
        const unsigned long long elements = (unsigned long long)(r->q.rows * r->q.cols);
        set_chain(r);
        set_criteria(t, store_of(r));
        list_correct(r);
        t->subjects[0].under_test = r->q.kernel != NULL;
        r->worst = nb_alloc((unsigned long long)(NB_MAX_SUBJECTS * r->first_tests), sizeof *r->worst);
        r->mean_errors = nb_alloc((unsigned long long)(NB_MAX_SUBJECTS * r->first_tests), sizeof *r->mean_errors);
        r->got = nb_alloc(elements, 3 * sizeof *r->got);
        r->other = r->got + elements;
        r->emulated = r->other + elements;
        result = all_steps(r);
    }
    nb_progress_end();
    nb_free_all(r->worst, r->mean_errors, r->got);
    return result;
}
