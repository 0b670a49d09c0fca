// SPDX-License-Identifier: Apache-2.0
/* Where the tensors of a kernel's calls are, and how its calls are timed: one table of functions for each backend. The host's memory, of
 * kernels that run on the CPU or are emulated there, is read and written as it is; that of a GPU through its driver. Of such a tensor the
 * harness keeps an image in the host's memory, which is copied to the device before calls and back after them (src/measure/buffers.h).
 *
 * A driver survives neither fork() nor a jump out of a call. So open() is for workers alone, each with a context of its own, and not before
 * the last fork; every other process asks nb_device_survey(). */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

/* Where the kernels for GPUs have run: reports/published/gpu-h100.md. */
#define NB_CUDA_HAS_RUN "run on an H100, 2026-11"

struct nb_device_memory {
    unsigned char *area; /* the bytes asked for, on the device */
    unsigned char *map;  /* what is mapped of it, with the guards around */
    size_t map_bytes;
    uint64_t handle; /* the driver's */
    size_t held_bytes;
};

/* At which end of a mapping between guards the bytes lie, flush with the guard there; or anywhere, for what is timed. */
enum nb_device_end { NB_DEVICE_START, NB_DEVICE_END, NB_DEVICE_ANYWHERE };

/* Functions that return int: 0, or -1, and last_error() says why. Of the host all but open, alloc and release are null: its memory needs no
 * copying, and a call is over when it returns. */
struct nb_device_api {
    const char *name;
    const char *(*open)(
        void); /* null: it can be used; else one sentence why not, which lasts. Again: the same answer */
    int (*alloc)(struct nb_device_memory *m, size_t bytes, enum nb_device_end end);
    void (*release)(struct nb_device_memory *m);

    /* Copies and fills come behind the calls enqueued before, and before those that follow; copies are over when they return. */
    int (*copy_in)(void *device, const void *host, size_t bytes);
    int (*copy_out)(void *host, const void *device, size_t bytes);
    int (*fill)(void *device, uint32_t word, size_t words);
    int (*synchronise)(void); /* waits for all calls; -1: one of them has failed, and the context is lost */
    void *(*stream)(void);    /* of all calls and all that follows */

    int (*record)(int event);         /* 0 or 1, behind what was enqueued so far */
    double (*elapsed_s)(void);        /* between both, waiting for the second; NaN: an error */
    int (*capture_begin)(void);       /* what is enqueued from now on runs later */
    int (*capture_end)(void **graph); /* as often as replay() is called */
    int (*replay)(void *graph);
    void (*release_graph)(void *graph);

    bool (*is_disturbed)(void);        /* throttled, or its clock is 2 % below the highest seen */
    double (*throttled)(void);         /* 1: is_disturbed() has met reasons since this was asked; 0; NaN: not known */
    void (*properties)(cJSON *object); /* name, memory_bytes and more; "now": its state */
    void (*state)(cJSON *object);      /* clocks, why they are lowered, and what else may; a reason for what is null */
    double (*l2_bytes)(void);
    /* What the last error was, and whether it was an access to memory that is not mapped. Good until the next call. */
    const char *(*last_error)(bool *outside);
};

/* The device that calls of a case's kernel are made on. */
const struct nb_device_api *nb_device_of(uint32_t backend);
extern const struct nb_device_api nb_device_host, nb_device_cuda;

/* Is a tensor's image in the host's memory all there is? */
static inline bool nb_device_is_host(const struct nb_device_api *device) { return !device->copy_in; }

/* What a process that may not open the device knows of it: asked once, in the guard (src/core/guard.h). */
struct nb_device_survey {
    char refusal[200]; /* "": it can be used */
    double l2_bytes;
    char properties[1600]; /* JSON, or "" */
};
const struct nb_device_survey *nb_device_survey(uint32_t backend);
/* One sentence why calls cannot be made here, or null. */
const char *nb_device_refuses(uint32_t backend);
