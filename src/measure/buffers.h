// SPDX-License-Identifier: Apache-2.0
/* The memory that kernels are called on. For checking: tensors flush against a guard page, or inside poisoned padding.
 * For timing: one aligned slab with poison between the tensors. After a call, everything that the kernel must not have
 * touched is compared with what was laid there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/device/device.h"
#include "src/plan/inputs.h"

/* Memory filled with a known word shows a write to it. Two words of poison: a quiet NaN, and an ordinary number, in f32, f16 and bf16
 * alike. Results that differ between them depend on memory that is not the kernel's. */
#define NB_POISON_NAN 0x7fc17fc1u
#define NB_POISON_NUMBER 0x42f742f7u

enum nb_placement {
    NB_PLACE_INTERIOR, /* poison before, between and behind the rows, at odd offsets of the element's size */
    NB_PLACE_END,      /* every tensor ends at a guard page */
    NB_PLACE_START,    /* every tensor starts behind a guard page */
    NB_PLACE_SLAB,     /* one mapping between guards, 64-byte lines at random distances; for timing */
};

enum nb_tensor_id {
    NB_T_X,
    NB_T_RESIDUAL,
    NB_T_GAMMA_F32,
    NB_T_BETA_F32,
    NB_T_GAMMA_X,
    NB_T_BETA_X,
    NB_T_RUNNING_MEAN_IN,
    NB_T_RUNNING_VAR_IN,
    NB_T_Y,
    NB_T_RESIDUAL_OUT,
    NB_T_MEAN,
    NB_T_RSTD,
    NB_T_RUNNING_MEAN_OUT,
    NB_T_RUNNING_VAR_OUT,
    NB_T_DY, /* of a backward call from here */
    NB_T_DRESIDUAL_OUT,
    NB_T_SAVED_MEAN,
    NB_T_SAVED_RSTD,
    NB_T_DX,
    NB_T_DGAMMA,
    NB_T_DBETA,
    NB_T_DALPHA,
    NB_T_SCRATCH, /* bytes, on a line of the cache */
    NB_N_TENSORS
};

struct nb_tensor {
    void *data;                 /* first element; null: not wanted */
    int64_t rows, cols, stride; /* in elements */
    size_t item;                /* bytes of an element */
    const void *source;         /* the packed input it was filled from; null for outputs */
    unsigned char *area;        /* the writable part of its mapping: poison and data */
    size_t area_bytes;
    ptrdiff_t to_device; /* from an address here to that on the device */
};

/* What to lay out; the tensors of several cases may share one layout. */
struct nb_layout_request {
    uint32_t wants; /* mask of (1 << enum nb_tensor_id) */
    enum nb_placement placement;
    int64_t rows;    /* how many of the inputs' rows */
    int64_t pad;     /* elements between two rows */
    int64_t n_stats; /* length of mean and rstd: rows, for BatchNorm channels */
    size_t scratch_bytes;
    int saved;       /* backward: index of the inputs' saved statistics that are laid out, or NB_ALL_SAVED */
    uint64_t seed;   /* of the random distances (NB_PLACE_SLAB) */
    bool joined;     /* NB_PLACE_INTERIOR: no poison between rows, for kernels that refuse rows apart */
    bool huge_pages; /* NB_PLACE_SLAB: ask for them */
    bool kept; /* NB_PLACE_SLAB: take kept_memory.h's, where there are some; what their outputs hold is left there */
    size_t room_bytes; /* NB_PLACE_SLAB: and so many bytes more, for other layouts */
    struct nb_buffers
        *beside;     /* NB_PLACE_SLAB: in whose room, if it suffices; may not move; released with these or later */
    uint32_t poison; /* the word in padding and in untouched outputs */
    const struct nb_device_api *device; /* where calls find the tensors; null: in the host's memory */
};

#define NB_ALL_SAVED (-1) /* for calls of several cases: one row for each */

/* Beyond any machine: a kernel's miscount, or -1 as a size. */
#define NB_SCRATCH_MAX ((size_t)1 << 46)

struct nb_buffers {
    struct nb_tensor tensors[NB_N_TENSORS];
    struct nb_layout_request request;
    const struct nb_inputs *in; /* borrowed */
    float *saved[2];            /* mean, rstd: what their tensors were filled from */
    /* Mappings with their guards, of each tensor or (NB_PLACE_SLAB) of all; and the same on the device. */
    struct nb_device_memory own[NB_N_TENSORS], there[NB_N_TENSORS], slab, slab_there;
    size_t slab_bytes, slab_taken; /* between the guards; of these */
};

/* The tensors that a case's op reads and writes; with_stats: mean and rstd of a forward call too. */
uint32_t nb_buffers_wants(const struct nb_case *c, bool with_stats);
/* Lays out and fills; scratch is wanted when scratch_bytes is not 0. -1 after nb_error when memory cannot be had. */
int nb_buffers_init(struct nb_buffers *b, const struct nb_inputs *in, const struct nb_layout_request *request);
/* Points the call's tensors here, or to where they are on the device; gamma and beta as the case's formula asks. */
void nb_buffers_attach(const struct nb_buffers *b, const struct nb_case *c, struct nb_call *call);
/* Of tensors on a device: what the harness has written here goes there, before calls; what calls have written there comes here, after all
 * that were enqueued. -1: a call or a copy has failed, and the device's last_error() says how. Of the host's there is nothing to do. */
int nb_buffers_to_device(const struct nb_buffers *b);
int nb_buffers_from_device(const struct nb_buffers *b);
/* Poisons all outputs again. */
void nb_buffers_poison_outputs(struct nb_buffers *b);
/* What a call is judged by, element by element: y, or dx. */
const struct nb_tensor *nb_buffers_result(const struct nb_buffers *b, const struct nb_case *c);
/* All that a call of the case writes, but mean and rstd: tensors with a row for each row of the case, and those of all rows together
 * (gradients of parameters, running statistics). */
struct nb_outputs {
    const struct nb_tensor *by_row[2], *of_all[5];
    int n_by_row, n_of_all;
};
struct nb_outputs nb_buffers_outputs(const struct nb_buffers *b, const struct nb_case *c);
const char *nb_tensor_name(int id); /* enum nb_tensor_id: "y" */
/* Row of a tensor. */
void *nb_tensor_row(const struct nb_tensor *t, int64_t row);

enum nb_damage { NB_INTACT, NB_DAMAGED_OUTSIDE, NB_DAMAGED_INPUT };
/* The first tensor that was harmed, with a sentence about where. */
enum nb_damage nb_buffers_verify(const struct nb_buffers *b, char *where, size_t n);
/* The same of the poison before and behind each tensor alone, which takes no time. */
enum nb_damage nb_buffers_verify_margins(const struct nb_buffers *b, char *where, size_t n);
/* Inputs and poison as they were at first. */
void nb_buffers_fill(struct nb_buffers *b);
/* Takes over the inputs' saved statistics anew, for the next filling: as many and as long as before. */
void nb_buffers_take_saved(struct nb_buffers *b);
/* Before a call, where every tensor has a mapping of its own (all placements but the slab) that no other process uses: a store to an input
 * faults from now on. */
void nb_buffers_close_inputs(const struct nb_buffers *b);
/* The name of the input that holds the address, of those that can be closed; or null. */
const char *nb_buffers_input_of(const struct nb_buffers *b, const void *address);
/* The name of the tensor whose guards hold the address, of a slab "the buffers", or null; *after: the guard behind it. */
const char *nb_buffers_guard_of(const struct nb_buffers *b, const void *address, bool *after);
double nb_buffers_bytes(const struct nb_buffers *b); /* of tensor data */
/* No other slab of the same tensors takes more, whatever its seed. */
size_t nb_slab_bytes_at_most(const struct nb_buffers *b);
void nb_buffers_release(struct nb_buffers *b);
