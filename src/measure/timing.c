// SPDX-License-Identifier: Apache-2.0
/* Medians within a launch, Hodges-Lehmann over launches, and the verdict whether a case may be ranked. */
#include "src/measure/timing.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

static double paired_or_none(const struct nb_samples *a, const struct nb_samples *b) {
    return a && b ? nb_paired_ln(a, b, NB_PAIRS_ALL) : (double)NAN;
}

static double alone_or_none(const struct nb_samples *a, const struct nb_samples *b) {
    return a && b ? nb_paired_ln(a, b, NB_PAIRS_ALONE) : (double)NAN;
}

static bool is_contaminated(const struct nb_samples *s, size_t block) {
    return s && s->contaminated && block < s->n && s->contaminated[block];
}

static void count_samples(struct nb_launches *l, const struct nb_samples *own, const struct nb_samples *copy) {
    for (size_t i = 0; i < own->n; i++) {
        if (!isfinite(own->ns[i])) continue;
        l->min_ns = l->n_samples ? fmin(l->min_ns, own->ns[i]) : own->ns[i];
        l->n_samples++;
        l->n_contaminated += is_contaminated(own, i) || is_contaminated(copy, i);
    }
}

void nb_launches_add(struct nb_launches *l, const struct nb_samples *own, const struct nb_samples *copy,
                     const struct nb_samples *reference, const struct nb_noise *noise) {
    struct nb_launch_value v = {
        .ln_time = log(nb_samples_median(own)),
        .ln_roof = paired_or_none(copy, own),
        .ln_reference = paired_or_none(own, reference),
        .ln_copy = copy ? log(nb_samples_median(copy)) : (double)NAN,
        .wall_per_cpu = noise->cpu_s > 0 ? noise->wall_s / noise->cpu_s : (double)NAN,
        .ln_core = NAN,
        .floor_ns = NAN,
        .ln_other_roof = NAN,
        .ln_other_copy = NAN,
        .ln_time_alone = log(nb_samples_median_alone(own)),
        .ln_roof_alone = alone_or_none(copy, own),
        .ln_other_roof_alone = NAN,
        .probe_cycles = noise->probe_cycles,
        .cpu = noise->cpu,
    };
    if (!isfinite(v.ln_time)) return;
    for (size_t i = 0; own->shared && i < own->n; i++) {
        v.n_probed += isfinite(own->ns[i]);
        v.n_shared += isfinite(own->ns[i]) && own->shared[i];
    }
    l->values = nb_realloc(l->values, l->n + 1, sizeof *l->values);
    l->values[l->n++] = v;
    count_samples(l, own, copy);
    l->steal_ms += noise->steal_ms;
    l->involuntary += noise->involuntary;
}

void nb_launches_add_other(struct nb_launches *l, const struct nb_samples *own, const struct nb_samples *other) {
    if (l->n == 0) return;
    struct nb_launch_value *last = &l->values[l->n - 1];
    last->ln_other_roof = paired_or_none(other, own);
    last->ln_other_copy = log(nb_samples_median(other));
    last->ln_other_roof_alone = alone_or_none(other, own);
}

bool nb_launches_roof_is_other(const struct nb_launches *l) {
    double slower = 0;
    int n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const double ln = l->values[i].ln_roof - l->values[i].ln_other_roof;
        if (!isfinite(ln)) continue;
        slower += ln;
        n++;
    }
    return n > 0 && slower / n > log(NB_AS_FAST);
}

static size_t roof_of(const struct nb_launches *l) {
    return nb_launches_roof_is_other(l) ? offsetof(struct nb_launch_value, ln_other_roof)
                                        : offsetof(struct nb_launch_value, ln_roof);
}

static size_t copy_of(const struct nb_launches *l) {
    return nb_launches_roof_is_other(l) ? offsetof(struct nb_launch_value, ln_other_copy)
                                        : offsetof(struct nb_launch_value, ln_copy);
}

void nb_launches_bound(struct nb_launches *l, double core_ns, double floor_ns, const char *level) {
    if (l->n == 0) return;
    struct nb_launch_value *last = &l->values[l->n - 1];
    last->ln_core = core_ns > 0 ? log(core_ns) - last->ln_time : (double)NAN;
    last->floor_ns = floor_ns;
    snprintf(l->level, sizeof l->level, "%s", level);
}

static double value_at(const struct nb_launches *l, size_t launch, size_t offset) {
    double value;
    memcpy(&value, (const char *)&l->values[launch] + offset, sizeof value);
    return value;
}
/* The finite ones of one member of the launch values. Returns how many; v has room for l->n. */
static size_t gather(const struct nb_launches *l, size_t offset, double *v) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const double value = value_at(l, i, offset);
        if (isfinite(value)) v[n++] = value;
    }
    return n;
}

/* Over the launches that have it, of a member of the launch values. */
static struct nb_interval ratio_of(const struct nb_launches *l, size_t offset) {
    double *v = nb_alloc(l->n + 1, sizeof *v);
    const size_t n = gather(l, offset, v);
    const struct nb_interval ratio = nb_ratio_over_launches(v, n, nb_confidence(l->adaptive));
    free(v);
    return ratio;
}

/* Half the width of a ratio's interval, relative: ln(high / low) / 2. */
static double half_width(const struct nb_interval *i) { return 0.5 * log(i->high / i->low); }

/* A reference's ratio to itself is exact and says nothing. */
static double width_of(const struct nb_interval *time, const struct nb_interval *roof,
                       const struct nb_interval *reference) {
    const bool has_roof = isfinite(roof->value), has_reference = isfinite(reference->value);
    if (!has_roof && (!has_reference || reference->low == reference->high)) return half_width(time);
    if (!has_roof || !has_reference) return half_width(has_roof ? roof : reference);
    const double to_roof = half_width(roof), to_reference = half_width(reference);
    return isnan(to_roof) || isnan(to_reference) ? (double)NAN : fmax(to_roof, to_reference);
}

double nb_launches_width(const struct nb_launches *l) {
    assert(l);
    const struct nb_interval time = ratio_of(l, offsetof(struct nb_launch_value, ln_time));
    const struct nb_interval roof = ratio_of(l, roof_of(l));
    const struct nb_interval reference = ratio_of(l, offsetof(struct nb_launch_value, ln_reference));
    return width_of(&time, &roof, &reference);
}

static void __attribute__((format(printf, 2, 3))) add_reason(struct nb_timing *t, const char *format, ...) {
    size_t len = strlen(t->noise);
    va_list args;
    va_start(args, format);
    if (len > 0 && len + 2 < sizeof t->noise) len += (size_t)snprintf(t->noise + len, sizeof t->noise - len, "; ");
    vsnprintf(t->noise + len, sizeof t->noise - len, format, args);
    va_end(args);
    t->noisy = true;
}

/* Cases are ranked by paired ratios, which preemption and drift leave alone until they hit most pairs. So an interval
 * that is missing or wider than 10 %, or pairs of which over 30 % were hit, decide alone; signs of a busy machine (wall
 * time over 1.5 of the CPU time, a copy that became 2 times slower) only beside an interval over 3 %, the smallest
 * change that a user of a ratio should take seriously. */
static void judge(struct nb_timing *t, int fewest) {
    const double widest = 0.10, wide = 0.03, most_hit = 0.30, busy = 1.5, drift = 2;
    const double width = width_of(&t->time_ns, &t->roof, &t->vs_reference);
    double hit = t->n_samples ? (double)t->n_contaminated / t->n_samples : 0;
    if (!isfinite(width))
        add_reason(t, "no interval: %d launches, %d needed", t->n_launches, fewest);
    else if (width > widest)
        add_reason(t, "interval of the paired ratio is +-%.0f %%", 100 * width);
    if (hit > most_hit) add_reason(t, "%.0f %% of the pairs saw a switch or a migration", 100 * hit);
    if (!(width > wide)) return;
    if (t->wall_per_cpu > busy) add_reason(t, "+-%.0f %% and wall time %.1f x CPU time", 100 * width, t->wall_per_cpu);
    if (t->copy_drift > drift) add_reason(t, "+-%.0f %% and a copy that drifted %.1f x", 100 * width, t->copy_drift);
}

static double drift_of(const double *ln, size_t n) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, ln[i]);
        high = fmax(high, ln[i]);
    }
    return n ? exp(high - low) : (double)NAN;
}

static double core_shared(const struct nb_launches *l) {
    double probed = 0, shared = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct nb_launch_value *v = &l->values[i];
        probed += v->n_probed;
        shared += v->is_shared ? v->n_probed : v->n_shared;
    }
    return probed > 0 ? shared / probed : (double)NAN;
}

/* A launch's time and its roof, from all samples or from those without anybody else on the core. */
struct launch_times {
    double ln_time, ln_roof;
};
static struct launch_times times_of(const struct nb_launches *l, size_t launch, bool alone) {
    const struct nb_launch_value *v = &l->values[launch];
    const bool other = nb_launches_roof_is_other(l);
    if (!alone) return (struct launch_times){v->ln_time, other ? v->ln_other_roof : v->ln_roof};
    if (v->is_shared) return (struct launch_times){NAN, NAN};
    return (struct launch_times){v->ln_time_alone, other ? v->ln_other_roof_alone : v->ln_roof_alone};
}

static bool are_enough_alone(const struct nb_launches *l) {
    const int fewest = 3; /* so that no launch decides alone; where they are too few for an interval there is none */
    int n = 0;
    for (size_t i = 0; i < l->n; i++) n += isfinite(times_of(l, i, true).ln_roof);
    return n >= fewest;
}

/* Of each launch that has both the larger of copy and core, on a device of copy and floor. The bound is the latter's where it is so in most
 * launches. */
static void find_attainable(const struct nb_launches *l, struct nb_attainable *out) {
    double *share = nb_alloc(l->n + 1, sizeof *share), *time = nb_alloc(l->n + 1, sizeof *time);
    double *core = nb_alloc(l->n + 1, sizeof *core), *excess = nb_alloc(l->n + 1, sizeof *excess);
    const bool alone = are_enough_alone(l);
    bool has_core = false;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct nb_launch_value *v = &l->values[i];
        const struct launch_times t = times_of(l, i, alone);
        const bool knows_core = isfinite(v->ln_core);
        const double ln_least = (knows_core ? v->ln_core + v->ln_time : log(v->floor_ns)) - t.ln_time;
        if (!isfinite(t.ln_roof) || !isfinite(ln_least)) continue;
        has_core |= knows_core;
        share[n] = fmax(t.ln_roof, ln_least);
        time[n] = share[n] + t.ln_time;
        core[n] = ln_least + t.ln_time;
        excess[n++] = ln_least - t.ln_roof;
    }
    const double confidence = nb_confidence(l->adaptive);
    *out = (struct nb_attainable){.time_ns = nb_ratio_over_launches(time, n, confidence),
                                  .share = nb_ratio_over_launches(share, n, confidence),
                                  .alone = alone,
                                  .core_ns = nb_ratio_over_launches(core, has_core ? n : 0, confidence).value};
    const char *least = has_core ? "core" : "launch";
    if (n > 0) snprintf(out->bound, sizeof out->bound, "%s", nb_median(excess, n) > 0 ? least : l->level);
    free(share);
    free(time);
    free(core);
    free(excess);
}

void nb_launches_finish(const struct nb_launches *l, double bytes, struct nb_timing *t) {
    double *v = nb_alloc(l->n, sizeof *v);
    t->time_ns = ratio_of(l, offsetof(struct nb_launch_value, ln_time));
    t->roof = ratio_of(l, roof_of(l));
    t->vs_reference = ratio_of(l, offsetof(struct nb_launch_value, ln_reference));
    t->wall_per_cpu = nb_median(v, gather(l, offsetof(struct nb_launch_value, wall_per_cpu), v));
    t->copy_drift = drift_of(v, gather(l, copy_of(l), v));
    t->floor_ns = nb_median(v, gather(l, offsetof(struct nb_launch_value, floor_ns), v));
    t->core_shared = core_shared(l);
    free(v);
    find_attainable(l, &t->attainable);
    t->gbytes_per_s = bytes / t->time_ns.value; /* bytes per ns are 1e9 bytes per s */
    t->min_ns = l->n_samples ? l->min_ns : (double)NAN;
    t->n_launches = (int)l->n;
    t->n_samples = l->n_samples;
    t->n_contaminated = l->n_contaminated;
    t->steal_ms = l->steal_ms;
    t->involuntary = l->involuntary;
    t->suspect = t->roof.low > 1;
    t->noisy = false;
    t->noise[0] = '\0';
    judge(t, nb_fewest_launches(nb_confidence(l->adaptive)));
}

void nb_launches_release(struct nb_launches *l) {
    free(l->values);
    *l = (struct nb_launches){0};
}

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

#define T(KIND, field) NB_MEMBER(KIND, struct nb_timing, field)

static const struct nb_member attainable[] = {
    NB_MEMBER(INTERVAL, struct nb_attainable, time_ns), NB_MEMBER(INTERVAL, struct nb_attainable, share),
    NB_MEMBER(BOOL, struct nb_attainable, alone),       NB_MEMBER(TEXT, struct nb_attainable, bound),
    NB_MEMBER(AMOUNT, struct nb_attainable, core_ns),   NB_MEMBERS_END};

const char *const nb_stop_names[] = {[NB_STOP_UNKNOWN] = "",  [NB_STOP_FIXED] = "fixed",   [NB_STOP_AIM] = "aim",
                                     [NB_STOP_MOST] = "most", [NB_STOP_BUDGET] = "budget", NULL};

static const struct nb_member evidence[] = {
    T(COUNT, n_launches),    T(TEXT, stopped),      T(COUNT, n_samples), T(COUNT, n_contaminated),
    T(BOOL, chunked),        T(AMOUNT, per_sample), T(NUMBER, steal_ms), T(NUMBER, involuntary),
    T(AMOUNT, wall_per_cpu), T(AMOUNT, copy_drift), T(AMOUNT, floor_ns), T(AMOUNT, core_shared),
    NB_MEMBERS_END};

/* The figures, then the verdicts, then the evidence for them. */
const struct nb_member nb_timing_members[] = {T(INTERVAL, time_ns),
                                              T(INTERVAL, roof),
                                              T(TEXT, copy),
                                              NB_MEMBER_STRUCT(struct nb_timing, attainable, attainable),
                                              T(INTERVAL, vs_reference),
                                              T(STRING, reference),
                                              T(AMOUNT, gbytes_per_s),
                                              T(AMOUNT, of_datasheet),
                                              T(AMOUNT, min_ns),
                                              T(BOOL, suspect),
                                              T(BOOL, noisy),
                                              T(TEXT, noise),
                                              NB_MEMBER_GROUP("evidence", evidence),
                                              NB_MEMBERS_END};
