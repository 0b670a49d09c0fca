// SPDX-License-Identifier: Apache-2.0
/* The plan, whose groups grow with each request, and the answers with their figures. */
#include "src/train/train_results.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/paired.h"
#include "src/train/options.h"

const char *const nb_train_measure_names[] = {"steps", "memory", "course", NULL};
const char *const nb_step_part_names[NB_N_STEP_PARTS] = {"step", "passes", "forward", "backward", "norm"};

static struct nb_train_group *group_of(struct nb_train_plan *p, enum nb_train_measure measure,
                                       const struct nb_workload *workload, int steps) {
    for (int i = 0; i < p->n; i++) {
        struct nb_train_group *g = &p->groups[i];
        if (g->measure == measure && g->workload == workload && g->steps == steps) return g;
    }
    p->groups = nb_realloc(p->groups, (unsigned)p->n + 1, sizeof *p->groups);
    p->groups[p->n] = (struct nb_train_group){.measure = measure, .workload = workload, .steps = steps};
    return &p->groups[p->n++];
}

void nb_train_plan_add(struct nb_train_plan *p, enum nb_train_measure measure, const struct nb_workload *workload,
                       int steps, int seeds, const char *arm) {
    assert(p && workload && arm);
    struct nb_train_group *g = group_of(p, measure, workload, measure == NB_TRAIN_COURSE ? steps : 0);
    int at = 0;
    while (at < g->n_arms && strcmp(g->arms[at], arm) != 0) at++;
    if (at == g->n_arms) {
        g->arms = nb_realloc(g->arms, (unsigned)g->n_arms + 1, sizeof *g->arms);
        g->seeds = nb_realloc(g->seeds, (unsigned)g->n_arms + 1, sizeof *g->seeds);
        g->seeds[g->n_arms] = 0;
        g->arms[g->n_arms++] = nb_strdup(arm);
    }
    if (measure == NB_TRAIN_COURSE && seeds > g->seeds[at]) g->seeds[at] = seeds;
}

void nb_train_plan_usual_seeds(struct nb_train_plan *p) {
    for (int i = 0; i < p->n; i++)
        for (int a = 0; a < p->groups[i].n_arms; a++) p->groups[i].seeds[a] = 0;
}

void nb_train_plan_release(struct nb_train_plan *p) {
    for (int i = 0; i < p->n; i++) {
        for (int a = 0; a < p->groups[i].n_arms; a++) free(p->groups[i].arms[a]);
        free(p->groups[i].arms);
        free(p->groups[i].seeds);
    }
    free(p->groups);
    *p = (struct nb_train_plan){0};
}

int nb_train_group_jobs(const struct nb_train_group *g) { return g->measure == NB_TRAIN_STEPS ? 1 : g->n_arms; }

int nb_train_job_rounds(const struct nb_train_group *g, int job, int usual) {
    return g->measure == NB_TRAIN_COURSE && g->seeds[job] > usual ? g->seeds[job] : usual;
}

static bool has_arm(const struct nb_train_group *g, int job, int arm) {
    return g->measure == NB_TRAIN_STEPS || job == arm;
}

cJSON *nb_train_request(const struct nb_train_group *g, int round, int job) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "measure", nb_train_measure_names[g->measure]);
    nb_json_text(json, "workload", g->workload->name);
    nb_json_number(json, "round", round);
    nb_json_number(json, "steps", g->steps);
    cJSON *arms = cJSON_AddArrayToObject(json, "arms");
    for (int a = 0; a < g->n_arms; a++)
        if (has_arm(g, job, a)) cJSON_AddItemToArray(arms, cJSON_CreateString(g->arms[a]));
    return json;
}

double nb_train_job_flops(const struct nb_train_group *g, int job) {
    double flops = 0;
    for (int a = 0; a < g->n_arms; a++) {
        struct nb_train_options o;
        char reason[200];
        if (!has_arm(g, job, a)) continue;
        if (nb_arm_parse(&o, NULL, g->arms[a], reason, sizeof reason) ||
            g->workload->family->complete(g->workload->own, &o))
            return (double)NAN;
        flops += g->workload->family->flops(g->workload->own, &o);
    }
    return flops;
}

/* ---- results: lines in, figures out ---- */

enum { LARGEST_FILE = 1 << 29 };

void nb_train_results_add(struct nb_train_results *r, cJSON *answer) {
    if (!r->answers) r->answers = cJSON_CreateArray();
    cJSON_AddItemToArray(r->answers, answer);
}

void nb_train_results_release(struct nb_train_results *r) {
    cJSON_Delete(r->answers);
    *r = (struct nb_train_results){0};
}

int nb_train_results_read(struct nb_train_results *r, const char *dir) {
    char *path = nb_path_join(dir, NB_TRAINING_FILE), *text = NULL, *state = NULL;
    int result = 0;
    if (nb_path_exists(path)) {
        text = nb_file_read(path, LARGEST_FILE, NULL);
        if (!text) result = -1;
    }
    for (char *line = text ? strtok_r(text, "\n", &state) : NULL; line; line = strtok_r(NULL, "\n", &state)) {
        cJSON *answer = cJSON_Parse(line);
        if (cJSON_GetObjectItemCaseSensitive(answer, "request"))
            nb_train_results_add(r, answer);
        else
            cJSON_Delete(answer);
    }
    free(text);
    free(path);
    return result;
}

/* A torn line of a run that was killed ends where the next one begins. */
int nb_train_results_append(const char *dir, const cJSON *answer) {
    struct nb_strbuf line = {0};
    char *path = nb_path_join(dir, NB_TRAINING_FILE);
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    nb_strbuf_add(&line, "\n");
    nb_json_print(answer, &line);
    nb_strbuf_add(&line, "\n");
    size_t done = 0;
    while (fd >= 0 && done < line.len) {
        const ssize_t n = write(fd, line.text + done, line.len - done);
        if (n < 0 && errno != EINTR) break;
        if (n > 0) done += (size_t)n;
    }
    const bool whole = fd >= 0 && done == line.len && fdatasync(fd) == 0;
    if (!whole) nb_error("%s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    nb_strbuf_release(&line);
    free(path);
    return whole ? 0 : -1;
}

const cJSON *nb_train_results_find(const struct nb_train_results *r, const cJSON *request) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, r->answers) {
        if (cJSON_Compare(cJSON_GetObjectItemCaseSensitive(answer, "request"), request, true)) return answer;
    }
    return NULL;
}

/* ---- figures ---- */

static bool is_of(const cJSON *request, const struct nb_train_question *q) {
    const char *measure = nb_json_get_text(request, "measure"), *workload = nb_json_get_text(request, "workload");
    return measure && strcmp(measure, nb_train_measure_names[q->measure]) == 0 && workload &&
           strcmp(workload, q->workload) == 0 && nb_json_get_number(request, "steps") == q->steps;
}

static bool asks(const cJSON *request, const struct nb_train_question *q, const char *arm) {
    const cJSON *item;
    if (!is_of(request, q)) return false;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(request, "arms")) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, arm) == 0) return true;
    }
    return false;
}

const cJSON *nb_train_answer_arm(const cJSON *answer, const struct nb_train_question *q, const char *name) {
    const cJSON *arm;
    if (!is_of(cJSON_GetObjectItemCaseSensitive(answer, "request"), q)) return NULL;
    cJSON_ArrayForEach(arm, cJSON_GetObjectItemCaseSensitive(answer, "arms")) {
        const char *text = nb_json_get_text(arm, "arm");
        if (text && strcmp(text, name) == 0) return arm;
    }
    return NULL;
}

/* What was measured of the arm in the round; null: nothing, *reason says why where it is known. */
static const cJSON *arm_in(const struct nb_train_results *r, const struct nb_train_question *q, const char *name,
                           double round, const char **reason) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, r->answers) {
        const cJSON *request = cJSON_GetObjectItemCaseSensitive(answer, "request");
        const char *why = nb_json_get_text(answer, "reason");
        if (!asks(request, q, name) || nb_json_get_number(request, "round") != round) continue;
        if (why) *reason = why;
        const cJSON *arm = nb_train_answer_arm(answer, q, name);
        if (arm) return arm;
    }
    return NULL;
}

static int last_round(const struct nb_train_results *r) {
    const cJSON *answer;
    int last = -1;
    cJSON_ArrayForEach(answer, r->answers) {
        const double round = nb_json_get_number(cJSON_GetObjectItemCaseSensitive(answer, "request"), "round");
        if (round > last) last = (int)round;
    }
    return last;
}

struct nb_train_figure nb_train_figure_of(const struct nb_train_results *r, const struct nb_train_question *q,
                                          const char *arm, const char *against, nb_train_value *value,
                                          const void *context, bool logarithmic) {
    struct nb_train_figure out = {.value = {NAN, NAN, NAN}, .n_rounds = last_round(r) + 1};
    double *values = nb_alloc((unsigned)out.n_rounds + 1, sizeof *values);
    size_t n = 0;
    out.rounds = nb_alloc((unsigned)out.n_rounds + 1, sizeof *out.rounds);
    for (int i = 0; i < out.n_rounds; i++) {
        const cJSON *a = arm_in(r, q, arm, i, &out.reason);
        const cJSON *b = against ? arm_in(r, q, against, i, &out.reason) : NULL;
        const double v = a && (b || !against) ? value(a, b, context) : (double)NAN;
        out.rounds[i] = v;
        if (!isnan(v)) values[n++] = logarithmic ? log(v) : v;
    }
    if (n > 0) {
        out.value = logarithmic ? nb_ratio_over_launches(values, n) : nb_over_launches(values, n, 0.95);
        out.reason = NULL;
    }
    out.n_measured = (int)n;
    free(values);
    return out;
}
