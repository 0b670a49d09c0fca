// SPDX-License-Identifier: Apache-2.0
/* Does gamma multiply, or 1 + gamma? With gamma 0 the one gives a row of zeros. */
#include <math.h>

#include "src/lab/probe/probe_box.h"

void nb_probe_params(struct nb_probe *p) {
    struct nb_box b;
    double largest = 0;
    p->unit = 1;
    if (!p->has_gamma) {
        nb_probe_say(p, "weight_offset", NULL, NULL, "no gamma is passed with this formula");
        return;
    }
    p->unit = 0; /* the box then lays zeros there */
    if (nb_box_init(&b, p, 1, 64, 1e-5) == 0) {
        for (int64_t i = 0; i < 64; i++) nb_box_set(&b, 0, i, i % 2 ? -1 - (double)(i % 4) / 4 : 1.5);
        nb_box_run(&b);
        for (int64_t i = 0; i < 64 && !b.broken; i++) largest = fmax(largest, fabs(nb_box_y(&b, 0, i)));
    }
    const bool offset = largest > 0;
    p->unit = offset ? 0 : 1;
    if (!p->failure)
        nb_probe_say(p, "weight_offset", offset ? "1" : "0", "certain", "with gamma = 0 the largest |y| is %.4g",
                     largest);
    nb_box_release(&b);
}
