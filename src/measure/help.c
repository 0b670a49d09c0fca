// SPDX-License-Identifier: Apache-2.0
#include "src/measure/help.h"

#include <math.h>

static const double least_s = 20e-6 /* the two clocks are not read at once */, least_share = 0.01;
static bool is_helped(const struct nb_cpu_times *from, const struct nb_cpu_times *to) {
    return to->others_s - from->others_s > fmax(least_s, least_share * (to->pool_s - from->pool_s));
}

struct nb_help nb_help_begin(struct nb_cpu_times now) {
    return (struct nb_help){.first = now, .last = now};
}
void nb_help_block(struct nb_help *help, struct nb_cpu_times now) {
    help->blocks += is_helped(&help->last, &now);
    help->last = now;
}
bool nb_help_found(const struct nb_help *help, int blocks) {
    const int least = blocks < 3 ? blocks : 3;
    return help->blocks >= least && 4 * help->blocks > blocks && is_helped(&help->first, &help->last);
}
