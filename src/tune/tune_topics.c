// SPDX-License-Identifier: Apache-2.0
/* The table, and arrangements from its settings. Sizes come from the caches of the CPU at hand, so that each regime is met. */
#include "src/tune/tune_topics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Tensors of one trial together: beyond, making them would take longer than timing them. */
static const int64_t most_bytes = (int64_t)256 << 20;

static int64_t known(int64_t bytes, int64_t usual) { return bytes > 0 ? bytes : usual; }
static int64_t l2_of(const struct nb_cpu *cpu) { return known(cpu->l2_bytes, 256 << 10); }

/* From just outside the second cache, or a sixteenth of the last, to twice the last. */
static size_t whole_calls(const struct nb_cpu *cpu, int64_t item, struct nb_tune_shape *out) {
    const int64_t cols = 2048, row = 2 * cols * item, last = known(cpu->l3_bytes, 64 * l2_of(cpu));
    int64_t size = last / 16 > 2 * l2_of(cpu) ? last / 16 : 2 * l2_of(cpu);
    size_t n = 0;
    for (; size <= 2 * last && size <= most_bytes && n < NB_TUNE_SHAPES; size *= 2) {
        const int64_t rows = size / row;
        out[n].size = rows * row;
        snprintf(out[n++].text, sizeof out->text, "%lldx%lld", (long long)rows, (long long)cols);
    }
    return n;
}

/* Sums over rows that fit the first cache, the second, and neither. */
static size_t long_rows(const struct nb_cpu *cpu, int64_t item, struct nb_tune_shape *out) {
    size_t n = 0;
    (void)item;
    for (int64_t cols = 2048; cols <= 131072; cols *= 8) {
        const int64_t rows = 4 * l2_of(cpu) / (cols * 4);
        out[n].size = cols;
        snprintf(out[n++].text, sizeof out->text, "%lldx%lld", (long long)(rows > 16 ? rows : 16), (long long)cols);
    }
    return n;
}

/* Channels of an eighth of the second cache to twice it, 8 of them, 8 images. */
static size_t channels(const struct nb_cpu *cpu, int64_t item, struct nb_tune_shape *out) {
    size_t n = 0;
    for (int64_t size = l2_of(cpu) / 8; size <= 2 * l2_of(cpu); size *= 2) {
        const int64_t positions = size / 8 / item;
        out[n].size = 8 * positions * item;
        snprintf(out[n++].text, sizeof out->text, "nchw:8x8x%lld", (long long)positions);
    }
    return n;
}

const struct nb_tune_topic nb_tune_topics[] = {
    {.name = "stores past the caches",
     .field = "stream_bytes",
     .is_threshold = true,
     .zero_is_all = true,
     .settings = {"stream_bytes=1", "stream_bytes=0"},
     .kernels = {"rmsnorm_fast"},
     .dtypes = {NB_F32},
     .n_dtypes = 1,
     .shapes = whole_calls},
    {.name = "columns of a backward call",
     .field = "column_tile",
     .settings = {"column_tile=0", "column_tile=1024", "column_tile=4096", "column_tile=16384"},
     .kernels = {"rmsnorm_backward_fast", "layernorm_backward_fast"},
     .dtypes = {NB_F32},
     .n_dtypes = 1,
     .shapes = long_rows},
    {.name = "a channel read twice",
     .field = "slab_bytes",
     .is_threshold = true,
     .settings = {"slab_bytes=0", "slab_bytes=1G"},
     .kernels = {"batchnorm_fast"},
     .dtypes = {NB_F32},
     .n_dtypes = 1,
     .shapes = channels},
};
const size_t nb_n_tune_topics = sizeof nb_tune_topics / sizeof nb_tune_topics[0];

/* ---- arrangements ---- */

enum { BEYOND, WITHIN }; /* arms of a threshold */

static void apply(struct nb_tuning *t, const char *setting) {
    char reason[200];
    const int result = nb_tuning_parse(t, setting, reason, sizeof reason);
    assert(result == 0);
    (void)result;
}

int nb_tune_arms(const struct nb_tune_topic *topic, const struct nb_tuning *base,
                 struct nb_tuning arms[NB_TUNE_SETTINGS + 1]) {
    bool has_base = topic->is_threshold;
    int n = 0;
    for (; n < NB_TUNE_SETTINGS && topic->settings[n]; n++) {
        arms[n] = *base;
        apply(&arms[n], topic->settings[n]);
        has_base |= nb_tuning_equal(&arms[n], base);
    }
    if (!has_base) arms[n++] = *base;
    return n;
}

static int64_t value_of(const struct nb_tune_topic *topic, const struct nb_tuning *t) {
    return nb_tuning_get(t, nb_tuning_field_find(topic->field));
}

static bool is_within(const struct nb_tune_topic *topic, int64_t threshold, int64_t size) {
    return (threshold == 0 && topic->zero_is_all) || size <= threshold;
}

void nb_tune_base_arms(const struct nb_tune_topic *topic, const struct nb_tuning *base,
                       const struct nb_tune_shape *shapes, size_t n_shapes, int arm[NB_TUNE_SHAPES]) {
    struct nb_tuning arms[NB_TUNE_SETTINGS + 1];
    const int n = nb_tune_arms(topic, base, arms);
    int own = topic->is_threshold ? WITHIN : 0;
    while (!topic->is_threshold && own < n - 1 && !nb_tuning_equal(&arms[own], base)) own++;
    for (size_t s = 0; s < n_shapes; s++)
        arm[s] = topic->is_threshold && !is_within(topic, value_of(topic, base), shapes[s].size) ? BEYOND : own;
}

/* Between two sizes that were looked at; beyond the last of them nothing is known, and the threshold stays at it, unless kernels
 * have a word for all. */
static int64_t threshold_after(const struct nb_tune_topic *topic, const struct nb_tune_shape *shapes, size_t n_shapes,
                               size_t n_within) {
    if (n_within == 0) return shapes[0].size - 1;
    if (n_within == n_shapes) return topic->zero_is_all ? 0 : shapes[n_shapes - 1].size;
    return (int64_t)sqrt((double)shapes[n_within - 1].size * (double)shapes[n_within].size);
}

static size_t thresholds(const struct nb_tune_topic *topic, const struct nb_tuning *base,
                         const struct nb_tune_shape *shapes, size_t n_shapes, struct nb_tune_candidate *out) {
    for (size_t within = 0; within <= n_shapes; within++) {
        struct nb_tune_candidate *c = &out[within];
        *c = (struct nb_tune_candidate){.tuning = *base};
        nb_tuning_set(&c->tuning, nb_tuning_field_find(topic->field), threshold_after(topic, shapes, n_shapes, within));
        for (size_t s = 0; s < n_shapes; s++) c->arm[s] = s < within ? WITHIN : BEYOND;
    }
    return n_shapes + 1;
}

size_t nb_tune_candidates(const struct nb_tune_topic *topic, const struct nb_tuning *base,
                          const struct nb_tune_shape *shapes, size_t n_shapes,
                          struct nb_tune_candidate out[NB_TUNE_CANDIDATES]) {
    struct nb_tuning arms[NB_TUNE_SETTINGS + 1];
    if (topic->is_threshold) return thresholds(topic, base, shapes, n_shapes, out);
    const int n = nb_tune_arms(topic, base, arms);
    for (int a = 0; a < n; a++) {
        out[a] = (struct nb_tune_candidate){.tuning = arms[a]};
        for (size_t s = 0; s < n_shapes; s++) out[a].arm[s] = a;
    }
    return (size_t)n;
}
