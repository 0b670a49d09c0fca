// SPDX-License-Identifier: Apache-2.0
/* Records there and back through JSON. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/measure/journal.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

static struct nb_accuracy full_accuracy(void) {
    return (struct nb_accuracy){.n = 32,
                                .n_exceptional = 3,
                                .max_ulp = 1.0 / 3,
                                .mean_ulp = 0.1,
                                .p99_ulp = 0.2 + 0.1,
                                .bias_u = -1e-7 / 3,
                                .correctly_rounded = 2.0 / 3,
                                .gain_u = 1e-300,
                                .offset_u = 5e-324,
                                .residual_ulp = 1.1,
                                .nan_unexpected = 1,
                                .inf_unexpected = 2,
                                .zero_unexpected = 4,
                                .nan_missing = 5,
                                .inf_missing = 6,
                                .n_beyond = 7,
                                .n_rows_lost = 9,
                                .loss = NB_LOSS_SQUARE_OVERFLOW,
                                .worst_ratio = 0.7,
                                .bias_sigma = NAN,
                                .n_rows = 10,
                                .n_large = 11,
                                .n_rounding_rows = 12,
                                .n_rounding = 13,
                                .bias_large_u = 0.13,
                                .bias_large_sd_u = 0.17,
                                .rounding_ulp = -0.49,
                                .rounding_sd_ulp = 0.019,
                                .histogram = {[0] = 20, [15] = 12},
                                .witness = {3, 7, NAN, 0x1.fffffep-3, INFINITY, -0.6, 1.7}};
}

static struct nb_timing full_timing(void) {
    return (struct nb_timing){.time_ns = {1234.5678901234567, 1200.1, 1300.3},
                              .roof = {1.0 / 7, NAN, NAN},
                              .vs_reference = {1, 0.9, 1.1},
                              .gbytes_per_s = 12.3,
                              .min_ns = 1.0 / 9,
                              .n_launches = 6,
                              .n_samples = 240,
                              .n_contaminated = 11,
                              .chunked = true,
                              .per_sample = 64,
                              .suspect = true,
                              .noisy = true,
                              .noise = "why \xc3\xa9",
                              .steal_ms = 1.1,
                              .involuntary = 12,
                              .wall_per_cpu = 1.01,
                              .copy_drift = 1.23,
                              .copy = "copy_v256_f32",
                              .reference = nb_strdup(KEY_LN)};
}

/* Every figure is different and none is short in decimal. */
static struct nb_record full_record(void) {
    struct nb_record r = {0};
    cr_assert_eq(nb_case_parse(&r.c, KEY_RMS), 0);
    r.c.width = NB_256;
    r.c.stats = NB_STATS_KEEPDIM;
    r.c.style = NB_COMPOSED;
    nb_case_normalize(&r.c);
    r.key = nb_strdup(KEY_RMS);
    r.reason = nb_strdup("squares overflow in f16 \"here\"");
    r.replay = nb_strdup("normbench replay '" KEY_RMS "'");
    r.status = NB_OUT_OF_RANGE;
    r.group = 17;
    r.machine = 2;
    r.bytes = 256 + 32;
    r.chain = 8;
    r.row_local = true;
    r.has_accuracy = r.has_timing = true;
    r.accuracy = full_accuracy();
    r.timing = full_timing();
    r.counters = nb_alloc(2, sizeof *r.counters);
    r.counters[0] = (struct nb_counter){"instructions_exact", 12345, "single_step", ""};
    r.counters[1] = (struct nb_counter){"cycles", NAN, "papi", "no vPMU"};
    r.n_counters = 2;
    return r;
}

static char *record_text(const struct nb_record *r) { return json_text_of(nb_record_to_json(r)); }

Test(record, a_full_record_comes_back_exactly) {
    struct nb_record r = full_record(), back;
    char *text = record_text(&r);
    cJSON *json = kept_json(cJSON_Parse(text));
    cr_assert_eq(nb_record_from_json(&back, json), 0);
    cr_assert_str_eq(record_text(&back), text);
    cr_assert_eq(back.accuracy.max_ulp, 1.0 / 3);
    cr_assert_eq(back.accuracy.loss, NB_LOSS_SQUARE_OVERFLOW);
    cr_assert(isnan(back.accuracy.witness.got) && isinf(back.accuracy.witness.x));
    cr_assert_eq(back.accuracy.witness.want, 0x1.fffffep-3);
    cr_assert_eq(back.timing.time_ns.value, 1234.5678901234567);
    cr_assert(isnan(back.timing.roof.low));
    cr_assert_str_eq(back.timing.reference, KEY_LN);
    cr_assert_eq(back.c.stats, NB_STATS_KEEPDIM);
    cr_assert_eq(back.c.style, NB_COMPOSED);
    cr_assert_eq(back.c.shape.rows, 4);
    cr_assert_eq(back.n_counters, 2);
    cr_assert(isnan(back.counters[1].value));
    cr_assert_str_eq(back.counters[1].reason, "no vPMU");
    cr_assert_eq(back.machine, 2);
    nb_record_release(&r);
    nb_record_release(&back);
}

/* Results of a version that did not tell peers from plugins still read. */
Test(record, whose_kernel_it_was_comes_back) {
    const struct nb_kernel kernel = {.variant = "rmsnorm_f32", .op = NB_OP_RMSNORM};
    struct nb_case c, back;
    cJSON *json = kept_json(cJSON_CreateObject());
    nb_case_init(&c);
    nb_case_set_kernel(&c, &kernel, "mine");
    c.is_peer = true;
    nb_kernel_fields_to_json(json, &c);
    cr_expect_str_eq(nb_json_get_text(json, "backend"), "peer:mine");
    nb_case_init(&back);
    cr_assert_eq(nb_kernel_fields_from_json(&back, json), 0);
    cr_expect(back.is_peer);
    cJSON_DeleteItemFromObject(json, "backend");
    cr_assert_eq(nb_kernel_fields_from_json(&back, json), 0);
    cr_expect_not(back.is_peer);
}

Test(record, without_figures_there_are_nulls_not_zeros) {
    struct nb_record r = full_record();
    r.has_accuracy = r.has_timing = false;
    r.chain = 0;
    cJSON *json = kept_json(nb_record_to_json(&r));
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(json, "accuracy")));
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(json, "timing")));
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(json, "chain")));
    nb_record_release(&r);
}

/* The JSON of a full record with one member replaced (item null: removed). */
static int read_changed(const char *object, const char *name, cJSON *item) {
    struct nb_record r = full_record(), back;
    cJSON *json = kept_json(nb_record_to_json(&r)), *place = *object ? cJSON_GetObjectItem(json, object) : json;
    cJSON_DeleteItemFromObjectCaseSensitive(place, name);
    if (item) cJSON_AddItemToObject(place, name, item);
    int result = nb_record_from_json(&back, json);
    if (result == 0) nb_record_release(&back);
    nb_record_release(&r);
    return result;
}

Test(record, damage_is_an_error_not_a_guess) {
    static const char *const needed[][2] = {
        {"", "key"},
        {"", "status"},
        {"", "variant"},
        {"", "op"},
        {"", "group"},
        {"", "machine"},
        {"accuracy", "n"},
        {"accuracy", "n_beyond"},
        {"accuracy", "histogram"},
        {"timing", "evidence"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        cr_assert_eq(read_changed(needed[i][0], needed[i][1], NULL), -1, "%s.%s is not missed", needed[i][0],
                     needed[i][1]);
        cr_assert_eq(read_changed(needed[i][0], needed[i][1], cJSON_CreateString("?")), -1, "%s.%s", needed[i][0],
                     needed[i][1]);
    }
    static const char *const wrong[][3] = {
        {"", "group", "-1"},
        {"", "group", "1e300"},
        {"accuracy", "n", "0.5"},
        {"accuracy", "loss", "\"none such\""},
        {"", "counters", "[{\"name\":\"x\"}]"},
        {"", "counters", "[{\"name\":\"x\",\"source\":\"longer than any source has a right to be\"}]"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert_eq(read_changed(wrong[i][0], wrong[i][1], cJSON_Parse(wrong[i][2])), -1, "%s", wrong[i][2]);
    cr_assert_eq(read_changed("", "a_later_minor_version", cJSON_CreateNumber(1)), 0);
}

Test(record, more_counters_than_there_is_room_for_are_refused) {
    cJSON *many = cJSON_CreateArray();
    for (int i = 0; i <= NB_MAX_COUNTERS; i++)
        cJSON_AddItemToArray(many, cJSON_Parse("{\"name\":\"x\",\"value\":1,\"source\":\"papi\"}"));
    cr_assert_eq(read_changed("", "counters", many), -1);
}
