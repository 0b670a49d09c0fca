// SPDX-License-Identifier: Apache-2.0
/* From losses to the order of a sum: which of the known orders explain them all? */
#include <math.h>

#include "src/lab/probe/probe_sum.h"

int64_t nb_sum_zero(int64_t n, int64_t j) { return j == n - 1 ? n - 2 : n - 1; }

/* Ones in columns from `first` in steps of the lanes, up to `last`. */
static int64_t count_ones(int64_t first, int64_t last, int64_t lanes, int64_t zero) {
    if (first > last) return 0;
    const int64_t n = (last - first) / lanes + 1;
    return zero >= first && zero <= last && (zero - first) % lanes == 0 ? n - 1 : n;
}

/* c ones before 2^24 make 2^24 + c, rounded to an even number of which the half is even when it is a tie; of the ones behind it the
 * first is a tie too, which goes up where that half is odd. */
int64_t nb_structure_loss(const struct nb_structure *s, int64_t n, int64_t j) {
    const int64_t zero = nb_sum_zero(n, j), start = j / s->block * s->block, end = start + s->block;
    const int64_t last = (end < n ? end : n) - 1, first = start + (j - start) % s->lanes;
    const int64_t before = count_ones(first, j - 1, s->lanes, zero);
    const int64_t behind = count_ones(j + s->lanes, last, s->lanes, zero);
    int64_t kept = before / 2;
    if (before % 2 && kept % 2) kept++; /* tie */
    if (behind > 0 && kept % 2) kept++;
    return before + behind - 2 * kept;
}

static bool fits(const struct nb_structure *s, const struct nb_losses *losses) {
    for (int i = 0; i < losses->n_positions; i++) {
        const double expected = (double)nb_structure_loss(s, losses->n, losses->at[i]);
        const double tolerance = losses->tolerance + losses->relative * fabs(expected);
        if (!(fabs(expected - losses->loss[i]) <= tolerance)) return false;
    }
    return losses->n_positions > 0;
}

int nb_structure_search(const struct nb_losses *losses, struct nb_structure *found) {
    int n = 0;
    for (int64_t block = losses->n; block >= 2; block /= 2)
        for (int64_t odd = 1; odd <= 7; odd += 2)
            for (int64_t lanes = odd; lanes <= 1024 && lanes < block; lanes *= 2) {
                const struct nb_structure s = {.block = block, .lanes = lanes};
                if (fits(&s, losses) && n++ == 0) *found = s;
            }
    return n;
}

static int weigh(struct nb_losses *losses, double loss, int64_t at) {
    losses->at[losses->n_positions] = at;
    losses->loss[losses->n_positions++] = loss;
    return isnan(loss) ? -1 : 0;
}

int nb_structure_find(struct nb_losses *losses, double (*loss)(struct nb_box *b, int64_t j, void *arg),
                      struct nb_box *b, void *arg, struct nb_structure *found) {
    const int64_t n = losses->n, first[] = {0, 1, 3, 5, 6, n / 2 - 1, n / 2, n - 70};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        if (weigh(losses, loss(b, first[i], arg), first[i]) != 0) return -1;
    if (nb_structure_search(losses, found) == 0) return 0;
    /* About the boundaries of what fits so far. */
    const int64_t q = found->lanes, then[] = {q - 1, q, 2 * q + 1, 17 * q, found->block - 1, found->block, 333, 4097};
    for (size_t i = 0; i < sizeof then / sizeof then[0]; i++)
        if (then[i] > 1 && then[i] < n - 2 && weigh(losses, loss(b, then[i], arg), then[i]) != 0) return -1;
    return nb_structure_search(losses, found);
}

void nb_losses_print(const struct nb_losses *losses, struct nb_strbuf *out) {
    nb_strbuf_add(out, "of ones, lost beside 2^24:");
    for (int i = 0; i < losses->n_positions && i < 5; i++)
        nb_strbuf_addf(out, "%s %.0f at column %lld", i ? "," : "", losses->loss[i], (long long)losses->at[i]);
    nb_strbuf_addf(out, " of %lld", (long long)losses->n);
}
