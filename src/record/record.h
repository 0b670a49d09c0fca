// SPDX-License-Identifier: Apache-2.0
/* What one case left behind. A figure that was not measured is NaN here and null in JSON, with the reason beside it. */
#ifndef NB_RECORD_H
#define NB_RECORD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/accuracy_json.h"
#include "src/core/case.h"
#include "src/core/json.h"
#include "src/measure/counters.h"
#include "src/measure/metamorphic.h"
#include "src/measure/status.h"
#include "src/measure/timing.h"

struct nb_record {
    char *key;
    struct nb_case c; /* from the key; the kernel's fields from the record itself */
    enum nb_status status;
    char *reason; /* what exactly, or null */
    bool has_accuracy, has_evidence, has_timing;
    struct nb_accuracy accuracy;
    struct nb_evidence evidence; /* what grades rest on */
    struct nb_timing timing;
    bool has_metamorphic; /* only of checks after which nothing is timed */
    struct nb_metamorphic metamorphic;
    struct nb_counter counters[NB_MAX_COUNTERS];
    int n_counters;
    char **labels; /* names that blocks of the config gave it; owned */
    int n_labels;
    char *timing_reason; /* why has_timing is false although nothing failed, or null */
    int group;           /* in the whole plan; cases of one group were interleaved */
    int machine;         /* index into the results' machines; 0 unless shards of several machines were merged */
    char *library, *implementation; /* what the kernel says did the work, and how; null: nothing */
    char *replay;                   /* the command line that runs this case alone */
    double bytes;                   /* compulsory */
    int64_t chain;                  /* as the kernel declares; 0: never asked */
    int64_t column_chain;           /* likewise, of the sums over rows of a backward case */
    bool row_local;
};

/* JSON both ways; every key is described in reports/schema/results.schema.json. -1 after nb_error. */
cJSON *nb_record_to_json(const struct nb_record *r);
int nb_record_from_json(struct nb_record *r, const cJSON *json);
/* What a record and a checked case in the journal say alike of the check; what a record and a line about counters say alike of those. The
 * record has its key. -1 after nb_error. */
int nb_record_take_check(struct nb_record *r, const cJSON *json);
int nb_record_take_counters(struct nb_record *r, const cJSON *json);
void nb_record_add_label(struct nb_record *r, const char *label);
void nb_record_release(struct nb_record *r);

/* normbench replay 'KEY' [--plugin 'FILE'] [--tuning 'TEXT'], quoted for a POSIX shell; owned. file and tuning may be null. */
char *nb_replay_command(const char *key, const char *file, const char *tuning);

#endif
