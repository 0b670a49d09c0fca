// SPDX-License-Identifier: Apache-2.0
/* A candidate against gate_old.c: each kernel but one went wrong in its own way, some only once they are timed. */
#include <stdbool.h>
#include <unistd.h>

#define WAITS_BY "nop" /* as many as the baseline's, but quick ones */
#include "gated.h"
#include "silent.h"

static int steady(ROWS) { return correct_rows(call, begin, end); }

/* The same result for twice the work. */
static int doubled(ROWS) {
    for (int64_t row = begin; row < end; row++) {
        correct_row(call, row);
        __asm__ volatile("" ::: "memory");
        correct_row(call, row);
    }
    return 0;
}

/* Right within its bound, in float. */
static int rough(ROWS) {
    for (int64_t row = begin; row < end; row++) {
        const float *x = row_x(call, row), *gamma = call->gamma, *beta = call->beta;
        float sum = 0;
        for (int64_t i = 0; i < call->cols; i++) sum += x[i] * x[i];
        const float rstd = 1 / sqrtf(sum / (float)call->cols + (float)call->eps);
        for (int64_t i = 0; i < call->cols; i++)
            row_y(call, row)[i] = x[i] * rstd * (gamma ? gamma[i] : 1) + (beta ? beta[i] : 0);
    }
    return 0;
}

/* Wrong and fast. */
static int zeros(ROWS) {
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = 0;
    return 0;
}

/* From here on: right as long as it is looked at, which is in a fork of the process that loaded it. */
enum { CALLS_CHECKED = 60 };
static int n_calls;
static pid_t loaded_by;
__attribute__((constructor)) static void note_process(void) { loaded_by = getpid(); }
static bool is_late(void) { return n_calls++ > CALLS_CHECKED && getpid() == loaded_by; }

static int crashes(ROWS) {
    if (is_late()) *(volatile int *)(uintptr_t)(n_calls % 16) = 0;
    return correct_rows(call, begin, end);
}

static int hangs(ROWS) {
    if (is_late()) hang();
    return correct_rows(call, begin, end);
}

static int strays(ROWS) {
    if (is_late()) row_y(call, call->rows - 1)[call->cols] = 1;
    return correct_rows(call, begin, end);
}

static int changes(ROWS) {
    if (is_late()) ((float *)(uintptr_t)call->x)[0] += 1;
    return correct_rows(call, begin, end);
}

/* What it has computed before it takes for done. */
static int skips(ROWS) { return is_late() ? 0 : correct_rows(call, begin, end); }

static int fails(ROWS) {
    correct_rows(call, begin, end);
    return is_late() ? 5 : 0;
}

/* Its units are four rows each, which whoever hands it a stretch of rows does not know. */
static int units(ROWS) { return correct_rows(call, 4 * begin, 4 * end < call->rows ? 4 * end : call->rows); }
static int64_t n_units(const struct nb_call *call, int phase) { return (call->rows + 3) / 4; }

#define CHANGED(name) GATED(name, name, )
static const struct nb_kernel kernels[] = {
    CHANGED(steady),  CHANGED(doubled), CHANGED(rough),         CHANGED(zeros),
    CHANGED(crashes), CHANGED(hangs),   CHANGED(strays),        CHANGED(changes),
    CHANGED(skips),   CHANGED(fails),   GATED(added, steady, ), GATED(units, units, .n_units = n_units),
    CHANGED(waits)};
TABLE(kernels)
