// SPDX-License-Identifier: Apache-2.0
/* Files of a folder, and the family that is made from another config. */
#include "src/claims/claims.h"

#include <assert.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/axes.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/measure/counters.h"

static void release_reading(struct nb_reading *r) {
    nb_free_all(r->id, r->text, r->under, r->seen);
    nb_strings_release(&r->needs);
    for (size_t i = 0; i < r->n_rules; i++) nb_rule_release(&r->rules[i]);
    free(r->rules);
}

void nb_claim_release(struct nb_claim *c) {
    for (size_t i = 0; i < c->n_sources; i++) {
        nb_free_all(c->sources[i].cite, c->sources[i].says, c->sources[i].note);
    }
    for (size_t i = 0; i < c->n_experiments; i++) nb_experiment_release(&c->experiments[i]);
    for (size_t i = 0; i < c->n_readings; i++) release_reading(&c->readings[i]);
    for (size_t i = 0; i < c->n_sensitivities; i++) {
        nb_free_all(c->sensitivities[i].axis, c->sensitivities[i].reading, c->sensitivities[i].text);
    }
    nb_free_all(c->sources, c->experiments, c->readings, c->sensitivities, c->id, c->path, c->title, c->statement,
                c->scope, c->correction, c->remark);
    nb_strings_release(&c->changed_after_data);
    *c = (struct nb_claim){0};
}

const struct nb_reading *nb_claim_reading(const struct nb_claim *c, const char *id) {
    for (size_t i = 0; i < c->n_readings; i++)
        if (strcmp(c->readings[i].id, id) == 0) return &c->readings[i];
    return NULL;
}

static const char *const need_names[] = {"gpu", "hardware_counters", NULL};

/* The experiments' cases select kernels of the CPU. */
const char *nb_claim_lacks(const char *need) {
    if (strcmp(need, "gpu") == 0) return "a GPU; experiments run on the CPU only";
    return nb_counters_have_hardware() ? NULL : "hardware counters (a PMU), which this machine does not offer";
}

/* ---- reading, strictly: a key that is silently ignored would make a claim that nobody made ---- */

enum { MAX_ENTRIES = 100 };

/* Room for the entries of a list of objects; null after nb_error. */
static void *room_for(const struct nb_jsonc *file, const cJSON *node, size_t size) {
    const int n = cJSON_GetArraySize(node);
    if (cJSON_IsArray(node) && n > 0 && n <= MAX_ENTRIES) return nb_alloc((unsigned)n, size);
    return nb_jsonc_wrong_type(file, node, node->string, "a list of 1 to 100 entries"), NULL;
}

static int read_sources(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {{NB_FIELD(TEXT, struct nb_claim_source, cite), .required = true},
                                             {NB_FIELD(TEXT, struct nb_claim_source, says)},
                                             {NB_FIELD(TEXT, struct nb_claim_source, note)}};
    struct nb_claim *c = into;
    if (!(c->sources = room_for(file, node, sizeof *c->sources))) return -1;
    for (const cJSON *item = node->child; item; item = item->next)
        if (nb_fields_read(file, item, fields, 3, "a source", &c->sources[c->n_sources++]) != 0) return -1;
    return 0;
}

static int read_experiments(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_claim *c = into;
    if (!cJSON_IsObject(node) || !node->child)
        return nb_jsonc_wrong_type(file, node, node->string, "an object: a name for each experiment");
    c->experiments = nb_alloc((unsigned)cJSON_GetArraySize(node), sizeof *c->experiments);
    for (const cJSON *item = node->child; item; item = item->next) {
        for (size_t i = 0; i < c->n_experiments; i++)
            if (strcmp(c->experiments[i].name, item->string) == 0) return nb_jsonc_twice(file, item);
        if (nb_experiment_read(&c->experiments[c->n_experiments++], c->id, file, item) != 0) return -1;
    }
    return 0;
}

/* ---- readings ---- */

struct written_reading {
    struct nb_reading reading;
    char *experiment; /* its name */
};
#define OF_READING(member) offsetof(struct written_reading, reading.member)

static int read_expect(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_reading *r = &((struct written_reading *)into)->reading;
    if (!(r->rules = room_for(file, node, sizeof *r->rules))) return -1;
    for (const cJSON *item = node->child; item; item = item->next)
        if (nb_rule_read(&r->rules[r->n_rules++], file, item) != 0) return -1;
    return 0;
}

static int read_needs(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_reading *r = &((struct written_reading *)into)->reading;
    if (nb_strings_read(file, node, &r->needs) != 0) return -1;
    for (size_t i = 0; i < r->needs.n; i++)
        if (nb_name_find(need_names, r->needs.items[i]) < 0)
            return nb_jsonc_error(file, node, "\"needs\": '%s' is none of gpu, hardware_counters", r->needs.items[i]);
    return 0;
}

static int resolve_experiment(const struct nb_claim *c, const struct nb_jsonc *file, const cJSON *node,
                              const char *name, size_t *at) {
    for (*at = 0; *at < c->n_experiments; ++*at)
        if (strcmp(c->experiments[*at].name, name) == 0) return 0;
    return nb_jsonc_error(file, node, "\"experiment\": '%s' is not among this claim's \"experiments\"", name);
}

static int read_reading(const struct nb_jsonc *file, const cJSON *node, struct nb_claim *c, struct nb_reading *r) {
    static const struct nb_field fields[] = {{"id", NB_FIELD_TEXT, .offset = OF_READING(id), .required = true},
                                             {"text", NB_FIELD_TEXT, .offset = OF_READING(text), .required = true},
                                             {"under", NB_FIELD_TEXT, .offset = OF_READING(under)},
                                             {"seen", NB_FIELD_TEXT, .offset = OF_READING(seen)},
                                             {NB_FIELD(TEXT, struct written_reading, experiment), .required = true},
                                             {"expect", NB_FIELD_READ, .required = true, .read = read_expect},
                                             {"needs", NB_FIELD_READ, .read = read_needs},
                                             {"alternative", NB_FIELD_BOOL, .offset = OF_READING(alternative)}};
    struct written_reading w = {0};
    int result = nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a reading", &w);
    *r = w.reading;
    if (result == 0) result = resolve_experiment(c, file, node, w.experiment, &r->experiment);
    free(w.experiment);
    return result;
}

static int read_readings(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_claim *c = into;
    if (!(c->readings = room_for(file, node, sizeof *c->readings))) return -1;
    if (c->n_experiments == 0) return nb_jsonc_error(file, node, "\"readings\" stand behind \"experiments\"");
    for (const cJSON *item = node->child; item; item = item->next) {
        struct nb_reading *r = &c->readings[c->n_readings++];
        if (read_reading(file, item, c, r) != 0) return -1;
        if (nb_claim_reading(c, r->id) != r) return nb_jsonc_error(file, item, "reading '%s' is there twice", r->id);
    }
    return 0;
}

/* ---- sensitivity ---- */

static int read_sensitivity(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {{NB_FIELD(TEXT, struct nb_sensitivity, axis), .required = true},
                                             {NB_FIELD(TEXT, struct nb_sensitivity, reading)},
                                             {NB_FIELD(TEXT, struct nb_sensitivity, text)}};
    struct nb_claim *c = into;
    if (!(c->sensitivities = room_for(file, node, sizeof *c->sensitivities))) return -1;
    for (const cJSON *item = node->child; item; item = item->next) {
        struct nb_sensitivity *s = &c->sensitivities[c->n_sensitivities++];
        if (cJSON_IsString(item) && *item->valuestring) {
            s->axis = nb_strdup(item->valuestring);
            continue;
        }
        if (nb_fields_read(file, item, fields, 3, "an entry of \"sensitivity\"", s) != 0) return -1;
    }
    return 0;
}

/* ---- the whole ---- */

static int check(const struct nb_claim *c, const struct nb_jsonc *file) {
    bool decides = false;
    for (size_t i = 0; i < c->n_readings; i++) decides |= !c->readings[i].alternative;
    if (!decides && !c->correction)
        return nb_error("%s: needs a reading without \"alternative\", or a \"correction\" if nothing can be measured",
                        file->path);
    if (c->false_in_part && (decides || !c->correction))
        return nb_error("%s: \"false_in_part\" is for a statement with a \"correction\" and no readings", file->path);
    for (size_t i = 0; i < c->n_sensitivities; i++)
        if (c->sensitivities[i].reading && !nb_claim_reading(c, c->sensitivities[i].reading))
            return nb_error("%s: \"sensitivity\": there is no reading '%s'", file->path, c->sensitivities[i].reading);
    return 0;
}

static int read_claim(struct nb_claim *c, const struct nb_jsonc *file) {
    static const struct nb_field fields[] = {{NB_FIELD(TEXT, struct nb_claim, title), .required = true},
                                             {NB_FIELD(TEXT, struct nb_claim, statement), .required = true},
                                             {"sources", NB_FIELD_READ, .required = true, .read = read_sources},
                                             {NB_FIELD(TEXT, struct nb_claim, scope), .required = true},
                                             {"experiments", NB_FIELD_READ, .read = read_experiments},
                                             {"readings", NB_FIELD_READ, .read = read_readings},
                                             {"sensitivity", NB_FIELD_READ, .read = read_sensitivity},
                                             {NB_FIELD(TEXT, struct nb_claim, correction)},
                                             {NB_FIELD(BOOL, struct nb_claim, false_in_part)},
                                             {NB_FIELD(TEXT, struct nb_claim, remark)},
                                             {NB_FIELD(TEXTS, struct nb_claim, changed_after_data)}};
    *c = (struct nb_claim){.path = nb_strdup(file->path), .id = nb_base_name(file->path, ".json")};
    int result = nb_fields_read(file, file->root, fields, sizeof fields / sizeof fields[0], "a claim", c);
    if (result == 0) result = check(c, file);
    if (result != 0) nb_claim_release(c);
    return result;
}

int nb_claim_parse(struct nb_claim *claim, const char *path, const char *text, size_t len) {
    struct nb_jsonc file released_by(nb_jsonc_release);
    *claim = (struct nb_claim){0};
    return nb_jsonc_parse(&file, path, text, len) == 0 ? read_claim(claim, &file) : -1;
}

static int claim_read_file(struct nb_claim *claim, const char *path) {
    struct nb_jsonc file released_by(nb_jsonc_release);
    *claim = (struct nb_claim){0};
    return nb_jsonc_read(&file, path) == 0 ? read_claim(claim, &file) : -1;
}

static char *folder(void) {
    char *configs freed = nb_share_dir("NORMBENCH_CONFIGS", "configs");
    return configs ? nb_path_join(configs, "claims") : NULL;
}

bool nb_claim_is_bug(const char *id) { return strncmp(id, NB_BUG_PREFIX, strlen(NB_BUG_PREFIX)) == 0; }

/* Labels stand in ids as they are, but for '/', which would make a path of them; owned. */
static char *bug_id(const char *label) {
    char *id = nb_textf("%s%s", NB_BUG_PREFIX, label);
    for (char *p = id; (p = strchr(p, '/'));) *p = '-';
    return id;
}

static int add_bugs(struct nb_strings *ids) {
    struct nb_config bugs released_by(nb_config_release);
    if (nb_config_read(&bugs, "bugs") != 0) return -1;
    for (size_t i = 0; i < bugs.n_blocks; i++) {
        char *id freed = bugs.blocks[i].label ? bug_id(bugs.blocks[i].label) : NULL;
        bool known = !id;
        for (size_t j = 0; j < ids->n && !known; j++) known = strcmp(ids->items[j], id) == 0;
        if (!known) nb_strings_add(ids, id);
    }
    return 0;
}

/* All that can be named, sorted, those of the family last. -1 after nb_error. */
static int find_ids(struct nb_strings *ids) {
    char *dir freed = folder();
    *ids = nb_dir_list(dir, ".json");
    if (ids->n == 0) return nb_error("there is no folder configs/claims; NORMBENCH_CONFIGS says where configs is");
    return add_bugs(ids);
}

/* ---- the family ---- */

/* As JSON has it; owned. */
static char *quoted(const char *before, const char *text) {
    struct nb_strbuf out = {0};
    char *whole freed = nb_textf("%s%s", before, text);
    nb_json_print_text(whole, &out);
    return out.text;
}

/* As a file of its own would have it; owned. */
static char *text_of_bug(const struct nb_block *block) {
    const char *essence = block->text ? block->text : "a public bug report";
    char *lead freed = nb_textf("%s: ", block->label), *title freed = quoted(lead, essence);
    char *statement freed = quoted("The input of the report breaks kernels: ", essence);
    char *cite freed = quoted("", block->source ? block->source : block->label);
    char *label freed = quoted("", block->label);
    return nb_textf(
        "{\"title\":%s,\"statement\":%s,\"scope\":\"every kernel and formula that has the op and the dtype of the report\","
        "\"sources\":[{\"cite\":%s}],\"experiments\":{\"input\":{\"kind\":\"accuracy\",\"from\":{\"config\":\"bugs\",\"label\":%s}}},"
        "\"readings\":[{\"id\":\"breaks\",\"text\":\"no usable result: NaN, Inf or 0 instead of a number, or fewer than half the digits of the dtype\","
        "\"experiment\":\"input\",\"expect\":[{\"figure\":\"survives\",\"form\":\"equals\",\"to\":0}]}],"
        "\"sensitivity\":[\"kernel\",\"dtype\",\"root\",\"eps\"]}",
        title, statement, cite, label);
}

static int read_bug(struct nb_claim *claim, const char *id) {
    struct nb_config bugs released_by(nb_config_release);
    if (nb_config_read(&bugs, "bugs") != 0) return -1;
    for (size_t i = 0; i < bugs.n_blocks; i++) {
        char *own freed = bugs.blocks[i].label ? bug_id(bugs.blocks[i].label) : NULL;
        if (!own || strcmp(own, id) != 0) continue;
        char *text freed = text_of_bug(&bugs.blocks[i]);
        return nb_claim_parse(claim, id, text, strlen(text));
    }
    return -1;
}

/* ---- which are meant ---- */

static int read_id(struct nb_claim *claim, const char *id) {
    if (nb_claim_is_bug(id)) return read_bug(claim, id);
    char *dir freed = folder();
    char *name freed = nb_textf("%s/%s.json", dir ? dir : ".", id);
    return claim_read_file(claim, name);
}

static int unknown(const char *pattern, const struct nb_strings *ids) {
    return nb_error(
        "claim '%s': no such claim%s (`normbench claims --list` shows them; a file is named with a slash or .json)",
        pattern, nb_did_you_mean(pattern, (const char *const *)ids->items, ids->n).text);
}

static bool is_file(const char *pattern) { return strchr(pattern, '/') || nb_text_ends(pattern, ".json"); }

static bool is_wanted(const char *id, const char *const *patterns, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!is_file(patterns[i]) && fnmatch(patterns[i], id, 0) == 0) return true;
    return n == 0;
}

static int read_all(struct nb_claims *claims, const struct nb_strings *ids, const char *const *patterns, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool found = is_file(patterns[i]);
        for (size_t j = 0; j < ids->n && !found; j++) found = fnmatch(patterns[i], ids->items[j], 0) == 0;
        if (!found) return unknown(patterns[i], ids);
    }
    claims->items = nb_alloc(ids->n + n + 1, sizeof *claims->items);
    for (size_t i = 0; i < ids->n; i++)
        if (is_wanted(ids->items[i], patterns, n) && read_id(&claims->items[claims->n++], ids->items[i]) != 0)
            return -1;
    for (size_t i = 0; i < n; i++)
        if (is_file(patterns[i]) && claim_read_file(&claims->items[claims->n++], patterns[i]) != 0) return -1;
    return 0;
}

int nb_claims_read(struct nb_claims *claims, const char *const *patterns, size_t n_patterns) {
    assert(claims && (patterns || n_patterns == 0));
    struct nb_strings ids released_by(nb_strings_release) = {0};
    *claims = (struct nb_claims){0};
    int result = find_ids(&ids);
    if (result == 0) result = read_all(claims, &ids, patterns, n_patterns);
    if (result != 0) nb_claims_release(claims);
    return result;
}

void nb_claims_release(struct nb_claims *claims) {
    for (size_t i = 0; i < claims->n; i++) nb_claim_release(&claims->items[i]);
    free(claims->items);
    *claims = (struct nb_claims){0};
}

/* ---- plans ---- */

void nb_claims_configs(struct nb_claims *claims, const struct nb_claims_effort *effort,
                       struct nb_config configs[NB_N_CLAIMS_PLANS]) {
    for (int i = 0; i < NB_N_CLAIMS_PLANS; i++)
        configs[i] = (struct nb_config){.name = nb_strdup(nb_claims_plan_names[i]),
                                        .path = nb_strdup("claims"),
                                        .blocks_per_launch = effort->quick ? 8 : 12,
                                        .sample_ms = 0.06,
                                        .order_seed = 1};
    configs[NB_PLAN_TIMING].launches = effort->launches ? effort->launches : effort->quick ? 9 : 24;
    for (size_t i = 0; i < claims->n; i++)
        for (size_t j = 0; j < claims->items[i].n_experiments; j++) {
            struct nb_experiment *e = &claims->items[i].experiments[j];
            if (e->kind->plan) e->kind->plan(e, effort->quick, configs);
        }
}

void nb_claims_bugs_on_plugins(struct nb_config *config) {
    const struct nb_axis *axis = nb_axis_find("kernel");
    char reason[200];
    for (size_t i = 0; i < config->n_blocks; i++) {
        struct nb_block *block = &config->blocks[i];
        const char *last = "";
        if (!block->label || !nb_claim_is_bug(block->label)) continue;
        nb_values_release(&block->values[axis - nb_axes]);
        for (size_t k = 0; k < nb_registry_size(); k++) {
            const char *plugin = nb_registry_at(k)->plugin;
            if (!plugin || strcmp(plugin, last) == 0) continue;
            char *glob freed = nb_textf("%s:*", plugin);
            nb_values_add(&block->values[axis - nb_axes], axis, glob, reason, sizeof reason);
            last = plugin;
        }
    }
}

/* ---- Rulings become verdicts, of readings and of the claim; sensitivities. ---- */

const char *const nb_claim_verdict_names[NB_N_CLAIM_VERDICTS] = {
    [NB_REPRODUCED] = "REPRODUCED",         [NB_PARTLY] = "PARTLY",
    [NB_NOT_REPRODUCED] = "NOT REPRODUCED", [NB_FALSE_IN_PART] = "FALSE IN PART",
    [NB_NEEDS_A_GPU] = "NEEDS A GPU",       [NB_NOT_MEASURED] = "NOT MEASURED",
    [NB_UNDECIDED_HERE] = "UNDECIDED",      [NB_NO_MEASUREMENT] = "NO MEASUREMENT DECIDES",
};

bool nb_claim_is_decided(const char *verdict) {
    for (int v = 0; v < NB_FIRST_OPEN; v++)
        if (strcmp(verdict, nb_claim_verdict_names[v]) == 0) return true;
    return false;
}

static const struct nb_ruled *first_of(const struct nb_rulings *r, enum nb_outcome_kind outcome) {
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].outcome == outcome) return &r->items[i];
    return NULL;
}

static void say_undecided(const struct nb_rulings *r, struct nb_strbuf *out) {
    const struct nb_ruled *undecided = first_of(r, NB_UNDECIDED), *missing = first_of(r, NB_MISSING);
    if (missing && r->count[NB_MISSING] < r->n) nb_strbuf_addf(out, "%zu of %zu figures ", r->count[NB_MISSING], r->n);
    if (missing) nb_strbuf_addf(out, "not measured: %s", missing->reason);
    if (undecided && missing) nb_strbuf_add(out, "; ");
    if (undecided && r->count[NB_UNDECIDED] < r->n)
        nb_strbuf_addf(out, "%zu of %zu figures ", r->count[NB_UNDECIDED], r->n);
    if (undecided) nb_strbuf_addf(out, "undecided: %s", undecided->reason);
}

/* Votes that are alike decide; votes that differ do so whatever is open. */
static enum nb_claim_verdict verdict_of_votes(size_t holds, size_t fails, size_t open, enum nb_claim_verdict if_open) {
    const size_t n = holds + fails + open;
    if (holds > 0 && fails > 0) return NB_PARTLY;
    if (holds + fails == 0 || (fails == 0 && 4 * open > n) || (holds == 0 && 2 * open >= n)) return if_open;
    return fails == 0 ? NB_REPRODUCED : NB_NOT_REPRODUCED;
}

enum nb_claim_verdict nb_verdict_of(const struct nb_rulings *r, char **reason) {
    const size_t holds = r->count[NB_HOLDS_TRUE], fails = r->count[NB_FAILS], decided = holds + fails;
    const size_t open = r->count[NB_UNDECIDED] + r->count[NB_MISSING];
    const enum nb_claim_verdict verdict = verdict_of_votes(
        holds, fails, open,
        r->count[NB_MISSING] > r->count[NB_UNDECIDED] || open == 0 ? NB_NOT_MEASURED : NB_UNDECIDED_HERE);
    struct nb_strbuf text = {0};
    if (verdict < NB_FIRST_OPEN && decided == 1)
        nb_strbuf_add(&text, holds ? "it holds" : "it does not hold");
    else if (verdict < NB_FIRST_OPEN)
        nb_strbuf_addf(&text, "%zu of %zu figures hold", holds, decided);
    if (open > 0) {
        if (text.len) nb_strbuf_add(&text, "; ");
        say_undecided(r, &text);
    }
    nb_strbuf_add(&text, "");
    *reason = text.text;
    return verdict;
}

/* ---- sensitivities, one value at a time ---- */

/* The reading that was named, else the first that was decided. */
static const struct nb_reading *reading_of(const struct nb_claim_result *result, const struct nb_sensitivity *by) {
    if (by->reading) return nb_claim_reading(result->claim, by->reading);
    for (size_t i = 0; i < result->claim->n_readings; i++)
        if (result->reads[i].verdict < NB_FIRST_OPEN) return &result->claim->readings[i];
    return NULL;
}

static void apply(const struct nb_reading *r, const struct nb_findings *findings, const char *axis, const char *value,
                  struct nb_sensed *out) {
    struct nb_rulings rulings released_by(nb_rulings_release) = {0};
    char *reason freed = NULL;
    for (size_t i = 0; i < r->n_rules; i++) nb_rule_apply(&r->rules[i], findings, axis, value, &rulings);
    out->low = INFINITY;
    out->high = -INFINITY;
    for (size_t i = 0; i < rulings.n; i++) {
        out->low = fmin(out->low, rulings.items[i].value.value);
        out->high = fmax(out->high, rulings.items[i].value.value);
    }
    out->n = rulings.n;
    out->verdict = nb_verdict_of(&rulings, &reason);
}

static bool is_known(const struct nb_claim_result *result, const struct nb_sensitivity *by, const char *value) {
    for (size_t i = 0; i < result->n_sensed; i++)
        if (result->sensed[i].by == by && strcmp(result->sensed[i].value, value) == 0) return true;
    return false;
}

/* Values in the order in which they were found. */
static void find_axis(struct nb_claim_result *result, const struct nb_sensitivity *by, const struct nb_reading *r) {
    const struct nb_findings *findings = &result->findings[r->experiment];
    for (size_t i = 0; i < findings->n; i++) {
        const char *value = nb_finding_get(&findings->items[i], by->axis);
        if (!value || is_known(result, by, value)) continue;
        struct nb_sensed sensed = {.by = by, .reading = r};
        apply(r, findings, by->axis, value, &sensed);
        if (sensed.n == 0) continue;
        sensed.value = nb_strdup(value);
        *NB_PUSH(result->sensed, result->n_sensed) = sensed;
    }
}

/* Fills result->sensed from its reads and findings. */
static void sensitivity_find(struct nb_claim_result *result) {
    for (size_t i = 0; i < result->claim->n_sensitivities; i++) {
        const struct nb_sensitivity *by = &result->claim->sensitivities[i];
        const struct nb_reading *r = reading_of(result, by);
        if (r) find_axis(result, by, r);
    }
}

bool nb_sensitivity_decides(const struct nb_claim_result *result, size_t i) {
    const struct nb_sensitivity *by = result->sensed[i].by;
    bool seen[NB_N_CLAIM_VERDICTS] = {false};
    int n = 0;
    for (size_t j = 0; j < result->n_sensed; j++) {
        const enum nb_claim_verdict v = result->sensed[j].verdict;
        if (result->sensed[j].by != by || v >= NB_FIRST_OPEN || seen[v]) continue;
        seen[v] = true;
        n++;
    }
    return n > 1;
}

/* ---- readings one by one, then the claim ---- */

/* Why it cannot be tried here, or null. */
static const char *why_not(const struct nb_claim *c, const struct nb_reading *r, enum nb_claim_verdict *verdict) {
    const struct nb_experiment *e = &c->experiments[r->experiment];
    const char *refused = e->kind->refuses ? e->kind->refuses(e) : NULL;
    *verdict = NB_NOT_MEASURED;
    for (size_t i = 0; i < r->needs.n && !refused; i++) {
        refused = nb_claim_lacks(r->needs.items[i]);
        if (refused && strcmp(r->needs.items[i], "gpu") == 0) *verdict = NB_NEEDS_A_GPU;
    }
    return refused;
}

static void judge_reading(const struct nb_claim_result *result, struct nb_read *out) {
    const struct nb_reading *r = out->reading;
    const char *refused = why_not(result->claim, r, &out->verdict);
    for (size_t i = 0; i < r->n_rules && !refused; i++)
        nb_rule_apply(&r->rules[i], &result->findings[r->experiment], NULL, NULL, &out->rulings);
    if (!refused) {
        out->verdict = nb_verdict_of(&out->rulings, &out->reason);
        return;
    }
    out->reason = nb_textf("it needs %s", refused);
}

/* ---- the claim ---- */

/* Do two readings belong to the same condition? Those without one are rows of none. */
static bool same_condition(const struct nb_reading *a, const struct nb_reading *b) {
    return a->under && b->under && strcmp(a->under, b->under) == 0;
}

/* "transformer" of "transformer-norm": the longest name of an experiment that its id begins with, else the id. */
static int row_length(const struct nb_claim *c, const char *id) {
    size_t longest = 0;
    for (size_t i = 0; i < c->n_experiments; i++) {
        const size_t n = strlen(c->experiments[i].name);
        if (n > longest && strncmp(id, c->experiments[i].name, n) == 0 && (!id[n] || id[n] == '-')) longest = n;
    }
    return (int)(longest ? longest : strlen(id));
}

/* "transformer, cifar": the rows of the condition that are open, or those that hold. Returns how many. */
static size_t add_rows(const struct nb_claim_result *result, const struct nb_reading *first, bool open,
                       const char *lead, struct nb_strbuf *out) {
    const struct nb_claim *c = result->claim;
    size_t n = 0;
    for (size_t i = 0; i < c->n_readings; i++) {
        const enum nb_claim_verdict v = result->reads[i].verdict;
        const char *id = c->readings[i].id;
        if (!same_condition(&c->readings[i], first) || (open ? v < NB_FIRST_OPEN : v != NB_REPRODUCED)) continue;
        nb_strbuf_addf(out, "%s%.*s", n++ ? ", " : lead, row_length(c, id), id);
    }
    return n;
}

/* "models whose step saves 7%: 1 of 5 (transformer), not decided: cifar", of the readings of one condition. */
static void add_condition(const struct nb_claim_result *result, const struct nb_reading *first, struct nb_strbuf *out) {
    struct nb_strbuf held released_by(nb_strbuf_release) = {0};
    size_t n = 0;
    for (size_t i = 0; i < result->claim->n_readings; i++) n += same_condition(&result->claim->readings[i], first);
    const size_t holds = add_rows(result, first, false, " (", &held);
    nb_strbuf_addf(out, "%s: %zu of %zu", first->under, holds, n);
    if (holds > 0 && holds < n) nb_strbuf_addf(out, "%s)", held.text);
    add_rows(result, first, true, ", not decided: ", out);
}

static bool is_first_of_condition(const struct nb_claim *c, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (same_condition(&c->readings[i], &c->readings[at])) return false;
    return true;
}

/* Do all readings that decide say the same? */
static bool is_one_reason(const struct nb_claim_result *result) {
    const char *first = NULL;
    for (size_t i = 0; i < result->claim->n_readings; i++) {
        if (result->claim->readings[i].alternative) continue;
        if (first && strcmp(first, result->reads[i].reason) != 0) return false;
        first = result->reads[i].reason;
    }
    return first;
}

/* That of the only reading, or all of them by name; rows are counted by condition, alternatives too. */
static char *reason_of(const struct nb_claim_result *result) {
    const struct nb_claim *c = result->claim;
    struct nb_strbuf text = {0};
    const bool one = is_one_reason(result);
    bool said = false;
    for (size_t i = 0; i < c->n_readings; i++) {
        const struct nb_reading *r = &c->readings[i];
        if (r->under ? !is_first_of_condition(c, i) : r->alternative || (one && said)) continue;
        if (text.len > 0) nb_strbuf_add(&text, "; ");
        if (r->under) {
            add_condition(result, r, &text);
            continue;
        }
        if (!one) nb_strbuf_addf(&text, "%s: ", r->id);
        nb_strbuf_add(&text, result->reads[i].reason);
        said = true;
    }
    return text.text;
}

static void say_fact(struct nb_claim_result *result) {
    const struct nb_claim *c = result->claim;
    result->verdict = c->false_in_part ? NB_FALSE_IN_PART : NB_NO_MEASUREMENT;
    result->reason = nb_textf("%s%s", c->false_in_part ? "" : "no measurement decides it: ", c->correction);
}

/* Readings vote as the figures of a reading do: one that is open overrides none that are decided. One that holds in part votes both
 * ways. */
static void combine(struct nb_claim_result *result) {
    size_t count[NB_N_CLAIM_VERDICTS] = {0}, first[NB_N_CLAIM_VERDICTS], n = 0, decided = 0;
    for (size_t i = 0; i < result->claim->n_readings; i++) {
        const enum nb_claim_verdict v = result->reads[i].verdict;
        if (result->claim->readings[i].alternative) continue;
        if (count[v]++ == 0) first[v] = i;
        decided += v < NB_FIRST_OPEN;
        n++;
    }
    result->main = NB_NO_READING;
    if (n == 0) {
        say_fact(result);
        return;
    }
    int open = NB_FIRST_OPEN; /* that of most readings that are open */
    for (int v = NB_FIRST_OPEN; v < NB_N_CLAIM_VERDICTS; v++)
        if (count[v] > count[open]) open = v;
    result->verdict =
        verdict_of_votes(count[NB_REPRODUCED] + count[NB_PARTLY], count[NB_NOT_REPRODUCED] + count[NB_PARTLY],
                         n - decided, (enum nb_claim_verdict)open);
    if (count[result->verdict] > 0) result->main = first[result->verdict];
    for (int v = 0; v < NB_FIRST_OPEN && result->main == NB_NO_READING; v++)
        if (count[v] > 0) result->main = first[v];
    result->reason = reason_of(result);
}

void nb_claim_judge(struct nb_claim_result *result) {
    result->reads = nb_alloc(result->claim->n_readings + 1, sizeof *result->reads);
    for (size_t i = 0; i < result->claim->n_readings; i++) {
        result->reads[i].reading = &result->claim->readings[i];
        judge_reading(result, &result->reads[i]);
    }
    combine(result);
    sensitivity_find(result);
}

void nb_claim_try(struct nb_claim_result *result, const struct nb_claim *claim, const struct nb_claims_measured *m) {
    *result = (struct nb_claim_result){.claim = claim};
    result->findings = nb_alloc(claim->n_experiments + 1, sizeof *result->findings);
    for (size_t i = 0; i < claim->n_experiments; i++) {
        const struct nb_experiment *e = &claim->experiments[i];
        if (!e->kind->refuses || !e->kind->refuses(e)) e->kind->find(e, m, &result->findings[i]);
    }
    nb_claim_judge(result);
}

void nb_claim_result_release(struct nb_claim_result *result) {
    const struct nb_claim *c = result->claim;
    for (size_t i = 0; c && result->findings && i < c->n_experiments; i++) nb_findings_release(&result->findings[i]);
    for (size_t i = 0; c && result->reads && i < c->n_readings; i++) {
        nb_rulings_release(&result->reads[i].rulings);
        free(result->reads[i].reason);
    }
    for (size_t i = 0; i < result->n_sensed; i++) free(result->sensed[i].value);
    nb_free_all(result->findings, result->reads, result->sensed, result->reason);
    *result = (struct nb_claim_result){0};
}
