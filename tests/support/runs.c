// SPDX-License-Identifier: Apache-2.0
/* The journals are text, not made by the code that is tested. */
#include "tests/support/runs.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/files.h"

/* A variant's op, width and style are in its name. */
static void add_kernel(struct nb_strbuf *out, const char *variant) {
    const char *colon = strchr(variant, ':'), *name = colon ? colon + 1 : variant, *width = strstr(name, "_v") + 2;
    const int op_length = (int)strcspn(name, "_"), width_length = (int)strcspn(width, "_");
    const bool composed = strstr(name, "composed");
    nb_strbuf_addf(out,
                   "{\"variant\":\"%s\",\"op\":\"%.*s\",\"pass\":\"forward\",\"dtype\":\"f32\",\"width\":\"%.*s\","
                   "\"style\":\"%s\",\"stats\":\"%s\",\"stats_dtype\":\"f32\",\"variance\":\"%s\"}",
                   variant, op_length, name, width_length, width, composed ? "composed" : "fused",
                   composed ? "keepdim" : "register", *name == 'l' ? "twopass" : "none");
}

char *run_line_of(const char *const *variants, int n, const char *groups, const char *skips, const char *shard,
                  int launches) {
    struct nb_strbuf line = {0};
    nb_strbuf_addf(
        &line,
        "{\"type\":\"run\",\"schema\":\"3.0\",\"program\":\"normbench\",\"version\":\"0.0.1\","
        "\"started\":\"2025-01-31T12:00:00Z\",\"config\":\"hand\",\"argv\":[\"normbench\",\"run\",\"hand\"],"
        "\"plan\":{\"hash\":\"0123456789abcdef\",\"n_cases\":%d,\"launches\":%d,\"blocks\":3,\"sample_ms\":0.25,"
        "\"order_seed\":\"18446744073709551615\"},\"shard\":%s,"
        "\"plugins\":[{\"name\":\"mine\",\"file\":\"/opt/it's mine.so\"}],\"kernels\":[",
        n, launches, shard);
    for (int i = 0; i < n; i++) {
        if (i) nb_strbuf_add(&line, ",");
        add_kernel(&line, variants[i]);
    }
    nb_strbuf_addf(&line,
                   "],\"groups\":%s,\"skips\":%s,\"fingerprint\":{\"build\":{},\"cpu\":{\"model\":\"Hand-made\","
                   "\"l1d_bytes\":32768,\"l2_bytes\":1048576,\"l3_bytes\":33554432},\"system\":{},\"kernels\":[],"
                   "\"libraries\":{}}}\n",
                   groups, skips);
    return kept(line.text);
}

char *run_line(const char *groups, const char *skips, const char *shard, int launches) {
    static const char *const variants[] = {"rmsnorm_a_v256_f32", "layernorm_a_v256_f32", "mine:rmsnorm_b_v256_f32"};
    return run_line_of(variants, 3, groups, skips, shard, launches);
}

void add_check(struct nb_strbuf *out, int group, const char *const *keys, int n) {
    nb_strbuf_addf(out, "{\"type\":\"check\",\"group\":%d,\"cases\":[", group);
    for (int i = 0; i < n; i++)
        nb_strbuf_addf(out, "%s{\"key\":\"%s\",\"status\":\"ok\",\"summation_depth\":8,\"row_local\":true}",
                       i ? "," : "", keys[i]);
    nb_strbuf_add(out, "],\"copies\":[],\"elapsed_s\":0.1}\n");
}

void add_launch(struct nb_strbuf *out, int group, int launch, const char *const *keys, int n, const double *sample_ns,
                int blocks) {
    nb_strbuf_addf(out, "{\"type\":\"launch\",\"group\":%d,\"launch\":%d,\"cases\":[", group, launch);
    for (int i = 0; i < n; i++) {
        nb_strbuf_addf(out, "%s{\"key\":\"%s\",\"copy\":null,\"sample_ns\":[", i ? "," : "", keys[i]);
        for (int b = 0; b < blocks; b++, sample_ns++)
            nb_strbuf_addf(out, isnan(*sample_ns) ? "%snull" : "%s%.9g", b ? "," : "", *sample_ns);
        nb_strbuf_add(out, "],\"per_sample\":1,\"chunked\":false,\"preempted\":[]}");
    }
    nb_strbuf_add(out, "],\"copies\":[],\"noise\":{\"steal_ms\":0,\"involuntary\":0,\"voluntary\":0,\"wall_s\":1,"
                       "\"cpu_s\":1,\"cpu\":0,\"threads\":1},\"elapsed_s\":0.4}\n");
}

void add_end(struct nb_strbuf *out) {
    nb_strbuf_add(out, "{\"type\":\"end\",\"elapsed_s\":2,\"peak_memory_mib\":10,\"interrupted\":null}\n");
}

/* A figure that is exact in its kind, and an accuracy that no other line has. */
static const char accuracy[] =
    "{\"dtype\":\"f32\",\"unit_roundoff\":5.9604644775390625e-08,\"n\":32,\"n_exceptional\":0,\"max_ulp\":1.25,"
    "\"mean_ulp\":0.3333333333333333,\"p99_ulp\":1.1,\"bias_u\":-0.001,\"bias_sigma\":null,"
    "\"bias_evidence\":{\"n_rows\":4,\"n_large\":20,\"bias_large_u\":0.1,\"bias_large_sd_u\":0.2,\"n_rounding_rows\":3,"
    "\"n_rounding\":19,\"rounding_ulp\":-0.01,\"rounding_sd_ulp\":null},\"correctly_rounded\":0.875,"
    "\"gain_u\":0.1,\"offset_u\":0.2,\"residual_ulp\":0.3,\"nan_unexpected\":0,\"inf_unexpected\":0,"
    "\"zero_unexpected\":0,\"nan_missing\":0,\"inf_missing\":0,\"n_beyond\":0,\"worst_ratio\":0.4,\"n_rows_lost\":0,"
    "\"loss\":null,\"histogram\":[28,2,2,0,0,0,0,0,0,0,0,0,0,0,0,0],"
    "\"reproducer\":{\"row\":3,\"col\":7,\"got\":\"0x1.8p+0\",\"want\":\"0x1.7fffffp+0\",\"x\":\"-inf\",\"err_ulp\":1.25,"
    "\"tolerance_ulp\":3}}";

static void add_small_launch(struct nb_strbuf *out, int launch) {
    double ns = 100 + launch;
    nb_strbuf_addf(out, "{\"type\":\"launch\",\"group\":0,\"launch\":%d,\"cases\":[", launch);
    static const char *const keys[] = {KEY_RMS, KEY_LN, KEY_PLUGIN};
    for (int i = 0; i < 3; i++)
        nb_strbuf_addf(out,
                       "%s{\"key\":\"%s\",\"copy\":\"copy_v256_f32\",\"sample_ns\":[%g,null,%g],\"per_sample\":8,"
                       "\"chunked\":false,\"preempted\":[%s]}",
                       i ? "," : "", keys[i], ns * (i + 1), ns * (i + 1) * 1.5, launch == 0 ? "2" : "");
    nb_strbuf_addf(
        out,
        "],\"copies\":[{\"variant\":\"copy_v256_f32\",\"sample_ns\":[50,50,75],\"preempted\":[]}],"
        "\"noise\":{\"steal_ms\":%d,\"involuntary\":1,\"voluntary\":0,\"wall_s\":1,\"cpu_s\":0.8,\"cpu\":1,\"threads\":1},"
        "\"elapsed_s\":0.5}\n",
        launch);
}

char *small_journal(void) {
    struct nb_strbuf out = {0};
    nb_strbuf_add(&out, run_line("[{\"index\":4,\"part\":0,\"keys\":[\"" KEY_RMS "\",\"" KEY_LN "\",\"" KEY_PLUGIN
                                 "\"],\"reference\":0}]",
                                 "[{\"reason\":\"no kernel\",\"count\":12}]", "null", 6));
    nb_strbuf_add(&out, "{\"type\":\"check\",\"group\":0,\"cases\":[");
    static const char *const keys[] = {KEY_RMS, KEY_LN, KEY_PLUGIN};
    for (int i = 0; i < 3; i++)
        nb_strbuf_addf(&out,
                       "%s{\"key\":\"%s\",\"status\":\"ok\",\"accuracy\":%s,\"summation_depth\":8,\"row_local\":true}",
                       i ? "," : "", keys[i], accuracy);
    nb_strbuf_add(&out, "],\"copies\":[{\"variant\":\"copy_v256_f32\",\"ns\":50}],\"elapsed_s\":0.1}\n");
    for (int launch = 0; launch < 6; launch++) add_small_launch(&out, launch);
    nb_strbuf_add(&out, "{\"type\":\"counters\",\"group\":0,\"cases\":[{\"key\":\"" KEY_RMS "\",\"counters\":["
                        "{\"name\":\"instructions_exact\",\"value\":1234,\"source\":\"single_step\"},"
                        "{\"name\":\"cycles\",\"value\":null,\"source\":\"papi\",\"reason\":\"no vPMU\"}]}]}\n"
                        "{\"type\":\"end\",\"elapsed_s\":3.5,\"peak_memory_mib\":12.5,\"interrupted\":null}\n");
    return summed(kept(out.text));
}

char *folder_of(struct nb_strbuf *text) {
    char *dir = folder_with(text->text);
    nb_strbuf_release(text);
    return dir;
}

char *folder_with(const char *journal) {
    char *dir = new_folder();
    put_journal(dir, journal);
    return dir;
}

char *summed(const char *journal) {
    static const char mark[] = ",\"sum\":\"";
    const size_t sum_chars = sizeof mark - 1 + 16 + 2;
    struct nb_strbuf out = {0};
    for (const char *line = journal, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end) {
            nb_strbuf_add(&out, line);
            break;
        }
        size_t n = (size_t)(end - line);
        const bool has_sum = n > sum_chars && memcmp(end - sum_chars, mark, sizeof mark - 1) == 0;
        n -= has_sum ? sum_chars : 1;
        nb_strbuf_addf(&out, "%.*s%s%016llx\"}\n", (int)n, line, mark,
                       (unsigned long long)nb_hash(NB_HASH_EMPTY, line, n));
    }
    return kept(out.text);
}

void change_journal(const char *dir, const char *old, const char *new) {
    change_file(dir, NB_JOURNAL_FILE, old, new);
    put_journal(dir, get_file(dir, NB_JOURNAL_FILE));
}

void put_journal(const char *dir, const char *journal) { put_text(dir, NB_JOURNAL_FILE, summed(journal)); }

void put_results(const char *dir, cJSON *results) {
    cJSON *record;
    cJSON_ArrayForEach(record, cJSON_GetObjectItem(results, "records")) nb_json_add_sum(record);
    nb_json_add_sum(results);
    put_text(dir, NB_RESULTS_FILE, json_text(results));
}

static void release_results(void *results) { nb_results_release(results); }

struct nb_results results_of(const char *dir) {
    struct nb_results r;
    cr_assert_eq(nb_results_fold(&r, dir), 0);
    return r;
}
struct nb_results folded(const char *journal) {
    struct nb_results r = results_of(folder_with(journal));
    release_at_end(&r, sizeof r, release_results);
    return r;
}

enum nb_claim_verdict claim_on_run(const char *text, const char *dir, struct nb_claim *claim,
                                   struct nb_claim_result *result) {
    struct nb_sample_table samples released_by(nb_sample_table_release);
    cr_assert_eq(nb_claim_parse(claim, "dir/mine.json", text, strlen(text)), 0);
    struct nb_results results released_by(nb_results_release) = results_of(dir);
    cr_assert_eq(nb_sample_table_read(&samples, dir), 0);
    const struct nb_claims_measured m = {.results = {&results, NULL}, .samples = &samples};
    nb_claim_try(result, claim, &m);
    return result->verdict;
}

const struct nb_finding *finding_of(const struct nb_findings *f, const char *name, const char *tags) {
    for (size_t i = 0; i < f->n; i++) {
        bool fits = strcmp(f->items[i].name, name) == 0;
        for (const char *tag = tags; fits && *tag; tag += strcspn(tag, ";"), tag += *tag == ';') {
            char axis[64], wanted[64] = "";
            cr_assert_geq(sscanf(tag, "%63[^=]=%63[^;]", axis, wanted), 1);
            const char *value = nb_finding_get(&f->items[i], axis);
            fits = value && strcmp(value, wanted) == 0;
        }
        if (fits) return &f->items[i];
    }
    cr_assert_fail("nothing was found of %s, %s", name, tags);
    return NULL;
}
