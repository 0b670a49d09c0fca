// SPDX-License-Identifier: Apache-2.0
/* The parts of a probe that are files of their own, in the order in which probe.c asks them. */
#pragma once

#include "src/lab/probe/probe_state.h"

void nb_probe_eps(struct nb_probe *p);      /* place, value, dtype; the statistics' dtype */
void nb_probe_variance(struct nb_probe *p); /* the format of sums of squares; the variance of a LayerNorm */
void nb_probe_root(struct nb_probe *p);     /* form, instruction, rounding of the output */
