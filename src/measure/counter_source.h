// SPDX-License-Identifier: Apache-2.0
/* The events that are counted, and the sources they can come from: one struct of functions a source. */
#ifndef NB_COUNTER_SOURCE_H
#define NB_COUNTER_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What getrusage() and the thread's clock know. */
enum nb_usage { NB_USAGE_NONE, NB_USAGE_CPU_NS, NB_USAGE_FAULTS, NB_USAGE_SWITCHES };

struct nb_event {
    const char *name;
    bool software;      /* counted by the operating system: needs no performance counter */
    const char *papi;   /* PAPI's name */
    uint32_t perf_type; /* of perf_event_open(2) */
    uint64_t perf_config;
    enum nb_usage usage;
    /* Work that must make it count: between low and high. */
    void (*known)(void *arg);
    double low, high;
    bool (*can_happen)(void); /* null: always; false: nothing to count can happen here, so nothing can be known */
};
extern const struct nb_event nb_events[];
extern const size_t nb_n_events;

/* An event opened in the calling thread. */
struct nb_open_event {
    const struct nb_event *event;
    int handle;   /* PAPI's event set, or a file descriptor */
    double start; /* getrusage */
};

struct nb_counter_source {
    const char *name, *software_name;
    /* 0, or -1 with the reason: what is missing and what would mend it. */
    int (*open)(struct nb_open_event *o, const struct nb_event *event, char *reason, size_t n);
    int (*begin)(struct nb_open_event *o);
    int (*end)(struct nb_open_event *o, double *count); /* since begin */
    void (*close)(struct nb_open_event *o);
};
extern const struct nb_counter_source nb_source_papi, nb_source_perf_event, nb_source_getrusage;

#endif
