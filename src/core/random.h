// SPDX-License-Identifier: Apache-2.0
/* Random numbers by position: value i of a stream is a function of (seed, stream, i) alone, in any order, and the same bits on every
 * machine: integer arithmetic and IEEE double operations only, no function of the C library.
 *
 * splitmix64 (Steele, Lea & Flood 2014): the output mix of start + i * 0x9e3779b97f4a7c15. All streams are stretches of one
 * sequence of period 2^64, begun at places that the seed scatters: two streams of 2^32 values overlap with a chance of about
 * 2^-31. */
#pragma once

#include <stdint.h>

struct nb_random {
    uint64_t start;
};
struct nb_random nb_random_stream(uint64_t seed, uint64_t stream);

static inline uint64_t nb_random_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline uint64_t nb_random_bits(struct nb_random r, uint64_t i) {
    return nb_random_mix(r.start + (i + 1) * 0x9e3779b97f4a7c15u);
}
/* The next of a sequence, where only the order matters (shuffles, distances in memory). */
static inline uint64_t nb_random_next(uint64_t *state) { return nb_random_mix(*state += 0x9e3779b97f4a7c15u); }
/* In (0, 1), symmetric about 1/2, a multiple of 2^-53. */
static inline double nb_random_open(struct nb_random r, uint64_t i) {
    return ((double)(nb_random_bits(r, i) >> 12) + 0.5) * 0x1p-52;
}

/* The quantile of the standard normal distribution, for p in (0, 1): Wichura's algorithm AS 241 (1988), relative error below
 * 1e-14 here. */
double nb_normal_quantile(double p);
/* Standard normal, |value| below 8.3. */
static inline double nb_random_normal(struct nb_random r, uint64_t i) {
    return nb_normal_quantile(nb_random_open(r, i));
}
/* exp of an ordinary number, relative error below 1e-14, the same bits everywhere. */
double nb_portable_exp(double x);
