// SPDX-License-Identifier: Apache-2.0
/* Beside the grades: breakdown frontiers and public bug inputs. */
#include <string.h>

#include "reports/lab/stress_parts.h"
#include "reports/text/escape.h"
#include "src/core/json.h"

enum { MAX_ESSENCE = 60, MAX_NAMES = 4 };

/* ---- frontiers ------------------------------------------------------------------------------------------------------ */

static void add_frontier(struct nb_grid *grid, const cJSON *study, const cJSON *f) {
    const char *status = nb_json_get_text(f, "status"), *rule = nb_json_get_text(f, "rule");
    const char *of = nb_json_get_text(f, "of"), *demand = nb_json_get_text(f, "demand");
    nb_grid_add(grid, nb_json_get_text(study, "variant"));
    nb_grid_add(grid, of);
    nb_grid_add(grid, demand ? demand : "");
    if (status && strcmp(status, "found") == 0)
        nb_grid_add_number(grid, nb_json_get_number(f, "good"), 4);
    else
        nb_grid_add(grid, status && strcmp(status, "none") == 0 ? "no limit" : status ? status : "");
    const double predicted = nb_json_get_number(f, "predicted");
    if (predicted > 0)
        nb_grid_add_number(grid, predicted, 4);
    else
        nb_grid_add(grid, "no limit");
    nb_grid_add_number(grid, nb_json_get_number(f, "ratio"), 3);
    nb_grid_add(grid, rule ? rule : "");
}

/* Accuracy proper; for the offset also where the last correct digit is lost. */
static bool is_asked(const cJSON *f) {
    const char *of = nb_json_get_text(f, "of"), *demand = nb_json_get_text(f, "demand");
    const char *status = nb_json_get_text(f, "status");
    if (!of || !demand || !status || strcmp(status, "does_not_apply") == 0) return false;
    return strcmp(demand, "accurate") == 0 || (strcmp(of, "rho_max") == 0 && strcmp(demand, "one_digit") == 0);
}

/* False: nothing was found, and nothing predicted as far as was searched (to the end of what the dtype can store). */
static bool is_limit(const cJSON *f) {
    const double predicted = nb_json_get_number(f, "predicted"), end = nb_json_get_number(f, "searched_to");
    const bool downwards = strcmp(nb_json_get_text(f, "of"), "scale_min") == 0;
    if (strcmp(nb_json_get_text(f, "status"), "none") != 0) return true;
    return predicted > 0 && (downwards ? predicted > end : predicted < end);
}

static const char *kernel_of(const struct nb_stress_text *p, const char *variant) {
    const cJSON *line;
    cJSON_ArrayForEach(line, nb_stress_list(p, "grades")) {
        if (strcmp(nb_json_get_text(line, "variant"), variant) == 0) return nb_json_get_text(line, "kernel");
    }
    return variant;
}

static bool is_same(const cJSON *f, const cJSON *g) {
    const double good = nb_json_get_number(f, "good"), other = nb_json_get_number(g, "good");
    return strcmp(nb_json_get_text(f, "of"), nb_json_get_text(g, "of")) == 0 && nb_json_get_text(g, "demand") &&
           strcmp(nb_json_get_text(f, "demand"), nb_json_get_text(g, "demand")) == 0 &&
           strcmp(nb_json_get_text(f, "status"), nb_json_get_text(g, "status")) == 0 && !(good > 2 * other) &&
           !(good < other / 2);
}

/* Another width of the kernel, listed before, that breaks down within a factor of two of it. */
static bool is_told(const struct nb_stress_text *p, const cJSON *study, const cJSON *f) {
    const char *dtype = nb_json_get_text(study, "dtype"), *kernel = kernel_of(p, nb_json_get_text(study, "variant"));
    const cJSON *g;
    for (const cJSON *before = nb_stress_list(p, "studies")->child; before != study; before = before->next) {
        if (strcmp(nb_json_get_text(before, "dtype"), dtype) != 0 ||
            strcmp(kernel_of(p, nb_json_get_text(before, "variant")), kernel) != 0)
            continue;
        cJSON_ArrayForEach(g, cJSON_GetObjectItemCaseSensitive(before, "frontiers")) {
            if (is_asked(g) && is_same(f, g)) return true;
        }
    }
    return false;
}

int nb_stress_print_frontiers(const struct nb_stress_text *p) {
    static const char *const titles[] = {"variant",   "frontier", "demand",      "holds to",
                                         "predicted", "ratio",    "predicted by"};
    static const bool right[] = {false, false, false, true, true, true, false};
    const bool all = strcmp(p->format, "table") != 0;
    struct nb_grid grid;
    const cJSON *study, *f;
    int result = 0;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    grid.right = right;
    cJSON_ArrayForEach(study, nb_stress_list(p, "studies")) {
        cJSON_ArrayForEach(f, cJSON_GetObjectItemCaseSensitive(study, "frontiers")) {
            if (is_asked(f) && (all || (is_limit(f) && !is_told(p, study, f)))) add_frontier(&grid, study, f);
        }
    }
    if (grid.n_cells > 0) {
        nb_stress_heading(p, "Breakdown: how far each can be taken, searched and predicted");
        result = nb_grid_print(&grid, p->format, p->out);
        if (!all)
            fputs("Not shown: widths within a factor of 2 of one above, and what has no limit, as predicted.\n",
                  p->out);
    }
    nb_grid_release(&grid);
    return result;
}

/* ---- bugs ----------------------------------------------------------------------------------------------------------- */

static bool is_named(const cJSON *list, const cJSON *until, const char *kernel) {
    for (const cJSON *who = list->child; who && who != until; who = who->next)
        if (strcmp(nb_json_get_text(who, "kernel"), kernel) == 0) return true;
    return false;
}

/* "layernorm_onepass, rmsnorm_lowp and 2 more": each kernel once, whatever its width and dtype. */
static void add_names(struct nb_grid *grid, const cJSON *list) {
    struct nb_strbuf text = {0};
    const cJSON *who;
    int n = 0;
    nb_strbuf_add(&text, "");
    cJSON_ArrayForEach(who, list) {
        const char *kernel = nb_json_get_text(who, "kernel");
        if (is_named(list, who, kernel)) continue;
        if (n++ < MAX_NAMES) nb_strbuf_addf(&text, "%s%s", n > 1 ? ", " : "", kernel);
    }
    if (n > MAX_NAMES) nb_strbuf_addf(&text, " and %d more", n - MAX_NAMES);
    nb_grid_add(grid, text.text);
    nb_strbuf_release(&text);
}

int nb_stress_print_bugs(const struct nb_stress_text *p) {
    static const char *const titles[] = {"report", "essence", "fail", "survive", "who fails", "who survives"};
    static const bool right[] = {false, false, true, true, false, false};
    const cJSON *bug;
    struct nb_grid grid;
    int result = 0;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    grid.right = right;
    cJSON_ArrayForEach(bug, nb_stress_list(p, "bugs")) {
        const cJSON *failed = cJSON_GetObjectItemCaseSensitive(bug, "failed");
        const cJSON *survived = cJSON_GetObjectItemCaseSensitive(bug, "survived");
        const char *text = nb_json_get_text(bug, "text");
        struct nb_strbuf essence = {0};
        nb_strbuf_add(&essence, text ? text : "");
        if (strcmp(p->format, "table") == 0) nb_utf8_cut(&essence, MAX_ESSENCE, p->utf8 ? "…" : "~");
        nb_grid_add(&grid, nb_json_get_text(bug, "label"));
        nb_grid_add(&grid, essence.text);
        nb_grid_add_count(&grid, cJSON_GetArraySize(failed));
        nb_grid_add_count(&grid, cJSON_GetArraySize(survived));
        add_names(&grid, failed);
        add_names(&grid, survived);
        nb_strbuf_release(&essence);
    }
    if (grid.n_cells > 0) {
        nb_stress_heading(p, "Inputs of public bug reports: variants with a formula that fail (NaN, Inf, 0, or half of "
                             "the digits lost) and survive");
        result = nb_grid_print(&grid, p->format, p->out);
    }
    nb_grid_release(&grid);
    return result;
}
