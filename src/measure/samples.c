// SPDX-License-Identifier: Apache-2.0
/* Launch lines of a journal by case, and paired ratios of any two of them. */
#include "src/measure/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/journal.h"

enum { MOST_LAUNCHES = 1000000 };

static struct nb_sample_case *case_of(struct nb_sample_table *s, const char *key) {
    const size_t at = nb_text_map_find(&s->index, key);
    if (at != NB_NOWHERE) return &s->cases[at];
    if ((s->n & (s->n - 1)) == 0) s->cases = nb_realloc(s->cases, s->n ? 2 * s->n : 1, sizeof *s->cases);
    struct nb_sample_case *c = &s->cases[s->n];
    *c = (struct nb_sample_case){.key = nb_strdup(key)};
    nb_text_map_add(&s->index, c->key, s->n++);
    return c;
}

static void take_groups(struct nb_sample_table *s, const cJSON *run) {
    const cJSON *group, *groups = cJSON_GetObjectItemCaseSensitive(run, "groups");
    s->references = nb_alloc((unsigned)cJSON_GetArraySize(groups) + 1, sizeof *s->references);
    s->families = nb_alloc((unsigned)cJSON_GetArraySize(groups) + 1, sizeof *s->families);
    cJSON_ArrayForEach(group, groups) {
        const double at = nb_json_get_number(group, "reference"), family = nb_json_get_number(group, "family");
        const cJSON *key =
            at >= 0 && at < 1e9 ? cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(group, "keys"), (int)at) : NULL;
        s->families[s->n_parts] = family >= 0 && family < 1e9 ? (int)family : -1;
        s->references[s->n_parts++] = cJSON_IsString(key) ? nb_strdup(key->valuestring) : NULL;
    }
}

static void take_case(struct nb_sample_table *s, const cJSON *json, int part, int launch) {
    const char *key = nb_json_get_text(json, "key");
    const cJSON *samples = cJSON_GetObjectItemCaseSensitive(json, "sample_ns"), *sample;
    if (!key || !cJSON_IsArray(samples)) return;
    struct nb_sample_case *c = case_of(s, key);
    struct nb_sample_row row = {.part = part, .launch = launch};
    row.ns = nb_alloc((unsigned)cJSON_GetArraySize(samples) + 1, sizeof *row.ns);
    cJSON_ArrayForEach(sample, samples) row.ns[row.n++] =
        cJSON_IsNumber(sample) && sample->valuedouble > 0 ? sample->valuedouble : (double)NAN;
    c->rows = nb_realloc(c->rows, c->n + 1, sizeof *c->rows);
    c->rows[c->n++] = row;
    if ((size_t)launch >= s->n_launches) s->n_launches = (size_t)launch + 1;
}

static int take_line(const cJSON *line, void *arg) {
    struct nb_sample_table *s = arg;
    const char *type = nb_json_get_text(line, "type");
    const double part = nb_json_get_number(line, "group"), launch = nb_json_get_number(line, "launch");
    const cJSON *item;
    if (type && strcmp(type, "run") == 0 && !s->references) take_groups(s, line);
    if (!type || strcmp(type, "launch") != 0 || !(part >= 0 && part < (double)s->n_parts) ||
        !(launch >= 0 && launch < MOST_LAUNCHES))
        return 0;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(line, "cases"))
        take_case(s, item, (int)part, (int)launch);
    return 0;
}

int nb_samples_read(struct nb_sample_table *s, const char *dir) {
    *s = (struct nb_sample_table){0};
    return nb_journal_read(dir, take_line, s) < 0 ? -1 : 0;
}

void nb_samples_release(struct nb_sample_table *s) {
    for (size_t i = 0; i < s->n; i++) {
        for (size_t j = 0; j < s->cases[i].n; j++) free(s->cases[i].rows[j].ns);
        free(s->cases[i].rows);
        free(s->cases[i].key);
    }
    for (size_t i = 0; i < s->n_parts; i++) free(s->references[i]);
    free(s->references);
    free(s->families);
    free(s->cases);
    nb_text_map_release(&s->index);
    *s = (struct nb_sample_table){0};
}

/* ---- ratios ---- */

static const struct nb_sample_case *find(const struct nb_sample_table *s, const char *key) {
    const size_t at = key ? nb_text_map_find(&s->index, key) : NB_NOWHERE;
    return at == NB_NOWHERE ? NULL : &s->cases[at];
}

static double log_ratio(const struct nb_sample_row *a, const struct nb_sample_row *b) {
    const size_t most = a->n < b->n ? a->n : b->n;
    double *v = nb_alloc(most + 1, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < most; i++) {
        const double ratio = log(a->ns[i] / b->ns[i]);
        if (isfinite(ratio)) v[n++] = ratio;
    }
    const double median = n ? nb_median(v, n) : (double)NAN;
    free(v);
    return median;
}

static const struct nb_sample_row *row_at(const struct nb_sample_case *c, int part, int launch) {
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].part == part && c->rows[i].launch == launch) return &c->rows[i];
    return NULL;
}

static double ln_median(const struct nb_sample_row *r) {
    double *v = nb_alloc(r->n + 1, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (isfinite(r->ns[i])) v[n++] = r->ns[i];
    const double median = n ? log(nb_median(v, n)) : (double)NAN;
    free(v);
    return median;
}

/* Each fills ln by launch, and returns how many launches have a value. */
typedef size_t gathering(const struct nb_sample_table *s, const struct nb_sample_case *a,
                         const struct nb_sample_case *b, double *ln);

/* The launches of the first part that holds both. */
static size_t gather(const struct nb_sample_table *s, const struct nb_sample_case *a, const struct nb_sample_case *b,
                     double *ln) {
    size_t n = 0;
    int part = -1;
    (void)s;
    for (size_t i = 0; i < a->n; i++) {
        const struct nb_sample_row *other = row_at(b, a->rows[i].part, a->rows[i].launch);
        if (!other || (part >= 0 && a->rows[i].part != part)) continue;
        part = a->rows[i].part;
        ln[a->rows[i].launch] = log_ratio(&a->rows[i], other);
        n += isfinite(ln[a->rows[i].launch]);
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
                                const struct nb_sample_case *b, double *ln) {
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct nb_sample_row *other = neighbour(s, b, &a->rows[i]);
        if (!other || isfinite(ln[a->rows[i].launch])) continue;
        ln[a->rows[i].launch] = ln_median(&a->rows[i]) - ln_median(other);
        n += isfinite(ln[a->rows[i].launch]);
    }
    return n;
}

static bool same_reference(const struct nb_sample_table *s, int part, int other) {
    return s->references[part] && s->references[other] && strcmp(s->references[part], s->references[other]) == 0;
}

/* ln a/r - ln b/r, launch by launch: the parts of a group are other processes, so that nothing but their order pairs them. */
static size_t gather_through(const struct nb_sample_table *s, const struct nb_sample_case *a,
                             const struct nb_sample_case *b, double *ln) {
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct nb_sample_case *r = find(s, s->references[a->rows[i].part]);
        const struct nb_sample_row *mine = r ? row_at(r, a->rows[i].part, a->rows[i].launch) : NULL;
        for (size_t j = 0; mine && j < b->n; j++) {
            const struct nb_sample_row *theirs = row_at(r, b->rows[j].part, b->rows[j].launch);
            if (b->rows[j].launch != a->rows[i].launch || !theirs ||
                !same_reference(s, a->rows[i].part, b->rows[j].part))
                continue;
            ln[a->rows[i].launch] = log_ratio(&a->rows[i], mine) - log_ratio(&b->rows[j], theirs);
            n += isfinite(ln[a->rows[i].launch]);
            break;
        }
    }
    return n;
}

static struct nb_interval interval_of(const double *ln, size_t n_launches) {
    double *values = nb_alloc(n_launches + 1, sizeof *values);
    size_t n = 0;
    for (size_t l = 0; l < n_launches; l++)
        if (isfinite(ln[l])) values[n++] = ln[l];
    const struct nb_interval v = nb_hodges_lehmann(values, n, 0.95);
    free(values);
    return (struct nb_interval){exp(v.value), exp(v.low), exp(v.high)};
}

struct nb_paired nb_samples_ratio(const struct nb_sample_table *s, const char *a_key, const char *b_key, double *ln) {
    static gathering *const ways[] = {
        [NB_WITHIN_BLOCKS] = gather, [NB_THROUGH_REFERENCE] = gather_through, [NB_NEIGHBOURS] = gather_neighbours};
    struct nb_paired p = {.ratio = {NAN, NAN, NAN}};
    const struct nb_sample_case *a = find(s, a_key), *b = find(s, b_key);
    double *values = nb_alloc(s->n_launches + 1, sizeof *values);
    for (size_t l = 0; l < s->n_launches; l++) values[l] = NAN;
    size_t n = 0;
    for (int way = NB_WITHIN_BLOCKS; a && b && n == 0 && way <= NB_NEIGHBOURS; way++) {
        n = ways[way](s, a, b, values);
        p.pairing = (enum nb_pairing)way;
    }
    if (n > 0) p.ratio = interval_of(values, s->n_launches);
    p.n_launches = (int)n;
    if (ln) memcpy(ln, values, s->n_launches * sizeof *ln);
    free(values);
    return p;
}
