// SPDX-License-Identifier: Apache-2.0
/* What PyTorch is asked, and what came of it. The plan holds arms by workload and measurement, each once, however many claims need it; its
 * jobs run in worker processes (torch_job.c), so that one that crashes or hangs costs its own answer. Rounds go over all groups, the
 * cheapest first, so that a group's launches are spread over the run. Jobs that time steps run alone, and so does all that uses a GPU; the others side by side. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/core/stats.h"
#include "src/measure/journal.h"
#include "src/models/arm.h"

enum nb_torch_measure {
    NB_TORCH_STEPS,     /* times of steps, the arms interleaved in one process; a round is a launch */
    NB_TORCH_INFERENCE, /* of forward passes that keep nothing, likewise */
    NB_TORCH_MEMORY,    /* peak memory of a process that makes steps of one arm; a round is a launch of each */
    NB_TORCH_COURSE,    /* a training from its beginning; a round is a seed */
    NB_N_TORCH_MEASURES
};
extern const char *const nb_torch_measure_names[]; /* "steps", "inference", "memory", "course"; null-terminated */
extern const char *const nb_torch_step_parts[];    /* "step", "forward", "backward", "update"; null-terminated */
/* Are the arms timed beside each other? */
bool nb_torch_is_timed(enum nb_torch_measure measure);

/* As usual: eight launches narrow an interval against the six that are the fewest for one; six seeds, since a seed is a whole training. */
enum { NB_TORCH_LAUNCHES = 8, NB_TORCH_SEEDS = 6 };
/* Seconds of a launch's steps, which take milliseconds on a GPU, and seconds on a CPU. */
double nb_torch_launch_s(const char *device);

/* ---- where PyTorch is ---- */

struct nb_torch {
    char *python, *version, *gpu; /* the interpreter; of PyTorch; the GPU's name, null: it sees none */
    char *lacks;                  /* null, or why nothing can be asked on the device, with the mend */
};
/* Asks NORMBENCH_PYTHON, else python3 on PATH, else the environment of `make survey LIBS=torch`. device: "cpu" or "cuda". */
void nb_torch_find(struct nb_torch *t, const char *device);
void nb_torch_release(struct nb_torch *t);

/* ---- the plan ---- */

struct nb_torch_group {
    enum nb_torch_measure measure;
    const struct nb_model_workload *workload;
    int steps;   /* of a course */
    char **arms; /* as words (arm.h) */
    int *seeds;  /* of a course of each arm, the most that any claim needs; 0: the usual number */
    int n_arms;
};
struct nb_torch_plan {
    struct nb_torch_group *groups;
    int n;
};
/* Takes the arm along; an arm that is there already is not taken twice. seeds: of a course, 0: as usual. */
void nb_torch_plan_add(struct nb_torch_plan *p, enum nb_torch_measure measure, const struct nb_model_workload *workload,
                       int steps, int seeds, const char *arm);
/* Whatever was asked for, the usual number of seeds. */
void nb_torch_plan_usual_seeds(struct nb_torch_plan *p);
/* Seconds that it takes on one core in usual rounds, a guess. */
double nb_torch_plan_s(const struct nb_torch_plan *p);
void nb_torch_plan_release(struct nb_torch_plan *p);

/* ---- answers, and the figures that are made of them ----
 *
 * In the journal (src/measure/journal.h) each is a line {"type":"answer","answer":..}, on the disk before the next job begins.
 *
 *   {"request":{"measure","workload","round","steps","device","arms":[..]},"status":"ok"|..,"reason"?,"elapsed_s":1.5,"torch","device",
 *    "arms":[{"arm",
 *       steps, inference: "step":[s,..],"forward":[s,..],"backward":[s,..],"update":[s,..],"loss":[..], or "reason": why it has none
 *       memory: "peak_bytes","kept_bytes","parameter_bytes"
 *       course: "loss":[..],"wanted_steps","failed_steps","final_loss","unseen_loss","kept_bytes","recorded_steps":[..],
 *               "curves":[{"place","gradient","std":[..]}]}]} */

struct nb_torch_results {
    cJSON *answers; /* array; null: nothing */
};
/* Takes the answer. */
void nb_torch_results_add(struct nb_torch_results *r, cJSON *answer);
void nb_torch_results_release(struct nb_torch_results *r);

/* Which jobs a figure is of. */
struct nb_torch_question {
    enum nb_torch_measure measure;
    const char *workload;
    int steps; /* of a course */
};
/* What an answer to the question holds of an arm; null: nothing, or it is no answer to it. */
const cJSON *nb_torch_answer_arm(const cJSON *answer, const struct nb_torch_question *q, const char *arm);
/* Value of an arm in a round, or of an arm against another: NaN where there is none. */
typedef double nb_torch_value(const cJSON *arm, const cJSON *against, const void *context);
/* Over the rounds in which the arm, and against unless it is null, were measured: Hodges-Lehmann of the values, or of their logarithms,
 * which are then taken back. Rounds are independent units: processes, or seeds. */
struct nb_torch_figure {
    struct nb_interval value;
    double *rounds; /* the value in each, NaN where there is none; owned */
    int n_rounds, n_measured;
    const char *reason; /* why there is no value or no interval, borrowed from the results; or null */
};
struct nb_torch_figure nb_torch_figure_of(const struct nb_torch_results *r, const struct nb_torch_question *q,
                                          const char *arm, const char *against, nb_torch_value *value,
                                          const void *context, bool logarithmic);

/* ---- the study ---- */

struct nb_torch_study {
    const struct nb_torch_plan *plan;
    const struct nb_torch *torch; /* found, and it lacks nothing */
    const char *dir;              /* of the journal; what that answers is not asked again */
    struct nb_journal *journal;   /* open, and begun */
    const char *device;
    double budget_s;  /* groups that do not fit, as their first jobs tell, are left out, the most expensive first */
    double launch_s;  /* how long the steps of a launch go on */
    double silence_s; /* a process that says nothing for so long is ended */
    int rounds[NB_N_TORCH_MEASURES]; /* of each kind of group, where the plan asks for no more */
};

/* Answers, those of an earlier run included, go to *out. 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_torch_study_run(const struct nb_torch_study *study, struct nb_torch_results *out);
