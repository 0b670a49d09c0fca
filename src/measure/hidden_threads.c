// SPDX-License-Identifier: Apache-2.0
#include "src/measure/hidden_threads.h"

#include <math.h>

static const double least_s = 20e-6 /* the two clocks are not read at once */, least_share = 0.01;
static bool is_helped(const struct nb_cpu_times *from, const struct nb_cpu_times *to) {
    return to->others_s - from->others_s > fmax(least_s, least_share * (to->pool_s - from->pool_s));
}

struct nb_hidden_threads nb_hidden_threads_begin(struct nb_cpu_times now) {
    return (struct nb_hidden_threads){.first = now, .last = now};
}
void nb_hidden_threads_block(struct nb_hidden_threads *hidden, struct nb_cpu_times now) {
    hidden->blocks += is_helped(&hidden->last, &now);
    hidden->last = now;
}
bool nb_hidden_threads_found(const struct nb_hidden_threads *hidden, int blocks) {
    const int least = blocks < 3 ? blocks : 3;
    return hidden->blocks >= least && 4 * hidden->blocks > blocks && is_helped(&hidden->first, &hidden->last);
}
