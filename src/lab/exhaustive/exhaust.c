// SPDX-License-Identifier: Apache-2.0
/* Threads that take chunks from one counter, while the caller draws the bar. Since chunks are taken in order and each is finished,
 * what is done after an interruption is everything below the counter. */
#include "src/lab/exhaustive/exhaust.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/measure/process.h"

struct crew {
    const struct nb_sweep *sweep;
    atomic_llong next, finished;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    int n_working;
};

static void *work(void *arg) {
    struct crew *crew = arg;
    while (!nb_interrupted()) {
        const int64_t chunk = atomic_fetch_add(&crew->next, 1);
        if (chunk >= crew->sweep->n_chunks) break;
        crew->sweep->chunk(chunk, crew->sweep->arg);
        atomic_fetch_add(&crew->finished, 1);
    }
    pthread_mutex_lock(&crew->mutex);
    crew->n_working--;
    pthread_cond_signal(&crew->ended);
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

static void watch(struct crew *crew, double start_s) {
    enum { REDRAW_NS = 200000000 };
    pthread_mutex_lock(&crew->mutex);
    while (crew->n_working > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += REDRAW_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&crew->ended, &crew->mutex, &until);
        nb_progress((double)atomic_load(&crew->finished), (double)crew->sweep->n_chunks, nb_now_s() - start_s,
                    crew->sweep->label);
    }
    pthread_mutex_unlock(&crew->mutex);
    nb_progress_end();
}

int nb_sweep_run(struct nb_sweep *s, int threads) {
    assert(s->chunk && threads >= 1);
    struct crew crew = {.sweep = s, .mutex = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    pthread_t *ids = nb_alloc((unsigned)threads, sizeof *ids);
    const double start_s = nb_now_s();
    int n = 0, result = 0;
    pthread_mutex_lock(&crew.mutex);
    while (n < threads && pthread_create(&ids[n], NULL, work, &crew) == 0) n++;
    crew.n_working = n;
    pthread_mutex_unlock(&crew.mutex);
    if (n == 0) result = nb_error("no thread can be started");
    watch(&crew, start_s);
    for (int i = 0; i < n; i++) pthread_join(ids[i], NULL);
    free(ids);
    s->done = atomic_load(&crew.finished);
    s->seconds = nb_now_s() - start_s;
    return result ? result : s->done < s->n_chunks ? nb_interrupted() : 0;
}

double nb_sweep_estimate(const struct nb_sweep *s, int threads) {
    if (s->n_chunks == 0) return 0;
    const double start_s = nb_now_s();
    s->chunk(s->n_chunks / 2, s->arg);
    return (nb_now_s() - start_s) * ceil((double)s->n_chunks / threads);
}

cJSON *nb_exhaust_begin(cJSON *answer, const char *mode, const char *what, double inputs, double seconds,
                        const struct nb_exhaust_options *o) {
    nb_note("%s: %.6g inputs, about %.2g s on %d thread%s", what, inputs, seconds, o->threads,
            o->threads > 1 ? "s" : "");
    if (o->stride > 1)
        nb_warn("only every %lldth input is looked at: this proves nothing; without --stride it does",
                (long long)o->stride);
    nb_json_text(answer, "mode", mode);
    nb_json_number(answer, "stride", (double)o->stride);
    nb_json_number(answer, "threads", o->threads);
    cJSON_AddBoolToObject(answer, "exhaustive", o->stride == 1);
    return cJSON_AddArrayToObject(answer, "rows");
}

/* ---- The rare cases of a judgement, and its figures as JSON. ---- */

struct nb_judge nb_judge_of(enum nb_dtype dtype) {
    const struct nb_format *f = &nb_formats[dtype];
    return (struct nb_judge){dtype, f->precision, (uint64_t)(f->emin + 1023), f->overflow};
}

int nb_judge_closely(const struct nb_judge *j, double exact, double got) {
    const double low = nb_round_to(exact * (1 - 0x1p-48), j->dtype),
                 high = nb_round_to(exact * (1 + 0x1p-48), j->dtype);
    if (low == high) return got != low;
    return got == low || got == high ? -1 : 1;
}

void nb_judge_resolve(const struct nb_judge *j, struct nb_judged *sums, struct nb_twofold exact, double got) {
    const enum nb_number number = nb_number_of(j->dtype);
    const double below = nb_number_round(exact.hi, -1, number, NB_ROUND_NEAREST, 0);
    const double above = nb_number_round(exact.hi, 1, number, NB_ROUND_NEAREST, 0);
    /* lo moves hi to neither neighbour of it among doubles, so that it matters only where hi is a tie. */
    if (below != above && fabs(exact.lo) <= 0x1p-90 * fabs(exact.hi)) return;
    sums->undecided--;
    sums->misrounded += got != (exact.lo < 0 ? below : above);
}

void nb_judged_to_json(const struct nb_judged *s, cJSON *row) {
    nb_json_number(row, "inputs", (double)s->n);
    nb_json_number(row, "correct_share", s->n ? 1 - (double)(s->misrounded + s->undecided) / (double)s->n : NAN);
    nb_json_number(row, "misrounded", (double)s->misrounded);
    nb_json_number(row, "max_ulp", s->n ? s->max_ulp : NAN);
    nb_json_number(row, "non_finite", (double)s->non_finite);
    nb_json_number(row, "undecided", (double)s->undecided);
}
