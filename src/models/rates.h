// SPDX-License-Identifier: Apache-2.0
/* What this machine takes for the operations of steps: seconds of each product by its shape, of a byte that a copy moves, of a call on a
 * few numbers. All on one thread and in f32, as the kernels of norms are timed.
 *
 * A sample takes a millisecond or so, and so mostly lies in one state of the core and within a slice of its time. A product is therefore timed at up
 * to 256 of its rows, 1024 of its inner size and as many columns as keep it at NB_TIMED_FLOPS and its second matrix at NB_TIMED_FLOATS, and scaled. The
 * product that weighs most is timed at up to twice the rows and inner size and five times the operations too (`check`), and says how far that holds. A copy is timed at several sizes, some megabytes at a time: bytes that are moved cost what a copy of as many costs, so that what
 * fits a cache is moved at the cache's speed.
 *
 * Each launch is a worker process; intervals are over launches (Hodges-Lehmann). */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/stats.h"
#include "src/measure/journal.h"
#include "src/models/operations.h"

enum { NB_TIMED_ROWS = 256, NB_TIMED_INNER = 1024, NB_TIMED_FLOATS = 1 << 21 };
#define NB_TIMED_FLOPS 7e7
#define NB_CHECKED_FLOPS 3.5e8

struct nb_rate_size {
    int64_t rows, inner, cols;
};
struct nb_rate_product {
    struct nb_rate_size size, timed; /* of one of the batch */
    bool hot;
    double flops;               /* of all that the steps have of it */
    struct nb_interval seconds; /* of one, scaled to its size; all NaN: not measured */
};

enum { NB_N_COPY_SIZES = 8 };
struct nb_rates {
    struct nb_rate_product *products; /* each distinct one once, however many steps have it */
    size_t n;
    struct nb_rate_copy {
        double bytes; /* read and written */
        struct nb_interval s_a_byte;
    } copies[NB_N_COPY_SIZES];
    struct nb_interval call_s;    /* of an operation of a composed kernel on 16 numbers */
    struct nb_rate_check {        /* a product nearer its size: what it took over what was scaled */
        size_t product;           /* index */
        struct nb_rate_size size; /* rows 0: no product is larger than it is timed */
        struct nb_interval ratio;
    } check;
    int n_launches;
    char *reason; /* why there is nothing: OpenBLAS cannot be loaded ..; or null */
};

double nb_copy_bytes(int i); /* of the copies, from 32 KiB on in steps of four */

/* Adds the products of the step that are not there yet. */
void nb_rates_add(struct nb_rates *rates, const struct nb_model_step *step);
/* Times what was added, `launches` processes, and fills in. What the journal in dir answers is not asked again. 0, -1 after nb_error, or the
 * number of the signal that ended it. */
int nb_rates_measure(struct nb_rates *rates, const char *dir, struct nb_journal *journal, int launches);
void nb_rates_release(struct nb_rates *rates);

/* Seconds of a product of the step, all of its batch; of bytes moved. All NaN: not measured. */
struct nb_interval nb_rate_of_product(const struct nb_rates *rates, const struct nb_step_work *work);
struct nb_interval nb_rate_of_bytes(const struct nb_rates *rates, double bytes);
/* {"threads","products":[..],"copies":[..],"call_s","check":{..},"launches","reason"} */
cJSON *nb_rates_to_json(const struct nb_rates *rates);
