// SPDX-License-Identifier: Apache-2.0
/* Files of a folder, and the family that is made from another config. */
#include "src/claims/claims.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static char *folder(void) {
    char *configs = nb_share_dir("NORMBENCH_CONFIGS", "configs");
    char *dir = configs ? nb_path_join(configs, "claims") : NULL;
    free(configs);
    return dir;
}

/* Labels stand in ids as they are, but for '/', which would make a path of them. */
static void add_bug(struct nb_strings *ids, const char *label) {
    struct nb_strbuf id = {0};
    nb_strbuf_addf(&id, "%s%s", NB_BUG_PREFIX, label);
    nb_strings_add(ids, id.text);
    nb_strbuf_release(&id);
    for (char *p = ids->items[ids->n - 1]; *p; p++)
        if (*p == '/') *p = '-';
    for (size_t i = 0; i + 1 < ids->n; i++)
        if (strcmp(ids->items[i], ids->items[ids->n - 1]) == 0) {
            free(ids->items[--ids->n]);
            return;
        }
}

static int add_bugs(struct nb_strings *ids) {
    struct nb_config bugs;
    if (nb_config_read(&bugs, "bugs") != 0) return -1;
    for (size_t i = 0; i < bugs.n_blocks; i++)
        if (bugs.blocks[i].label) add_bug(ids, bugs.blocks[i].label);
    nb_config_release(&bugs);
    return 0;
}

/* All that can be named, sorted, those of the family last. -1 after nb_error. */
static int find_ids(struct nb_strings *ids) {
    char *dir = folder();
    *ids = nb_dir_list(dir, ".json");
    free(dir);
    if (ids->n == 0) return nb_error("there is no folder configs/claims; NORMBENCH_CONFIGS says where configs is");
    return add_bugs(ids);
}

/* ---- the family ---- */

/* As a file of its own would have it. */
static void print_bug(const struct nb_block *block, struct nb_strbuf *out) {
    struct nb_strbuf text = {0};
    const char *essence = block->text ? block->text : "a public bug report";
    nb_strbuf_addf(&text, "%s: %s", block->label, essence);
    nb_strbuf_add(out, "{\"title\":");
    nb_json_print_text(text.text, out);
    nb_strbuf_clear(&text);
    nb_strbuf_addf(&text, "The input of the report breaks kernels: %s", essence);
    nb_strbuf_add(out, ",\"statement\":");
    nb_json_print_text(text.text, out);
    nb_strbuf_add(out, ",\"scope\":\"every kernel and formula that has the op and the dtype of the report\","
                       "\"sources\":[{\"cite\":");
    nb_json_print_text(block->source ? block->source : block->label, out);
    nb_strbuf_add(out, "}],\"experiments\":{\"input\":{\"kind\":\"accuracy\",\"from\":{\"config\":\"bugs\",\"label\":");
    nb_json_print_text(block->label, out);
    nb_strbuf_add(out, "}}},\"readings\":[{\"id\":\"breaks\",\"text\":\"no result of use: NaN, Inf or 0 in place of a "
                       "number, or fewer than half the digits of the dtype\",\"experiment\":\"input\",\"expect\":"
                       "[{\"figure\":\"survives\",\"form\":\"equals\",\"to\":0}]}],"
                       "\"sensitivity\":[\"kernel\",\"dtype\",\"root\",\"eps\"]}");
    nb_strbuf_release(&text);
}

static int read_bug(struct nb_claim *claim, const char *id) {
    struct nb_config bugs;
    struct nb_strings one = {0};
    int result = -1;
    if (nb_config_read(&bugs, "bugs") != 0) return -1;
    for (size_t i = 0; i < bugs.n_blocks && result != 0; i++) {
        struct nb_strbuf text = {0};
        if (!bugs.blocks[i].label) continue;
        add_bug(&one, bugs.blocks[i].label);
        if (one.n == 0 || strcmp(one.items[one.n - 1], id) != 0) continue;
        print_bug(&bugs.blocks[i], &text);
        result = nb_claim_parse(claim, id, text.text, text.len);
        nb_strbuf_release(&text);
        if (result != 0) break;
    }
    nb_strings_release(&one);
    nb_config_release(&bugs);
    return result;
}

/* ---- which are meant ---- */

static int read_id(struct nb_claim *claim, const char *id) {
    struct nb_strbuf name = {0};
    if (strncmp(id, NB_BUG_PREFIX, strlen(NB_BUG_PREFIX)) == 0) return read_bug(claim, id);
    char *dir = folder();
    nb_strbuf_addf(&name, "%s/%s.json", dir ? dir : ".", id);
    const int result = nb_claim_read_file(claim, name.text);
    nb_strbuf_release(&name);
    free(dir);
    return result;
}

static int unknown(const char *pattern, const struct nb_strings *ids) {
    return nb_error(
        "claim '%s': no such claim%s (`normbench claims --list` shows them; a file is named with a slash or .json)",
        pattern, nb_did_you_mean(pattern, (const char *const *)ids->items, ids->n).text);
}

static bool is_file(const char *pattern) { return strchr(pattern, '/') || ends_with(pattern, ".json"); }

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
        if (is_file(patterns[i]) && nb_claim_read_file(&claims->items[claims->n++], patterns[i]) != 0) return -1;
    return 0;
}

int nb_claims_read(struct nb_claims *claims, const char *const *patterns, size_t n_patterns) {
    assert(claims && (patterns || n_patterns == 0));
    struct nb_strings ids = {0};
    *claims = (struct nb_claims){0};
    int result = find_ids(&ids);
    if (result == 0) result = read_all(claims, &ids, patterns, n_patterns);
    nb_strings_release(&ids);
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
                                        .blocks_per_launch = 12,
                                        .sample_ms = 0.3,
                                        .order_seed = 1};
    /* Ten launches narrow an interval by a third against the six that are the fewest for one. */
    configs[NB_PLAN_TIMING].launches = effort->launches ? effort->launches : effort->quick ? 6 : 10;
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
        if (!block->label || strncmp(block->label, NB_BUG_PREFIX, strlen(NB_BUG_PREFIX)) != 0) continue;
        nb_values_release(&block->values[axis - nb_axes]);
        for (size_t k = 0; k < nb_registry_size(); k++) {
            const char *plugin = nb_registry_at(k)->plugin;
            struct nb_strbuf glob = {0};
            if (!plugin || strcmp(plugin, last) == 0) continue;
            nb_strbuf_addf(&glob, "%s:*", plugin);
            nb_values_add(&block->values[axis - nb_axes], axis, glob.text, reason, sizeof reason);
            nb_strbuf_release(&glob);
            last = plugin;
        }
    }
}
