// SPDX-License-Identifier: Apache-2.0
/* Events through PAPI. PAPI_query_event() is never asked: in a virtual machine it says yes to what cannot be added. */
#include "src/measure/counter_source.h"

#include <papi.h>
#include <stdio.h>
#include <string.h>

/* 0, or -1 with the reason; the library is initialised on the first call. */
static int initialise(char *reason, size_t n) {
    static int state; /* 0: not tried, 1: works, -1: failed */
    if (state == 0) {
        PAPI_set_debug(PAPI_QUIET);
        state = PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT ? 1 : -1;
    }
    if (state < 0) snprintf(reason, n, "PAPI does not start; is its library of another version than its header?");
    return state < 0 ? -1 : 0;
}

static void close_set(struct nb_open_event *o) {
    PAPI_cleanup_eventset(o->handle);
    PAPI_destroy_eventset(&o->handle);
}

/* Why PAPI's component for the kernel's events is off, when it is. */
static const char *component_reason(void) {
    int id = PAPI_get_component_index("perf_event");
    const PAPI_component_info_t *info = id >= 0 ? PAPI_get_component_info(id) : NULL;
    return info && info->disabled ? info->disabled_reason : NULL;
}

static int open_set(struct nb_open_event *o, const struct nb_event *event, char *reason, size_t n) {
    int code = 0, error;
    char name[64];
    if (initialise(reason, n) != 0) return -1;
    *o = (struct nb_open_event){.event = event, .handle = PAPI_NULL};
    snprintf(name, sizeof name, "%s", event->papi);
    error = PAPI_event_name_to_code(name, &code);
    if (error == PAPI_OK) error = PAPI_create_eventset(&o->handle);
    if (error == PAPI_OK && (error = PAPI_add_event(o->handle, code)) != PAPI_OK) close_set(o);
    if (error == PAPI_OK) return 0;
    const char *why = component_reason();
    snprintf(reason, n, "PAPI: %.80s", why ? why : PAPI_strerror(error));
    return -1;
}

static int begin(struct nb_open_event *o) { return PAPI_start(o->handle) == PAPI_OK ? 0 : -1; }

static int end(struct nb_open_event *o, double *count) {
    long long value = 0;
    if (PAPI_stop(o->handle, &value) != PAPI_OK) return -1;
    *count = (double)value;
    return 0;
}

const struct nb_counter_source nb_source_papi = {"papi", "papi_software", open_set, begin, end, close_set};
