// SPDX-License-Identifier: Apache-2.0
/* Subnormals, NaN and Inf. Subnormal inputs, squares and outputs are each met alone: the rest of a row keeps all else normal. */
#include <math.h>

#include "src/lab/probe/probe_box.h"

enum { COLS = 64 };

static const char *kept_or_flushed(bool kept, bool flushed) { return kept ? "kept" : flushed ? "flushed" : NULL; }

/* x of half the smallest normal number, and a rstd of 2^8 by eps. */
static void ask_inputs(struct nb_probe *p) {
    struct nb_box b;
    const double x = p->format->min_normal / 2;
    double eps = p->eps_place == NB_EPS_INSIDE ? 0x1p-16 : 0x1p-8;
    if (p->eps_place < 0) eps = 0x1p-16;
    if (nb_box_init(&b, p, 1, COLS, eps) == 0) {
        nb_box_set(&b, 0, 3, x);
        nb_box_set(&b, 0, 4, -x);
        if (nb_box_run(&b) == 0) {
            const double y = nb_box_y(&b, 0, 3);
            nb_probe_say(p, "subnormal_inputs", kept_or_flushed(y > x * 16 && isfinite(y), y == 0), "certain",
                         "x = %.3g gives %.3g, which is normal when x counts", x, y);
        }
    }
    nb_box_release(&b);
}

/* x normal, rstd 2^-6: an output of half the smallest normal number or less. */
static void ask_outputs(struct nb_probe *p) {
    struct nb_box b;
    const double x = p->format->min_normal * 4, large = 64 * 8;
    if (nb_box_init(&b, p, 1, COLS, 0) == 0) {
        nb_box_set(&b, 0, 0, large); /* v = 2 * 2^18 / 64, or 2^19 */
        nb_box_set(&b, 0, 1, -large);
        nb_box_set(&b, 0, 3, x);
        if (nb_box_run(&b) == 0) {
            const double rstd = nb_box_y(&b, 0, 0) / large, y = nb_box_y(&b, 0, 3);
            const bool kept = fabs(y - x * rstd) < 0.1 * x * rstd;
            const bool told = x * rstd < p->format->min_normal && x * rstd > 16 * p->format->min_subnormal;
            nb_probe_say(p, "subnormal_outputs", told ? kept_or_flushed(kept, y == 0) : NULL, "certain",
                         "%.3g times rstd %.3g gives %.3g", x, rstd, y);
        }
    }
    nb_box_release(&b);
}

/* x^2 = 2^-128 beside eps = 2^-126, both f32: v + eps is 1.25 eps, or eps. */
static void ask_squares(struct nb_probe *p) {
    struct nb_box b;
    const double x = p->of_sum ? 0x1p-67 : 0x1p-64;
    if (p->c.dtype == NB_F16 || p->eps_place != NB_EPS_INSIDE || !p->eps_plain || p->eps_on_sum) {
        nb_probe_say(p, "subnormal_squares", NULL, NULL, "%s",
                     p->c.dtype == NB_F16 ? "squares of f16 numbers are normal in f32"
                                          : "it is told where eps stands inside the root");
        return;
    }
    if (nb_box_init(&b, p, 1, COLS, 0x1p-126) == 0) {
        for (int64_t i = 0; i < COLS; i++) nb_box_set(&b, 0, i, i % 2 ? -x : x);
        if (nb_box_run(&b) == 0) {
            const double gain = nb_box_y(&b, 0, 0) / x * 0x1p-63;
            nb_probe_say(p, "subnormal_squares", kept_or_flushed(fabs(gain - sqrt(0.8)) < 0.02, fabs(gain - 1) < 0.02),
                         "certain", "v = 2^-128 beside eps = 2^-126: rstd is 2^63 times %.4g (0.894 when v counts)",
                         gain);
        }
    }
    nb_box_release(&b);
}

/* One column is NaN or Inf: what do it and the others become? */
static void ask_special(struct nb_probe *p, const char *question, double special) {
    struct nb_box b;
    int64_t nan = 0, zero = 0;
    const char *value = "hidden from the others";
    if (nb_box_init(&b, p, 1, COLS, 1e-5) == 0) {
        for (int64_t i = 0; i < COLS; i++) nb_box_set(&b, 0, i, i % 2 ? -1.25 : 1);
        nb_box_set(&b, 0, 7, special);
        if (nb_box_run(&b) == 0) {
            const double own = nb_box_y(&b, 0, 7);
            for (int64_t i = 0; i < COLS; i++) {
                nan += i != 7 && isnan(nb_box_y(&b, 0, i));
                zero += i != 7 && nb_box_y(&b, 0, i) == 0;
            }
            if (nan == COLS - 1 && isnan(own)) value = "the whole row is NaN";
            if (zero == COLS - 1) value = isnan(own) ? "the others are 0, itself NaN" : "the others are 0";
            nb_probe_say(p, question, value, "certain", "it gives %g; of %d others %lld are NaN and %lld are 0", own,
                         COLS - 1, (long long)nan, (long long)zero);
        }
    }
    nb_box_release(&b);
}

void nb_probe_special(struct nb_probe *p) {
    ask_inputs(p);
    if (!p->failure) ask_outputs(p);
    if (!p->failure) ask_squares(p);
    if (!p->failure) ask_special(p, "nan", NAN);
    if (!p->failure) ask_special(p, "inf", INFINITY);
}
