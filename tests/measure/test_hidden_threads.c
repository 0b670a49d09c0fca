// SPDX-License-Identifier: Apache-2.0
/* Threads that help a kernel while it is timed, told from those that do not, by CPU times that are made up as a kernel of 250 Hz has them: the
 * pool's exact, another thread's as of its CPU's last tick while it runs, exact while it sleeps. */
#include "src/measure/pool.h"

#include <criterion/criterion.h>
#include <math.h>

static const double tick_s = 4e-3;

/* What each of n threads beside the pool's does, in seconds since the launch began. */
struct others {
    const char *what;
    int n;
    double begin_s, end_s; /* it runs all this time */
    double every_s, for_s; /* and wakes so often for so long, all along; 0: never */
    double interrupt_s;    /* between two readings of clocks, once: of the pool's time, taken for others' */
    bool guilty;
};

struct launch {
    int blocks, threads;
    double block_s, phase_s; /* of the ticks */
};

static double seen_s(const struct others *o, double t_s, double phase_s) {
    const double tick = floor((t_s + phase_s) / tick_s) * tick_s - phase_s;
    const double running = t_s < o->end_s ? fmax(tick - o->begin_s, 0) : o->end_s - o->begin_s;
    return o->n * (running + (o->every_s > 0 ? floor(t_s / o->every_s) * o->for_s : 0));
}

static struct nb_cpu_times read_at(const struct others *o, const struct launch *l, int round) {
    const double t_s = round * l->block_s, interrupt_s = round == 3 ? o->interrupt_s : 0;
    return (struct nb_cpu_times){.pool_s = 1 + l->threads * t_s,
                                 .others_s = 5 + seen_s(o, t_s, l->phase_s) + interrupt_s};
}

static bool found(const struct others *o, const struct launch *l) {
    struct nb_hidden_threads hidden = nb_hidden_threads_begin(read_at(o, l, 0), l->threads);
    int round = 0;
    while (round < l->blocks || nb_hidden_threads_undecided(&hidden))
        nb_hidden_threads_round(&hidden, read_at(o, l, ++round));
    return nb_hidden_threads_found(&hidden);
}

/* Each tick's place, launches from 4 ms to 2 s, blocks from 60 us on, one thread of the pool's and more. */
static void expect(const struct others *o) {
    static const struct launch launches[] = {{70, 1, 60e-6, 0},  {20, 1, 0.2e-3, 0}, {20, 1, 2e-3, 0},
                                             {20, 2, 0.2e-3, 0}, {40, 2, 1e-3, 0},   {4, 1, 1.1e-3, 0},
                                             {20, 1, 0.1, 0},    {1, 1, 0.05, 0},    {20, 8, 0.4e-3, 0}};
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++)
        for (int phase = 0; phase < 16; phase++) {
            struct launch l = launches[i];
            l.phase_s = (phase + 0.5) / 16 * tick_s;
            cr_expect_eq(found(o, &l), o->guilty, "%s: %d blocks of %g ms, %d threads, tick at %g ms", o->what,
                         l.blocks, 1e3 * l.block_s, l.threads, 1e3 * (tick_s - l.phase_s));
        }
}

Test(hidden_threads, who_works_on_is_found_and_who_works_for_a_moment_is_not) {
    static const struct others all[] = {
        {"spins", .n = 1, .begin_s = 0, .end_s = INFINITY, .guilty = true},
        {"two spin", .n = 2, .begin_s = 0, .end_s = INFINITY, .guilty = true},
        {"has spun for long", .n = 1, .begin_s = -1, .end_s = INFINITY, .guilty = true},
        {"helps and sleeps", .n = 1, .every_s = 0.5e-3, .for_s = 0.1e-3, .guilty = true},
        {"two help now and then", .n = 2, .every_s = 2e-3, .for_s = 0.2e-3, .guilty = true},
        {"none", .n = 0},
        {"sleeps", .n = 1},
        {"for a moment", .n = 1, .begin_s = 1e-3, .end_s = 4e-3},
        {"two for a moment", .n = 2, .begin_s = 1e-3, .end_s = 9e-3},
        {"for a while", .n = 1, .begin_s = 0.3e-3, .end_s = 20e-3},
        {"wakes now and then", .n = 1, .every_s = 10e-3, .for_s = 50e-6},
        {"an interrupt", .n = 1, .interrupt_s = 300e-6},
        {"an interrupt, and one wakes", .n = 1, .interrupt_s = 3e-3, .every_s = 100e-3, .for_s = 0.5e-3}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) expect(&all[i]);
}

Test(hidden_threads, a_launch_shorter_than_a_tick_tells_where_one_fell_into_it) {
    static const struct others spins = {.n = 1, .end_s = INFINITY};
    int n_found = 0;
    for (int phase = 0; phase < 16; phase++)
        n_found += found(&spins, &(struct launch){10, 1, 0.2e-3, (phase + 0.5) / 16 * tick_s});
    cr_expect_eq(n_found, 8, "2 ms of 4");
}
