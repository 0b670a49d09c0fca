// SPDX-License-Identifier: Apache-2.0
/* Gradients of BatchNorm as fast as memory allows: both sums in one pass over x and dy, then
 *   dx = weight * dy + (slope * (x - mean) + constant),
 *   weight = w * rstd, slope = -weight * rstd * dgamma / N, constant = -weight * dbeta / N,
 * two fused operations an element, from the cache that the first pass filled. In inference dx depends on no sum, and that of a
 * matrix is stored in the first pass. Errors: those of the sums (chain), and six roundings of terms no larger than those of the textbook's
 * form. */
#include "kernels/batchnorm/batchnorm.h"
#include "kernels/batchnorm/slab_work.h"

static struct pages backward_pages(const struct nb_call *call) {
    return (struct pages){.x = call->x,
                          .g = call->dy,
                          .out = call->dx,
                          .x_stride = call->x_stride,
                          .g_stride = call->dy_stride,
                          .out_stride = call->dx_stride,
                          .prefetch = prefetches_planes(call, 3),
                          .stream = call_streams(call, 3)};
}

/* ---- planes -------------------------------------------------------------------------------------------------------------- */

/* t: sums of dy and of dy * (x - mean). */
static struct line finish_plane_channel(const struct nb_call *call, int64_t channel, struct slab_totals t) {
    const double rstd = call->rstd[channel], n = (double)values_per_channel(call);
    const double weight = gamma_of(call, channel) * rstd, dgamma = t.product * rstd;
    if (call->dgamma) call->dgamma[channel] = (float)dgamma;
    if (call->dbeta) call->dbeta[channel] = (float)t.sum;
    return (struct line){.about = call->mean[channel],
                         .slope = (float)(-weight * rstd * dgamma / n),
                         .constant = (float)(-weight * t.sum / n),
                         .weight = (float)weight};
}
static __attribute__((noinline)) struct slab_totals span_gradients(const struct pages *p, int64_t plane_step,
                                                                   const struct span *s, float mean) {
    return span_totals(p, plane_step, s, mean, true);
}
static __attribute__((noinline)) void gradient_planes(const struct pages *p, int64_t plane_step, const struct span *s,
                                                      const struct plane_lines *l) {
    line_span(p, plane_step, s, l, (struct line_form){.slope = true, .weight = true});
}
/* has_next: a channel follows, whose planes are prefetched meanwhile; then the last plane comes first. */
static __attribute__((noinline)) void stream_planes(const struct pages *p, int64_t plane_step, const struct span *s,
                                                    const struct plane_lines *l, bool has_next) {
    if (has_next)
        line_span(p, plane_step, s, l,
                  (struct line_form){.slope = true, .weight = true, .stream = true, .ahead = true});
    else
        line_span(p, plane_step, s, l, (struct line_form){.slope = true, .weight = true, .stream = true});
}
static __attribute__((noinline)) void scale_planes(const struct pages *p, int64_t plane_step, const struct span *s,
                                                   const struct plane_lines *l) {
    if (p->stream)
        line_span(p, plane_step, s, l, (struct line_form){.weight = true, .stream = true});
    else
        line_span(p, plane_step, s, l, (struct line_form){.weight = true});
}
static void write_span(const struct nb_call *call, const struct pages *p, int64_t plane_step, const struct span *s,
                       const struct plane_lines *l, bool has_next) {
    if (!call->dx) return;
    if (!is_training(call))
        scale_planes(p, plane_step, s, l);
    else if (p->stream)
        stream_planes(p, plane_step, s, l, has_next);
    else
        gradient_planes(p, plane_step, s, l);
}
static struct slab_totals add_totals(struct slab_totals a, struct slab_totals b) {
    return (struct slab_totals){a.sum + b.sum, a.product + b.product};
}

static void slab_planes(const struct nb_call *call, int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; channel++) {
        const struct pages p = page_at(backward_pages(call), channel, 0);
        struct slab_totals t = {0, 0};
        for (int64_t block = 0; block < plane_blocks(call); block++) {
            const struct span s = plane_block(call, block);
            t = add_totals(t, span_gradients(&p, call->c, &s, call->mean[channel]));
        }
        const struct line line = finish_plane_channel(call, channel, t);
        write_span(call, &p, call->c, &(struct span){0, call->n, 0, call->hw}, &(struct plane_lines){&line, 1, 0},
                   channel + 1 < end);
    }
}
static void sum_plane_blocks(const struct nb_call *call, int64_t begin, int64_t end) {
    struct slab_totals *totals = block_totals(call);
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t channel = unit / plane_blocks(call);
        const struct pages p = page_at(backward_pages(call), channel, 0);
        const struct span s = plane_block(call, unit % plane_blocks(call));
        totals[unit] = span_gradients(&p, call->c, &s, call->mean[channel]);
    }
}
static void finish_plane_channels(const struct nb_call *call, int64_t begin, int64_t end) {
    struct line *lines = call->scratch;
    for (int64_t channel = begin; channel < end; channel++) {
        struct slab_totals sum = {0, 0};
        for (int64_t block = 0; sums_gradients(call) && block < plane_blocks(call); block++)
            sum = add_totals(sum, block_totals(call)[channel * plane_blocks(call) + block]);
        lines[channel] = finish_plane_channel(call, channel, sum);
    }
}
static void write_planes(const struct nb_call *call, int64_t begin, int64_t end) {
    const struct pages p = backward_pages(call);
    for (int64_t unit = begin, step = plane_parts(call) > 1 ? 1 : end - begin; unit < end; unit += step) {
        const struct span s = output_span(call, unit, end);
        write_span(call, &p, 1, &s, &(struct plane_lines){call->scratch, call->c, s.plane % call->c}, false);
    }
}
static void run_planes(const struct nb_call *call, enum slab_step step, int64_t begin, int64_t end) {
    if (step == STEP_SLABS) slab_planes(call, begin, end);
    if (step == STEP_SUMS) sum_plane_blocks(call, begin, end);
    if (step == STEP_CHANNELS) finish_plane_channels(call, begin, end);
    if (step == STEP_OUTPUT) write_planes(call, begin, end);
}

/* ---- matrix: channels [begin, end) --------------------------------------------------------------------------------------- */

/* Arrays over channels; the first four are the coefficients of a line. */
enum gradient_work { W_ABOUT, W_SLOPE, W_CONSTANT, W_WEIGHT, W_DBETA, W_DGAMMA };

/* Is there one phase less, with dx in the first? */
static bool sweeps_once(const struct nb_call *call) {
    return is_matrix(call) && !is_training(call) && sums_gradients(call);
}

static __attribute__((noinline)) void scale_columns(const struct pages *p, int64_t rows, int64_t cols,
                                                    const float *weight) {
    const struct lines l = {.weight = weight};
    line_run(p, 0, rows, cols, &l, (struct line_form){.weight = true, .stream = p->stream});
}
static __attribute__((noinline)) void tile_gradients(const struct pages *p, int64_t rows, int64_t cols,
                                                     const struct column_arrays *a) {
    sum_tile(p, rows, cols, a, true, scale_columns);
}
/* What dy is multiplied by, by columns. */
static const float *block_weights(const struct nb_call *call, const struct matrix *m, int64_t block, int64_t begin,
                                  int64_t end) {
    const struct work w = matrix_work(call, m);
    float *column = block_work(&w, block, B_WEIGHT) + begin * m->group;
    if (m->group == 1) {
        store_gamma(call, column, begin, end);
        for (int64_t i = begin; i < end; i++) column[i - begin] *= call->rstd[i];
        return column;
    }
    for (int64_t channel = begin; channel < end; channel++) {
        const float weight = gamma_of(call, channel) * call->rstd[channel];
        spread(&weight, column + (channel - begin) * m->group, 1, m->group);
    }
    return column;
}
static void sum_channels(const struct nb_call *call, const struct matrix *m, int64_t block, int64_t begin,
                         int64_t end) {
    const struct work w = matrix_work(call, m);
    const float *about = call->mean + begin;
    if (m->group > 1) {
        float *to = block_work(&w, block, B_ABOUT) + begin * m->group;
        spread(about, to, end - begin, m->group);
        about = to;
    }
    const float *weight = sweeps_once(call) && call->dx ? block_weights(call, m, block, begin, end) : NULL;
    sum_block_of(call, m, backward_pages(call), block, begin, end, about, weight, tile_gradients);
}

/* gamma is stored where the weight will be. */
static void finish_lanes(const struct nb_call *call, const struct work *w, int64_t i, int64_t lanes) {
    const vec n = vec_set1((float)values_per_channel(call)), zero = vec_set1(0.0f);
    const vec rstd = typed_load_lanes(call->rstd, i, lanes, false);
    const vec weight = typed_load_lanes(channel_work(w, W_WEIGHT), i, lanes, false) * rstd;
    const vec dbeta = typed_load_lanes(channel_work(w, W_DBETA), i, lanes, false);
    const vec dgamma = typed_load_lanes(channel_work(w, W_DGAMMA), i, lanes, false) * rstd;
    typed_store_lanes(channel_work(w, W_WEIGHT), i, weight, lanes, false);
    typed_store_lanes(channel_work(w, W_ABOUT), i, typed_load_lanes(call->mean, i, lanes, false), lanes, false);
    typed_store_lanes(channel_work(w, W_CONSTANT), i, zero - weight * (dbeta / n), lanes, false);
    typed_store_lanes(channel_work(w, W_SLOPE), i, zero - weight * (rstd * (dgamma / n)), lanes, false);
    if (call->dgamma) typed_store_lanes(call->dgamma, i, dgamma, lanes, false);
    if (call->dbeta) typed_store_lanes(call->dbeta, i, dbeta, lanes, false);
}
static void finish_channels(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end) {
    const struct work w = matrix_work(call, m);
    float *dbeta = channel_work(&w, W_DBETA) + begin, *dgamma = channel_work(&w, W_DGAMMA) + begin;
    if (sums_gradients(call)) {
        gather_channels(&w, m, B_SUM, begin, end, dbeta);
        gather_channels(&w, m, B_PRODUCT, begin, end, dgamma);
    } else {
        memset(dbeta, 0, (size_t)(end - begin) * sizeof(float));
        memset(dgamma, 0, (size_t)(end - begin) * sizeof(float));
    }
    store_gamma(call, channel_work(&w, W_WEIGHT) + begin, begin, end);
    for (int64_t i = begin; i < end; i += NB_LANES) finish_lanes(call, &w, i, end - i < NB_LANES ? end - i : NB_LANES);
    if (!sweeps_once(call)) spread_coefficients(&w, m, N_COEFFICIENTS, begin, end);
}

static __attribute__((noinline)) void gradient_columns(const struct pages *p, int64_t rows, int64_t cols,
                                                       const struct lines *l) {
    line_matrix(p, rows, cols, l, (struct line_form){.slope = true, .weight = true});
}
static __attribute__((noinline)) void stream_columns(const struct pages *p, int64_t rows, int64_t cols,
                                                     const struct lines *l) {
    line_matrix(p, rows, cols, l, (struct line_form){.slope = true, .weight = true, .stream = true});
}
/* Rows [begin, end) of the columns of channels [first, last), which lie next to each other. */
static void write_run(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end, int64_t first,
                      int64_t last) {
    const struct work w = matrix_work(call, m);
    const int64_t col = first * m->group, cols = (last - first) * m->group;
    const struct pages p = matrix_page(call, backward_pages(call), begin, first);
    const struct lines l = {.about = column_work(&w, m, W_ABOUT) + col,
                            .slope = column_work(&w, m, W_SLOPE) + col,
                            .constant = column_work(&w, m, W_CONSTANT) + col,
                            .weight = column_work(&w, m, W_WEIGHT) + col};
    if (!is_training(call))
        scale_columns(&p, end - begin, cols, l.weight);
    else if (p.stream)
        stream_columns(&p, end - begin, cols, &l);
    else
        gradient_columns(&p, end - begin, cols, &l);
}
static void write_columns(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end, int64_t first,
                          int64_t last) {
    const struct pages p = backward_pages(call);
    if (call->dx) each_run(call, m, &p, begin, end, first, last, write_run);
}
static void slab_strip(const struct nb_call *call, const struct matrix *m, int64_t first, int64_t last) {
    sum_channels(call, m, 0, first, last);
    finish_channels(call, m, first, last);
    if (!sweeps_once(call)) write_columns(call, m, 0, m->rows, first, last);
}
static void run_matrix(const struct nb_call *call, enum slab_step step, int64_t begin, int64_t end) {
    const struct matrix m = matrix_of(call);
    if (step == STEP_SLABS) each_strip(call, &m, begin, end, slab_strip);
    if (step == STEP_SUMS)
        for (int64_t block = begin; block < end; block++) sum_channels(call, &m, block, 0, call->c);
    if (step == STEP_CHANNELS) finish_channels(call, &m, begin, end);
    if (step == STEP_OUTPUT) write_columns(call, &m, begin, end, 0, call->c);
}

/* ---- contract ------------------------------------------------------------------------------------------------------------ */

static int batchnorm_backward_fast_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const enum slab_step step = slab_step(call, sums_gradients(call), phase);
    if (begin >= end) return 0;
    if (is_matrix(call))
        run_matrix(call, step, begin, end);
    else
        run_planes(call, step, begin, end);
    if (call_streams(call, 3)) raw_stream_end();
    return 0;
}
static int batchnorm_backward_fast_n_phases(const struct nb_call *call) {
    const int n = slab_phases(call, sums_gradients(call));
    return n > 1 && sweeps_once(call) ? n - 1 : n;
}
static int64_t batchnorm_backward_fast_n_units(const struct nb_call *call, int phase) {
    return slab_units(call, slab_step(call, sums_gradients(call), phase));
}
/* Called before it is known which outputs are wanted. */
static size_t batchnorm_backward_fast_scratch_bytes(const struct nb_call *call) {
    const size_t with_sums = slab_scratch(call, true);
    const size_t without = slab_scratch(call, false);
    return with_sums > without ? with_sums : without;
}

/* In training by slabs. */
NB_KERNEL(batchnorm_backward_fast, .summary = "gradients of BatchNorm, both sums in one pass, dx from the cache",
          .op = NB_OP_BATCHNORM, .pass = NB_BACKWARD, .flags = NB_FLAG_STREAMS_BEYOND, .formulas = {NB_EVERY_GRADIENT},
          .loads = 2, .stores = 1, .flops = 9, .run = batchnorm_backward_fast_run, .applicable = batchnorm_applicable,
          .chain = slab_chain, .column_chain = slab_chain, .scratch_bytes = batchnorm_backward_fast_scratch_bytes,
          .n_phases = batchnorm_backward_fast_n_phases, .n_units = batchnorm_backward_fast_n_units);
