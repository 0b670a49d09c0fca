// SPDX-License-Identifier: Apache-2.0
/* Threads that take chunks from one counter, while the caller draws the bar. Since chunks are taken in order and each is finished,
 * what is done after an interruption is everything below the counter. */
#include "src/lab/exhaustive/exhaust.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

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
        nb_worked("chunk", NULL, 1, 0);
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

cJSON *nb_exhaust_begin(cJSON *answer, const char *mode, const char *what, double inputs,
                        const struct nb_exhaust_options *o) {
    nb_note("%s: %.6g inputs", what, inputs);
    if (o->stride > 1)
        nb_warn("only every %lldth input is looked at: this proves nothing; without --stride it does",
                (long long)o->stride);
    nb_json_text(answer, "mode", mode);
    nb_json_number(answer, "stride", (double)o->stride);
    cJSON_AddBoolToObject(answer, "exhaustive", o->stride == 1);
    return cJSON_AddArrayToObject(answer, "rows");
}
