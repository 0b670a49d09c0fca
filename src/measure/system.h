// SPDX-License-Identifier: Apache-2.0
/* What the operating system says of the machine: the settings that move timings, and how busy it is now. */
#pragma once

#include <stdint.h>

/* Texts are "" and numbers -1 where the system does not say. */
struct nb_system {
    char os[96];           /* "Debian GNU/Linux 12 (bookworm)" */
    char kernel[96];       /* "Linux 6.1.0-18-amd64" */
    char architecture[32]; /* "x86_64" */
    char governor[32];     /* of the first CPU allowed: "performance" */
    char boost[16];        /* "on", "off" */
    char clock_source[32]; /* "tsc" */
    char huge_pages[32];   /* transparent ones: "madvise" */
    char microcode[32];
    char siblings[64]; /* CPUs that share the first allowed CPU's core: "0,16"; one number: none */
    int aslr;          /* kernel.randomize_va_space */
    int64_t memory_bytes;
};
void nb_system_read(struct nb_system *s);

/* What changes from one minute to the next. */
struct nb_load {
    double average[3]; /* 1, 5 and 15 minutes; NaN where unknown */
    int64_t memory_available_bytes;
};
void nb_load_read(struct nb_load *l);

/* From now on this process, and what it starts, is refused memory that the machine does not have, and is the first that a system out of
 * memory ends. */
void nb_limit_memory(void);
