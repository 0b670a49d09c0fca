// SPDX-License-Identifier: Apache-2.0
/* BatchNorm as fast as memory allows: statistics in one look about the channel's first value, a second look only where that value
 * was a poor choice, and the output from the cache that the first look filled. Error of the variance: (1 + rho'^2) (3 h + 8) u,
 * h = chain, rho' at most 4 after the second look; errors do not grow with the mean of the data. In inference the running
 * statistics, with the same sweep. */
#include "kernels/batchnorm/batchnorm_fast_matrix.h"

/* ---- planes -------------------------------------------------------------------------------------------------------------- */

static void slab_planes(const struct nb_call *call, int64_t begin, int64_t end) {
    const struct pages all = forward_pages(call);
    for (int64_t channel = begin; channel < end; channel++) {
        const struct pages p = page_at(all, channel, 0);
        const float shift = elem_get(p.x);
        struct channel_moments m = moments_of_totals(call, channel_totals(call, &p, shift), shift);
        m = second_look(call, &p, m);
        const struct channel_form f = trained_form(call, channel, m);
        write_span(call, &p, (struct span){0, call->n, 0, call->hw}, &f);
    }
}
static void sum_plane_blocks(const struct nb_call *call, int64_t begin, int64_t end) {
    struct totals *totals = block_totals(call, sizeof(struct channel_form));
    for (int64_t unit = begin; unit < end; unit++) {
        const struct pages p = page_at(forward_pages(call), unit / plane_blocks(call), 0);
        totals[unit] = span_moments(&p, call->c, plane_block(call, unit % plane_blocks(call)), elem_get(p.x));
    }
}
static struct channel_form combined_form(const struct nb_call *call, int64_t channel) {
    const struct pages p = page_at(forward_pages(call), channel, 0);
    const struct totals *t = block_totals(call, sizeof(struct channel_form)) + channel * plane_blocks(call);
    struct totals sum = {0, 0};
    for (int64_t block = 0; block < plane_blocks(call); block++) {
        sum.sum += t[block].sum;
        sum.product += t[block].product;
    }
    return trained_form(call, channel, second_look(call, &p, moments_of_totals(call, sum, elem_get(p.x))));
}
static void finish_plane_channels(const struct nb_call *call, int64_t begin, int64_t end) {
    struct channel_form *forms = call->scratch;
    for (int64_t channel = begin; channel < end; channel++)
        forms[channel] = is_training(call) ? combined_form(call, channel) : running_form(call, channel);
}
static void write_planes(const struct nb_call *call, int64_t begin, int64_t end) {
    const struct channel_form *forms = call->scratch;
    for (int64_t unit = begin; unit < end; unit++) {
        struct span s = plane_part(call, unit);
        const struct pages p = page_at(forward_pages(call), s.plane, 0);
        const int64_t channel = s.plane % call->c;
        s.plane = 0;
        write_span(call, &p, s, &forms[channel]);
    }
}
static void run_planes(const struct nb_call *call, enum slab_step step, int64_t begin, int64_t end) {
    if (step == STEP_SLABS) slab_planes(call, begin, end);
    if (step == STEP_SUMS) sum_plane_blocks(call, begin, end);
    if (step == STEP_CHANNELS) finish_plane_channels(call, begin, end);
    if (step == STEP_OUTPUT) write_planes(call, begin, end);
}

/* ---- matrix -------------------------------------------------------------------------------------------------------------- */

static void write_columns(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end, int64_t first,
                          int64_t last) {
    const struct pages p = forward_pages(call);
    each_run(call, m, &p, begin, end, first, last, write_run);
}
static void slab_strip(const struct nb_call *call, const struct matrix *m, int64_t first, int64_t last) {
    sum_channels(call, m, 0, first, last, NULL);
    finish_channels(call, m, first, last);
    write_columns(call, m, 0, m->rows, first, last);
}
static void run_matrix(const struct nb_call *call, enum slab_step step, int64_t begin, int64_t end) {
    const struct matrix m = matrix_of(call);
    if (step == STEP_SLABS) each_strip(call, &m, begin, end, slab_strip);
    if (step == STEP_SUMS)
        for (int64_t block = begin; block < end; block++) sum_channels(call, &m, block, 0, call->c, NULL);
    if (step == STEP_CHANNELS) finish_channels(call, &m, begin, end);
    if (step == STEP_OUTPUT) write_columns(call, &m, begin, end, 0, call->c);
}

/* ---- contract ------------------------------------------------------------------------------------------------------------ */

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const enum slab_step step = slab_step(call, is_training(call), phase);
    if (begin >= end) return 0;
    if (is_matrix(call))
        run_matrix(call, step, begin, end);
    else
        run_planes(call, step, begin, end);
    if (call_streams(call, 2)) raw_stream_end();
    return 0;
}
static int n_phases(const struct nb_call *call) { return slab_phases(call, is_training(call)); }
static int64_t n_units(const struct nb_call *call, int phase) {
    return slab_units(call, slab_step(call, is_training(call), phase));
}
static size_t scratch_bytes(const struct nb_call *call) {
    return slab_scratch(call, is_training(call), sizeof(struct channel_form));
}
static int64_t chain(const struct nb_call *call) { return is_training(call) ? slab_chain(call) : 0; }

/* In training by slabs; inference takes 3 flops. */
NB_KERNEL(batchnorm_fast, .summary = "BatchNorm, one look about the first value, output from the cache",
          .op = NB_OP_BATCHNORM, .variance = NB_VAR_SHIFTED, .formulas = BATCHNORM_FORMULAS, .loads = 1, .stores = 1,
          .flops = 7, .run = run, .applicable = batchnorm_applicable, .chain = chain, .scratch_bytes = scratch_bytes,
          .n_phases = n_phases, .n_units = n_units, .range = corrected_range);
