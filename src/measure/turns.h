// SPDX-License-Identifier: Apache-2.0
/* Orders in which each of several things follows each other one equally often. */
#ifndef NB_TURNS_H
#define NB_TURNS_H

/* Writes a permutation of 0 .. n - 1 for the round. Over n rounds (2 n where n is odd and above 1) each stands at each place equally
 * often, and each pair of neighbours comes in both orders equally often (Williams 1949, Experimental designs balanced for the
 * estimation of residual effects of treatments). */
void nb_turns(int *order, int n, int round);

#endif
