// SPDX-License-Identifier: Apache-2.0
/* Launching a device function by name: on a GPU (driver.c), or emulated on the CPU (emulated.cpp). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/args.h"

#ifdef __cplusplus
extern "C" {
#endif

struct nb_launch {
    const char *function;
    uint32_t grid, block, cluster; /* blocks, threads of a block, blocks of a cluster */
    size_t shared;                 /* bytes of a block */
    const void *args;              /* of the one struct that the function takes */
    void *stream;
    bool
        goes_on; /* clusters go on to further rows: of those that grid has, no more than run at once, each with equally many rows */
};
enum { NB_LAUNCH_FAILED = 1, NB_LAUNCH_NO_MEMORY = 2 };

/* 0, or what run() returns. On a GPU it is enqueued, emulated it is done. */
int nb_launch(const struct nb_launch *launch);
/* Bytes from one place on the device to another, by the driver's own copy: returns as nb_launch() does. */
int nb_launch_copy(void *to, const void *from, size_t bytes, void *stream);
/* What the last launch of this thread that failed since this was asked before returned, or 0. */
int nb_launch_error(void);

struct nb_device {
    bool has_clusters;
    size_t shared_bytes; /* that a block can have */
};
/* Of the current context; valid in a worker. */
const struct nb_device *nb_launch_device(void);
/* Null, or one sentence why nothing can be launched here. */
const char *nb_launch_refused(void);

#ifdef __cplusplus
}
#endif
