// SPDX-License-Identifier: Apache-2.0
/* Records there and back through JSON. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/measure/journal.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

static struct nb_results results; /* of the small journal; its first record has counters, too */

static void begin(void) { results = folded(small_journal()); }
TestSuite(record, .init = begin);

Test(record, comes_back_exactly) {
    struct nb_record *r = &results.records[0], back released_by(nb_record_release);
    r->status = NB_OUT_OF_RANGE;
    r->reason = nb_strdup("squares overflow in f16 \"here\"");
    r->machine = 2;
    r->c.stats = NB_STATS_KEEPDIM;
    r->c.style = NB_COMPOSED;
    r->accuracy.loss = NB_LOSS_SQUARE_OVERFLOW;
    r->accuracy.reproducer.got = NAN;
    r->timing.vs_copy.low = NAN;
    cJSON *json = kept_json(nb_record_to_json(r));
    cr_assert_eq(nb_record_from_json(&back, json), 0);
    cr_expect_str_eq(json_text_of(nb_record_to_json(&back)), json_text(json));
    cr_expect(back.c.stats == NB_STATS_KEEPDIM && back.c.style == NB_COMPOSED && back.c.shape.rows == 4);
    cr_expect_eq(back.accuracy.loss, NB_LOSS_SQUARE_OVERFLOW);
    cr_expect(isnan(back.accuracy.reproducer.got) && isinf(back.accuracy.reproducer.x) &&
              isnan(back.timing.vs_copy.low));
    cr_expect(back.n_counters == 2 && isnan(back.counters[1].value) && back.machine == 2);
    cr_expect_str_eq(back.counters[1].reason, "no vPMU");
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
    struct nb_record *r = &results.records[0];
    r->has_accuracy = r->has_timing = false;
    r->facts.summation_depth = 0;
    cJSON *json = kept_json(nb_record_to_json(r));
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(json, "accuracy")));
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(json, "timing")));
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(json, "summation_depth")));
}

/* The JSON of the record with one member replaced (item null: removed). */
static int read_changed(const char *object, const char *name, cJSON *item) {
    struct nb_record back released_by(nb_record_release);
    cJSON *json = kept_json(nb_record_to_json(&results.records[0])),
          *place = *object ? cJSON_GetObjectItem(json, object) : json;
    cJSON_DeleteItemFromObjectCaseSensitive(place, name);
    if (item) cJSON_AddItemToObject(place, name, item);
    return nb_record_from_json(&back, json);
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
