// SPDX-License-Identifier: Apache-2.0
/* Small results made by hand, for the tests of what is made of results. */
#include "tests/support/reports.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/run/report.h"
#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "tests/support/cases.h"
#include "tests/support/files.h"

struct nb_record *nb_test_add(struct nb_results *results, const char *variant, uint32_t op, const char *shape) {
    struct nb_record *r = NB_PUSH(results->records, results->n);
    *r = (struct nb_record){.status = NB_OK};
    nb_case_init(&r->c);
    snprintf(r->c.variant, sizeof r->c.variant, "%s", variant);
    r->c.op = op;
    r->c.width = NB_256;
    r->c.style = strstr(variant, "composed") ? NB_COMPOSED : NB_FUSED;
    set(&r->c, "shape", shape);
    set(&r->c, "affine", "default");
    r->key = nb_case_key(&r->c);
    r->replay = nb_textf("normbench replay DIR '%s'", r->key);
    r->bytes = 8.0 * (double)r->c.shape.rows * (double)r->c.shape.cols;
    return r;
}

void nb_test_times(struct nb_record *r, double time_ns, struct nb_interval ratio, const char *reference) {
    r->has_timing = true;
    r->timing = (struct nb_timing){.time_ns = {time_ns, 0.99 * time_ns, 1.01 * time_ns},
                                   .vs_copy = {0.8, 0.79, 0.81},
                                   .roofline = {{9876, 9770, 9980}, {0.8, 0.79, 0.81}, 5000, "L2"},
                                   .state = "any",
                                   .contended = {{NAN, NAN, NAN}, {NAN, NAN, NAN}},
                                   .uncontended = NAN,
                                   .vs_reference = ratio,
                                   .gbytes_per_s = r->bytes / time_ns,
                                   .min_ns = 0.98 * time_ns,
                                   .n_launches = 6,
                                   .n_samples = 48,
                                   .copy = "copy_1r1w_v256_f32",
                                   .reference = nb_strdup(reference)};
}

void nb_test_accuracy(struct nb_record *r, double max_ulp, double bias_u) {
    r->has_accuracy = true;
    r->accuracy = (struct nb_accuracy){
        .n = 64,
        .max_ulp = max_ulp,
        .mean_ulp = max_ulp / 4,
        .bias_u = bias_u,
        .worst_ratio = max_ulp / 8,
        .bias_sigma = NAN,
        .reproducer = {.row = 3, .col = 7, .got = 1.5, .want = 1.25, .x = -2, .err_ulp = max_ulp, .tolerance_ulp = 8}};
}

/* LayerNorm is the reference of each group; RMSNorm takes 0.8, 0.7 and 0.6 of its time. */
void nb_test_sweep(struct nb_results *results) {
    static const char *const shapes[] = {"64x256", "64x1024", "64x4096"};
    static const double ratios[] = {0.8, 0.7, 0.6};
    for (int i = 0; i < 3; i++) {
        struct nb_record *r = nb_test_add(results, "layernorm_twopass_v256_f32", NB_OP_LAYERNORM, shapes[i]);
        nb_test_times(r, 1000 << (2 * i), (struct nb_interval){1, NAN, NAN}, r->key);
        nb_test_accuracy(r, 1.25, 0.0625);
        char *reference freed = nb_strdup(r->key);
        r = nb_test_add(results, "rmsnorm_twopass_v256_f32", NB_OP_RMSNORM, shapes[i]);
        struct nb_interval ratio = {ratios[i], ratios[i] - 0.01, ratios[i] + 0.01};
        nb_test_times(r, ratios[i] * (1000 << (2 * i)), ratio, reference);
        nb_test_accuracy(r, 0.75, -0.125);
    }
}

void nb_test_part(struct nb_results *results, const char *shape) {
    if (!results->meta) results->meta = cJSON_CreateObject();
    cJSON *machines =
        cJSON_Parse("[{\"fingerprint\":{\"cpu\":{\"model\":\"First CPU\",\"l1d_bytes\":32768}},\"differs\":[]},"
                    "{\"fingerprint\":{\"cpu\":{\"model\":\"Other CPU\",\"l1d_bytes\":49152}},"
                    "\"differs\":[\"cpu.model: \\\"Other CPU\\\", first machine \\\"First CPU\\\"\"]}]");
    cr_assert_not_null(machines);
    cJSON_AddItemToObject(results->meta, "machines", machines);
    for (size_t i = 0; i < results->n; i++)
        results->records[i].machine = strcmp(results->records[i].c.shape.text, shape) != 0;
}

struct nb_results nb_test_small(void) {
    struct nb_results results = {
        .meta = cJSON_Parse(
            "{\"schema\":\"3.0\",\"version\":\"0.1.0\",\"config\":\"quick\",\"started\":\"2026-01-31T12:00:00Z\","
            "\"fingerprint\":{\"cpu\":{\"model\":\"Some CPU\",\"l1d_bytes\":32768}},\"argv\":[\"normbench\",\"run\","
            "\"it's\"],\"skips\":[{\"reason\":\"no such kernel\",\"count\":7}],\"complete\":true}"),
        .dir = nb_strdup("results/one")};
    struct nb_record *r = nb_test_add(&results, "layernorm_twopass_v256_f32", NB_OP_LAYERNORM, "64x256");
    nb_test_times(r, 12345.678, (struct nb_interval){1, 1, 1}, r->key);
    nb_test_accuracy(r, 1.25, 0.0625);
    char *reference freed = nb_strdup(r->key);
    r = nb_test_add(&results, "rmsnorm_twopass_v256_f32", NB_OP_RMSNORM, "64x256");
    nb_test_times(r, 9870, (struct nb_interval){0.8, 0.79, 0.81}, reference);
    nb_test_accuracy(r, 0.75, -0.125);
    r = nb_test_add(&results, "rmsnorm_bad_v256_f32", NB_OP_RMSNORM, "64x256");
    nb_test_accuracy(r, 99, 0);
    r->status = NB_INACCURATE;
    r->reason = nb_strdup("beyond the bound");
    r = nb_test_add(&results, "rmsnorm_twopass_v512_f32", NB_OP_RMSNORM, "64x256");
    r->status = NB_SKIPPED;
    r->reason = nb_strdup("no AVX-512");
    return results;
}

char *nb_test_render(const char *format, const struct nb_results *results) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    const struct nb_renderer *renderer = nb_renderer_find(format);
    cr_assert_not_null(renderer, "%s", format);
    cr_assert_eq(renderer->render(results, out), 0);
    fclose(out);
    return kept(text);
}

void nb_test_plain_terminal(void) {
    setenv("LC_ALL", "C", 1);
    setenv("COLUMNS", "1000", 1);
}

bool have_gnuplot(void) {
    pid_t child = fork();
    int status = 1;
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout)) _exit(127);
        execlp("gnuplot", "gnuplot", "--version", (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

const struct nb_figure *figure_named(const struct nb_figures *figures, const char *name) {
    for (size_t i = 0; i < figures->n; i++)
        if (strcmp(figures->list[i].name, name) == 0) return &figures->list[i];
    cr_assert_fail("no figure %s", name);
    return NULL;
}

void expect_names_quoted(const struct nb_figures *figures) {
    for (size_t i = 0; i < figures->n; i++) {
        struct nb_strbuf script released_by(nb_strbuf_release) = {0};
        nb_figure_script(&figures->list[i], &script);
        for (const char *line = script.text; *line; line += strcspn(line, "\n") + 1) {
            bool quoted = false;
            for (const char *s = line; *s && *s != '\n'; s++) {
                if (*s == '\'') quoted = !quoted;
                cr_assert(quoted || !strchr("`\"@", *s), "%s: %.80s", figures->list[i].name, line);
            }
            cr_assert(!quoted, "a string that does not end on its line: %.80s", line);
        }
        cr_assert_null(strpbrk(figures->list[i].name, "'\"`\\/ <>&$()"));
    }
}

/* A small stress.json made by hand. */

/* A map of 3 scales and 2 offsets, with a NaN and a lost zero. */
static const char study_text[] =
    "{\"replay\":\"normbench replay it\",\"status\":\"ok\",\"frontiers\":[{\"of\":\"rho_max\",\"status\":\"found\","
    "\"good\":4,\"bad\":5,\"predicted\":4096,\"ratio\":0.001,\"rule\":\"<i>rule</i>\"}],\"worst\":[{\"objective\":"
    "\"ulp\",\"value\":12.5,\"generator\":\"<u>greedy\",\"replay\":\"normbench replay '<q>'\"}],\"map\":{"
    "\"log2_scale\":[-8,0,8],\"log2_rho\":[-4,12],\"log10_ulp\":[[0.2,1.5,null],[-3.0,7.9,2.5]],\"state\":[[\"ok\","
    "\"ok\",\"nan\"],[\"ok\",\"ok\",\"zero\"]],\"predicted\":[{\"name\":\"x^2 overflows\",\"line\":[[4,-4],[3,12]]},"
    "{\"name\":\"too short\",\"line\":[[1,1]]}]}}";
static const char grade_text[] =
    "{\"op\":\"layernorm\",\"pass\":\"forward\",\"dtype\":\"f32\",\"width\":\"256\",\"all\":\"F\",\"max_ulp\":1e9,"
    "\"componentwise_ulp\":17.25,\"correct\":0.999999,\"nan\":1024,\"bias_u\":null}";
static const char why_text[] = "{\"key\":\"k\",\"replay\":\"normbench replay 'layernorm'\"}";

void nb_test_add_study(cJSON *stress, const char *variant, const char *dtype) {
    cJSON *study = cJSON_Parse(study_text);
    nb_json_text(study, "key", variant);
    nb_json_text(study, "variant", variant);
    nb_json_text(study, "dtype", dtype);
    cJSON_AddItemToArray(cJSON_GetObjectItem(stress, "studies"), study);
}

void nb_test_add_grade(cJSON *stress, const char *variant, const char *kernel, const char *formula, const char *grade,
                       const char *text) {
    cJSON *line = cJSON_Parse(grade_text), *why = cJSON_Parse(why_text);
    nb_json_text(line, "kernel", kernel);
    nb_json_text(line, "variant", variant);
    nb_json_text(line, "formula", formula);
    nb_json_text(line, "declared", grade);
    nb_json_text(why, "text", text);
    cJSON_AddItemToObject(line, "why_declared", why);
    cJSON_AddItemToObject(line, "why_all", cJSON_Duplicate(why, true));
    cJSON_AddItemToArray(cJSON_GetObjectItem(stress, "grades"), line);
}

static cJSON *empty_stress(void) {
    return cJSON_Parse(
        "{\"version\":\"1\",\"config\":\"stress\",\"started\":\"2026-01-02T03:04:05Z\",\"complete\":true,"
        "\"fingerprint\":{\"cpu\":{\"model\":\"CPU\"}},\"grades\":[],\"studies\":[],\"bugs\":[]}");
}

cJSON *nb_test_stress(void) {
    cJSON *stress = empty_stress();
    nb_test_add_study(stress, "layernorm_onepass_v256_f32", "f32");
    nb_test_add_study(stress, "layernorm_onepass_v256_f16", "f16");
    nb_test_add_study(stress, "layernorm_onepass_v512_f32", "f32");
    nb_test_add_grade(stress, "layernorm_onepass_v256_f32", "layernorm_onepass", "default", "B", "17 ulp");
    nb_test_add_grade(stress, "layernorm_onepass_v256_f32", "layernorm_onepass", "root:div_sqrt", "A", "1 ulp");
    return stress;
}
