// SPDX-License-Identifier: Apache-2.0
/* Medians within a launch, Hodges-Lehmann over launches, and the verdict whether a case may be ranked. */
#include "src/measure/timing.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

static struct nb_by_state pairs_or_none(const struct nb_samples *a, const struct nb_samples *b) {
    return a && b ? nb_pairs_ln(a, b) : NB_NO_STATE;
}

static bool is_preempted(const struct nb_samples *s, size_t block) {
    return s && s->preempted && block < s->n && s->preempted[block];
}

static void count_samples(struct nb_launches *l, const struct nb_samples *own, const struct nb_samples *copy) {
    for (size_t i = 0; i < own->n; i++) {
        if (!isfinite(own->ns[i])) continue;
        l->min_ns = l->n_samples ? fmin(l->min_ns, own->ns[i]) : own->ns[i];
        l->n_samples++;
        l->n_preempted += is_preempted(own, i) || is_preempted(copy, i);
    }
}

void nb_launches_add(struct nb_launches *l, const struct nb_samples *own, const struct nb_samples *copy,
                     const struct nb_samples *reference, const struct nb_noise *noise) {
    const struct nb_launch_value v = {
        .time = nb_samples_ln(own),
        .vs_copy = pairs_or_none(copy, own),
        .reference = pairs_or_none(own, reference),
        .copy = copy ? nb_samples_ln(copy) : NB_NO_STATE,
        .vs_other_copy = NB_NO_STATE,
        .other_copy = NB_NO_STATE,
        .wall_per_cpu = noise->cpu_s > 0 ? noise->wall_s / noise->cpu_s : (double)NAN,
        .core_ns = NAN,
        .floor_ns = NAN,
        .clock_ghz = NAN,
        .highest_ghz = NAN,
    };
    const struct nb_contention contention = nb_samples_contention(own);
    if (!isfinite(v.time.ln[NB_ANY_STATE])) return;
    l->contention.n_probed += contention.n_probed;
    l->contention.n_contended += contention.n_contended;
    *NB_PUSH(l->values, l->n) = v;
    count_samples(l, own, copy);
    l->steal_ms += noise->steal_ms;
    l->involuntary += noise->involuntary;
    l->throttled += noise->throttled;
}

void nb_launches_add_other(struct nb_launches *l, const struct nb_samples *own, const struct nb_samples *other) {
    if (l->n == 0) return;
    l->values[l->n - 1].vs_other_copy = nb_pairs_ln(other, own);
    l->values[l->n - 1].other_copy = nb_samples_ln(other);
}

void nb_launches_bound(struct nb_launches *l, double core_ns, double floor_ns, const char *level) {
    if (l->n == 0) return;
    l->values[l->n - 1].core_ns = core_ns > 0 ? core_ns : (double)NAN;
    l->values[l->n - 1].floor_ns = floor_ns;
    snprintf(l->level, sizeof l->level, "%s", level);
}

void nb_launches_clock(struct nb_launches *l, double clock_ghz, double highest_ghz) {
    if (l->n == 0 || !(clock_ghz > 0 && highest_ghz >= clock_ghz)) return;
    struct nb_launch_value *v = &l->values[l->n - 1];
    struct nb_by_state *const times[] = {&v->time, &v->copy, &v->other_copy};
    for (int t = 0; t < 3; t++)
        for (int s = 0; s < NB_N_STATES; s++) times[t]->ln[s] += log(clock_ghz / highest_ghz);
    v->core_ns *= clock_ghz / highest_ghz;
    v->clock_ghz = clock_ghz;
    v->highest_ghz = highest_ghz;
}

/* ---- over launches ---- */

/* A member of the launch values, by its place. */
static struct nb_by_state value_at(const struct nb_launches *l, size_t launch, size_t offset) {
    struct nb_by_state value;
    memcpy(&value, (const char *)&l->values[launch] + offset, sizeof value);
    return value;
}
#define AT(member) offsetof(struct nb_launch_value, member)

bool nb_launches_other_copy_is_faster(const struct nb_launches *l) {
    double slower = 0;
    int n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const double ln = l->values[i].vs_copy.ln[NB_ANY_STATE] - l->values[i].vs_other_copy.ln[NB_ANY_STATE];
        if (!isfinite(ln)) continue;
        slower += ln;
        n++;
    }
    return n > 0 && slower / n > log(NB_AS_FAST);
}

static size_t vs_copy_of(const struct nb_launches *l) {
    return nb_launches_other_copy_is_faster(l) ? AT(vs_other_copy) : AT(vs_copy);
}
static size_t copy_of(const struct nb_launches *l) {
    return nb_launches_other_copy_is_faster(l) ? AT(other_copy) : AT(copy);
}

/* One for all figures of a case: a launch counts that has each of them. */
static enum nb_state state_of(const struct nb_launches *l) {
    const size_t members[] = {AT(time), vs_copy_of(l), AT(reference)};
    struct nb_by_state *all freed = nb_alloc(l->n + 1, sizeof *all);
    for (size_t i = 0; i < l->n; i++) {
        all[i] = (struct nb_by_state){{0}};
        for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
            const struct nb_by_state v = value_at(l, i, members[m]);
            for (int s = 0; s < NB_N_STATES && isfinite(v.ln[NB_ANY_STATE]); s++) all[i].ln[s] += v.ln[s];
        }
    }
    return nb_state_over_launches(all, l->n, nb_confidence(l->adaptive));
}

/* Over the launches that have it, of a member of the launch values. */
static struct nb_interval ratio_of(const struct nb_launches *l, size_t offset, enum nb_state state) {
    struct nb_by_state *v freed = nb_alloc(l->n + 1, sizeof *v);
    for (size_t i = 0; i < l->n; i++) v[i] = value_at(l, i, offset);
    return nb_ratio_in_state(v, l->n, state, nb_confidence(l->adaptive));
}

/* The median over launches of a number that each has one of. */
static double median_of(const struct nb_launches *l, size_t offset) {
    double *v freed = nb_alloc(l->n + 1, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        memcpy(&v[n], (const char *)&l->values[i] + offset, sizeof *v);
        n += isfinite(v[n]);
    }
    return n ? nb_median(v, n) : (double)NAN;
}

/* Half the width of a ratio's interval, relative: ln(high / low) / 2. */
static double half_width(const struct nb_interval *i) { return 0.5 * log(i->high / i->low); }

/* A reference's ratio to itself is exact and says nothing. */
static double width_of(const struct nb_interval *time, const struct nb_interval *vs_copy,
                       const struct nb_interval *reference) {
    const bool has_copy = isfinite(vs_copy->value), has_reference = isfinite(reference->value);
    if (!has_copy && (!has_reference || reference->low == reference->high)) return half_width(time);
    if (!has_copy || !has_reference) return half_width(has_copy ? vs_copy : reference);
    const double to_copy = half_width(vs_copy), to_reference = half_width(reference);
    return isnan(to_copy) || isnan(to_reference) ? (double)NAN : fmax(to_copy, to_reference);
}

double nb_launches_width(const struct nb_launches *l) {
    const enum nb_state state = state_of(l);
    const struct nb_interval time = ratio_of(l, AT(time), state), vs_copy = ratio_of(l, vs_copy_of(l), state);
    const struct nb_interval reference = ratio_of(l, AT(reference), state);
    return width_of(&time, &vs_copy, &reference);
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

/* The smallest change that a user of a ratio should take seriously. */
static const double widest = 0.03;

bool nb_is_too_wide(const struct nb_interval *ratio) { return !(half_width(ratio) <= widest); }

/* Cases are ranked by paired ratios of one state. So an interval that is missing or too wide decides, and pairs of which over 30 % saw a
 * switch. */
static void judge(struct nb_timing *t, int fewest) {
    const double most_hit = 0.30;
    const double width = width_of(&t->time_ns, &t->vs_copy, &t->vs_reference);
    const double hit = t->n_samples ? (double)t->n_preempted / t->n_samples : 0;
    if (!isfinite(width))
        add_reason(t, "no interval: %d launches, %d needed", t->n_launches, fewest);
    else if (width > widest)
        add_reason(t, "95%% CI of the ratio reaches %.0f%% to a side (limit: %.0f%%)", 100 * width, 100 * widest);
    if (hit > most_hit) add_reason(t, "%.0f%% of the pairs were preempted or migrated", 100 * hit);
}

static double drift_of(const struct nb_launches *l, enum nb_state state) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < l->n; i++) {
        const double ln = value_at(l, i, copy_of(l)).ln[state];
        if (!isfinite(ln)) continue;
        low = fmin(low, ln);
        high = fmax(high, ln);
    }
    return high >= low ? exp(high - low) : (double)NAN;
}

/* Of each launch that has both the larger of copy and core, on a device of copy and floor. The bound is the latter's where it is so in most
 * launches. */
static void find_roofline(const struct nb_launches *l, enum nb_state state, struct nb_roofline *out) {
    double *share freed = nb_alloc(l->n + 1, sizeof *share), *time freed = nb_alloc(l->n + 1, sizeof *time);
    double *core freed = nb_alloc(l->n + 1, sizeof *core), *excess freed = nb_alloc(l->n + 1, sizeof *excess);
    bool has_core = false;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct nb_launch_value *v = &l->values[i];
        const double ln_time = v->time.ln[state], ln_copy = value_at(l, i, vs_copy_of(l)).ln[state];
        const bool knows_core = isfinite(v->core_ns);
        const double ln_least = log(knows_core ? v->core_ns : v->floor_ns) - ln_time;
        if (!isfinite(ln_copy) || !isfinite(ln_least)) continue;
        has_core |= knows_core;
        share[n] = fmax(ln_copy, ln_least);
        time[n] = share[n] + ln_time;
        core[n] = ln_least + ln_time;
        excess[n++] = ln_least - ln_copy;
    }
    const double confidence = nb_confidence(l->adaptive);
    *out = (struct nb_roofline){.time_ns = nb_ratio_over_launches(time, n, confidence),
                                .share = nb_ratio_over_launches(share, n, confidence),
                                .core_ns = nb_ratio_over_launches(core, has_core ? n : 0, confidence).value};
    const char *least = has_core ? "core" : "launch";
    if (n > 0) snprintf(out->bottleneck, sizeof out->bottleneck, "%s", nb_median(excess, n) > 0 ? least : l->level);
}

static void find_clocks(const struct nb_launches *l, struct nb_timing *t) {
    t->clock_ghz = NAN;
    t->median_ghz = median_of(l, AT(clock_ghz));
    for (size_t i = 0; i < l->n; i++) t->clock_ghz = fmax(t->clock_ghz, l->values[i].highest_ghz);
}

static void find_contended(const struct nb_launches *l, enum nb_state state, struct nb_in_contention *out) {
    *out = (struct nb_in_contention){.time_ns = {NAN, NAN, NAN}, .vs_reference = {NAN, NAN, NAN}};
    if (state != NB_UNCONTENDED) return;
    out->time_ns = ratio_of(l, AT(time), NB_CONTENDED);
    out->vs_reference = ratio_of(l, AT(reference), NB_CONTENDED);
}

void nb_launches_finish(const struct nb_launches *l, double bytes, struct nb_timing *t) {
    const enum nb_state state = state_of(l);
    const struct nb_contention *c = &l->contention;
    snprintf(t->state, sizeof t->state, "%s", nb_state_names[state]);
    t->time_ns = ratio_of(l, AT(time), state);
    t->vs_copy = ratio_of(l, vs_copy_of(l), state);
    t->vs_reference = ratio_of(l, AT(reference), state);
    find_contended(l, state, &t->contended);
    t->wall_per_cpu = median_of(l, AT(wall_per_cpu));
    t->copy_drift = drift_of(l, state);
    t->floor_ns = median_of(l, AT(floor_ns));
    t->uncontended = c->n_probed ? 1 - (double)c->n_contended / c->n_probed : (double)NAN;
    find_clocks(l, t);
    find_roofline(l, state, &t->roofline);
    t->gbytes_per_s = bytes / t->time_ns.value; /* bytes per ns are 1e9 bytes per s */
    t->min_ns = l->n_samples ? l->min_ns : (double)NAN;
    t->n_launches = (int)l->n;
    t->n_samples = l->n_samples;
    t->n_preempted = l->n_preempted;
    t->steal_ms = l->steal_ms;
    t->involuntary = l->involuntary;
    t->throttled = l->throttled;
    t->suspect = t->vs_copy.low > NB_AS_FAST;
    t->noisy = false;
    t->noise[0] = '\0';
    judge(t, nb_fewest_launches(nb_confidence(l->adaptive)));
}

struct nb_interval nb_timing_as_measured(const struct nb_timing *t) {
    const double slower = t->median_ghz > 0 ? t->clock_ghz / t->median_ghz : 1;
    return (struct nb_interval){slower * t->time_ns.value, slower * t->time_ns.low, slower * t->time_ns.high};
}

void nb_launches_release(struct nb_launches *l) {
    free(l->values);
    *l = (struct nb_launches){0};
}

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

#define T(KIND, field) NB_MEMBER(KIND, struct nb_timing, field)

static const struct nb_member roofline[] = {
    NB_MEMBER(INTERVAL, struct nb_roofline, time_ns), NB_MEMBER(INTERVAL, struct nb_roofline, share),
    NB_MEMBER(TEXT, struct nb_roofline, bottleneck), NB_MEMBER(AMOUNT, struct nb_roofline, core_ns), NB_MEMBERS_END};
static const struct nb_member contended[] = {NB_MEMBER(INTERVAL, struct nb_in_contention, time_ns),
                                             NB_MEMBER(INTERVAL, struct nb_in_contention, vs_reference),
                                             NB_MEMBERS_END};

const char *const nb_stop_names[] = {[NB_STOP_UNKNOWN] = "",  [NB_STOP_FIXED] = "fixed",   [NB_STOP_AIM] = "aim",
                                     [NB_STOP_MOST] = "most", [NB_STOP_BUDGET] = "budget", NULL};

static const struct nb_member evidence[] = {
    T(COUNT, n_launches),    T(TEXT, stopped),      T(COUNT, n_samples),  T(COUNT, n_preempted),
    T(BOOL, chunked),        T(AMOUNT, per_sample), T(NUMBER, steal_ms),  T(NUMBER, involuntary),
    T(AMOUNT, wall_per_cpu), T(AMOUNT, copy_drift), T(AMOUNT, floor_ns),  T(AMOUNT, uncontended),
    T(AMOUNT, clock_ghz),    T(AMOUNT, median_ghz), T(AMOUNT, throttled), NB_MEMBERS_END};

/* The figures, then the verdicts, then the evidence for them. */
const struct nb_member nb_timing_members[] = {T(TEXT, state),
                                              T(INTERVAL, time_ns),
                                              T(INTERVAL, vs_copy),
                                              T(TEXT, copy),
                                              NB_MEMBER_STRUCT(struct nb_timing, roofline, roofline),
                                              T(INTERVAL, vs_reference),
                                              NB_MEMBER_STRUCT(struct nb_timing, contended, contended),
                                              T(STRING, reference),
                                              T(AMOUNT, gbytes_per_s),
                                              T(AMOUNT, of_datasheet),
                                              T(AMOUNT, min_ns),
                                              T(BOOL, suspect),
                                              T(BOOL, noisy),
                                              T(TEXT, noise),
                                              NB_MEMBER_GROUP("evidence", evidence),
                                              NB_MEMBERS_END};
