// SPDX-License-Identifier: Apache-2.0
/* A line has more to say than a table has room for: the figure and the verdict first, what was seen and what it means below. */
#include "reports/lab/lab.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "reports/text/grid.h"
#include "src/core/json.h"
#include "src/core/names.h"

static void add_figure(const struct nb_limit *line, struct nb_strbuf *out) {
    if (line->state == NB_LIMIT_ABSENT)
        nb_strbuf_add(out, "-");
    else if (isnan(line->from))
        nb_strbuf_add(out, "never");
    else
        nb_strbuf_addf(out, "%.9g %s", line->from, line->unit);
}

static void add_configuration(const struct nb_limits *l, struct nb_strbuf *out) {
    struct nb_strbuf design released_by(nb_strbuf_release) = {0};
    nb_design_print(&l->design, &design);
    nb_strbuf_addf(out, "%s of %lld elements in %s, eps %s: %s\n", nb_op_names[l->design.op], (long long)l->n,
                   nb_numbers[l->design.store].name, l->design.eps_text, design.text);
}

static void add_counts(const struct nb_limit *lines, size_t n, struct nb_strbuf *out) {
    int counts[NB_N_LIMIT_STATES] = {0};
    for (size_t i = 0; i < n; i++) counts[lines[i].state]++;
    nb_strbuf_addf(out, "\n%d lines hold, %d do not, %d do not apply\n", counts[NB_LIMIT_HOLDS],
                   counts[NB_LIMIT_BROKEN], counts[NB_LIMIT_ABSENT]);
}

/* ---- table ------------------------------------------------------------------------------------------------------------- */

static void add_block(const struct nb_limit *line, struct nb_strbuf *out) {
    struct nb_strbuf figure released_by(nb_strbuf_release) = {0};
    add_figure(line, &figure);
    nb_strbuf_addf(out, "  %-49s %-21s %s\n", line->what, figure.text, nb_limit_states[line->state]);
    if (line->at[0]) nb_strbuf_addf(out, "      seen     %s\n", line->at);
    if (line->beyond[0]) nb_strbuf_addf(out, "      beside   %s\n", line->beyond);
    if (!isnan(line->law) && line->law != line->from) nb_strbuf_addf(out, "      law      %.9g\n", line->law);
    nb_strbuf_addf(out, "      %s\n", line->meaning);
}

static void add_absent(const struct nb_limit *lines, size_t n, struct nb_strbuf *out) {
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (lines[i].state != NB_LIMIT_ABSENT) continue;
        nb_strbuf_addf(out, "%s  %-49s %s\n", any ? "" : "\ndoes not apply\n", lines[i].what, lines[i].meaning);
        any = true;
    }
}

static void as_table(const struct nb_limits *l, const struct nb_limit *lines, size_t n, struct nb_strbuf *out) {
    add_configuration(l, out);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(lines[i].group, lines[i - 1].group) != 0) nb_strbuf_addf(out, "\n%s\n", lines[i].group);
        if (lines[i].state != NB_LIMIT_ABSENT) add_block(&lines[i], out);
    }
    add_absent(lines, n, out);
    add_counts(lines, n, out);
}

/* ---- Markdown ---------------------------------------------------------------------------------------------------------- */

static void as_markdown(const struct nb_limits *l, const struct nb_limit *lines, size_t n, struct nb_strbuf *out) {
    struct nb_grid grid released_by(nb_grid_release) =
        nb_grid_of("limit", "figure", "seen", "beside it", "verdict", "meaning");
    add_configuration(l, out);
    nb_strbuf_add(out, "\n");
    for (size_t i = 0; i < n; i++) {
        nb_grid_add(&grid, lines[i].what);
        add_figure(&lines[i], &grid.cell);
        nb_grid_end_cell(&grid);
        nb_grid_row(&grid, lines[i].at, lines[i].beyond, nb_limit_states[lines[i].state], lines[i].meaning);
    }
    nb_grid_add_markdown(&grid, false, out);
    add_counts(lines, n, out);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------------- */

static cJSON *line_json(const struct nb_limit *line) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "id", line->id);
    cJSON_AddStringToObject(o, "group", line->group);
    cJSON_AddStringToObject(o, "what", line->what);
    cJSON_AddStringToObject(o, "unit", line->unit);
    nb_json_number(o, "law", line->law);
    nb_json_number(o, "from", line->from);
    nb_json_number(o, "safe", line->safe);
    cJSON_AddStringToObject(o, "at", line->at);
    cJSON_AddStringToObject(o, "beside", line->beyond);
    cJSON_AddStringToObject(o, "state", nb_limit_states[line->state]);
    cJSON_AddStringToObject(o, "meaning", line->meaning);
    return o;
}

static void as_json(const struct nb_limits *l, const struct nb_limit *lines, size_t n, struct nb_strbuf *out) {
    cJSON *root released_by(nb_json_release) = cJSON_CreateObject(), *list;
    struct nb_strbuf design released_by(nb_strbuf_release) = {0};
    nb_design_print(&l->design, &design);
    cJSON_AddStringToObject(root, "op", nb_op_names[l->design.op]);
    cJSON_AddStringToObject(root, "dtype", nb_numbers[l->design.store].name);
    cJSON_AddNumberToObject(root, "n", (double)l->n);
    cJSON_AddNumberToObject(root, "eps", l->design.eps);
    cJSON_AddStringToObject(root, "design", design.text);
    list = cJSON_AddArrayToObject(root, "limits");
    for (size_t i = 0; i < n; i++) cJSON_AddItemToArray(list, line_json(&lines[i]));
    char *text freed = cJSON_Print(root);
    nb_strbuf_addf(out, "%s\n", text);
}

void nb_limits_view(const struct nb_limits *l, const struct nb_limit *lines, size_t n, const char *format,
                    struct nb_strbuf *out) {
    if (strcmp(format, "json") == 0)
        as_json(l, lines, n, out);
    else if (strcmp(format, "markdown") == 0)
        as_markdown(l, lines, n, out);
    else
        as_table(l, lines, n, out);
}
