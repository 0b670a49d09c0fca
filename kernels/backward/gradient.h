// SPDX-License-Identifier: Apache-2.0
/* The frame of the fast row backwards: which loop runs, over which rows. */
#pragma once

#include "kernels/backward/gradient_plan.h"

/* The loops over rows, each a function of its own: those of the usual call, in which the form is constant, and one for all others. */
typedef void (*rows_fn)(const struct gradient_work *s, const struct assignment *a);
struct row_loops {
    rows_fn both, reduce, finish;
    rows_fn pairs; /* null: none */
};

enum deed { REDUCE = 1, FINISH = 2, BOTH = 3, FAR = 4, ORDERED = 8, NATIVE = 16 };

NB_INLINE struct gradient_form form_of_deed(const struct gradient_work *s, unsigned deed) {
    const bool far = deed & FAR; /* stream: a branch, which costs nothing where memory is the limit */
    return (struct gradient_form){.reduce = deed & REDUCE,
                                  .finish = deed & FINISH,
                                  .far = far,
                                  .stream = far && s->stream,
                                  .ordered = deed & ORDERED,
                                  .native = deed & NATIVE,
                                  .rows = 1};
}

/* ---- the usual call: gamma and its gradient, where the op centres beta and its gradient too ---- */

NB_INLINE struct gradient_form usual_form(const struct gradient_work *s, unsigned deed) {
    struct gradient_form f = form_of_deed(s, deed);
    f.weight = f.gamma_sum = true;
    f.beta_sum = GRADIENT_CENTRE;
    return f;
}
NB_INLINE void run_usual(const struct gradient_work *s, const struct assignment *a, unsigned deed) {
    run_rows(s, a, usual_form(s, deed));
}
NB_INLINE void run_usual_pairs(const struct gradient_work *s, const struct assignment *a, unsigned deed) {
    struct gradient_form f = usual_form(s, deed);
    f.rows = ROWS_TOGETHER;
    run_pairs(s, a, f);
}
static void usual_both(const struct gradient_work *s, const struct assignment *a) { run_usual(s, a, BOTH); }
static void usual_reduce(const struct gradient_work *s, const struct assignment *a) { run_usual(s, a, REDUCE); }
static void usual_finish(const struct gradient_work *s, const struct assignment *a) { run_usual(s, a, FINISH); }
static void usual_far(const struct gradient_work *s, const struct assignment *a) { run_usual(s, a, BOTH | FAR); }
static void usual_pairs(const struct gradient_work *s, const struct assignment *a) { run_usual_pairs(s, a, BOTH); }

#if PACK > 1
/* A single row has none beside it. */
#if ORDERED_ROWS > 1
static void ordered_both(const struct gradient_work *s, const struct assignment *a) { run_usual(s, a, BOTH | ORDERED); }
#else
static const rows_fn ordered_both = NULL;
#endif
static void ordered_reduce(const struct gradient_work *s, const struct assignment *a) {
    run_usual(s, a, REDUCE | ORDERED);
}
static void ordered_finish(const struct gradient_work *s, const struct assignment *a) {
    run_usual(s, a, FINISH | ORDERED);
}
#endif

#if PAIR_NATIVE
static void native_both(const struct gradient_work *s, const struct assignment *a) { run_usual(s, a, BOTH | NATIVE); }
static void native_finish(const struct gradient_work *s, const struct assignment *a) {
    run_usual(s, a, FINISH | NATIVE);
}
static void native_far(const struct gradient_work *s, const struct assignment *a) {
    run_usual(s, a, BOTH | FAR | NATIVE);
}
static void native_pairs(const struct gradient_work *s, const struct assignment *a) {
    run_usual_pairs(s, a, BOTH | NATIVE);
}
#endif

/* ---- any other call, by branches ---- */

NB_ONCE void run_any(const struct gradient_work *s, const struct assignment *a, unsigned deed) {
    struct gradient_form f = form_of_deed(s, deed);
    f.branches = true;
    f.weight = s->call->formula.affine != NB_AFFINE_NONE;
    f.gamma_sum = wants_gamma(s->call);
    f.beta_sum = wants_beta(s->call);
    run_rows(s, a, f);
}
static void any_both(const struct gradient_work *s, const struct assignment *a) { run_any(s, a, BOTH); }
static void any_reduce(const struct gradient_work *s, const struct assignment *a) { run_any(s, a, REDUCE); }
static void any_finish(const struct gradient_work *s, const struct assignment *a) { run_any(s, a, FINISH); }
static void any_far(const struct gradient_work *s, const struct assignment *a) { run_any(s, a, BOTH | FAR); }

/* ---- which of them ---- */

/* Pairs pay where the core is the limit and not its path to the second cache: in the first one, and in 16 bits with two sums over rows. */
NB_INLINE bool takes_pairs(const struct nb_call *call, const struct gradient_plan *p) {
    const int64_t rows = GRADIENT_CENTRE && !ELEM_IS_F32 ? ROWS_TOGETHER : call->rows;
    return GRADIENT_PAIRS && gradient_is_usual(call) && p->rows_at_hand >= rows;
}

/* Longer rows wait for memory, and the shorter loop gains nothing. The shape alone decides. */
NB_INLINE bool rounds_natively(const struct nb_call *call, const struct gradient_plan *p) {
    if (!PAIR_NATIVE || GRADIENT_LEADING) return false;
    return call_is_native(call) && gradient_is_usual(call) && !p->ordered && p->n_pieces == 1;
}

static inline struct row_loops loops_of(const struct nb_call *call, const struct gradient_plan *p) {
    if (!gradient_is_usual(call)) return (struct row_loops){p->far ? any_far : any_both, any_reduce, any_finish, NULL};
#if PACK > 1
    if (p->ordered) return (struct row_loops){ordered_both, ordered_reduce, ordered_finish, NULL};
#endif
    const bool pairs = takes_pairs(call, p);
#if PAIR_NATIVE
    if (rounds_natively(call, p))
        return (struct row_loops){p->far ? native_far : native_both, usual_reduce, native_finish,
                                  pairs ? native_pairs : NULL};
#endif
    return (struct row_loops){p->far ? usual_far : usual_both, usual_reduce, usual_finish, pairs ? usual_pairs : NULL};
}

/* The frame of the fused row backwards: units of work as gradient_plan.h cuts them, and the loop over their rows, once for each form of
 * the call. */
/* A stretch of rows and columns, and the arrays whose sums it adds to. */
struct stretch {
    int64_t row, end, from, to;
    bool reduce, finish; /* by columns one of them in each phase */
    struct block_arrays arrays;
};

/* Weights as the loops want them: f32, 1 + gamma, in the order of packs, every NaN one that a store of bf16 keeps. */
static __attribute__((noinline)) void prepare_weight(const struct nb_call *call, float *out, int64_t from, int64_t to) {
    const elem *const narrow = call->formula.param == NB_PARAM_X ? call->gamma : NULL;
    const float *const wide = call->gamma;
    const vec offset = vec_set1(call->formula.weight_offset ? 1.0f : 0.0f);
    for (int64_t i = from; i < to; i += PACK_COLUMNS) {
        const int64_t left = to - i;
        struct pack w;
        if (narrow)
            w = left >= PACK_COLUMNS ? pack_load(narrow + i) : pack_load_tail(narrow + i, left);
        else
            w = left >= PACK_COLUMNS ? pack_gather(wide + i) : pack_gather_tail(wide + i, left);
        NB_UNROLL
        for (int p = 0; p < PACK; p++) w.v[p] = w.v[p] + offset;
        pack_store_f32(out + i, pack_quiet(w));
    }
}

/* By columns, the sums of pieces lie in scratch between the phases. */
static __attribute__((noinline)) void leave_sums(const struct nb_call *call, const struct gradient_plan *p,
                                                 int64_t piece, int64_t row, int64_t n,
                                                 const struct gradient_sums *sums) {
    for (int64_t j = 0; j < n; j++) {
        float *const at = piece_sums(call, p, row + j, piece);
        vec_store_f32(at, sums[j].g);
        vec_store_f32(at + NB_LANES, sums[j].gd);
    }
}
static __attribute__((noinline)) void fetch_sums(const struct gradient_work *s, const struct gradient_plan *p,
                                                 int64_t row, int64_t n, struct row_gradient *k) {
    for (int64_t j = 0; j < n; j++) {
        struct gradient_sums sums = {vec_set1(0.0f), vec_set1(0.0f)};
        for (int64_t piece = 0; piece < p->n_pieces; piece++) {
            const float *const at = piece_sums(s->call, p, row + j, piece);
            sums.g = sums.g + vec_load_f32(at);
            sums.gd = sums.gd + vec_load_f32(at + NB_LANES);
        }
        k[j] = gradient_of(s, row + j, sums);
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* Whole rows: each is finished while the one `group` rows behind it is reduced. */
static void take_row_by_row(const struct gradient_work *s, const struct gradient_plan *p, int64_t row, int64_t end,
                            bool fresh, const struct row_loops *loops) {
    struct row_gradient k[GROUP_MAX];
    const int64_t ahead = end - row < p->group ? end - row : p->group;
    struct assignment a = {.next_row = row, .n = ahead, .to = s->call->cols, .mask = p->group - 1, .first = true};
    a.k = a.next_k = k;
    loops->reduce(s, &a);
    a.row = row;
    a.next_row = row + ahead;
    a.n = end - a.next_row;
    a.fresh = fresh;
    if (a.n > 0) loops->both(s, &a);
    a.fresh = fresh && a.n <= 0;
    a.row = end - ahead;
    a.place = a.row - row;
    a.n = ahead;
    loops->finish(s, &a);
}

static void take_rows(const struct gradient_work *s, const struct gradient_plan *p, int64_t row, int64_t end,
                      const struct row_loops *loops) {
    const int64_t paired = loops->pairs ? (end - row) / ROWS_TOGETHER * ROWS_TOGETHER : 0;
    struct assignment a = {.row = row, .n = paired, .to = s->call->cols, .fresh = true};
    if (paired > 0) loops->pairs(s, &a);
    if (row + paired < end) take_row_by_row(s, p, row + paired, end, paired == 0, loops);
}

/* Groups of rows, a tile of columns at a time: n rows are finished from `row` on, while n_next behind them are reduced. */
struct group {
    int64_t row, n, n_next;
    struct row_gradient k[2][GROUP_MAX]; /* of the group that is finished and of the next, alternating */
    struct gradient_sums sums[GROUP_MAX];
};
static void take_tile(const struct gradient_work *s, struct group *g, struct assignment *a, int side, bool last,
                      const struct row_loops *loops) {
    for (int64_t j = 0; j < g->n || j < g->n_next; j++) {
        a->row = g->row + j;
        a->next_row = g->row + g->n + j;
        a->k = &g->k[side][j];
        a->next_k = last ? &g->k[1 - side][j] : NULL;
        a->next = &g->sums[j];
        if (j < g->n && j < g->n_next)
            loops->both(s, a);
        else
            (j < g->n ? loops->finish : loops->reduce)(s, a);
        a->fresh = false;
    }
}
static void take_tiles(const struct gradient_work *s, const struct gradient_plan *p, const struct stretch *t,
                       int64_t row, int64_t end, const struct row_loops *loops) {
    struct group g;
    g.row = row;
    g.n = 0;
    for (int side = 0;; side = 1 - side) {
        const int64_t upcoming = g.row + g.n, left = end - upcoming < p->group ? end - upcoming : p->group;
        g.n_next = t->reduce ? left : 0;
        struct assignment a = {.from = t->from, .n = 1};
        for (; a.from < t->to; a.from = a.to) {
            a.to = t->to - a.from < p->tile ? t->to : a.from + p->tile;
            a.first = a.from == t->from;
            a.fresh = g.row == row && g.n > 0;
            take_tile(s, &g, &a, side, t->finish && a.to == t->to, loops);
        }
        if (!t->reduce) fetch_sums(s, p, upcoming, left, g.k[1 - side]);
        if (!t->finish) leave_sums(s->call, p, t->from / p->piece, upcoming, left, g.sums);
        if (left == 0) return;
        g.row = t->finish ? upcoming : upcoming + left;
        g.n = t->finish ? left : 0;
    }
}

static __attribute__((noinline)) void end_run(const struct block_arrays *a, int64_t cols, bool first) {
    if (a->run_gamma) add_run(a->gamma, a->run_gamma, cols, first);
    if (a->run_beta) add_run(a->beta, a->run_beta, cols, first);
}

static inline struct gradient_work work_of(const struct nb_call *call, const struct gradient_plan *p,
                                           const struct block_arrays *a) {
    struct gradient_work s = {
        .call = call, .dx = call->dx, .dx_stride = call->dx_stride, .piece = p->piece, .stream = p->stream};
    s.weight = a->weight ? a->weight : (const float *)call->gamma;
    s.gamma_sum = p->runs ? a->run_gamma : a->gamma ? a->gamma : call->dgamma;
    s.beta_sum = p->runs ? a->run_beta : a->beta ? a->beta : call->dbeta;
    if (a->dx) {
        s.dx = a->dx;
        s.dx_stride = 0;
    }
    s.reach = GRADIENT_LEADING ? call->k : call->cols;
    s.inverse = 1.0f / (float)s.reach;
    return s;
}

/* Rows of a unit, run by run. */
static void take_stretch(const struct nb_call *call, const struct gradient_plan *p, const struct stretch *t,
                         const struct row_loops *loops) {
    const struct block_arrays *a = &t->arrays;
    const struct gradient_work s = work_of(call, p, a);
    int64_t end;
    for (int64_t row = t->row; row < t->end; row = end) {
        end = p->runs && t->end - row > COLUMN_RUN ? row + COLUMN_RUN : t->end;
        if (p->tile >= call->cols && t->reduce && t->finish)
            take_rows(&s, p, row, end, loops);
        else
            take_tiles(&s, p, t, row, end, loops);
        if (p->runs) end_run(a, call->cols, row == t->row);
    }
}

/* What a unit's arrays hold is stored, unless other blocks must be added first. */
static __attribute__((noinline)) void write_sums(const struct nb_call *call, const struct gradient_plan *p,
                                                 int64_t from, int64_t to) {
    const struct block_arrays a = block_arrays_of(call, p, 0);
    const int64_t stride = floats_of_block(call, p);
    if (a.gamma && call->dgamma) add_block_arrays(call->dgamma, a.gamma, p->blocks.n, stride, from, to);
    if (a.beta && call->dbeta) add_block_arrays(call->dbeta, a.beta, p->blocks.n, stride, from, to);
}

static inline struct stretch stretch_of(const struct nb_call *call, const struct gradient_plan *p, int phase,
                                        int64_t unit) {
    struct stretch t = {.end = call->rows, .to = call->cols, .reduce = true, .finish = true};
    if (p->cut == BY_COLUMNS) {
        t.from = unit * p->piece;
        t.to = call->cols - t.from < p->piece ? call->cols : t.from + p->piece;
        t.reduce = phase == 0;
        t.finish = phase == 1;
    } else {
        t.row = unit * p->blocks.rows;
        t.end = call->rows - t.row < p->blocks.rows ? call->rows : t.row + p->blocks.rows;
    }
    t.arrays = block_arrays_of(call, p, p->cut == BY_COLUMNS ? 0 : unit);
    return t;
}

/* Units [begin, end) of a phase. */
static int gradient_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const struct gradient_plan p = gradient_plan_of(call);
    const struct row_loops loops = loops_of(call, &p);
    if (!call->dx && n_sums(call) == 0) return 0;
    if (p.cut == BY_BLOCKS && phase == 1) {
        const int64_t to = end * COLUMN_UNIT;
        write_sums(call, &p, begin * COLUMN_UNIT, to < call->cols ? to : call->cols);
        return 0;
    }
    const int64_t units = p.cut == BY_ROWS ? 1 : end - begin;
    for (int64_t i = 0; i < units; i++) {
        struct stretch t = stretch_of(call, &p, phase, begin + i);
        if (p.cut == BY_ROWS) {
            t.row = begin;
            t.end = end;
        }
        if (phase == 0 && t.arrays.weight) prepare_weight(call, t.arrays.weight, t.from, t.to);
        take_stretch(call, &p, &t, &loops);
        if (p.blocks.n == 1 && t.finish) write_sums(call, &p, t.from, t.to);
    }
    if (p.stream) raw_stream_end();
    return 0;
}

/* ---- the contract -------------------------------------------------------------------------------------------------------- */

#define GRADIENT_KERNEL                                                                                                \
    .formulas = {NB_EVERY_GRADIENT, .round_sums = GRADIENT_RESIDUAL ? NB_ALL(2) : 0},                                  \
    .loads = GRADIENT_RESIDUAL ? 5 : 4 /* x and dy, twice, dresidual_out */, .stores = 1, .run = gradient_run,         \
    .row_local = always_row_local, .chain = gradient_chain, .scratch_bytes = gradient_scratch,                         \
    .n_phases = gradient_phases, .n_units = gradient_units, .range = gradient_range,                                   \
    .column_chain = gradient_column_chain
/* Of those whose rounding may be native; pRMSNorm's is not. */
#define GRADIENT_NATIVE                                                                                                \
    .flags = NB_FLAG_STREAMS_BEYOND | (PAIR_NATIVE ? NB_FLAG_FLUSHES : 0), .implementation = gradient_implementation

/* Called before the tensors are known, as is scratch. */
static inline const char *gradient_implementation(const struct nb_call *call) {
    float any;
    struct nb_call all = *call;
    all.dgamma = all.dbeta = &any;
    const struct gradient_plan p = cut_of(&all);
    return rounds_natively(&all, &p) ? "avx512_bf16" : NULL;
}
