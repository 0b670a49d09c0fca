// SPDX-License-Identifier: Apache-2.0
/* Which state of the core a sample is in, from probes alone; what an uncontended core's probe takes; and of which state figures are. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/measure/core_state.h"
#include "src/measure/paired.h"
#include "src/measure/timing.h"
#include "src/plan/inputs.h"
#include "tests/support/files.h"

/* ---- floors ---- */

/* n probes in a row. */
static void take(struct nb_floors *f, double cycles, int n) {
    double *probes freed = nb_alloc((size_t)n, sizeof *probes);
    for (int i = 0; i < n; i++) probes[i] = cycles;
    nb_floors_take(f, 0, 1, probes, (size_t)n);
}

Test(core_state, the_floor_is_that_of_the_lowest_crowd) {
    struct nb_floors f = {0};
    cr_expect(isnan(nb_floors_get(&f, 0, 1)));
    take(&f, 2000, 960);
    take(&f, 1005, 30); /* an uncontended core, met seldom */
    cr_expect_float_eq(nb_floors_get(&f, 0, 1), 1005, 5);
    cr_expect(isnan(nb_floors_get(&f, 1, 1)) && isnan(nb_floors_get(&f, 0, 2)), "another CPU, and two threads");
    take(&f, NAN, 1);
    take(&f, 0, 1);
    nb_floors_release(&f);
    take(&f, 2000, 990);
    take(&f, 1000, 5);
    cr_expect_float_eq(nb_floors_get(&f, 0, 1), 2000, 10, "fewer than a hundredth of all is no crowd");
    nb_floors_release(&f);
}

/* Where switches fall into one probe in ten, several of a hundred lie within 4 % of each other, but none beside another. */
Test(core_state, scattered_nonsense_is_no_floor) {
    enum { N = 2000 };
    static double probes[N];
    struct nb_floors f = {0};
    for (int i = 0; i < N; i++) probes[i] = i % 10 == 5 ? 1000 + i % 97 : i % 3 ? 2900 : 4100 + i % 50;
    nb_floors_take(&f, 0, 1, probes, N);
    cr_expect_float_eq(nb_floors_get(&f, 0, 1), 2900, 15);
    nb_floors_release(&f);
    for (int i = 0; i < N; i++) probes[i] = i % 2 ? 1000 : 3000;
    nb_floors_take(&f, 0, 1, probes, N);
    cr_expect(isnan(nb_floors_get(&f, 0, 1)), "no two agree");
    cJSON *json released_by(nb_json_release) = nb_floors_to_json(&f);
    cr_expect_eq(cJSON_GetArraySize(json), 0);
    nb_floors_release(&f);
}

/* What is kept when a run of n such probes begins is `before`, and the run goes by no more. */
static void run_keeps(double before, double cycles, int n, const char *why) {
    struct nb_floors f released_by(nb_floors_release) = {0};
    nb_floors_load(&f);
    cr_expect_float_eq(nb_floors_get(&f, 0, 1), before, 10, "%s", why);
    take(&f, cycles, n);
    cr_expect_leq(nb_floors_get(&f, 0, 1), before + 10, "beside what is kept: %s", why);
    nb_floors_keep(&f);
}

/* The highest of this run and of those before; of each CPU its own. */
Test(core_state, the_clock_is_kept_with_the_floor) {
    char *dir = new_folder(), *path freed = nb_path_join(dir, "tuning.json");
    static const double ghz[] = {2.5, 3, 2};
    cJSON *elsewhere released_by(nb_json_release) = cJSON_Parse("{\"noise\":{\"cpu\":1,\"threads\":1}}");
    struct nb_floors f = {0};
    setenv("NORMBENCH_TUNING", path, 1);
    for (int run = 0; run < 3; run++) {
        char *text freed = nb_textf("{\"noise\":{\"cpu\":0,\"threads\":1},\"core\":{\"clock_ghz\":%g}}", ghz[run]);
        cJSON *line released_by(nb_json_release) = cJSON_Parse(text);
        nb_floors_load(&f);
        take(&f, 1000, 1000);
        nb_floors_take_line(&f, line);
        cr_expect_float_eq(nb_floors_clock_of_line(&f, line), run == 0 ? 2.5 : 3, 1e-9, "run %d", run);
        cr_expect_eq(nb_floors_clock_of_line(&f, elsewhere), 0);
        nb_floors_keep(&f);
        nb_floors_release(&f);
    }
}

/* A run that met no uncontended core goes by an earlier one's; one that finds a lower floor keeps it. */
Test(core_state, the_floor_is_kept_beside_the_tuning) {
    char *dir = new_folder(), *path freed = nb_path_join(dir, "tuning.json"),
         *kept freed = nb_path_join(dir, "tuning.json.probe");
    struct nb_floors f = {0};
    setenv("NORMBENCH_TUNING", path, 1);
    take(&f, 1000, 999);
    nb_floors_keep(&f);
    cr_expect(!nb_path_exists(kept), "too few probes");
    take(&f, 1000, 1);
    nb_floors_keep(&f);
    nb_floors_release(&f);
    run_keeps(1000, 1900, 2000, "enough probes");
    run_keeps(1000, 900, 2000, "the run before was never alone");
    for (int run = 1; run <= NB_FLOOR_UNMET; run++) run_keeps(900, 1900, 2000, "the lower floor, met by no later run");
    run_keeps(1900, 1900, 2000, "what no run meets any more is no floor");
    setenv("NORMBENCH_TUNING", "none", 1);
    nb_floors_load(&f);
    cr_expect_eq(f.n, 0);
}

/* ---- states ---- */

Test(core_state, a_probe_tells) {
    cr_expect(!nb_is_contended(1099, 1000) && nb_is_contended(1101, 1000));
    cr_expect(!nb_is_contended(931, 1000) && nb_is_contended(929, 1000), "too fast is nonsense");
    cr_expect(!nb_is_contended(NAN, 1000) && !nb_is_contended(1000, NAN) && !nb_is_contended(1000, 0));
}

static enum nb_state state_of(size_t uncontended, size_t contended, size_t all) {
    return nb_state_of_figure((const size_t[]){uncontended, contended, all}, 6);
}
Test(core_state, a_figure_is_of_the_uncontended_core_where_enough_launches_met_it) {
    cr_expect_eq(state_of(6, 40, 40), NB_UNCONTENDED);
    cr_expect_eq(state_of(5, 40, 40), NB_CONTENDED);
    cr_expect_eq(state_of(5, 2, 7), NB_ANY_STATE, "there is an interval of both together alone");
    cr_expect_eq(state_of(3, 1, 4), NB_UNCONTENDED, "three quarters of few");
    cr_expect_eq(state_of(2, 3, 4), NB_CONTENDED);
    cr_expect_eq(state_of(2, 2, 4), NB_ANY_STATE);
    cr_expect_eq(state_of(0, 0, 8), NB_ANY_STATE, "nothing was probed");
    cr_expect_eq(state_of(0, 0, 0), NB_ANY_STATE);
}

/* ---- samples ---- */

enum { N = 8 };

Test(core_state, pairs_count_where_both_samples_lie_in_the_state) {
    static const double a[N] = {2, 3, 5, 7, 11, 13, 17, NAN}, b[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const double with_a[N] = {10, 20, 10, 10, 10, 20, 20, 10}, with_b[N] = {20, 20, 10, 10, 10, 20, 20, 10};
    static const bool switched[N] = {false, false, false, false, true, false, false, false};
    struct nb_samples x = {.ns = a, .n = N, .probe = with_a, .floor = 10},
                      y = {.ns = b, .n = N, .probe = with_b, .floor = 10};
    const struct nb_samples unknown = {.ns = b, .n = N};
    const struct nb_by_state ratio = nb_pairs_ln(&x, &y);
    cr_expect_float_eq(ratio.ln[NB_UNCONTENDED], log(7), 1e-12, "of 5, 7, 11");
    cr_expect_float_eq(ratio.ln[NB_CONTENDED], log(13), 1e-12, "of 3, 13, 17");
    cr_expect_float_eq(ratio.ln[NB_ANY_STATE], log(7), 1e-12);
    cr_expect_float_eq(nb_samples_ln(&x).ln[NB_UNCONTENDED], log(6), 1e-12, "of 2, 5, 7, 11");
    cr_expect(isnan(nb_pairs_ln(&x, &unknown).ln[NB_UNCONTENDED]) && isnan(nb_samples_ln(&unknown).ln[NB_CONTENDED]));
    x.preempted = switched;
    cr_expect(isnan(nb_pairs_ln(&x, &y).ln[NB_UNCONTENDED]),
              "a sample that was interrupted is contended; two are too few");
    const struct nb_contention c = nb_samples_contention(&x);
    cr_expect(c.n_probed == 7 && c.n_contended == 4);
}

/* Launches of eight blocks: a neighbour doubles the case's time in the last two, leaves the copy alone, and stays for all of the last `busy`
 * launches. */
static struct nb_timing timing_with_a_neighbour(int n, int busy) {
    static const double quiet[N] = {10, 10, 10, 10, 10, 10, 20, 20}, loud[N] = {20, 20, 20, 20, 20, 20, 20, 20};
    static const double fast[N] = {100, 100, 100, 100, 100, 100, 200, 200},
                        slow[N] = {200, 200, 200, 200, 200, 200, 200, 200};
    static const double copy[N] = {80, 80, 80, 80, 80, 80, 80, 80}, other[N] = {70, 70, 70, 70, 70, 70, 70, 70};
    const struct nb_noise noise = {.wall_s = 1, .cpu_s = 1};
    struct nb_launches launches released_by(nb_launches_release) = {0};
    struct nb_timing t = {0};
    for (int l = 0; l < n; l++) {
        const bool is_busy = l >= n - busy;
        const double *probe = is_busy ? loud : quiet;
        const struct nb_samples own = {.ns = is_busy ? slow : fast, .n = N, .probe = probe, .floor = 10};
        const struct nb_samples copies = {.ns = copy, .n = N, .probe = probe, .floor = 10};
        const struct nb_samples others = {.ns = other, .n = N, .probe = probe, .floor = 10};
        nb_launches_add(&launches, &own, &copies, &own, &noise);
        nb_launches_add_other(&launches, &own, &others);
        nb_launches_bound(&launches, 30, NAN, "L2");
    }
    nb_launches_finish(&launches, 800, &t);
    return t;
}

Test(core_state, all_figures_of_a_case_are_of_one_state) {
    const struct nb_timing t = timing_with_a_neighbour(12, 6), loud = timing_with_a_neighbour(8, 7);
    cr_expect_str_eq(t.state, "uncontended");
    cr_expect_float_eq(t.time_ns.value, 100, 1e-9);
    cr_expect_float_eq(t.vs_copy.value, 0.7, 1e-9, "the runner-up is taken");
    cr_expect_float_eq(t.roofline.share.value, 0.7, 1e-9);
    cr_expect_float_eq(t.roofline.core_ns, 30, 1e-9);
    cr_expect_float_eq(t.contended.time_ns.value, 200, 1e-9);
    cr_expect_float_eq(t.uncontended, 0.5 * 0.75, 1e-12);
    cr_expect(!t.noisy, "%s", t.noise);
    cr_expect_str_eq(loud.state, "contended", "one launch of eight is too few");
    cr_expect_float_eq(loud.time_ns.value, 200, 1e-9);
    cr_expect(isnan(loud.contended.time_ns.value), "the figures are of it");
}

/* ---- recordings ---- */

enum { STRETCHES = 30, BLOCKS = 40 };

struct recording {
    double ns[2][STRETCHES * BLOCKS], probe[2][STRETCHES * BLOCKS];
};

static void read_recording(struct recording *r, const char *name) {
    char line[200];
    int n = 0, stretch;
    char *dir freed = nb_data_dir(), *path freed = nb_path_join(dir, name);
    FILE *f = fopen(path, "re");
    cr_assert(f, "%s", path);
    while (fgets(line, sizeof line, f)) {
        if (*line == '#') continue;
        cr_assert(n < STRETCHES * BLOCKS);
        cr_assert_eq(
            sscanf(line, "%d %lf %lf %lf %lf", &stretch, &r->ns[0][n], &r->probe[0][n], &r->ns[1][n], &r->probe[1][n]),
            5);
        cr_assert_eq(stretch, n++ / BLOCKS);
    }
    cr_assert_eq(n, STRETCHES * BLOCKS);
    fclose(f);
}

/* Each stretch as a launch. The ratio that a core of one's own has, and how many launches met one, on four hosts: the stretches
 * are a part of what was recorded. */
Test(core_state, recordings_of_four_hosts_have_the_ratio_of_an_uncontended_core) {
    static const struct {
        const char *name;
        double uncontended, contended, share_low, share_high; /* contended: 0: too few launches */
    } hosts[] = {{"core_states_cascade_lake.txt", 0.544, 0.607, 0.2, 0.4},
                 {"core_states_zen_4.txt", 0.9405, 0.90, 0.6, 0.9},
                 {"core_states_emerald_rapids.txt", 0.6873, 0.6535, 0.6, 0.9},
                 {"core_states_intel_amx.txt", 0.724, 0, 0.9, 1}};
    for (size_t h = 0; h < sizeof hosts / sizeof *hosts; h++) {
        static struct recording r;
        struct nb_by_state ratios[STRETCHES];
        struct nb_floors f released_by(nb_floors_release) = {0};
        struct nb_contention all = {0};
        read_recording(&r, hosts[h].name);
        for (int k = 0; k < 2; k++) nb_floors_take(&f, 0, 1, r.probe[k], STRETCHES * BLOCKS);
        const double floor = nb_floors_get(&f, 0, 1);
        for (int l = 0; l < STRETCHES; l++) {
            struct nb_samples s[2];
            for (int k = 0; k < 2; k++)
                s[k] = (struct nb_samples){
                    .ns = &r.ns[k][l * BLOCKS], .probe = &r.probe[k][l * BLOCKS], .n = BLOCKS, .floor = floor};
            const struct nb_contention c = nb_samples_contention(&s[0]);
            all.n_probed += c.n_probed;
            all.n_contended += c.n_contended;
            ratios[l] = nb_pairs_ln(&s[0], &s[1]);
        }
        const double share = 1 - (double)all.n_contended / all.n_probed;
        const struct nb_interval mine = nb_ratio_in_state(ratios, STRETCHES, NB_UNCONTENDED, 0.95);
        const struct nb_interval theirs = nb_ratio_in_state(ratios, STRETCHES, NB_CONTENDED, 0.95);
        cr_expect_eq(nb_state_over_launches(ratios, STRETCHES, 0.95), NB_UNCONTENDED, "%s", hosts[h].name);
        cr_expect_float_eq(mine.value, hosts[h].uncontended, 0.003 * mine.value, "%s: %g", hosts[h].name, mine.value);
        cr_expect(mine.high / mine.low < 1.02, "%s: [%g, %g]", hosts[h].name, mine.low, mine.high);
        cr_expect(share > hosts[h].share_low && share <= hosts[h].share_high, "%s: %g", hosts[h].name, share);
        if (hosts[h].contended > 0)
            cr_expect_float_eq(theirs.value, hosts[h].contended, 0.02 * theirs.value, "%s: %g", hosts[h].name,
                               theirs.value);
    }
}
