// SPDX-License-Identifier: Apache-2.0
/* Parameters, their updates and the loss scale. */
#include "src/train/parameters.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/text.h"
#include "src/train/tensor.h"

static int64_t size_of(const struct nb_parameter *p) { return p->rows * p->cols; }

/* More than a transformer of 256 layers has; pages that are not used cost nothing. */
enum { MOST_PARAMETERS = 256 * 16 + 16 };

struct nb_place nb_place_of(const char *place, const char *what) {
    struct nb_place out = {0};
    const int length = snprintf(out.text, sizeof out.text, "%s%s%s", place, *place && *what ? "." : "", what);
    assert(length < (int)sizeof out.text);
    (void)length;
    return out;
}

/* Values and gradient zero. */
static struct nb_parameter *add(struct nb_parameters *p, const char *place, const char *what, int64_t rows,
                                int64_t cols) {
    if (!p->items) p->items = nb_alloc(MOST_PARAMETERS, sizeof *p->items); /* items do not move */
    assert(p->n < MOST_PARAMETERS && rows > 0 && cols > 0);
    struct nb_parameter *item = &p->items[p->n++];
    const unsigned long long n = (unsigned long long)(rows * cols);
    *item = (struct nb_parameter){
        .rows = rows, .cols = cols, .value = nb_alloc(n, sizeof(float)), .gradient = nb_alloc(n, sizeof(float))};
    memcpy(item->name, nb_place_of(place, what).text, sizeof item->name);
    return item;
}

/* The first values of the matrix, where another model has it. */
static bool copy_from(const struct nb_parameters *like, struct nb_parameter *item) {
    const struct nb_parameter *there = like ? nb_parameter_find(like, item->name) : NULL;
    if (!there || !there->decays || there->rows != item->rows || there->cols != item->cols ||
        there->seed != item->seed || there->deviation != item->deviation)
        return false;
    assert(like->step == 0);
    memcpy(item->value, there->value, (size_t)size_of(item) * sizeof *item->value);
    return true;
}

struct nb_parameter *nb_parameter_matrix(struct nb_parameters *p, const char *place, const char *what, int64_t rows,
                                         int64_t cols, uint64_t seed, double deviation) {
    struct nb_parameter *item = add(p, place, what, rows, cols);
    item->decays = true;
    item->seed = seed;
    item->deviation = deviation;
    if (copy_from(p->like, item)) return item;
    const struct nb_random r = nb_random_stream(seed, nb_hash_text(item->name));
    for (int64_t i = 0; i < size_of(item); i++) item->value[i] = (float)(deviation * nb_random_normal(r, (uint64_t)i));
    return item;
}

struct nb_parameter *nb_parameter_vector(struct nb_parameters *p, const char *place, const char *what, int64_t n,
                                         float value) {
    struct nb_parameter *item = add(p, place, what, 1, n);
    for (int64_t i = 0; i < n; i++) item->value[i] = value;
    return item;
}

struct nb_parameter *nb_parameter_find(const struct nb_parameters *p, const char *name) {
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->items[i].name, name) == 0) return &p->items[i];
    return NULL;
}

static bool is_rounded(const struct nb_parameter *p, enum nb_dtype dtype) { return dtype != NB_F32 && p->decays; }

void nb_parameters_round(struct nb_parameters *p, enum nb_dtype dtype) {
    for (int i = 0; i < p->n; i++) {
        struct nb_parameter *item = &p->items[i];
        if (!is_rounded(item, dtype)) continue;
        if (!item->rounded) item->rounded = nb_alloc((unsigned long long)size_of(item), sizeof(float));
        memcpy(item->rounded, item->value, (size_t)size_of(item) * sizeof(float));
        nb_round_tensor(item->rounded, size_of(item), dtype);
    }
}

void nb_parameters_round_gradients(struct nb_parameters *p, enum nb_dtype dtype) {
    for (int i = 0; i < p->n; i++)
        if (is_rounded(&p->items[i], dtype)) nb_round_tensor(p->items[i].gradient, size_of(&p->items[i]), dtype);
}

const float *nb_parameter_used(const struct nb_parameter *parameter) {
    return parameter->rounded ? parameter->rounded : parameter->value;
}

void nb_parameters_zero_gradients(struct nb_parameters *p) {
    for (int i = 0; i < p->n; i++) memset(p->items[i].gradient, 0, (size_t)size_of(&p->items[i]) * sizeof(float));
}

double nb_parameters_gradient_norm(const struct nb_parameters *p) {
    double sum = 0;
    for (int i = 0; i < p->n; i++) {
        const struct nb_parameter *item = &p->items[i];
        if (item->frozen) continue;
        for (int64_t j = 0; j < size_of(item); j++) sum += (double)item->gradient[j] * (double)item->gradient[j];
    }
    return sqrt(sum);
}

void nb_parameters_scale_gradients(struct nb_parameters *p, float factor) {
    for (int i = 0; i < p->n; i++)
        for (int64_t j = 0; j < size_of(&p->items[i]); j++) p->items[i].gradient[j] *= factor;
}

int64_t nb_parameters_count(const struct nb_parameters *p) {
    int64_t n = 0;
    for (int i = 0; i < p->n; i++) n += size_of(&p->items[i]);
    return n;
}

void nb_parameters_release(struct nb_parameters *p) {
    for (int i = 0; i < p->n; i++) {
        free(p->items[i].value);
        free(p->items[i].gradient);
        free(p->items[i].rounded);
        free(p->items[i].first);
        free(p->items[i].second);
    }
    free(p->items);
    *p = (struct nb_parameters){0};
}

/* ---- updates: plain descent, and AdamW as Loshchilov & Hutter 2019 and PyTorch have it ---- */

static void descend(const struct nb_optimizer *o, struct nb_parameter *p, float decay) {
    const float rate = (float)o->learning_rate;
    for (int64_t i = 0; i < size_of(p); i++) p->value[i] -= rate * (p->gradient[i] + decay * p->value[i]);
}

/* What is the same for all elements of a step. */
struct adam {
    float keep, beta1, beta2, take1, take2, rate, root,
        eps; /* take: 1 - beta; rate and root hold the corrections of the bias */
};

static void adapt(struct nb_parameter *p, struct adam a) {
    float *restrict value = p->value, *restrict first = p->first, *restrict second = p->second;
    const float *restrict gradient = p->gradient;
    for (int64_t i = 0; i < size_of(p); i++) {
        const float g = gradient[i];
        first[i] = a.beta1 * first[i] + a.take1 * g;
        second[i] = a.beta2 * second[i] + a.take2 * g * g;
        value[i] = a.keep * value[i] - a.rate * first[i] / (sqrtf(second[i]) * a.root + a.eps);
    }
}

static struct adam step_of(const struct nb_optimizer *o, int64_t step, double decay) {
    const double rate = o->learning_rate / (1 - pow(o->beta1, (double)step));
    return (struct adam){.keep = (float)(1 - o->learning_rate * decay),
                         .beta1 = (float)o->beta1,
                         .beta2 = (float)o->beta2,
                         .take1 = (float)(1 - o->beta1),
                         .take2 = (float)(1 - o->beta2),
                         .rate = (float)rate,
                         .root = (float)(1 / sqrt(1 - pow(o->beta2, (double)step))),
                         .eps = (float)o->eps};
}

void nb_optimizer_update(const struct nb_optimizer *o, struct nb_parameters *p) {
    p->step++;
    for (int i = 0; i < p->n; i++) {
        struct nb_parameter *item = &p->items[i];
        if (item->frozen) continue;
        const double decay = item->decays ? o->decay : 0;
        const unsigned long long n = (unsigned long long)size_of(item);
        if (o->kind == NB_SGD) {
            descend(o, item, (float)decay);
            continue;
        }
        if (!item->first) {
            item->first = nb_alloc(n, sizeof(float));
            item->second = nb_alloc(n, sizeof(float));
        }
        adapt(item, step_of(o, p->step, decay));
    }
}

/* ---- the loss scale: down at once, up after a long while ---- */

static const double FIRST = 65536, GROWTH = 2, BACKOFF = 0.5;
enum { GROWTH_INTERVAL = 2000 };

void nb_loss_scale_init(struct nb_loss_scale *s, enum nb_dtype dtype) {
    const bool dynamic = dtype == NB_F16;
    *s = (struct nb_loss_scale){.dynamic = dynamic, .scale = dynamic ? FIRST : 1, .growth_interval = GROWTH_INTERVAL};
}

bool nb_loss_scale_update(struct nb_loss_scale *s, bool gradients_are_finite) {
    if (!s->dynamic) return true;
    if (!gradients_are_finite) {
        s->scale *= BACKOFF;
        s->good_steps = 0;
        s->skipped_steps++;
        return false;
    }
    if (++s->good_steps == s->growth_interval) {
        s->scale *= GROWTH;
        s->good_steps = 0;
    }
    return true;
}
