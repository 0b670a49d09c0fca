// SPDX-License-Identifier: Apache-2.0
/* Medians of pairs within a launch, Hodges-Lehmann over launches; the launch lines of a journal by case. */
#include "src/measure/paired.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/journal.h"

enum { MOST_LAUNCHES = 1000000 };

/* ---- samples of one arm in one launch ---------------------------------------------------------------------------- */

/* A list of the arm with an entry for each block; null: the arm has none. -1 after nb_error. */
static int find_list(const cJSON *arm, const char *name, size_t n, const cJSON **list) {
    *list = nb_json_get(arm, name);
    if (!*list || (size_t)cJSON_GetArraySize(*list) == n) return 0;
    return nb_error("\"%s\" is not of as many blocks as the samples", name);
}

/* Blocks by their numbers. */
static int read_preempted(bool *preempted, size_t n, const cJSON *list) {
    const cJSON *item;
    if (list && !cJSON_IsArray(list)) return nb_error("\"preempted\" is no list of blocks");
    cJSON_ArrayForEach(item, list) {
        const double at = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(at >= 0 && at < (double)n && at == floor(at))) return nb_error("\"preempted\" names no block");
        preempted[(size_t)at] = true;
    }
    return 0;
}

static int read_positive(double *values, const cJSON *list, const char *what) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        const bool known = cJSON_IsNumber(item) && item->valuedouble > 0 && isfinite(item->valuedouble);
        if (!known && !cJSON_IsNull(item)) return nb_error("%s is neither positive nor null", what);
        *values++ = known ? item->valuedouble : (double)NAN;
    }
    return 0;
}

int nb_samples_from_json(struct nb_samples *s, const cJSON *arm, double floor) {
    const cJSON *samples = nb_json_get(arm, "sample_ns");
    const cJSON *positions, *probes, *item;
    const size_t n = (size_t)cJSON_GetArraySize(samples);
    double *ns = nb_alloc(n, sizeof *ns);
    bool *preempted = nb_alloc(n, sizeof *preempted);
    *s = (struct nb_samples){.ns = ns, .preempted = preempted, .n = n, .floor = floor};
    if (read_positive(ns, samples, "a sample's time") != 0) return -1;
    if (read_preempted(preempted, n, nb_json_get(arm, "preempted")) != 0) return -1;
    if (find_list(arm, "position", n, &positions) != 0 || find_list(arm, "probe", n, &probes) != 0) return -1;
    int *position = positions ? nb_alloc(n, sizeof *position) : NULL;
    double *probe = probes ? nb_alloc(n, sizeof *probe) : NULL;
    s->position = position;
    s->probe = probe;
    cJSON_ArrayForEach(item, positions) *position++ = item->valueint;
    return read_positive(probe, probes, "a probe");
}

void nb_samples_release(struct nb_samples *s) {
    free((void *)(uintptr_t)s->ns);
    free((void *)(uintptr_t)s->preempted);
    free((void *)(uintptr_t)s->position);
    free((void *)(uintptr_t)s->probe);
    *s = (struct nb_samples){0};
}

/* Whoever interrupted a sample had a slice of its core, of which probes at its ends know nothing. */
static enum nb_state state_at(const struct nb_samples *s, size_t block) {
    if (!s->probe || isnan(s->probe[block]) || isnan(s->floor)) return NB_ANY_STATE;
    if (s->preempted && s->preempted[block]) return NB_CONTENDED;
    return nb_is_contended(s->probe[block], s->floor) ? NB_CONTENDED : NB_UNCONTENDED;
}
/* A device's samples have none, and a kernel of a program none beside one of ours: they stand in no state. */
static bool are_in(enum nb_state state, const struct nb_samples *a, const struct nb_samples *b, size_t block) {
    return state == NB_ANY_STATE || (state_at(a, block) == state && state_at(b, block) == state);
}

double nb_samples_median(const struct nb_samples *s) { return exp(nb_samples_ln(s).ln[NB_ANY_STATE]); }

struct nb_contention nb_samples_contention(const struct nb_samples *s) {
    struct nb_contention c = {0};
    for (size_t i = 0; i < s->n; i++) {
        c.n_probed += isfinite(s->ns[i]) && state_at(s, i) != NB_ANY_STATE;
        c.n_contended += isfinite(s->ns[i]) && state_at(s, i) == NB_CONTENDED;
    }
    return c;
}

/* Of those values that are finite, by state. of: value of a block. */
static struct nb_by_state medians(const double *values, size_t n, const struct nb_samples *a,
                                  const struct nb_samples *b) {
    struct nb_by_state out = NB_NO_STATE;
    double *among freed = nb_alloc(n + 1, sizeof *among);
    for (int state = 0; state < NB_N_STATES; state++) {
        const size_t fewest = state == NB_ANY_STATE ? 1 : NB_FEWEST_PAIRS;
        size_t n_among = 0;
        for (size_t i = 0; i < n; i++)
            if (isfinite(values[i]) && are_in((enum nb_state)state, a, b, i)) among[n_among++] = values[i];
        if (n_among >= fewest) out.ln[state] = nb_median(among, n_among);
    }
    return out;
}

struct nb_by_state nb_samples_ln(const struct nb_samples *s) {
    struct nb_by_state out = medians(s->ns, s->n, s, s);
    for (int state = 0; state < NB_N_STATES; state++) out.ln[state] = log(out.ln[state]);
    return out;
}

struct nb_by_state nb_pairs_ln(const struct nb_samples *a, const struct nb_samples *b) {
    const size_t n = a->n < b->n ? a->n : b->n;
    double *ln freed = nb_alloc(n + 1, sizeof *ln);
    for (size_t i = 0; i < n; i++) ln[i] = log(a->ns[i] / b->ns[i]);
    return medians(ln, n, a, b);
}

static bool is_among(enum nb_pairs which, size_t block, const struct nb_samples *a, const struct nb_samples *b) {
    const bool half_a = block / 2 % 2 == 0;
    switch (which) {
    case NB_PAIRS_FIRST:
        return a->position[block] < b->position[block];
    case NB_PAIRS_SECOND:
        return a->position[block] >= b->position[block];
    case NB_PAIRS_HALF_A:
        return half_a;
    case NB_PAIRS_HALF_B:
        return !half_a;
    default:
        return true;
    }
}

double nb_paired_ln(const struct nb_samples *a, const struct nb_samples *b, enum nb_pairs which) {
    const size_t most = a->n < b->n ? a->n : b->n;
    assert((which != NB_PAIRS_FIRST && which != NB_PAIRS_SECOND) || (a->position && b->position));
    double *ratios freed = nb_alloc(most + 1, sizeof *ratios);
    size_t n = 0;
    for (size_t i = 0; i < most; i++) {
        const double ratio = log(a->ns[i] / b->ns[i]);
        if (isfinite(ratio) && is_among(which, i, a, b)) ratios[n++] = ratio;
    }
    return n ? nb_median(ratios, n) : (double)NAN;
}

static bool is_preempted(const struct nb_samples *s, size_t block) { return s->preempted && s->preempted[block]; }

double nb_paired_preempted(const struct nb_samples *a, const struct nb_samples *b) {
    int hit = 0, n = 0;
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        if (!isfinite(a->ns[i]) || !isfinite(b->ns[i])) continue;
        n++;
        hit += is_preempted(a, i) || is_preempted(b, i);
    }
    return n ? (double)hit / n : (double)NAN;
}

#define N(KIND, field) NB_MEMBER(KIND, struct nb_noise, field)
const struct nb_member nb_noise_members[] = {N(NUMBER, steal_ms), N(NUMBER, involuntary), N(NUMBER, voluntary),
                                             N(NUMBER, wall_s),   N(NUMBER, cpu_s),       N(NUMBER, throttled),
                                             N(INDEX, cpu),       N(INDEX, threads),      NB_MEMBERS_END};

/* ---- over launches ----------------------------------------------------------------------------------------------- */

struct nb_interval nb_over_launches(const double *v, size_t n, double confidence) {
    double *known freed = nb_alloc(n + 1, sizeof *known);
    size_t n_known = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(v[i])) known[n_known++] = v[i];
    return nb_hodges_lehmann(known, n_known, confidence);
}

struct nb_interval nb_interval_exp(struct nb_interval ln) {
    return (struct nb_interval){exp(ln.value), exp(ln.low), exp(ln.high)};
}

double nb_confidence(bool adaptive) { return adaptive ? 0.975 : 0.95; }

/* All values on one side of the truth: 2 / 2^n. */
int nb_fewest_launches(double confidence) {
    assert(confidence > 0 && confidence < 1);
    return (int)ceil(1 - log2(1 - confidence));
}

struct nb_interval nb_ratio_over_launches(const double *ln, size_t n, double confidence) {
    return nb_interval_exp(nb_over_launches(ln, n, confidence));
}

enum nb_state nb_state_over_launches(const struct nb_by_state *v, size_t n, double confidence) {
    size_t counts[NB_N_STATES] = {0};
    for (size_t i = 0; i < n; i++)
        for (int s = 0; s < NB_N_STATES; s++) counts[s] += isfinite(v[i].ln[s]);
    return nb_state_of_figure(counts, (size_t)nb_fewest_launches(confidence));
}

struct nb_interval nb_ratio_in_state(const struct nb_by_state *v, size_t n, enum nb_state state, double confidence) {
    double *ln freed = nb_alloc(n + 1, sizeof *ln);
    for (size_t i = 0; i < n; i++) ln[i] = v[i].ln[state];
    return nb_ratio_over_launches(ln, n, confidence);
}

static int zigzag(int i, int n) { return i % 2 ? (i + 1) / 2 : (n - i / 2) % n; }

/* Rows of a Latin square whose first is 0, 1, n-1, 2, n-2, ..: the steps between neighbours are all different. */
void nb_turns(int *order, int n, int round) {
    assert(n > 0 && round >= 0);
    /* For odd n a row's steps come in one direction alone; its mirror image has the other. */
    const int rows = n % 2 ? 2 * n : n, row = round % rows;
    for (int i = 0; i < n; i++) order[row < n ? i : n - 1 - i] = (zigzag(i, n) + row) % n;
}

/* ---- all samples of a run ---------------------------------------------------------------------------------------- */

static struct nb_sample_case *case_of(struct nb_sample_table *s, const char *key, int part) {
    const size_t at = nb_text_map_find(&s->index, key);
    if (at != NB_NOWHERE) return &s->cases[at];
    if ((s->n & (s->n - 1)) == 0) s->cases = nb_realloc(s->cases, s->n ? 2 * s->n : 1, sizeof *s->cases);
    struct nb_sample_case *c = &s->cases[s->n];
    *c = (struct nb_sample_case){.key = nb_strdup(key), .part = part};
    nb_text_map_add(&s->index, c->key, s->n++);
    return c;
}

static void take_plan(struct nb_sample_table *s, const cJSON *run) {
    const cJSON *group, *key, *groups = nb_json_get(run, "groups");
    s->adaptive = nb_json_get_number(nb_json_get(run, "plan"), "most_launches") > 0;
    s->references = nb_alloc((unsigned)cJSON_GetArraySize(groups) + 1, sizeof *s->references);
    s->families = nb_alloc((unsigned)cJSON_GetArraySize(groups) + 1, sizeof *s->families);
    cJSON_ArrayForEach(group, groups) {
        const double at = nb_json_get_number(group, "reference"), family = nb_json_get_number(group, "family");
        const cJSON *keys = nb_json_get(group, "keys");
        const cJSON *reference = at >= 0 && at < 1e9 ? cJSON_GetArrayItem(keys, (int)at) : NULL;
        cJSON_ArrayForEach(key, keys) {
            if (cJSON_IsString(key)) case_of(s, key->valuestring, (int)s->n_parts);
        }
        s->families[s->n_parts] = family >= 0 && family < 1e9 ? (int)family : -1;
        s->references[s->n_parts++] = cJSON_IsString(reference) ? nb_strdup(reference->valuestring) : NULL;
    }
}

/* row: but for what stands beside the samples. */
static int take_case(struct nb_sample_table *s, const cJSON *json, struct nb_sample_row row, double floor) {
    const char *key = nb_json_get_text(json, "key");
    if (!key || !cJSON_IsArray(nb_json_get(json, "sample_ns"))) return 0;
    struct nb_sample_case *c = case_of(s, key, row.part);
    row.per_sample = nb_json_get_number(json, "per_sample");
    row.chunked = nb_json_get_bool(json, "chunked");
    if (nb_samples_from_json(&row.samples, json, floor) != 0) {
        nb_samples_release(&row.samples);
        return -1;
    }
    *NB_PUSH(c->rows, c->n) = row;
    if ((size_t)row.launch >= s->n_launches) s->n_launches = (size_t)row.launch + 1;
    return 0;
}

static int take_line(const cJSON *line, void *arg) {
    struct nb_sample_table *s = arg;
    const char *type = nb_json_get_text(line, "type");
    const double part = nb_json_get_number(line, "group"), launch = nb_json_get_number(line, "launch");
    const cJSON *item;
    if (type && strcmp(type, "run") == 0 && !s->references) take_plan(s, line);
    if (!type || strcmp(type, "launch") != 0 || !(part >= 0 && part < (double)s->n_parts) ||
        !(launch >= 0 && launch < MOST_LAUNCHES))
        return 0;
    const struct nb_sample_row row = {.part = (int)part, .launch = (int)launch, .process = s->n_processes++};
    const double floor = nb_floors_of_line(&s->floors, line);
    cJSON_ArrayForEach(item, nb_json_get(line, "cases")) {
        if (take_case(s, item, row, floor) != 0) return -1;
    }
    return 0;
}

int nb_sample_table_read(struct nb_sample_table *s, const char *dir) {
    *s = (struct nb_sample_table){0};
    if (nb_journal_floors(dir, &s->floors) >= 0 && nb_journal_read(dir, take_line, s) >= 0) return 0;
    nb_sample_table_release(s);
    return -1;
}

void nb_sample_table_release(struct nb_sample_table *s) {
    for (size_t i = 0; i < s->n; i++) {
        for (size_t j = 0; j < s->cases[i].n; j++) nb_samples_release(&s->cases[i].rows[j].samples);
        free(s->cases[i].rows);
        free(s->cases[i].key);
    }
    for (size_t i = 0; i < s->n_parts; i++) free(s->references[i]);
    free(s->references);
    free(s->families);
    free(s->cases);
    nb_text_map_release(&s->index);
    nb_floors_release(&s->floors);
    *s = (struct nb_sample_table){0};
}

/* ---- ratios ---- */

static const struct nb_sample_case *find(const struct nb_sample_table *s, const char *key) {
    const size_t at = key ? nb_text_map_find(&s->index, key) : NB_NOWHERE;
    return at == NB_NOWHERE ? NULL : &s->cases[at];
}

static struct nb_by_state log_ratio(const struct nb_sample_row *a, const struct nb_sample_row *b) {
    return a->process == b->process ? nb_pairs_ln(&a->samples, &b->samples) : NB_NO_STATE;
}

static struct nb_by_state minus(struct nb_by_state a, struct nb_by_state b) {
    for (int s = 0; s < NB_N_STATES; s++) a.ln[s] -= b.ln[s];
    return a;
}
static bool is_known(const struct nb_by_state *v) { return isfinite(v->ln[NB_ANY_STATE]); }

static const struct nb_sample_row *row_at(const struct nb_sample_case *c, int part, int launch) {
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].part == part && c->rows[i].launch == launch) return &c->rows[i];
    return NULL;
}

/* Each fills ln by launch, and returns how many launches have a value. */
typedef size_t gathering(const struct nb_sample_table *s, const struct nb_sample_case *a,
                         const struct nb_sample_case *b, struct nb_by_state *ln);

/* The launches of the first part that holds both. */
static size_t gather(const struct nb_sample_table *s, const struct nb_sample_case *a, const struct nb_sample_case *b,
                     struct nb_by_state *ln) {
    size_t n = 0;
    int part = -1;
    for (size_t i = 0; i < a->n; i++) {
        const struct nb_sample_row *other = row_at(b, a->rows[i].part, a->rows[i].launch);
        if (!other || (part >= 0 && a->rows[i].part != part)) continue;
        part = a->rows[i].part;
        ln[a->rows[i].launch] = log_ratio(&a->rows[i], other);
        n += is_known(&ln[a->rows[i].launch]);
    }
    return n;
}

static const struct nb_sample_row *neighbour(const struct nb_sample_table *s, const struct nb_sample_case *c,
                                             const struct nb_sample_row *of) {
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].launch == of->launch && s->families[of->part] >= 0 &&
            s->families[c->rows[i].part] == s->families[of->part])
            return &c->rows[i];
    return NULL;
}

static size_t gather_neighbours(const struct nb_sample_table *s, const struct nb_sample_case *a,
                                const struct nb_sample_case *b, struct nb_by_state *ln) {
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct nb_sample_row *other = neighbour(s, b, &a->rows[i]);
        if (!other || is_known(&ln[a->rows[i].launch])) continue;
        ln[a->rows[i].launch] = minus(nb_samples_ln(&a->rows[i].samples), nb_samples_ln(&other->samples));
        n += is_known(&ln[a->rows[i].launch]);
    }
    return n;
}

static bool same_reference(const struct nb_sample_table *s, int part, int other) {
    return s->references[part] && s->references[other] && strcmp(s->references[part], s->references[other]) == 0;
}

/* ln a/r - ln b/r, launch by launch: the parts of a group are other processes, so that nothing but their order pairs them. */
static size_t gather_through(const struct nb_sample_table *s, const struct nb_sample_case *a,
                             const struct nb_sample_case *b, struct nb_by_state *ln) {
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct nb_sample_case *r = find(s, s->references[a->rows[i].part]);
        const struct nb_sample_row *mine = r ? row_at(r, a->rows[i].part, a->rows[i].launch) : NULL;
        for (size_t j = 0; mine && j < b->n; j++) {
            const struct nb_sample_row *theirs = row_at(r, b->rows[j].part, b->rows[j].launch);
            if (b->rows[j].launch != a->rows[i].launch || !theirs ||
                !same_reference(s, a->rows[i].part, b->rows[j].part))
                continue;
            ln[a->rows[i].launch] = minus(log_ratio(&a->rows[i], mine), log_ratio(&b->rows[j], theirs));
            n += is_known(&ln[a->rows[i].launch]);
            break;
        }
    }
    return n;
}

struct nb_paired nb_paired_ratio(const struct nb_sample_table *s, const char *a_key, const char *b_key, double *ln) {
    static gathering *const ways[] = {gather, gather_through, gather_neighbours};
    struct nb_paired p = {.ratio = {NAN, NAN, NAN}, .contended = {NAN, NAN, NAN}, .state = NB_ANY_STATE};
    const struct nb_sample_case *a = find(s, a_key), *b = find(s, b_key);
    const double confidence = nb_confidence(s->adaptive);
    struct nb_by_state *values freed = nb_alloc(s->n_launches + 1, sizeof *values);
    for (size_t l = 0; l < s->n_launches; l++) values[l] = NB_NO_STATE;
    size_t n = 0;
    for (int way = 0; a && b && n == 0 && way < 3; way++) n = ways[way](s, a, b, values);
    p.state = nb_state_over_launches(values, s->n_launches, confidence);
    if (n > 0) p.ratio = nb_ratio_in_state(values, s->n_launches, p.state, confidence);
    if (p.state == NB_UNCONTENDED) p.contended = nb_ratio_in_state(values, s->n_launches, NB_CONTENDED, confidence);
    for (size_t l = 0; l < s->n_launches; l++) {
        p.n_launches += isfinite(values[l].ln[p.state]);
        if (ln) ln[l] = values[l].ln[p.state];
    }
    return p;
}
