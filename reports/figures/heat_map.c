// SPDX-License-Identifier: Apache-2.0
/* Maps as text. Levels are decades of ulp, so that a map reads without its legend: a row of the last level has lost 7 digits. */
#include "reports/figures/heat_map.h"

#include <math.h>
#include <string.h>

#include "reports/text/escape.h"
#include "src/core/json.h"

enum { LARGEST_MAP = 256, LARGEST_EXPONENT = 100000, N_LEVELS = 8, LABEL_EVERY = 8 };

double nb_map_number(const cJSON *array, int i) {
    const cJSON *item = cJSON_GetArrayItem(array, i);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Exponents of two in increasing order. */
static bool is_axis(const cJSON *axis, int n) {
    double before = -INFINITY;
    for (int i = 0; i < n; i++) {
        const double at = nb_map_number(axis, i);
        if (!(fabs(at) <= LARGEST_EXPONENT && at > before)) return false;
        before = at;
    }
    return n > 0 && n <= LARGEST_MAP;
}

bool nb_map_size(const cJSON *map, int *n_scales, int *n_rhos) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(map, "log2_scale");
    const cJSON *y = cJSON_GetObjectItemCaseSensitive(map, "log2_rho");
    *n_scales = cJSON_GetArraySize(x);
    *n_rhos = cJSON_GetArraySize(y);
    return is_axis(x, *n_scales) && is_axis(y, *n_rhos);
}

enum nb_heat_state nb_map_cell(const cJSON *map, int rho, int scale, double *log10_ulp) {
    static const char *const names[NB_N_HEAT_STATES] = {[NB_HEAT_VALUE] = "ok",
                                                        [NB_HEAT_NAN] = "nan",
                                                        [NB_HEAT_INF] = "inf",
                                                        [NB_HEAT_ZERO] = "zero",
                                                        [NB_HEAT_UNSTORABLE] = "unstorable",
                                                        [NB_HEAT_UNKNOWN] = "undefined"};
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(map, "state"), rho);
    const cJSON *state = cJSON_GetArrayItem(row, scale);
    *log10_ulp = nb_map_number(cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(map, "log10_ulp"), rho), scale);
    for (int s = 0; cJSON_IsString(state) && s < NB_HEAT_UNKNOWN; s++)
        if (strcmp(state->valuestring, names[s]) == 0 && (s != NB_HEAT_VALUE || isfinite(*log10_ulp)))
            return (enum nb_heat_state)s;
    return NB_HEAT_UNKNOWN;
}

struct glyph {
    const char *text;
    int color; /* of the 256 of a terminal */
};
static const struct glyph levels[N_LEVELS] = {{".", 151}, {":", 115}, {"-", 79}, {"=", 37},
                                              {"+", 31},  {"*", 25},  {"#", 61}, {"@", 97}};
static const struct glyph states[NB_N_HEAT_STATES] = {{NULL, 0},  {"N", 196}, {"I", 208},
                                                      {"0", 205}, {" ", 0},   {"?", 245}};

/* Level 0: below 10 ulp, then a decade each. */
static const struct glyph *glyph_of(enum nb_heat_state state, double log10_ulp) {
    if (state != NB_HEAT_VALUE) return &states[state];
    const double level = floor(log10_ulp);
    return &levels[level < 0 ? 0 : level > N_LEVELS - 1 ? N_LEVELS - 1 : (int)level];
}

static void put(FILE *out, const struct glyph *g, bool color) {
    if (color && g->color)
        fprintf(out, "\033[38;5;%dm%s\033[0m", g->color, g->text);
    else
        fputs(g->text, out);
}

static void put_legend(FILE *out, bool color) {
    fputs("           error in ulp at rms(y):", out);
    for (int level = 0; level < N_LEVELS; level++) {
        fputs("  ", out);
        put(out, &levels[level], color);
        fprintf(out, level + 1 < N_LEVELS ? " <1e%d" : " more", level + 1);
    }
    fputs("\n           lost:  ", out);
    put(out, &states[NB_HEAT_NAN], color);
    fputs(" NaN  ", out);
    put(out, &states[NB_HEAT_INF], color);
    fputs(" Inf  ", out);
    put(out, &states[NB_HEAT_ZERO], color);
    fputs(" 0 in place of a number;  blank: x beyond the dtype\n", out);
}

/* Marks below the cells, a label at every eighth. */
static void put_scale(FILE *out, const cJSON *x, int n) {
    fputs("           ", out);
    for (int i = 0; i < n; i++) fputs(i % LABEL_EVERY ? "-" : "+", out);
    fputs("\n           ", out);
    for (int i = 0; i < n; i += LABEL_EVERY) {
        char label[16];
        snprintf(label, sizeof label, "2^%.0f", nb_map_number(x, i));
        fprintf(out, "%-*s", i + LABEL_EVERY < n ? LABEL_EVERY : 0, label);
    }
    fputs("  scale\n", out);
}

void nb_render_heat_map(FILE *out, const cJSON *map, bool color) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(map, "log2_scale");
    const cJSON *y = cJSON_GetObjectItemCaseSensitive(map, "log2_rho");
    int n_scales, n_rhos;
    if (!nb_map_size(map, &n_scales, &n_rhos)) {
        struct nb_strbuf reason = {0};
        const char *why = nb_json_get_text(map, "reason");
        nb_escape_terminal(&reason, why ? why : "not measured", nb_utf8_wanted());
        fprintf(out, "  no map: %s\n", reason.text ? reason.text : "");
        nb_strbuf_release(&reason);
        return;
    }
    for (int r = n_rhos - 1; r >= 0; r--) {
        const bool labelled = (n_rhos - 1 - r) % 4 == 0;
        if (labelled)
            fprintf(out, "  2^%-6.1f +", nb_map_number(y, r));
        else
            fprintf(out, "  %8s |", r == n_rhos - 2 ? "rho  " : "");
        for (int s = 0; s < n_scales; s++) {
            double value;
            const enum nb_heat_state state = nb_map_cell(map, r, s, &value);
            put(out, glyph_of(state, value), color);
        }
        fputs("\n", out);
    }
    put_scale(out, x, n_scales);
    put_legend(out, color);
}
