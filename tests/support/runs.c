// SPDX-License-Identifier: Apache-2.0
/* Folders and journals for tests. The journals are text, not made by the code that is tested. */
#include "tests/support/runs.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/text.h"

char *new_folder(void) {
    const char *parent = getenv("TMPDIR");
    struct nb_strbuf path = {0};
    nb_strbuf_addf(&path, "%s/normbench-test-XXXXXX", parent && *parent ? parent : "/tmp");
    cr_assert_not_null(mkdtemp(path.text), "%s cannot be made", path.text);
    return path.text;
}

void remove_run(char *dir) {
    static const char *const names[] = {"journal.jsonl", "results.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = nb_path_join(dir, names[i]);
        unlink(path);
        free(path);
    }
    rmdir(dir);
    free(dir);
}

void put_file(const char *dir, const char *name, const char *text, size_t len) {
    char *path = nb_path_join(dir, name);
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fwrite(text, 1, len, f), len);
    cr_assert_eq(fclose(f), 0);
    free(path);
}

char *get_file(const char *dir, const char *name) {
    char *path = nb_path_join(dir, name), *text = nb_file_read(path, (size_t)64 << 20, NULL);
    cr_assert_not_null(text, "%s", path);
    free(path);
    return text;
}

char *errors_of(int (*f)(void *arg), void *arg, int *result) {
    char name[] = "/tmp/normbench-stderr-XXXXXX";
    int file = mkstemp(name), saved = dup(STDERR_FILENO);
    cr_assert(file >= 0 && saved >= 0);
    fflush(stderr);
    dup2(file, STDERR_FILENO);
    *result = f(arg);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(file);
    char *text = nb_file_read(name, (size_t)1 << 20, NULL);
    unlink(name);
    return text;
}

char *run_line(const char *groups, const char *skips, const char *shard, int launches) {
    struct nb_strbuf line = {0};
    nb_strbuf_addf(
        &line,
        "{\"type\":\"run\",\"schema\":\"2.0\",\"program\":\"normbench\",\"version\":\"0.0.1\","
        "\"started\":\"2025-01-31T12:00:00Z\",\"config\":\"hand\",\"argv\":[\"normbench\",\"run\",\"hand\"],"
        "\"plan\":{\"hash\":\"0123456789abcdef\",\"n_cases\":3,\"launches\":%d,\"blocks\":3,\"sample_ms\":0.25,"
        "\"order_seed\":\"18446744073709551615\"},\"shard\":%s,"
        "\"plugins\":[{\"name\":\"mine\",\"file\":\"/opt/it's mine.so\"}],\"kernels\":[",
        launches, shard);
    static const char *const kernels[][2] = {{"rmsnorm_a_v256_f32", "rmsnorm"},
                                             {"layernorm_a_v256_f32", "layernorm"},
                                             {"mine:rmsnorm_b_v256_f32", "rmsnorm"}};
    for (int i = 0; i < 3; i++)
        nb_strbuf_addf(&line,
                       "%s{\"variant\":\"%s\",\"op\":\"%s\",\"pass\":\"forward\",\"dtype\":\"f32\",\"width\":\"256\","
                       "\"style\":\"fused\",\"stats\":\"register\",\"stats_dtype\":\"f32\",\"variance\":\"%s\"}",
                       i ? "," : "", kernels[i][0], kernels[i][1], i == 1 ? "twopass" : "none");
    nb_strbuf_addf(&line,
                   "],\"groups\":%s,\"skips\":%s,\"fingerprint\":{\"build\":{},"
                   "\"cpu\":{\"model\":\"Hand-made\"},\"system\":{},\"kernels\":[],\"libraries\":{}}}\n",
                   groups, skips);
    return line.text;
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
    "\"witness\":{\"row\":3,\"col\":7,\"got\":\"0x1.8p+0\",\"want\":\"0x1.7fffffp+0\",\"x\":\"-inf\",\"err_ulp\":1.25,"
    "\"tolerance_ulp\":3}}";

static void add_launch(struct nb_strbuf *out, int launch) {
    double ns = 100 + launch;
    nb_strbuf_addf(out, "{\"type\":\"launch\",\"group\":0,\"launch\":%d,\"cases\":[", launch);
    static const char *const keys[] = {KEY_RMS, KEY_LN, KEY_PLUGIN};
    for (int i = 0; i < 3; i++)
        nb_strbuf_addf(out,
                       "%s{\"key\":\"%s\",\"copy\":\"copy_v256_f32\",\"sample_ns\":[%g,null,%g],\"per_sample\":8,"
                       "\"chunked\":false,\"contaminated\":[%s]}",
                       i ? "," : "", keys[i], ns * (i + 1), ns * (i + 1) * 1.5, launch == 0 ? "2" : "");
    nb_strbuf_addf(out,
                   "],\"copies\":[{\"variant\":\"copy_v256_f32\",\"sample_ns\":[50,50,75],\"contaminated\":[]}],"
                   "\"noise\":{\"steal_ms\":%d,\"involuntary\":1,\"voluntary\":0,\"wall_s\":1,\"cpu_s\":0.8,\"cpu\":1},"
                   "\"elapsed_s\":0.5}\n",
                   launch);
}

char *small_journal(void) {
    struct nb_strbuf out = {0};
    char *run = run_line("[{\"index\":4,\"part\":0,\"keys\":[\"" KEY_RMS "\",\"" KEY_LN "\",\"" KEY_PLUGIN
                         "\"],\"reference\":0}]",
                         "[{\"reason\":\"no kernel\",\"count\":12}]", "null", 6);
    nb_strbuf_add(&out, run);
    free(run);
    nb_strbuf_add(&out, "{\"type\":\"check\",\"group\":0,\"cases\":[");
    static const char *const keys[] = {KEY_RMS, KEY_LN, KEY_PLUGIN};
    for (int i = 0; i < 3; i++)
        nb_strbuf_addf(&out, "%s{\"key\":\"%s\",\"status\":\"ok\",\"accuracy\":%s,\"chain\":8,\"row_local\":true}",
                       i ? "," : "", keys[i], accuracy);
    nb_strbuf_add(&out, "],\"copies\":[{\"variant\":\"copy_v256_f32\",\"ns\":50}],\"elapsed_s\":0.1}\n");
    for (int launch = 0; launch < 6; launch++) add_launch(&out, launch);
    nb_strbuf_add(&out, "{\"type\":\"counters\",\"group\":0,\"cases\":[{\"key\":\"" KEY_RMS "\",\"counters\":["
                        "{\"name\":\"instructions_exact\",\"value\":1234,\"source\":\"single_step\"},"
                        "{\"name\":\"cycles\",\"value\":null,\"source\":\"papi\",\"reason\":\"no vPMU\"}]}]}\n"
                        "{\"type\":\"end\",\"elapsed_s\":3.5,\"peak_memory_mib\":12.5,\"interrupted\":null}\n");
    return out.text;
}
