// SPDX-License-Identifier: Apache-2.0
/* All seeds, all rows; the worst counts. */
#include "src/lab/stress/frontier_probe.h"

#include <math.h>
#include <stdlib.h>

#include "src/accuracy/truth.h"
#include "src/core/log.h"

struct nb_answer {
    enum nb_family family;
    double parameter;
    struct nb_seen seen;
};

/* What the closed forms need to know of the draws. */
static void take_facts(struct nb_prober *p) {
    const int64_t rows = p->t->in.rows, cols = p->t->in.cols, seen = nb_truth_elements(&p->t->c);
    const bool adds = p->t->in.residual != NULL;
    p->facts = (struct nb_draw_facts){.n = seen, .least_square = INFINITY};
    for (int s = 0; s < p->n_seeds; s++)
        for (int64_t r = 0; r < rows; r++) {
            const double *z = p->draws[s].z + r * cols, *other = adds ? p->draws[s].z_other + r * cols : NULL;
            double squares = 0;
            for (int64_t i = 0; i < seen; i++) {
                const double v = z[i] + (other ? other[i] : 0);
                squares += v * v;
                p->facts.max_abs = fmax(p->facts.max_abs, fabs(v));
            }
            p->facts.mean_square = fmax(p->facts.mean_square, squares / (double)seen);
            p->facts.least_square = fmin(p->facts.least_square, squares / (double)seen);
        }
}

int nb_prober_init(struct nb_prober *p, struct nb_trial *t, int n_seeds) {
    const char *refused = nb_row_score_refuses(&t->c);
    *p = (struct nb_prober){.t = t, .n_seeds = n_seeds > 0 ? n_seeds : 1};
    if (refused) {
        t->reason = refused;
        return -1;
    }
    p->draws = nb_alloc((unsigned)p->n_seeds, sizeof *p->draws);
    for (int s = 0; s < p->n_seeds; s++) nb_draws_init(&p->draws[s], t, t->c.seed + (unsigned)s);
    p->scores = nb_alloc((unsigned long long)t->in.rows, sizeof *p->scores);
    take_facts(p);
    return 0;
}

void nb_prober_release(struct nb_prober *p) {
    for (int s = 0; p->draws && s < p->n_seeds; s++) nb_draws_release(&p->draws[s]);
    free(p->draws);
    free(p->scores);
    free(p->answers);
    *p = (struct nb_prober){0};
}

static void set_witness(struct nb_seen *seen, uint64_t seed, int64_t row, int64_t col, double got, double want) {
    seen->seed = seed;
    seen->row = row;
    seen->col = col;
    seen->got = got;
    seen->want = want;
}

static void add_row(struct nb_seen *seen, uint64_t seed, int64_t row, const struct nb_row_score *s) {
    const struct nb_row_worst *ulp = &s->worst[NB_BY_SCALED];
    const bool first_strange = seen->nan + seen->inf + seen->zero == 0 && !nb_row_is_ordinary(s);
    const bool nothing_strange = seen->nan + seen->inf + seen->zero == 0;
    if (first_strange)
        set_witness(seen, seed, row, s->strange_col, s->strange_got, s->strange_want);
    else if (nothing_strange && ulp->col >= 0 && !(ulp->value <= seen->max_ulp))
        set_witness(seen, seed, row, ulp->col, ulp->got, ulp->want);
    seen->nan += s->n_nan;
    seen->inf += s->n_inf;
    seen->zero += s->n_zero;
    seen->accurate = fmax(seen->accurate, s->accurate);
    seen->relative = fmax(seen->relative, s->relative);
    if (ulp->col >= 0) seen->max_ulp = fmax(seen->max_ulp, ulp->value);
}

static int ask(struct nb_prober *p, enum nb_family family, double parameter, struct nb_seen *seen) {
    *seen = (struct nb_seen){.row = -1, .col = -1, .max_ulp = -1};
    for (int s = 0; s < p->n_seeds; s++) {
        nb_trial_load(p->t, &p->draws[s], family, parameter);
        if (nb_trial_run(p->t) != 0 || nb_row_score(p->t, p->scores) != 0) return -1;
        for (int64_t r = 0; r < p->t->in.rows; r++) add_row(seen, p->draws[s].seed, r, &p->scores[r]);
    }
    return 0;
}

int nb_prober_look(struct nb_prober *p, enum nb_family family, double parameter, struct nb_seen *seen) {
    for (int i = 0; i < p->n_answers; i++)
        if (p->answers[i].family == family && p->answers[i].parameter == parameter) {
            *seen = p->answers[i].seen;
            return 0;
        }
    if (ask(p, family, parameter, seen) != 0) return -1;
    if (p->n_answers == p->room) {
        p->room = p->room ? 2 * p->room : 256;
        p->answers = nb_realloc(p->answers, (unsigned)p->room, sizeof *p->answers);
    }
    p->answers[p->n_answers++] = (struct nb_answer){family, parameter, *seen};
    return 0;
}

bool nb_seen_is_right(const struct nb_seen *seen, enum nb_demand demand, enum nb_dtype dtype) {
    if (seen->nan + seen->inf + seen->zero > 0) return false;
    return seen->accurate <= 1 || seen->relative <= nb_demand_relative(demand, dtype);
}

int nb_prober_right(struct nb_prober *p, enum nb_family family, double parameter, enum nb_demand demand) {
    struct nb_seen seen;
    if (nb_prober_look(p, family, parameter, &seen) != 0) return -1;
    return nb_seen_is_right(&seen, demand, p->t->in.dtype) ? 1 : 0;
}
