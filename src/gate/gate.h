// SPDX-License-Identifier: Apache-2.0
/* A gate: two builds, the cases in which they are compared, how much is measured, and what came of it. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "src/accuracy/accuracy.h"
#include "src/gate/code_identity.h"
#include "src/gate/gate_judge.h"
#include "src/measure/job.h"
#include "src/measure/measure.h"
#include "src/measure/status.h"
#include "src/plan/cells.h"
#include "src/plan/config.h"

/* ---- the builds ------------------------------------------------------------------------------------------------------ */

/* The shared objects that are compared, as private copies: the loader takes one file for one library whatever its path, so that only
 * files of their own give handles of their own, and a build that goes on beside the gate changes nothing. */

#define NB_GATE_LAYOUTS 16

enum { NB_BUILD_BASELINE, NB_BUILD_CONTROL, NB_BUILD_CANDIDATE, NB_N_BUILDS };
extern const char *const nb_build_names[NB_N_BUILDS]; /* "baseline", "control", "candidate": plugins are called so */

struct nb_gate_builds {
    char *dir; /* of the copies */
    int dir_lock;
    const char *files[NB_GATE_LAYOUTS][NB_N_BUILDS];   /* copies, owned */
    const char *sources[NB_GATE_LAYOUTS][NB_N_BUILDS]; /* what they are copies of, as the caller named it, borrowed */
    int n_layouts;
    bool same_bytes; /* in every layout the candidate is the baseline, byte for byte */
};

/* Each arm in one or more layouts (builds of the same source that differ in padding and order); the arm with fewer repeats
 * them. Copies all, looks at all, and leaves the first layout of each loaded (with more than one, instead of whatever was loaded before).
 * After nb_error -1: a file that is no build of kernels, that binds to code of another one or would run another one's library, or
 * that has other kernels than its arm's first; NB_OTHER_ABI. of_kernels false: any shared objects, of whose contents nothing is asked, and
 * which are not loaded here. */
int nb_gate_builds_init(struct nb_gate_builds *b, const char *const *baselines, size_t n_baselines,
                        const char *const *candidates, size_t n_candidates, bool of_kernels);
void nb_gate_builds_release(struct nb_gate_builds *b);

/* ---- the gate -------------------------------------------------------------------------------------------------------- */

struct nb_gate_case {
    char *key;                   /* without the build: "rmsnorm_twopass_v256_f32/shape:..", or a function's name */
    char *arm_keys[NB_N_BUILDS]; /* "baseline:rmsnorm_..." */
    void *parts;                 /* the subject's; owned */
    struct nb_case
        c; /* the candidate's; the baseline's where that alone has the kernel; of a function the name alone */
    enum nb_verdict verdict;
    struct nb_gate_judgement judgement; /* where it was timed */
    char reason[240];
    bool has_accuracy[NB_N_BUILDS];
    struct nb_accuracy accuracy[NB_N_BUILDS];
    double instructions[NB_N_BUILDS]; /* exact, of one small call; NaN: not counted */
    char uncounted[160];              /* why not; "": counted, or not wanted */
    bool over_budget;                 /* REGRESSION by instructions, not by time */
    bool wrong_when_timed;            /* WRONG in a launch, not in its check */
    struct nb_gate_evidence launches;
    double call_ns[NB_N_BUILDS]; /* median over launches */
    bool chunked;
    double seconds; /* what it took */
};

struct nb_gate_plan {
    int screen_launches, confirm_launches; /* per stage of confirmation: 12, 24 */
    int blocks;                            /* pairs in a launch: 100 */
    double sample_ms;                      /* 0.06 */
    double budget_s;                       /* 0: none */
    double case_timeout_s;
    uint64_t seed;
    bool ignore_identity;                          /* identical code is timed too */
    bool inconclusive_fails, not_comparable_fails; /* for CI systems that read reports instead of exit codes */
    struct nb_gate_rule rule;
};

struct nb_gate_request;
struct nb_gate {
    const struct nb_gate_subject *subject; /* of the cases */
    struct nb_gate_builds builds;
    struct nb_gate_plan plan;
    struct nb_gate_settings settings; /* the config's */
    struct nb_gate_case *cases;
    size_t n_cases;
    double started_s, elapsed_s;
    int ended_by;             /* a signal's number, else 0 */
    struct nb_floors *floors; /* owned */
    /* Every launch as the worker reported it; may be null. */
    void (*record)(const struct nb_gate_case *c, enum nb_gate_stage stage, const struct nb_gate_request *q,
                   const cJSON *line, void *arg);
    void *record_arg;
};

/* The defaults, and nothing to compare yet. */
void nb_gate_init(struct nb_gate *g);
void nb_gate_release(struct nb_gate *g);
/* One case more, which nothing is known of, with room for the subject's parts. */
struct nb_gate_case *nb_gate_add_case(struct nb_gate *g, const char *key, size_t parts);
/* The verdict, and its reason as printf() makes it. */
#define nb_gate_decide(c, as, ...) ((c)->verdict = (as), (void)nb_reason((c)->reason, sizeof(c)->reason, __VA_ARGS__))

/* ---- a launch from outside --------------------------------------------------------------------------------------------- */

/* A worker process times builds of one kernel, and what it says becomes logarithms of ratios to the first of them. */

#define NB_GATE_ARMS 12

/* Arms: the baseline, its byte copy (the control), then candidates. */
struct nb_gate_request {
    const char **files; /* shared objects, loaded in this order */
    int n_files;
    const char *keys[NB_GATE_ARMS]; /* "baseline:variant/shape..", as the files are called */
    int extra_percent[NB_GATE_ARMS];
    int n_arms;
    const struct nb_gate_subject *subject;
    const struct nb_gate_case *c;
    int launch, layout; /* the launch decides CPU, seed and padding */
    int threads;
    int blocks;
    double sample_ms, silence_s;
    uint64_t seed;
    struct nb_floors *floors; /* of the run so far; a launch adds to them. Null: of the launch alone */
    bool check_only;          /* nothing is timed */
};

struct nb_gate_answer {
    struct nb_gate_launch launch[NB_GATE_ARMS]; /* arm / baseline */
    double call_ns[NB_GATE_ARMS];               /* median over blocks of one call on the whole shape */
    bool chunked;
    size_t n_blocks;
    double wall_s;         /* of all blocks */
    enum nb_status status; /* NB_OK, or what ended it */
    int failed;            /* which arm did */
    char reason[200];
};

/* 0, -1 after nb_error (no process can be started), or the number of the signal that ended the run. line: null, or where the worker's goes, owned;
 * null where it is none. */
int nb_gate_launch_run(const struct nb_gate_request *q, struct nb_gate_answer *out, cJSON **line);
/* The worker's line alone, or its other answer; owned. */
struct nb_outcome;
cJSON *nb_gate_launch_ask(const struct nb_gate_request *q, struct nb_outcome *o);
/* From a worker's line alone: for samples that were recorded. floors: as the request's. -1: it is not one. */
int nb_gate_launch_read(const cJSON *line, int n_arms, int layout, struct nb_floors *floors,
                        struct nb_gate_answer *out);

/* In the worker: gives the code of the job's files pages of this process's own. */
void nb_gate_own_pages(const struct nb_job *job);
/* The worker's line: the arms' samples, and which of them wrote the same as before. */
void nb_gate_say(const struct nb_job *job, struct nb_arm *arms, int n, const struct nb_noise *noise, const bool *same);

/* A launch of the case's three builds in the layout whose turn it is. */
struct nb_gate_request nb_gate_request_of(const struct nb_gate *g, const struct nb_gate_case *c, int launch);
/* Runs and records it. As nb_gate_launch_run() returns. */
int nb_gate_launch(const struct nb_gate *g, const struct nb_gate_case *c, enum nb_gate_stage stage,
                   const struct nb_gate_request *q, struct nb_gate_answer *out);

/* The clock of the budget starts, signals are caught. */
void nb_gate_begin(struct nb_gate *g);
bool nb_gate_is_over(const struct nb_gate *g); /* the budget is */
/* The progress line goes, and elapsed_s is known. */
void nb_gate_end(struct nb_gate *g);

/* ---- the cases ------------------------------------------------------------------------------------------------------- */

/* The cells of a config for the candidate's kernels, each with its counterpart in the baseline, and the kernels that only the baseline
 * has. The builds are loaded already. kernels: globs on the kernel's name, any may match; none: all. Fills g->cases. What does not apply
 * or cannot run here is counted in skips; *n_elsewhere: cells that only this CPU refuses. -1 after nb_error. */
int nb_gate_cases_make(struct nb_gate *g, struct nb_config *config, const char *const *kernels, size_t n_kernels,
                       const struct nb_filters *filters, struct nb_skips *skips, size_t *n_elsewhere);

/* ---- functions that are no kernels (kernels/function.h) --------------------------------------------------------------- */

/* A function that is no kernel, and what belongs to it. */
enum nb_function_role {
    NB_FUNCTION_TIMED,
    NB_FUNCTION_SETUP,
    NB_FUNCTION_BYTES,
    NB_FUNCTION_CHECK,
    NB_FUNCTION_TEARDOWN,
    NB_N_FUNCTION_ROLES
};

/* The function of that role in a loaded file; null: it has none. */
void *nb_function_find(void *handle, const char *path, const char *name, enum nb_function_role role);

/* A case for each function, named as for `--function`, as C or C++ has them ("ns::parse"), or as the symbol; others: what stands for
 * NAME_setup and so on of all of them (null: nothing does). The builds are open. -1 after nb_error: neither build has it; the error says what
 * there is. */
int nb_gate_functions_make(struct nb_gate *g, const char *const *names, size_t n_names,
                           const char *const others[NB_N_FUNCTION_ROLES]);

/* ---- a run --------------------------------------------------------------------------------------------------------------- */

/* Identical code passes at once, wrong code fails at once, the rest is screened, and what screening does not clear is confirmed. Launches go round
 * robin over the cases, so that those of a case are spread over the run. The gate's cases are there already. 0, -1 after nb_error, or the number of the signal that ended it: what is decided then
 * stands, the rest is INCONCLUSIVE. */
int nb_gate_run(struct nb_gate *g);

/* IMPROVED becomes SUSPECT, with the reason, where the candidate takes less time than its instructions can, or than a copy of the same bytes
 * in the same launches. 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_gate_doubt(const struct nb_gate *g, struct nb_gate_case *c);

/* ---- what a gate compares: kernels, or functions that are none ----------------------------------------------------------- */

/* All cases of a gate are of one subject, and each has parts of its own that only the subject knows. What is not said returns 0, -1 after nb_error,
 * or the number of a signal. */
struct nb_gate_subject {
    const char *noun;         /* "kernel" */
    const char *injects;      /* how the self-test slows a build down */
    const char *instructions; /* title of a column: of what they are counted */
    bool (*has)(const struct nb_gate_case *c, int build);
    /* Null, or why builds that both have it cannot be timed against each other. This one and the next two may be missing. */
    const char *(*refuses)(const struct nb_gate_case *c);
    /* Fills the case's instructions, or uncounted with the reason; missing: the check does. */
    int (*count)(const struct nb_gate *g, struct nb_gate_case *c);
    /* An improvement becomes SUSPECT for what only this subject knows. */
    int (*doubt)(const struct nb_gate *g, struct nb_gate_case *c);
    int (*digest)(const struct nb_code *code, const struct nb_gate_case *c, int build, enum nb_code_part part,
                  uint64_t digest[2], char *reason, size_t n);
    /* Decides the case where one of the builds fails, or the candidate is worse. */
    int (*check)(const struct nb_gate *g, struct nb_gate_case *c);
    const char *job; /* its kind */
    /* What the worker is told of the arms. Missing: they are cases of kernels. */
    void (*describe)(const struct nb_gate_request *q, cJSON *options);
    /* Instructions of 100 + percent rows / those of 100 - 1; NaN with the reason. Missing: time is injected. */
    double (*injected)(const struct nb_gate_case *c, int percent, char *reason, size_t n);
};
extern const struct nb_gate_subject nb_gate_kernels, nb_gate_functions;

/* Where the candidate takes less time than a copy of the same bytes in the same launches. */
int nb_gate_doubt_copy(const struct nb_gate *g, struct nb_gate_case *c);
