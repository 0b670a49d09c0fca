// SPDX-License-Identifier: Apache-2.0
#include "src/measure/hidden_threads.h"

#include <math.h>

/* A moment's work that goes on beside the pool's reaches into half of the parts at most, up to 20 ms of it. Help in fewer than half of a
 * launch leaves the medians over its blocks where they are. */
enum { FEWEST_PARTS = 8 };
static const double part_s = 16e-3 /* of one thread, and of another that spins beside it 8 ms: two ticks of 4 */;

static const double least_s = 20e-6 /* the two clocks are not read at once */, least_share = 0.01;
static bool is_helped(const struct nb_cpu_times *from, const struct nb_cpu_times *to) {
    return to->others_s - from->others_s > fmax(least_s, least_share * (to->pool_s - from->pool_s));
}

struct nb_hidden_threads nb_hidden_threads_begin(struct nb_cpu_times now, int n_threads) {
    return (struct nb_hidden_threads){.first = now, .part = now, .last = now, .part_s = part_s * n_threads};
}
void nb_hidden_threads_round(struct nb_hidden_threads *hidden, struct nb_cpu_times now) {
    const struct nb_cpu_times *from = &hidden->part;
    hidden->last = now;
    if (now.pool_s - from->pool_s + now.others_s - from->others_s < hidden->part_s) return;
    hidden->parts++;
    hidden->helped += is_helped(from, &now);
    hidden->part = now;
}
bool nb_hidden_threads_undecided(const struct nb_hidden_threads *hidden) {
    return hidden->parts < FEWEST_PARTS && is_helped(&hidden->first, &hidden->last);
}
bool nb_hidden_threads_found(const struct nb_hidden_threads *hidden) {
    return hidden->parts >= FEWEST_PARTS && 2 * hidden->helped > hidden->parts;
}
