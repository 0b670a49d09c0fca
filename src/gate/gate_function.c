// SPDX-License-Identifier: Apache-2.0
/* Functions that are no kernels as what a gate compares: their names in C and C++, where the builds have them, and the check before timing. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/gate/gate.h"
#include "src/measure/launcher.h"

/* ---- names ---------------------------------------------------------------------------------------------------------------------------- */

static const struct role {
    const char *suffix;     /* of NAME_suffix, and the option that names another */
    const char *parameters; /* as the Itanium C++ ABI writes them */
} roles[NB_N_FUNCTION_ROLES] = {[NB_FUNCTION_TIMED] = {"function", "Pv"},
                                [NB_FUNCTION_SETUP] = {"setup", "v"},
                                [NB_FUNCTION_BYTES] = {"bytes", "PKvPm"},
                                [NB_FUNCTION_CHECK] = {"check", "PKvS%d_"}, /* the type said before, by its number */
                                [NB_FUNCTION_TEARDOWN] = {"teardown", "Pv"}};

/* The symbol of a C++ function: "ns::parse" is _ZN2ns5parseEPv, "parse" is _Z5parsePv. Each namespace is numbered before the types. */
static void mangle(const char *name, enum nb_function_role role, struct nb_strbuf *out) {
    struct nb_strbuf parts released_by(nb_strbuf_release) = {0};
    int n_parts = 0;
    for (const char *at = name; *at; n_parts++) {
        const size_t len = strcspn(at, ":");
        nb_strbuf_addf(&parts, "%zu%.*s", len, (int)len, at);
        at += len;
        at += strspn(at, ":");
    }
    nb_strbuf_addf(out, n_parts > 1 ? "_ZN%sE" : "_Z%s", parts.text ? parts.text : "");
    if (role == NB_FUNCTION_CHECK)
        nb_strbuf_addf(out, roles[role].parameters, n_parts - 1);
    else
        nb_strbuf_add(out, roles[role].parameters);
}

void *nb_function_find(void *handle, const char *path, const char *name, enum nb_function_role role) {
    struct nb_strbuf symbol released_by(nb_strbuf_release) = {0};
    void *found = nb_object_symbol(handle, path, name);
    mangle(name, role, &symbol);
    if (!found) found = nb_object_symbol(handle, path, symbol.text);
    return found && nb_object_is_function(found) ? found : NULL;
}

/* ---- in a file: asked in the guard ------------------------------------------------------------------------------- */

enum { NAME_MOST = 512, LISTED_MOST = 16 << 10 };

struct parts {
    char names[NB_N_FUNCTION_ROLES][NAME_MOST];           /* "": none */
    uint64_t addresses[NB_N_BUILDS][NB_N_FUNCTION_ROLES]; /* in the first file; 0: not there */
};

static struct parts *parts_of(const struct nb_gate_case *c) { return c->parts; }

struct lookup {
    char file[PATH_MAX], names[NB_N_FUNCTION_ROLES][NAME_MOST];
    uint64_t addresses[NB_N_FUNCTION_ROLES]; /* in the file */
    char exported[LISTED_MOST];              /* all functions, one a line, as far as there is room */
};

static void list_function(const char *name, void *arg) {
    char *list = arg;
    const size_t len = strlen(list);
    if (len + strlen(name) + 2 < LISTED_MOST) snprintf(list + len, LISTED_MOST - len, "%s\n", name);
}

static void look_up(void *arg) {
    struct lookup *l = arg;
    void *handle = nb_object_open(l->file);
    for (int role = 0; role < NB_N_FUNCTION_ROLES && handle; role++) {
        const char *address =
            l->names[role][0] ? nb_function_find(handle, l->file, l->names[role], (enum nb_function_role)role) : NULL;
        l->addresses[role] = address ? (uint64_t)(address - (const char *)nb_object_of(address, NULL)) : 0;
    }
    if (handle) nb_object_functions(handle, list_function, l->exported);
}

static int look_into(struct lookup *l, const char *copied, const char *file, const struct parts *f) {
    enum { LIMIT_S = 10 };
    *l = (struct lookup){0};
    snprintf(l->file, sizeof l->file, "%s", copied);
    memcpy(l->names, f->names, sizeof l->names);
    const char *why = nb_guarded(look_up, l, sizeof *l, LIMIT_S);
    return why ? nb_error("%s: its code %s while its functions were looked up", file, why) : 0;
}

/* "" or what else the file has, the nearest first. */
static void say_others(const char *name, char *exported, struct nb_strbuf *out) {
    enum { MOST = 12 };
    struct nb_strings all released_by(nb_strings_release) = {0};
    nb_strings_split(&all, exported, '\n');
    if (all.n > 0 && !*all.items[all.n - 1]) all.n--;
    const char *nearest = nb_nearest(name, (const char *const *)all.items, all.n);
    if (all.n == 0)
        nb_strbuf_add(
            out,
            "; it exports no function (-fvisibility=hidden hides those without __attribute__((visibility(\"default\"))))");
    if (nearest) nb_strbuf_addf(out, "; did you mean '%s'?", nearest);
    for (size_t i = 0; i < all.n && i < MOST; i++)
        nb_strbuf_addf(out, "%s%s", i ? ", " : nearest ? " It has " : "; it has ", all.items[i]);
    if (all.n > MOST) nb_strbuf_addf(out, " and %zu more (nm -D --defined-only)", all.n - MOST);
}

static int refuse(const char *file, const char *name, enum nb_function_role role, char *exported) {
    struct nb_strbuf others released_by(nb_strbuf_release) = {0};
    say_others(name, exported, &others);
    return nb_error("%s: no function '%s' (--%s)%s", file, name, roles[role].suffix, others.text ? others.text : "");
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* An arm's other files are layouts of the first. */
static int look_everywhere(const struct nb_gate *g, struct parts *f, char *exported) {
    static struct lookup l;
    for (int layout = 0; layout < g->builds.n_layouts; layout++)
        for (int b = 0; b < NB_N_BUILDS; b++) {
            const char *source = g->builds.sources[layout][b];
            if (look_into(&l, g->builds.files[layout][b], source, f) != 0) return -1;
            if (layout == 0) memcpy(f->addresses[b], l.addresses, sizeof l.addresses);
            if (layout == 0 && b == NB_BUILD_BASELINE) memcpy(exported, l.exported, sizeof l.exported);
            for (int role = 0; role < NB_N_FUNCTION_ROLES; role++)
                if (f->addresses[b][role] && !l.addresses[role])
                    return refuse(source, f->names[role], (enum nb_function_role)role, l.exported);
        }
    return 0;
}

/* What one of two builds alone has cannot be called in both; a teardown changes no result. */
static void compare_roles(struct nb_gate_case *c) {
    const struct parts *f = parts_of(c);
    const uint64_t *baseline = f->addresses[NB_BUILD_BASELINE], *candidate = f->addresses[NB_BUILD_CANDIDATE];
    for (int role = NB_FUNCTION_SETUP; role < NB_FUNCTION_TEARDOWN && c->verdict == NB_VERDICT_NONE; role++) {
        if (!baseline[role] == !candidate[role]) continue;
        nb_gate_decide(c, NB_VERDICT_NOT_COMPARABLE,
                       "the %s has %.100s and the %s has not: both builds are called alike",
                       nb_build_names[baseline[role] ? NB_BUILD_BASELINE : NB_BUILD_CANDIDATE], f->names[role],
                       nb_build_names[baseline[role] ? NB_BUILD_CANDIDATE : NB_BUILD_BASELINE]);
    }
}

/* What an option names must be in one of the builds; what is only called like it may be. */
static int check_names(const struct nb_gate *g, struct nb_gate_case *c, const char *const others[NB_N_FUNCTION_ROLES],
                       char *exported) {
    const struct parts *f = parts_of(c);
    const uint64_t *baseline = f->addresses[NB_BUILD_BASELINE], *candidate = f->addresses[NB_BUILD_CANDIDATE];
    const char *source = g->builds.sources[0][NB_BUILD_BASELINE];
    if (!baseline[NB_FUNCTION_TIMED] && !candidate[NB_FUNCTION_TIMED])
        return refuse(source, f->names[NB_FUNCTION_TIMED], NB_FUNCTION_TIMED, exported);
    if (!baseline[NB_FUNCTION_TIMED] || !candidate[NB_FUNCTION_TIMED]) return 0;
    for (int role = NB_FUNCTION_SETUP; role < NB_N_FUNCTION_ROLES; role++)
        if (others[role] && !baseline[role] && !candidate[role])
            return refuse(source, f->names[role], (enum nb_function_role)role, exported);
    compare_roles(c);
    if (c->verdict != NB_VERDICT_NONE || baseline[NB_FUNCTION_BYTES]) return 0;
    if (!baseline[NB_FUNCTION_CHECK])
        nb_note("%s: what it computes is not compared: the builds have neither %s nor %s", f->names[NB_FUNCTION_TIMED],
                f->names[NB_FUNCTION_BYTES], f->names[NB_FUNCTION_CHECK]);
    else
        nb_note("%s: that each call does its work is not seen: without %s there is nothing to spoil between calls",
                f->names[NB_FUNCTION_TIMED], f->names[NB_FUNCTION_BYTES]);
    return 0;
}

int nb_gate_functions_make(struct nb_gate *g, const char *const *names, size_t n_names,
                           const char *const others[NB_N_FUNCTION_ROLES]) {
    assert(g && names && n_names > 0 && others && g->n_cases == 0);
    static char exported[LISTED_MOST];
    g->subject = &nb_gate_functions;
    for (size_t i = 0; i < n_names; i++) {
        if (strlen(names[i]) > NAME_MOST - sizeof "_teardown")
            return nb_error("--function %.80s...: a name of more than %d characters", names[i],
                            NAME_MOST - (int)sizeof "_teardown");
        for (size_t j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0) return nb_error("--function %s: given twice", names[i]);
        struct nb_gate_case *c = nb_gate_add_case(g, names[i], sizeof(struct parts));
        c->c = (struct nb_case){.threads = 1, .seed = 1};
        snprintf(c->c.variant, sizeof c->c.variant, "%.100s", names[i]);
        for (int role = 0; role < NB_N_FUNCTION_ROLES; role++) {
            char *name = parts_of(c)->names[role];
            if (others[role])
                snprintf(name, NAME_MOST, "%s", others[role]);
            else
                snprintf(name, NAME_MOST, "%s%s%s", names[i], role ? "_" : "", role ? roles[role].suffix : "");
        }
        if (look_everywhere(g, parts_of(c), exported) != 0) return -1;
        if (check_names(g, c, others, exported) != 0) return -1;
    }
    return 0;
}

/* ---- before timing ----------------------------------------------------------------------------------------------- */

/* The worker's answer to a request to look at these arms; which of them is at fault, and "" or why. As nb_gate_launch_run() returns. */
static int ask(const struct nb_gate_request *q, cJSON **answer, int *failed, char *reason, size_t n) {
    struct nb_outcome o;
    *answer = nb_gate_launch_ask(q, &o);
    if (!*answer) return nb_launcher_ends(&o);
    const char *status = nb_json_get_text(*answer, "status"), *why = nb_json_get_text(*answer, "reason");
    *failed = status ? (o.current > 0 ? o.current : 0) : nb_json_get_index(*answer, "failed");
    snprintf(reason, n, "%s%s%s", status ? status : "", status && why ? ": " : "", why ? why : "");
    return 0;
}

static void take_counts(struct nb_gate_case *c, const cJSON *answer) {
    static const int builds[] = {NB_BUILD_BASELINE, NB_BUILD_CANDIDATE};
    const char *uncounted = nb_json_get_text(answer, "uncounted");
    const cJSON *counts = nb_json_get(answer, "instructions");
    for (int i = 0; i < 2; i++) {
        const cJSON *count = cJSON_GetArrayItem(counts, i);
        if (cJSON_IsNumber(count)) c->instructions[builds[i]] = count->valuedouble;
    }
    snprintf(c->uncounted, sizeof c->uncounted, "%s", uncounted ? uncounted : "");
}

/* Calls both builds a few times: is each call like the last, do the builds agree, how many instructions is a call? */
static int check_function(const struct nb_gate *g, struct nb_gate_case *c) {
    struct nb_gate_request q = nb_gate_request_of(g, c, 0);
    const char *files[] = {q.files[NB_BUILD_BASELINE], q.files[NB_BUILD_CANDIDATE]};
    char reason[200];
    cJSON *answer = NULL;
    int failed = -1;
    q.check_only = true;
    q.files = files;
    q.n_files = q.n_arms = 2;
    q.keys[1] = c->arm_keys[NB_BUILD_CANDIDATE];
    int result = ask(&q, &answer, &failed, reason, sizeof reason);
    if (result == 0 && failed < 0) {
        take_counts(c, answer);
        if (nb_json_get_bool(answer, "unspoilt"))
            nb_note("%s: that each call does its work is not seen: no byte that %s gives can be spoilt between calls "
                    "(there is none, they are made when asked for, or lie in memory that may not be written)",
                    c->key, parts_of(c)->names[NB_FUNCTION_BYTES]);
    }
    cJSON_Delete(answer);
    if (result != 0 || failed < 0) return result;
    bool is_spoilt = false; /* what only fails beside the candidate is the candidate's doing */
    if (failed == 0) {
        char alone[200];
        q.n_files = q.n_arms = 1;
        result = ask(&q, &answer, &failed, alone, sizeof alone);
        cJSON_Delete(answer);
        is_spoilt = result == 0 && failed < 0;
        failed = 0;
    }
    nb_gate_decide(c, failed == 1 || is_spoilt ? NB_VERDICT_WRONG : NB_VERDICT_NOT_COMPARABLE, "%.180s%s", reason,
                   is_spoilt     ? " (the baseline beside the candidate; alone it is right)"
                   : failed == 0 ? " (the baseline)"
                                 : "");
    return result;
}

/* ---- the subject ----------------------------------------------------------------------------------------------------- */

static bool has_function(const struct nb_gate_case *c, int build) {
    return parts_of(c)->addresses[build][NB_FUNCTION_TIMED] != 0;
}

/* What is timed is the function with what makes its state; its output and its check say what it is held to. */
static int digest_function(const struct nb_code *code, const struct nb_gate_case *c, int build, enum nb_code_part part,
                           uint64_t digest[2], char *reason, size_t n) {
    uint64_t roots[NB_N_FUNCTION_ROLES];
    size_t n_roots = 0;
    for (int role = NB_FUNCTION_TIMED; role <= (part == NB_CODE_ALL ? NB_FUNCTION_CHECK : NB_FUNCTION_SETUP); role++)
        if (parts_of(c)->addresses[build][role]) roots[n_roots++] = parts_of(c)->addresses[build][role];
    return nb_code_digest_of(code, roots, n_roots, digest, reason, n);
}

static void describe_function(const struct nb_gate_request *q, cJSON *options) {
    cJSON *names = cJSON_AddArrayToObject(options, "names");
    for (int role = 0; role < NB_N_FUNCTION_ROLES; role++)
        cJSON_AddItemToArray(names, cJSON_CreateString(parts_of(q->c)->names[role]));
    cJSON_AddItemToObject(options, "arms", cJSON_CreateStringArray(q->keys, q->n_arms));
}

const struct nb_gate_subject nb_gate_functions = {
    .noun = "function",
    .job = "gate_function",
    .injects = "time behind the calls of a sample, of which a percent is less than one",
    .instructions = "instr. (1 call)",
    .has = has_function,
    .digest = digest_function,
    .check = check_function,
    .describe = describe_function};
