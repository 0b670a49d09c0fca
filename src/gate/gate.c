// SPDX-License-Identifier: Apache-2.0
/* What a gate compares and owns: builds as private copies, and the cells of a config as cases of both. */
#include "src/gate/gate.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/core/timer.h"
#include "src/measure/process.h"
#include "src/programs/program_process.h"

/* ---- the builds: copies in a folder for each layout, PLACE/0/baseline.so, PLACE/0/control.so, PLACE/0/candidate.so, PLACE/1/... */

const char *const nb_build_names[NB_N_BUILDS] = {"baseline", "control", "candidate"};

enum { LARGEST = 512 << 20 };

static bool are_same_bytes(const char *file, const char *other) {
    size_t n, n_other;
    char *bytes freed = nb_file_read(file, LARGEST, &n), *others freed = nb_file_read(other, LARGEST, &n_other);
    return bytes && others && n == n_other && memcmp(bytes, others, n) == 0;
}

/* Two builds are compared by turns in one process. */
static int refuse_program(const char *file) {
    if (!nb_kernel_program_is(file)) return 0;
    return nb_error(
        "%s: the gate compares two builds as shared objects; kernels in a process of their own are compared by "
        "`normbench run` of each and `normbench compare`",
        file);
}

/* The baseline is read once, so that a file that is replaced meanwhile gives the same bytes to its control. */
static int copy_layout(struct nb_gate_builds *b, int layout) {
    const char *const *sources = b->sources[layout];
    char *dir freed = nb_textf("%s/%d", b->dir, layout), *bytes freed = NULL;
    size_t len = 0;
    if (refuse_program(sources[NB_BUILD_BASELINE]) != 0 || refuse_program(sources[NB_BUILD_CANDIDATE]) != 0) return -1;
    int result = nb_dir_make(dir);
    for (int build = 0; build < NB_N_BUILDS && result == 0; build++) {
        char *to = nb_textf("%s/%s.so", dir, nb_build_names[build]);
        b->files[layout][build] = to;
        nb_log_shows(to, sources[build]);
        if (build == NB_BUILD_CANDIDATE) free(bytes);
        if (build != NB_BUILD_CONTROL) bytes = nb_file_read(sources[build], LARGEST, &len);
        result = bytes ? nb_file_write(to, bytes, len) : -1;
    }
    nb_guard_end(); /* the next knows the copies' names */
    if (result == 0)
        b->same_bytes &= are_same_bytes(b->files[layout][NB_BUILD_BASELINE], b->files[layout][NB_BUILD_CANDIDATE]);
    return result;
}

/* ---- the libraries that a build needs: they are no copies, and the loader has one file for one name in a process ---- */

/* Of a file that is loaded where no other build is, but one that is loaded before it. */
struct libraries {
    char before[PATH_MAX], file[PATH_MAX]; /* before "": none */
    char why[200];                         /* the loader's words; "": it is loaded */
    bool has_all;
    size_t n;             /* bytes of */
    char texts[48 << 10]; /* file and SONAME (may be ""), one after the other, each with its end */
};

static void add_library(const char *file, const char *soname, void *arg) {
    struct libraries *l = arg;
    const char *const texts[] = {file, soname ? soname : ""};
    if (l->n + strlen(texts[0]) + strlen(texts[1]) + 2 > sizeof l->texts) l->has_all = false;
    for (int i = 0; i < 2 && l->has_all; i++) {
        memcpy(l->texts + l->n, texts[i], strlen(texts[i]) + 1);
        l->n += strlen(texts[i]) + 1;
    }
}

static void ignore_library(const char *file, const char *soname, void *arg) { (void)file, (void)soname, (void)arg; }

static void list_libraries(void *arg) {
    struct libraries *l = arg;
    if (l->before[0]) nb_object_libraries(l->before, ignore_library, NULL);
    const char *why = nb_object_libraries(l->file, add_library, l);
    snprintf(l->why, sizeof l->why, "%s", why ? why : "");
}

/* In a guard of its own. False: it ended otherwise, which whoever loads the file next says. */
static bool find_libraries(struct libraries *l, const char *before, const char *file) {
    enum { LIMIT_S = 10 };
    *l = (struct libraries){.has_all = true};
    snprintf(l->before, sizeof l->before, "%s", before);
    snprintf(l->file, sizeof l->file, "%s", file);
    nb_guard_end();
    const bool answered = !nb_guarded(list_libraries, l, sizeof *l, LIMIT_S);
    nb_guard_end();
    return answered && !l->why[0];
}

static const char *soname_at(const char *library) { return library + strlen(library) + 1; }
static const char *next_library(const char *library) {
    const char *soname = soname_at(library);
    return soname + strlen(soname) + 1;
}

static bool has_library(const struct libraries *l, const char *file) {
    for (const char *at = l->texts; at < l->texts + l->n; at = next_library(at))
        if (strcmp(at, file) == 0) return true;
    return false;
}

/* The loader knows a file by its SONAME and by the name that it was asked for. */
static bool have_one_name(const char *library, const char *other) {
    const char *const names[] = {soname_at(library), strrchr(library, '/') + 1};
    const char *const others[] = {soname_at(other), strrchr(other, '/') + 1};
    for (int i = 0; i < 4; i++)
        if (*names[i / 2] && strcmp(names[i / 2], others[i % 2]) == 0) return true;
    return false;
}

/* Behind the baseline, does the candidate still get its own? */
static int compare_libraries(const struct libraries *baseline, const struct libraries *candidate) {
    static struct libraries together;
    if (!find_libraries(&together, baseline->file, candidate->file)) return 0;
    for (const char *c = candidate->texts; c < candidate->texts + candidate->n; c = next_library(c)) {
        if (has_library(&together, c)) continue;
        for (const char *b = baseline->texts; b < baseline->texts + baseline->n; b = next_library(b)) {
            if (!have_one_name(b, c) || are_same_bytes(b, c)) continue;
            return nb_error(
                "%s needs %s, and %s needs %s: the loader has one library of one name in a process, so that both builds "
                "would run the same one; give the two different names (-Wl,-soname), or link each into its build",
                baseline->file, b, candidate->file, c);
        }
    }
    return 0;
}

static bool names_origin(const char *file) {
    size_t n;
    char *bytes freed = nb_file_read(file, LARGEST, &n);
    return bytes && (memmem(bytes, n, "$ORIGIN", 7) || memmem(bytes, n, "${ORIGIN}", 9));
}

/* Does the copy, in another folder, find the same libraries as the file itself? */
static int check_copy(const struct libraries *source, const char *copied) {
    static struct libraries copy;
    const char *library = source->texts, *end = source->texts + source->n;
    if (!names_origin(copied)) return 0;
    if (!find_libraries(&copy, "", copied) && !copy.why[0]) return 0;
    while (!copy.why[0] && library < end && has_library(&copy, library)) library = next_library(library);
    if (!copy.why[0] && library == end) return 0;
    return nb_error(
        "%s: its RUNPATH has $ORIGIN, its own folder, but the gate loads a copy of it in another folder, which does not find "
        "the same libraries (%s); link it with an absolute path: -Wl,-rpath,FOLDER",
        source->file, copy.why[0] ? copy.why : library);
}

static int check_libraries(const struct nb_gate_builds *b, int layout) {
    static struct libraries needed[NB_N_BUILDS];
    static const int builds[] = {NB_BUILD_BASELINE, NB_BUILD_CANDIDATE};
    for (int i = 0; i < 2; i++) {
        struct libraries *l = &needed[builds[i]];
        if (!find_libraries(l, "", b->sources[layout][builds[i]])) return 0;
        if (!l->has_all) return nb_error("%s: needs more libraries than can be looked at", l->file);
        if (check_copy(l, b->files[layout][builds[i]]) != 0) return -1;
    }
    return compare_libraries(&needed[NB_BUILD_BASELINE], &needed[NB_BUILD_CANDIDATE]);
}

/* ---- the symbols ---- */

struct binding {
    char file[PATH_MAX];
    char symbol[200], where[PATH_MAX]; /* symbol "": none is bound elsewhere */
    bool is_open;
};
static void find_binding(void *arg) {
    struct binding *b = arg;
    const char *where = "";
    void *handle = nb_object_open(b->file);
    const char *symbol = handle ? nb_object_foreign(handle, &where) : NULL;
    b->is_open = handle != NULL;
    snprintf(b->symbol, sizeof b->symbol, "%s", symbol ? symbol : "");
    snprintf(b->where, sizeof b->where, "%s", where);
}

/* Two builds that find one symbol in one place run one piece of code, or read one table. */
static int check_binding(const char *copied, const char *file) {
    enum { LIMIT_S = 10 };
    static struct binding b;
    b = (struct binding){0};
    snprintf(b.file, sizeof b.file, "%s", copied);
    const char *why = nb_guarded(find_binding, &b, sizeof b, LIMIT_S);
    if (why) return nb_error("%s: its code %s while its symbols were looked up", file, why);
    if (!b.is_open) return nb_error("%s is no shared object that can be compared", file);
    if (!b.symbol[0]) return 0;
    return nb_error(
        "%s: its %.199s is bound to that of %.400s; build it with -fvisibility=hidden (g++: and -fno-gnu-unique) and "
        "link it with -Bsymbolic",
        file, b.symbol, b.where);
}

/* Of the names of a build's kernels, in order. */
static uint64_t names_of(int build) {
    uint64_t digest = 0;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        if (!entry->plugin || strcmp(entry->plugin, nb_build_names[build]) != 0) continue;
        for (const char *c = entry->id; *c; c++) digest = nb_random_mix(digest ^ (unsigned char)*c);
        digest = nb_random_mix(digest + 1);
    }
    return digest;
}

/* The host's clock times only what the host does. */
static void note_untimed(int build, const char *source) {
    size_t n = 0;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        n += entry->plugin && strcmp(entry->plugin, nb_build_names[build]) == 0 &&
             entry->kernel->backend != NB_BACKEND_CPU;
    }
    if (n > 0)
        nb_warn("%s: %zu of its kernels do not run on the CPU and are left out: the gate times the CPU", source, n);
}

/* names: of the kernels of each build; null: whatever the files hold. */
static int check_layout(const struct nb_gate_builds *b, int layout, uint64_t *names) {
    for (int build = 0; build < NB_N_BUILDS; build++) {
        const char *file = b->files[layout][build], *source = b->sources[layout][build];
        int result = names ? nb_registry_describe(file) : 0;
        if (result != 0)
            nb_error("%s is not a build of kernels that can be compared; to compare its functions, name them by "
                     "--function NAME",
                     source);
        if (result == 0) result = check_binding(file, source);
        if (result != 0) return result;
        if (names) names[build] = names_of(build);
        if (names && layout == 0) note_untimed(build, source);
    }
    return 0;
}

int nb_gate_builds_init(struct nb_gate_builds *b, const char *const *baselines, size_t n_baselines,
                        const char *const *candidates, size_t n_candidates, bool of_kernels) {
    assert(b && (baselines || n_baselines == 0) && (candidates || n_candidates == 0));
    uint64_t names[NB_GATE_LAYOUTS][NB_N_BUILDS] = {{0}};
    *b = (struct nb_gate_builds){.n_layouts = (int)(n_baselines > n_candidates ? n_baselines : n_candidates),
                                 .same_bytes = true};
    if (n_baselines == 0 || n_candidates == 0) return nb_error("the gate compares a --baseline with a --candidate");
    if (b->n_layouts > NB_GATE_LAYOUTS) return nb_error("%d layouts; %d are the most", b->n_layouts, NB_GATE_LAYOUTS);
    b->dir = nb_temporary_dir("gate", &b->dir_lock);
    if (!b->dir) return -1;
    for (int l = b->n_layouts - 1; l >= 0; l--) {
        const char *baseline = baselines[(size_t)l % n_baselines], *candidate = candidates[(size_t)l % n_candidates];
        const char *const sources[NB_N_BUILDS] = {baseline, baseline, candidate};
        memcpy(b->sources[l], sources, sizeof sources);
        int result = copy_layout(b, l);
        if (result == 0) result = check_libraries(b, l);
        if (result == 0) result = check_layout(b, l, of_kernels ? names[l] : NULL);
        if (result != 0) return result;
        if (l > 0 && of_kernels) nb_registry_release();
    }
    for (int l = 1; l < b->n_layouts; l++)
        for (int build = 0; build < NB_N_BUILDS; build++)
            if (names[l][build] != names[0][build])
                return nb_error("%s does not have the kernels of %s: an arm's files are layouts of one source",
                                b->sources[l][build], b->sources[0][build]);
    return 0;
}

void nb_gate_builds_release(struct nb_gate_builds *b) {
    nb_log_shows(NULL, NULL);
    for (int l = 0; l < b->n_layouts; l++)
        for (int build = 0; build < NB_N_BUILDS; build++) free((char *)(uintptr_t)b->files[l][build]);
    nb_temporary_dir_remove(b->dir, b->dir_lock);
    *b = (struct nb_gate_builds){0};
}

/* ---- the gate -------------------------------------------------------------------------------------------------------- */

struct nb_gate_case *nb_gate_add_case(struct nb_gate *g, const char *key, size_t parts) {
    if ((g->n_cases & (g->n_cases - 1)) == 0)
        g->cases = nb_realloc(g->cases, g->n_cases ? 2 * g->n_cases : 1, sizeof *g->cases);
    struct nb_gate_case *c = &g->cases[g->n_cases++];
    *c = (struct nb_gate_case){.key = nb_strdup(key), .parts = nb_alloc(1, parts)};
    for (int b = 0; b < NB_N_BUILDS; b++) {
        char *arm = nb_textf("%s:%s", nb_build_names[b], key);
        c->arm_keys[b] = arm;
        c->instructions[b] = NAN;
    }
    return c;
}

void nb_gate_init(struct nb_gate *g) {
    *g = (struct nb_gate){.plan = {.screen_launches = 12,
                                   .confirm_launches = 24,
                                   .blocks = 100,
                                   .sample_ms = 0.06,
                                   .case_timeout_s = 20,
                                   .seed = 1,
                                   .rule = nb_gate_rule_default}};
}

void nb_gate_release(struct nb_gate *g) {
    for (size_t i = 0; i < g->n_cases; i++) {
        free(g->cases[i].key);
        for (int b = 0; b < NB_N_BUILDS; b++) free(g->cases[i].arm_keys[b]);
        nb_free_all(g->cases[i].parts, g->cases[i].launches.launches);
    }
    free(g->cases);
    if (g->floors) nb_floors_release(g->floors);
    free(g->floors);
    nb_gate_settings_release(&g->settings);
    nb_gate_builds_release(&g->builds);
}

struct nb_gate_request nb_gate_request_of(const struct nb_gate *g, const struct nb_gate_case *c, int launch) {
    assert(g && c && g->builds.n_layouts > 0);
    struct nb_gate_request q = {.layout = launch % g->builds.n_layouts,
                                .n_files = NB_N_BUILDS,
                                .n_arms = NB_N_BUILDS,
                                .subject = g->subject,
                                .c = c,
                                .launch = launch,
                                .threads = c->c.threads,
                                .blocks = g->plan.blocks,
                                .sample_ms = g->plan.sample_ms,
                                .silence_s = g->plan.case_timeout_s,
                                .seed = g->plan.seed + c->c.seed,
                                .floors = g->floors};
    q.files = (const char **)(uintptr_t)g->builds.files[q.layout];
    for (int b = 0; b < NB_N_BUILDS; b++) q.keys[b] = c->arm_keys[b];
    return q;
}

int nb_gate_launch(const struct nb_gate *g, const struct nb_gate_case *c, enum nb_gate_stage stage,
                   const struct nb_gate_request *q, struct nb_gate_answer *out) {
    cJSON *line released_by(nb_json_release) = NULL;
    const int result = nb_gate_launch_run(q, out, &line);
    if (line && g->record) g->record(c, stage, q, line, g->record_arg);
    return result;
}

void nb_gate_begin(struct nb_gate *g) {
    g->started_s = nb_now_s();
    if (!g->floors) g->floors = nb_alloc(1, sizeof *g->floors);
    nb_floors_load(g->floors);
    nb_watch_interrupts();
}

bool nb_gate_is_over(const struct nb_gate *g) {
    return g->plan.budget_s > 0 && nb_now_s() - g->started_s > g->plan.budget_s;
}

void nb_gate_end(struct nb_gate *g) {
    nb_progress_end();
    g->elapsed_s = nb_now_s() - g->started_s;
    g->ended_by = nb_interrupted();
    nb_floors_keep(g->floors);
}
