// SPDX-License-Identifier: Apache-2.0
/* Tensors in memory that betrays what a kernel does outside of them. */
#include "src/measure/buffers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/measure/poison.h"

enum { MARGIN = 1024, LINE = 64, HUGE_PAGE = 2 << 20 };

enum { MATRIX, PARAMS, STATS, ONE, SAVED, BYTES }; /* as shape_tensor() has their lengths */
static const struct {
    const char *name;
    int kind;
    bool f32, output; /* f32 whatever the dtype of x */
} specs[NB_N_TENSORS] = {
    [NB_T_X] = {"x", MATRIX, false, false},
    [NB_T_RESIDUAL] = {"residual", MATRIX, false, false},
    [NB_T_GAMMA_F32] = {"gamma", PARAMS, true, false},
    [NB_T_BETA_F32] = {"beta", PARAMS, true, false},
    [NB_T_GAMMA_X] = {"gamma", PARAMS, false, false},
    [NB_T_BETA_X] = {"beta", PARAMS, false, false},
    [NB_T_RUNNING_MEAN_IN] = {"running_mean_in", PARAMS, true, false},
    [NB_T_RUNNING_VAR_IN] = {"running_var_in", PARAMS, true, false},
    [NB_T_Y] = {"y", MATRIX, false, true},
    [NB_T_RESIDUAL_OUT] = {"residual_out", MATRIX, false, true},
    [NB_T_MEAN] = {"mean", STATS, true, true},
    [NB_T_RSTD] = {"rstd", STATS, true, true},
    [NB_T_RUNNING_MEAN_OUT] = {"running_mean_out", PARAMS, true, true},
    [NB_T_RUNNING_VAR_OUT] = {"running_var_out", PARAMS, true, true},
    [NB_T_DY] = {"dy", MATRIX, false, false},
    [NB_T_DRESIDUAL_OUT] = {"dresidual_out", MATRIX, false, false},
    [NB_T_SAVED_MEAN] = {"mean", SAVED, true, false},
    [NB_T_SAVED_RSTD] = {"rstd", SAVED, true, false},
    [NB_T_DX] = {"dx", MATRIX, false, true},
    [NB_T_DGAMMA] = {"dgamma", PARAMS, true, true},
    [NB_T_DBETA] = {"dbeta", PARAMS, true, true},
    [NB_T_DALPHA] = {"dalpha", ONE, true, true},
    [NB_T_SCRATCH] = {"scratch", BYTES, false, true},
};

const char *nb_tensor_name(enum nb_tensor_id id) { return specs[id].name; }

void *nb_tensor_row(const struct nb_tensor *t, int64_t row) {
    return (unsigned char *)t->data + (size_t)(row * t->stride) * t->item;
}

/* ---- layout -------------------------------------------------------------------------------------------------------
 */

static const void *source_of(const struct nb_buffers *b, enum nb_tensor_id id) {
    const struct nb_inputs *in = b->in;
    switch (id) {
    case NB_T_DY:
        return in->dy;
    case NB_T_DRESIDUAL_OUT:
        return in->dresidual_out;
    case NB_T_SAVED_MEAN:
        return b->saved[0];
    case NB_T_SAVED_RSTD:
        return b->saved[1];
    case NB_T_X:
        return in->x;
    case NB_T_RESIDUAL:
        return in->residual;
    case NB_T_GAMMA_F32:
        return in->gamma_f32;
    case NB_T_BETA_F32:
        return in->beta_f32;
    case NB_T_GAMMA_X:
        return in->gamma_x;
    case NB_T_BETA_X:
        return in->beta_x;
    case NB_T_RUNNING_MEAN_IN:
        return in->running_mean;
    case NB_T_RUNNING_VAR_IN:
        return in->running_var;
    default:
        return NULL;
    }
}

/* ---- saved statistics: one row of a tensor for each mathematics ---- */

static const struct nb_saved_statistics *first_saved(const struct nb_buffers *b) {
    const int at = b->request.saved == NB_ALL_SAVED ? 0 : b->request.saved;
    return at >= 0 && at < b->in->n_saved ? &b->in->saved[at] : NULL;
}

static int n_saved(const struct nb_buffers *b) {
    if (!first_saved(b)) return 0;
    return b->request.saved == NB_ALL_SAVED ? b->in->n_saved : 1;
}

/* Of the rows that are laid out; of all channels. */
static int64_t saved_length(const struct nb_buffers *b) {
    int64_t longest = 0;
    for (int i = 0; i < n_saved(b); i++) {
        const struct nb_saved_statistics *s = first_saved(b) + i;
        const int64_t n = s->c.op == NB_OP_BATCHNORM ? s->n : b->request.rows;
        if (n > longest) longest = n;
    }
    return longest;
}

void nb_buffers_take_saved(struct nb_buffers *b) {
    const int64_t n = saved_length(b);
    if (n_saved(b) == 0) return;
    for (int which = 0; which < 2; which++) {
        if (!b->saved[which]) b->saved[which] = nb_alloc((unsigned long long)n * (unsigned)n_saved(b), sizeof(float));
        for (int i = 0; i < n_saved(b); i++) {
            const struct nb_saved_statistics *s = first_saved(b) + i;
            memcpy(b->saved[which] + i * n, which == 0 ? s->mean : s->rstd,
                   (size_t)(s->n < n ? s->n : n) * sizeof(float));
        }
    }
}

/* ---- shapes ---- */

static void shape_tensor(struct nb_tensor *t, enum nb_tensor_id id, const struct nb_buffers *b) {
    const struct nb_layout_request *q = &b->request;
    const struct nb_inputs *in = b->in;
    t->item = specs[id].kind == BYTES ? 1 : specs[id].f32 ? sizeof(float) : nb_formats[in->dtype].bytes;
    t->rows = specs[id].kind == MATRIX ? q->rows : specs[id].kind == SAVED ? n_saved(b) : 1;
    const int64_t lengths[] = {in->cols, in->n_params, q->n_stats, 1, saved_length(b), (int64_t)q->scratch_bytes};
    t->cols = lengths[specs[id].kind];
    /* Inside poison, rows stand apart even where the case packs them: a write between two rows must not go unseen. */
    int64_t apart = q->placement == NB_PLACE_INTERIOR && !q->joined ? q->pad + 5 : q->pad;
    t->stride = specs[id].kind == MATRIX ? t->cols + apart : t->cols;
    if (specs[id].kind == SAVED && t->rows > 1) t->stride = (t->cols + LINE - 1) / LINE * LINE + LINE;
    t->source = source_of(b, id);
}

size_t nb_tensor_bytes(const struct nb_tensor *t) { return (size_t)((t->rows - 1) * t->stride + t->cols) * t->item; }

static void *map_pages(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        nb_error("no memory for a buffer of %zu bytes: %s", bytes, strerror(errno));
        return NULL;
    }
    return p;
}

/* A mapping of its own: guard page, area, guard page. */
static int place_guarded(struct nb_tensor *t, enum nb_placement placement, bool on_line) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = nb_tensor_bytes(t);
    size_t wanted = placement == NB_PLACE_INTERIOR ? bytes + 2 * MARGIN + LINE : bytes;
    t->area_bytes = (wanted + page - 1) / page * page;
    t->map_bytes = t->area_bytes + 2 * page;
    t->map = map_pages(t->map_bytes);
    if (!t->map) return -1;
    t->area = t->map + page;
    if (mprotect(t->map, page, PROT_NONE) != 0 || mprotect(t->area + t->area_bytes, page, PROT_NONE) != 0)
        return nb_error("a guard page cannot be had: %s", strerror(errno));
    /* What stands on a line meets the guard at its end only to within a line of poison. */
    size_t before = t->area_bytes - bytes;
    if (placement == NB_PLACE_END) t->data = t->area + (on_line ? before / LINE * LINE : before);
    if (placement == NB_PLACE_START) t->data = t->area;
    if (placement == NB_PLACE_INTERIOR)
        t->data = t->area + MARGIN + (on_line ? 0 : t->item); /* one element off every alignment */
    return 0;
}

/* All tensors in one mapping: each starts on a cache line, 1 to 64 lines of poison behind
 * the tensor before it, so that which lines share a cache set differs from launch to launch. */
static int place_slab(struct nb_buffers *b) {
    uint64_t random = b->request.seed;
    size_t offset = MARGIN, starts[NB_N_TENSORS] = {0}, areas[NB_N_TENSORS] = {0};
    for (int i = 0; i < NB_N_TENSORS; i++) {
        if (!(b->request.wants & 1u << i)) continue;
        offset += LINE * (1 + nb_random_next(&random) % 64);
        areas[i] = offset - LINE;
        starts[i] = offset;
        offset = (offset + nb_tensor_bytes(&b->tensors[i]) + LINE - 1) / LINE * LINE + LINE;
    }
    size_t bytes = offset + MARGIN, align = b->request.huge_pages ? HUGE_PAGE : LINE;
    b->slab_bytes = (bytes + align - 1) / align * align + align;
    b->slab = map_pages(b->slab_bytes);
    if (!b->slab) return -1;
    unsigned char *base = b->slab + (align - (uintptr_t)b->slab % align) % align;
    if (b->request.huge_pages) madvise(base, b->slab_bytes - align, MADV_HUGEPAGE);
    for (int i = 0; i < NB_N_TENSORS; i++) {
        if (!starts[i]) continue;
        struct nb_tensor *t = &b->tensors[i];
        t->data = base + starts[i];
        t->area = base + areas[i];
        t->area_bytes = starts[i] - areas[i] + nb_tensor_bytes(t) + LINE;
    }
    return 0;
}

static void fill(struct nb_tensor *t, uint32_t word) {
    nb_poison(t->area, t->area_bytes, word);
    if (!t->source) return;
    const size_t row_bytes = (size_t)t->cols * t->item;
    for (int64_t r = 0; r < t->rows; r++)
        memcpy(nb_tensor_row(t, r), (const unsigned char *)t->source + (size_t)r * row_bytes, row_bytes);
}

void nb_buffers_fill(struct nb_buffers *b) {
    for (int i = 0; i < NB_N_TENSORS; i++)
        if (b->tensors[i].data) fill(&b->tensors[i], b->request.poison);
}

int nb_buffers_init(struct nb_buffers *b, const struct nb_inputs *in, const struct nb_layout_request *request) {
    *b = (struct nb_buffers){.request = *request, .in = in};
    if (request->scratch_bytes > NB_SCRATCH_MAX)
        return nb_error("a kernel asks for %zu bytes of scratch", request->scratch_bytes);
    b->request.wants |= request->scratch_bytes > 0 ? 1u << NB_T_SCRATCH : 0;
    nb_buffers_take_saved(b);
    for (int i = 0; i < NB_N_TENSORS; i++) {
        if (!specs[i].output && !source_of(b, (enum nb_tensor_id)i)) b->request.wants &= ~(1u << i);
        if (b->request.wants & 1u << i) shape_tensor(&b->tensors[i], (enum nb_tensor_id)i, b);
    }
    int bad = 0;
    if (request->placement == NB_PLACE_SLAB)
        bad = place_slab(b);
    else {
        for (int i = 0; i < NB_N_TENSORS && !bad; i++)
            if (b->request.wants & 1u << i)
                bad = place_guarded(&b->tensors[i], request->placement, specs[i].kind == BYTES);
    }
    if (bad) {
        nb_buffers_release(b);
        return -1;
    }
    nb_buffers_fill(b);
    return 0;
}

void nb_buffers_poison_outputs(struct nb_buffers *b) {
    for (int i = 0; i < NB_N_TENSORS; i++)
        if (specs[i].output && b->tensors[i].data)
            nb_poison(b->tensors[i].area, b->tensors[i].area_bytes, b->request.poison);
}

double nb_buffers_bytes(const struct nb_buffers *b) {
    double bytes = 0;
    for (int i = 0; i < NB_N_TENSORS; i++)
        if (b->tensors[i].data && specs[i].kind != BYTES) bytes += (double)nb_tensor_bytes(&b->tensors[i]);
    return bytes;
}

void nb_buffers_release(struct nb_buffers *b) {
    for (int i = 0; i < NB_N_TENSORS; i++)
        if (b->tensors[i].map) munmap(b->tensors[i].map, b->tensors[i].map_bytes);
    if (b->slab) munmap(b->slab, b->slab_bytes);
    free(b->saved[0]);
    free(b->saved[1]);
    *b = (struct nb_buffers){0};
}
