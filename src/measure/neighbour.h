// SPDX-License-Identifier: Apache-2.0
/* What the probe of the core (src/measure/core_state.h) sees here, and how sensitive it is: with a neighbour of our own on the CPU's sibling. */
#pragma once

struct nb_neighbour {
    int cpu, sibling;  /* the first allowed CPU; one that shares its core, -1: the system shows none that is allowed */
    double now, floor; /* cycles: median of some 10 ms; of earlier runs, NaN: not known */
    double beside;     /* beside a thread that fills the sibling; NaN: there is none */
};
/* Takes some 20 ms. */
void nb_neighbour_measure(struct nb_neighbour *n);
