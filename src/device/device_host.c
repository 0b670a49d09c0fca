// SPDX-License-Identifier: Apache-2.0
/* The host as a device, and what is known of devices without opening them. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/device/device.h"
#include "src/programs/kernel_program.h"
#include "src/programs/program_memory.h"

static const char *open_host(void) { return NULL; }

/* Whole pages between two guards: of a page each where addresses are rationed (ulimit -v). Where kernels of another process are called, in
 * memory that it maps too. */
static int alloc_host(struct nb_device_memory *m, size_t bytes, enum nb_device_end end) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    unsigned char *shared = nb_program_memory_new(whole);
    if (shared) {
        *m = (struct nb_device_memory){.area = shared + (end == NB_DEVICE_END ? whole - bytes : 0), .map = shared};
        m->map_bytes = whole;
        return 0;
    }
    for (size_t guard = errno == 0 ? nb_buffer_distance() : 0; guard >= page; guard = guard > page ? page : 0) {
        void *p = mmap(NULL, whole + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) continue;
        *m = (struct nb_device_memory){.map = p, .map_bytes = whole + 2 * guard};
        m->area = m->map + guard + (end == NB_DEVICE_END ? whole - bytes : 0);
        if (mprotect(m->map + guard, whole, PROT_READ | PROT_WRITE) == 0) return 0;
        munmap(p, m->map_bytes);
    }
    *m = (struct nb_device_memory){0};
    return nb_error("no memory for a buffer of %zu bytes: %s", bytes, strerror(errno));
}

static void release_host(struct nb_device_memory *m) {
    if (m->map && !nb_program_memory_free(m->map)) munmap(m->map, m->map_bytes);
    *m = (struct nb_device_memory){0};
}

const struct nb_device_api nb_device_host = {
    .name = "host", .open = open_host, .alloc = alloc_host, .release = release_host};

const struct nb_device_api *nb_device_of(uint32_t backend) {
    assert(backend < NB_N_BACKENDS);
    return backend == NB_BACKEND_CUDA ? &nb_device_cuda : &nb_device_host;
}

/* ---- asked in the guard ---- */

enum { SURVEY_LIMIT_S = 30 }; /* a driver that wakes its GPU takes seconds */

static void survey_there(void *arg) {
    struct nb_device_survey *s = arg;
    const char *why = nb_device_cuda.open();
    cJSON *properties released_by(nb_json_release) = cJSON_CreateObject();
    snprintf(s->refusal, sizeof s->refusal, "%s", why ? why : "");
    if (!why) {
        nb_device_cuda.properties(properties);
        s->l2_bytes = nb_device_cuda.l2_bytes();
    }
    if (!cJSON_PrintPreallocated(properties, s->properties, sizeof s->properties, 0)) s->properties[0] = '\0';
}

const struct nb_device_survey *nb_device_survey(uint32_t backend) {
    static struct nb_device_survey known;
    static bool is_known;
    assert(backend < NB_N_BACKENDS && !nb_device_is_host(nb_device_of(backend)));
    if (is_known) return &known;
    const char *why = nb_guarded(survey_there, &known, sizeof known, SURVEY_LIMIT_S);
    if (why) snprintf(known.refusal, sizeof known.refusal, "the NVIDIA driver %s while it was asked for its GPUs", why);
    known.refusal[sizeof known.refusal - 1] = known.properties[sizeof known.properties - 1] = '\0';
    is_known = true;
    return &known;
}

const char *nb_device_refuses(uint32_t backend) {
    if (nb_device_is_host(nb_device_of(backend))) return NULL;
    const struct nb_device_survey *s = nb_device_survey(backend);
    return s->refusal[0] ? s->refusal : NULL;
}
