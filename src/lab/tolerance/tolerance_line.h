// SPDX-License-Identifier: Apache-2.0
/* The line atol + rtol |y| above a cloud of points (|y|, allowed error) that is lowest at a given |y|. */
#ifndef NB_TOLERANCE_LINE_H
#define NB_TOLERANCE_LINE_H

#include <stdint.h>

/* Points in bins of |y|, 256 to the octave; each bin keeps its largest error and counts it at its smallest |y|. */
struct nb_cloud {
    double *largest;
    double sum_squares;
    int64_t n;
};
void nb_cloud_init(struct nb_cloud *c);
void nb_cloud_add(struct nb_cloud *c, double y, double error);
double nb_cloud_rms(const struct nb_cloud *c);
/* Not negative; both rounded up to three digits. */
void nb_cloud_line(const struct nb_cloud *c, double *rtol, double *atol);
void nb_cloud_release(struct nb_cloud *c);

/* v rounded up to three significant decimal digits. */
double nb_round_up(double v);

#endif
