// SPDX-License-Identifier: Apache-2.0
/* Filling and comparing as fast as memory goes. */
#include "src/measure/buffers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/measure/kept_memory.h"

/* ---- poison ------------------------------------------------------------------------------------------------------ */

enum { PATTERN = 64, MOST_COPIED = 4096 };

/* The word's bytes, in phase with addresses that are multiples of 4; copied from what the first cache holds. */
static void poison(unsigned char *p, size_t bytes, uint32_t word) {
    size_t done = bytes < PATTERN ? bytes : PATTERN;
    for (size_t i = 0; i < done; i++) p[i] = (unsigned char)(word >> 8 * ((uintptr_t)(p + i) % 4));
    for (size_t n; done < bytes; done += n) {
        n = done < MOST_COPIED ? done : MOST_COPIED;
        if (n > bytes - done) n = bytes - done;
        memcpy(p + done, p, n);
    }
}

static bool is_poison(const unsigned char *p, size_t bytes, uint32_t word) {
    for (size_t i = 0; i < bytes && i < 4; i++)
        if (p[i] != (unsigned char)(word >> 8 * ((uintptr_t)(p + i) % 4))) return false;
    return bytes <= 4 || memcmp(p, p + 4, bytes - 4) == 0;
}

/* ---- the layout -------------------------------------------------------------------------------------------------- */

/* Tensors in memory that betrays what a kernel does outside of them. */

enum { MARGIN = 1024, LINE = 64, MOST_LINES_APART = 64 };

enum { MATRIX, PARAMS, STATS, ONE, SAVED, BYTES }; /* as shape_tensor() has their lengths */
#define FROM(member) offsetof(struct nb_inputs, member)
#define AT(member) offsetof(struct nb_call, member)
#define ROWS(member) AT(member), AT(member##_stride)
#define OUTPUT SIZE_MAX
static const struct {
    const char *name;
    int kind;
    bool f32; /* whatever the dtype of x */
    /* Where struct nb_inputs has the pointer to it; OUTPUT: it has none; SAVED: the buffers have their own. */
    size_t from;
    size_t pointer, stride; /* where a call has them; stride 0: it has none */
} specs[NB_N_TENSORS] = {
    [NB_T_X] = {"x", MATRIX, false, FROM(x), ROWS(x)},
    [NB_T_RESIDUAL] = {"residual", MATRIX, false, FROM(residual), ROWS(residual)},
    [NB_T_GAMMA_F32] = {"gamma", PARAMS, true, FROM(gamma_f32), AT(gamma), 0},
    [NB_T_BETA_F32] = {"beta", PARAMS, true, FROM(beta_f32), AT(beta), 0},
    [NB_T_GAMMA_X] = {"gamma", PARAMS, false, FROM(gamma_x), AT(gamma), 0},
    [NB_T_BETA_X] = {"beta", PARAMS, false, FROM(beta_x), AT(beta), 0},
    [NB_T_RUNNING_MEAN_IN] = {"running_mean_in", PARAMS, true, FROM(running_mean), AT(running_mean_in), 0},
    [NB_T_RUNNING_VAR_IN] = {"running_var_in", PARAMS, true, FROM(running_var), AT(running_var_in), 0},
    [NB_T_Y] = {"y", MATRIX, false, OUTPUT, ROWS(y)},
    [NB_T_RESIDUAL_OUT] = {"residual_out", MATRIX, false, OUTPUT, ROWS(residual_out)},
    [NB_T_MEAN] = {"mean", STATS, true, OUTPUT, AT(mean), 0},
    [NB_T_RSTD] = {"rstd", STATS, true, OUTPUT, AT(rstd), 0},
    [NB_T_RUNNING_MEAN_OUT] = {"running_mean_out", PARAMS, true, OUTPUT, AT(running_mean_out), 0},
    [NB_T_RUNNING_VAR_OUT] = {"running_var_out", PARAMS, true, OUTPUT, AT(running_var_out), 0},
    [NB_T_DY] = {"dy", MATRIX, false, FROM(dy), ROWS(dy)},
    [NB_T_DRESIDUAL_OUT] = {"dresidual_out", MATRIX, false, FROM(dresidual_out), ROWS(dresidual_out)},
    [NB_T_SAVED_MEAN] = {"mean", SAVED, true, 0, AT(mean), 0},
    [NB_T_SAVED_RSTD] = {"rstd", SAVED, true, 0, AT(rstd), 0},
    [NB_T_DX] = {"dx", MATRIX, false, OUTPUT, ROWS(dx)},
    [NB_T_DGAMMA] = {"dgamma", PARAMS, true, OUTPUT, AT(dgamma), 0},
    [NB_T_DBETA] = {"dbeta", PARAMS, true, OUTPUT, AT(dbeta), 0},
    [NB_T_DALPHA] = {"dalpha", ONE, true, OUTPUT, AT(dalpha), 0},
    [NB_T_SCRATCH] = {"scratch", BYTES, false, OUTPUT, AT(scratch), 0},
};
#undef AT

const char *nb_tensor_name(int id) { return specs[id].name; }

void *nb_tensor_row(const struct nb_tensor *t, int64_t row) {
    return (unsigned char *)t->data + (size_t)(row * t->stride) * t->item;
}

static const void *source_of(const struct nb_buffers *b, enum nb_tensor_id id) {
    const void *source;
    if (specs[id].kind == SAVED) return b->saved[id == NB_T_SAVED_RSTD];
    if (specs[id].from == OUTPUT) return NULL;
    memcpy(&source, (const char *)b->in + specs[id].from, sizeof source);
    return source;
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
    /* Each tensor has another stride: a kernel that takes one for the other is wrong. */
    const int64_t apart = q->placement == NB_PLACE_INTERIOR && !q->joined ? q->pad + 5 + 2 * (int64_t)id : q->pad;
    t->stride = specs[id].kind == MATRIX ? t->cols + apart : t->cols;
    if (specs[id].kind == SAVED && t->rows > 1) t->stride = (t->cols + LINE - 1) / LINE * LINE + LINE;
    t->source = source_of(b, id);
}

/* From its first element to behind its last. */
static size_t tensor_bytes(const struct nb_tensor *t) {
    return (size_t)((t->rows - 1) * t->stride + t->cols) * t->item;
}

/* A mapping of its own: guard, area, guard. */
static int place_guarded(struct nb_tensor *t, struct nb_device_memory *own, enum nb_placement placement, bool on_line) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = tensor_bytes(t);
    size_t wanted = placement == NB_PLACE_INTERIOR ? bytes + 2 * MARGIN + LINE : bytes;
    t->area_bytes = (wanted + page - 1) / page * page;
    if (nb_device_host.alloc(own, t->area_bytes, NB_DEVICE_START) != 0) return -1;
    t->area = own->area;
    /* What stands on a line meets the guard at its end only to within a line of poison. */
    size_t before = t->area_bytes - bytes;
    if (placement == NB_PLACE_END) t->data = t->area + (on_line ? before / LINE * LINE : before);
    if (placement == NB_PLACE_START) t->data = t->area;
    if (placement == NB_PLACE_INTERIOR)
        t->data = t->area + MARGIN + (on_line ? 0 : t->item); /* one element off every alignment */
    return 0;
}

/* A mapping for so many bytes and the room behind them. */
static int map_slab(struct nb_buffers *b, size_t bytes) {
    const size_t align = b->request.huge_pages ? NB_HUGE_PAGE : LINE;
    const size_t whole = (bytes + b->request.room_bytes + align - 1) / align * align;
    b->slab_bytes = whole + align;
    if (nb_device_host.alloc(&b->slab, b->slab_bytes, NB_DEVICE_START) != 0) return -1;
    b->slab_taken = (align - (uintptr_t)b->slab.area % align) % align;
    unsigned char *start = b->slab.area + b->slab_taken;
    b->request.kept = b->request.kept && nb_kept_memory_map(start, whole);
    if (b->request.kept) return 0;
    if (b->request.huge_pages) madvise(start, whole, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE /* all pages at once take half as long as one by one where they are filled */
    if (!b->request.huge_pages) madvise(b->slab.area, b->slab_bytes, MADV_POPULATE_WRITE);
#endif
    return 0;
}

/* All tensors in one mapping: each starts on a cache line, 1 to 64 lines of poison behind
 * the tensor before it, so that which lines share a cache set differs from layout to layout. */
static int place_slab(struct nb_buffers *b) {
    uint64_t random = b->request.seed;
    size_t offset = MARGIN, starts[NB_N_TENSORS] = {0}, areas[NB_N_TENSORS] = {0};
    for (int i = 0; i < NB_N_TENSORS; i++) {
        if (!(b->request.wants & 1u << i)) continue;
        offset += LINE * (1 + nb_random_next(&random) % MOST_LINES_APART);
        areas[i] = offset - LINE;
        starts[i] = offset;
        offset = (offset + tensor_bytes(&b->tensors[i]) + LINE - 1) / LINE * LINE + LINE;
    }
    const size_t bytes = offset + MARGIN;
    struct nb_buffers *host = b->request.beside;
    if (!host || bytes > host->slab_bytes - host->slab_taken) host = b;
    if (host == b && map_slab(b, bytes) != 0) return -1;
    b->request.kept = host->request.kept;
    unsigned char *base = host->slab.area + host->slab_taken;
    host->slab_taken += (bytes + LINE - 1) / LINE * LINE;
    for (int i = 0; i < NB_N_TENSORS; i++) {
        if (!starts[i]) continue;
        struct nb_tensor *t = &b->tensors[i];
        t->data = base + starts[i];
        t->area = base + areas[i];
        t->area_bytes = starts[i] - areas[i] + tensor_bytes(t) + LINE;
    }
    return 0;
}

/* Areas of the same bytes on the device, at the same end of its mapping. What is timed has guards here alone, where it is compared. */
static int place_on_device(struct nb_buffers *b) {
    const struct nb_device_api *device = b->request.device;
    const enum nb_device_end end = b->request.placement == NB_PLACE_END ? NB_DEVICE_END : NB_DEVICE_START;
    const bool is_slab = b->request.placement == NB_PLACE_SLAB;
    if (is_slab && device->alloc(&b->slab_there, b->slab_bytes, NB_DEVICE_ANYWHERE) != 0) return -1;
    for (int i = 0; i < NB_N_TENSORS; i++) {
        struct nb_tensor *t = &b->tensors[i];
        if (!t->data) continue;
        if (!is_slab && device->alloc(&b->there[i], t->area_bytes, end) != 0) return -1;
        t->to_device = is_slab ? b->slab_there.area - b->slab.area : b->there[i].area - t->area;
    }
    return 0;
}

static int copy(const struct nb_device_api *device, bool back, const struct nb_device_memory *there,
                unsigned char *here, size_t bytes) {
    return back ? device->copy_out(here, there->area, bytes) : device->copy_in(there->area, here, bytes);
}

static int copy_all(const struct nb_buffers *b, bool back) {
    const struct nb_device_api *device = b->request.device;
    int result = 0;
    if (b->slab_there.area) return copy(device, back, &b->slab_there, b->slab.area, b->slab_bytes);
    for (int i = 0; i < NB_N_TENSORS && result == 0; i++) {
        const struct nb_tensor *t = &b->tensors[i];
        if (t->data) result = copy(device, back, &b->there[i], t->area, t->area_bytes);
    }
    return result;
}

int nb_buffers_to_device(const struct nb_buffers *b) { return b->request.device ? copy_all(b, false) : 0; }

int nb_buffers_from_device(const struct nb_buffers *b) {
    if (!b->request.device) return 0;
    return b->request.device->synchronise() == 0 ? copy_all(b, true) : -1;
}

static void fill(struct nb_tensor *t, const struct nb_layout_request *q) {
    const size_t row_bytes = (size_t)t->cols * t->item;
    unsigned char *at = t->area;
    for (int64_t r = 0; r < t->rows; r++) {
        unsigned char *row = nb_tensor_row(t, r);
        poison(at, (size_t)(row - at), q->poison);
        at = row + row_bytes;
        if (t->source)
            memcpy(row, (const unsigned char *)t->source + (size_t)r * row_bytes, row_bytes);
        else if (!q->kept)
            poison(row, row_bytes, q->poison);
    }
    poison(at, (size_t)(t->area + t->area_bytes - at), q->poison);
}

void nb_buffers_fill(struct nb_buffers *b) {
    for (int i = 0; i < NB_N_TENSORS; i++)
        if (b->tensors[i].data) fill(&b->tensors[i], &b->request);
}

int nb_buffers_init(struct nb_buffers *b, const struct nb_inputs *in, const struct nb_layout_request *request) {
    *b = (struct nb_buffers){.request = *request, .in = in};
    if (request->scratch_bytes > NB_SCRATCH_MAX)
        return nb_error("a kernel asks for %zu bytes of scratch", request->scratch_bytes);
    b->request.wants |= request->scratch_bytes > 0 ? 1u << NB_T_SCRATCH : 0;
    nb_buffers_take_saved(b);
    for (int i = 0; i < NB_N_TENSORS; i++) {
        if (specs[i].from != OUTPUT && !source_of(b, (enum nb_tensor_id)i)) b->request.wants &= ~(1u << i);
        if (b->request.wants & 1u << i) shape_tensor(&b->tensors[i], (enum nb_tensor_id)i, b);
    }
    const bool is_slab = request->placement == NB_PLACE_SLAB;
    int bad = is_slab ? place_slab(b) : 0;
    for (int i = 0; i < NB_N_TENSORS && !is_slab && !bad; i++)
        if (b->request.wants & 1u << i)
            bad = place_guarded(&b->tensors[i], &b->own[i], request->placement, specs[i].kind == BYTES);
    if (b->request.device && nb_device_is_host(b->request.device)) b->request.device = NULL;
    if (!bad && b->request.device) bad = place_on_device(b);
    if (bad) {
        nb_buffers_release(b);
        return -1;
    }
    nb_buffers_fill(b);
    return nb_buffers_to_device(b);
}

void nb_buffers_poison_outputs(struct nb_buffers *b) {
    for (int i = 0; i < NB_N_TENSORS; i++)
        if (specs[i].from == OUTPUT && b->tensors[i].data)
            poison(b->tensors[i].area, b->tensors[i].area_bytes, b->request.poison);
}

double nb_buffers_bytes(const struct nb_buffers *b) {
    double bytes = 0;
    for (int i = 0; i < NB_N_TENSORS; i++)
        if (b->tensors[i].data && specs[i].kind != BYTES) bytes += (double)tensor_bytes(&b->tensors[i]);
    return bytes;
}

size_t nb_slab_bytes_at_most(const struct nb_buffers *b) {
    size_t bytes = 2 * MARGIN + LINE;
    for (int i = 0; i < NB_N_TENSORS; i++)
        if (b->tensors[i].data) bytes += tensor_bytes(&b->tensors[i]) + (MOST_LINES_APART + 2) * LINE;
    return bytes;
}

void nb_buffers_release(struct nb_buffers *b) {
    const struct nb_device_api *device = b->request.device;
    for (int i = 0; i < NB_N_TENSORS; i++) {
        if (device && b->there[i].area) device->release(&b->there[i]);
        nb_device_host.release(&b->own[i]);
    }
    if (device && b->slab_there.area) device->release(&b->slab_there);
    nb_device_host.release(&b->slab);
    nb_free_all(b->saved[0], b->saved[1]);
    *b = (struct nb_buffers){0};
}

/* ---- a case's call: which tensors it takes, and where they are ---------------------------------------------------- */

const struct nb_tensor *nb_buffers_result(const struct nb_buffers *b, const struct nb_case *c) {
    return &b->tensors[c->pass == NB_BACKWARD ? NB_T_DX : NB_T_Y];
}

static uint32_t backward_wants(const struct nb_case *c) {
    uint32_t wants = 1u << NB_T_X | 1u << NB_T_DY | 1u << NB_T_DX;
    if (nb_op_adds(c->op) || c->op == NB_OP_COPY) wants |= 1u << NB_T_DRESIDUAL_OUT;
    if (c->op == NB_OP_COPY) return wants;
    if (c->formula.affine != NB_AFFINE_NONE)
        wants |= 1u << NB_T_DGAMMA | 1u << (c->formula.param == NB_PARAM_X ? NB_T_GAMMA_X : NB_T_GAMMA_F32);
    if (c->formula.affine == NB_AFFINE_GAMMA_BETA) wants |= 1u << NB_T_DBETA;
    if (c->op == NB_OP_DYT) return wants | 1u << NB_T_DALPHA;
    return wants | 1u << NB_T_SAVED_RSTD | (nb_op_centres(c->op) ? 1u << NB_T_SAVED_MEAN : 0);
}

uint32_t nb_buffers_wants(const struct nb_case *c, bool with_stats) {
    if (c->pass == NB_BACKWARD) return backward_wants(c);
    uint32_t wants = 1u << NB_T_X | 1u << NB_T_Y;
    if (nb_op_adds(c->op) || c->op == NB_OP_COPY) wants |= 1u << NB_T_RESIDUAL | 1u << NB_T_RESIDUAL_OUT;
    if (c->op == NB_OP_COPY) return wants;
    bool in_x = c->formula.param == NB_PARAM_X;
    if (c->formula.affine != NB_AFFINE_NONE) wants |= 1u << (in_x ? NB_T_GAMMA_X : NB_T_GAMMA_F32);
    if (c->formula.affine == NB_AFFINE_GAMMA_BETA) wants |= 1u << (in_x ? NB_T_BETA_X : NB_T_BETA_F32);
    if (c->op == NB_OP_BATCHNORM) {
        wants |= 1u << NB_T_RUNNING_MEAN_IN | 1u << NB_T_RUNNING_VAR_IN;
        if (c->mode == NB_TRAINING) wants |= 1u << NB_T_RUNNING_MEAN_OUT | 1u << NB_T_RUNNING_VAR_OUT;
    }
    if (with_stats && c->op != NB_OP_DYT) wants |= 1u << NB_T_MEAN | 1u << NB_T_RSTD;
    return wants;
}

/* ---- the call ---- */

/* What a case is given of a tensor that holds a row for each mathematics. */
static void *saved_for(const struct nb_buffers *b, const struct nb_case *c, const struct nb_tensor *t) {
    const int at = b->request.saved == NB_ALL_SAVED ? nb_inputs_saved(b->in, c) : 0;
    assert(at >= 0 && at < t->rows);
    return nb_tensor_row(t, at);
}

/* What the formula has no use for is not wanted, though another case of the same buffers may want it. */
void nb_buffers_attach(const struct nb_buffers *b, const struct nb_case *c, struct nb_call *call) {
    const uint32_t wants = nb_buffers_wants(c, true) | 1u << NB_T_SCRATCH;
    for (int i = 0; i < NB_N_TENSORS; i++) {
        const struct nb_tensor *t = &b->tensors[i];
        if (!(wants >> i & 1) || !t->data) continue;
        const unsigned char *data = specs[i].kind == SAVED ? saved_for(b, c, t) : t->data;
        data += t->to_device;
        memcpy((char *)call + specs[i].pointer, &data, sizeof data);
        if (specs[i].stride) memcpy((char *)call + specs[i].stride, &t->stride, sizeof t->stride);
    }
    if (b->request.device) call->stream = b->request.device->stream();
}

struct nb_outputs nb_buffers_outputs(const struct nb_buffers *b, const struct nb_case *c) {
    static const enum nb_tensor_id ids[] = {NB_T_DGAMMA, NB_T_DBETA, NB_T_DALPHA, NB_T_RUNNING_MEAN_OUT,
                                            NB_T_RUNNING_VAR_OUT};
    struct nb_outputs out = {.by_row = {nb_buffers_result(b, c)}, .n_by_row = 1};
    const uint32_t wants = nb_buffers_wants(c, true);
    const struct nb_tensor *sum = &b->tensors[NB_T_RESIDUAL_OUT];
    if (c->op == NB_OP_COPY) return out;
    if (wants >> NB_T_RESIDUAL_OUT & 1 && sum->data) out.by_row[out.n_by_row++] = sum;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (wants >> ids[i] & 1 && b->tensors[ids[i]].data) out.of_all[out.n_of_all++] = &b->tensors[ids[i]];
    return out;
}

/* ---- after a call ------------------------------------------------------------------------------------------------ */

/* Is all that the kernel must not have touched as it was laid there? */

static enum nb_damage outside(char *where, size_t n, const char *name, const char *side, int64_t row) {
    if (row < 0)
        snprintf(where, n, "wrote %s %s", side, name);
    else
        snprintf(where, n, "wrote %s row %lld of %s", side, (long long)row, name);
    return NB_DAMAGED_OUTSIDE;
}

static enum nb_damage verify_margins(const struct nb_tensor *t, const char *name, uint32_t word, char *where,
                                     size_t n) {
    const unsigned char *end = (unsigned char *)t->data + tensor_bytes(t);
    if (!is_poison(t->area, (size_t)((unsigned char *)t->data - t->area), word))
        return outside(where, n, name, "before", -1);
    if (!is_poison(end, (size_t)(t->area + t->area_bytes - end), word)) return outside(where, n, name, "behind", -1);
    return NB_INTACT;
}

static enum nb_damage verify_tensor(const struct nb_tensor *t, const char *name, uint32_t word, char *where, size_t n) {
    const size_t row_bytes = (size_t)t->cols * t->item, gap = (size_t)(t->stride - t->cols) * t->item;
    if (verify_margins(t, name, word, where, n) != NB_INTACT) return NB_DAMAGED_OUTSIDE;
    for (int64_t r = 0; r < t->rows; r++) {
        const unsigned char *row = nb_tensor_row(t, r);
        if (r + 1 < t->rows && !is_poison(row + row_bytes, gap, word)) return outside(where, n, name, "behind", r);
        if (t->source && memcmp(row, (const unsigned char *)t->source + (size_t)r * row_bytes, row_bytes) != 0) {
            snprintf(where, n, "changed row %lld of its input %s", (long long)r, name);
            return NB_DAMAGED_INPUT;
        }
    }
    return NB_INTACT;
}

typedef enum nb_damage (*verify_fn)(const struct nb_tensor *t, const char *name, uint32_t word, char *where, size_t n);
static enum nb_damage verify_all(const struct nb_buffers *b, verify_fn verify, char *where, size_t n) {
    enum nb_damage damage = NB_INTACT;
    for (int i = 0; i < NB_N_TENSORS && damage == NB_INTACT; i++)
        if (b->tensors[i].data) damage = verify(&b->tensors[i], specs[i].name, b->request.poison, where, n);
    return damage;
}

enum nb_damage nb_buffers_verify(const struct nb_buffers *b, char *where, size_t n) {
    return verify_all(b, verify_tensor, where, n);
}
enum nb_damage nb_buffers_verify_margins(const struct nb_buffers *b, char *where, size_t n) {
    return verify_all(b, verify_margins, where, n);
}

void nb_buffers_close_inputs(const struct nb_buffers *b) {
    for (int i = 0; i < NB_N_TENSORS; i++)
        if (b->own[i].map && b->tensors[i].source) mprotect(b->tensors[i].area, b->tensors[i].area_bytes, PROT_READ);
}

const char *nb_buffers_input_of(const struct nb_buffers *b, const void *address) {
    const unsigned char *p = address;
    for (int i = 0; i < NB_N_TENSORS; i++) {
        const struct nb_tensor *t = &b->tensors[i];
        const unsigned char *begin = t->data;
        if (b->own[i].map && t->source && p >= begin && p < begin + tensor_bytes(t)) return specs[i].name;
    }
    return NULL;
}

const char *nb_buffers_guard_of(const struct nb_buffers *b, const void *address, bool *after) {
    const unsigned char *p = address;
    for (int i = 0; i < NB_N_TENSORS; i++) {
        const struct nb_device_memory *own = &b->own[i];
        if (!own->map || p < own->map || p >= own->map + own->map_bytes) continue;
        *after = p >= (const unsigned char *)b->tensors[i].data;
        return specs[i].name;
    }
    const struct nb_device_memory *slab = b->slab.map || !b->request.beside ? &b->slab : &b->request.beside->slab;
    if (slab->map && p >= slab->map && p < slab->map + slab->map_bytes) {
        *after = p >= slab->map + slab->map_bytes / 2;
        return "the buffers";
    }
    return NULL;
}
