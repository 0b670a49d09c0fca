// SPDX-License-Identifier: Apache-2.0
/* Printed JSON: exact, valid, and safe to read whatever it holds. Also the table that finds texts. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/stats.h"
#include "src/core/text.h"
#include "tests/support/files.h"
#include "tests/support/sparsely.h"

static double there_and_back(double value) {
    cJSON *object = kept_json(cJSON_CreateObject());
    nb_json_number(object, "v", value);
    cJSON *again = kept_json(cJSON_Parse(json_text(object)));
    return nb_json_get_number(again, "v");
}

Test(json, an_index_is_whole_and_fits) {
    cJSON *json released_by(nb_json_release) =
        cJSON_Parse("{\"a\":0,\"b\":2147483647,\"c\":-1,\"d\":1.5,\"e\":1e30,\"f\":\"1\"}");
    cr_expect(nb_json_get_index(json, "a") == 0 && nb_json_get_index(json, "b") == 2147483647);
    for (const char *name = "cdefg"; *name; name++)
        cr_expect_eq(nb_json_get_index(json, (const char[]){*name, '\0'}), -1, "%c", *name);
}

Test(json, every_finite_double_reads_back_bit_for_bit) {
    const double values[] = {0.0, -0.0, DBL_MAX, DBL_TRUE_MIN, 1e23, 2.2250738585072011e-308};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        double back = there_and_back(values[i]);
        cr_assert_eq(memcmp(&back, &values[i], sizeof back), 0, "%.17g came back as %.17g", values[i], back);
    }
    uint64_t state = 1;
    for (int i = 0; i < 20000; i += sparsely()) {
        double value, back;
        state = state * 6364136223846793005u + 1442695040888963407u;
        memcpy(&value, &state, sizeof value);
        if (!isfinite(value)) continue;
        back = there_and_back(value);
        cr_assert_eq(memcmp(&back, &value, sizeof back), 0, "%.17g came back as %.17g", value, back);
    }
}

Test(json, what_is_not_finite_is_null_and_reads_as_nan) {
    double values[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        cJSON *object = kept_json(cJSON_CreateObject());
        nb_json_number(object, "v", values[i]);
        cr_assert_str_eq(json_text(object), "{\"v\":null}");
        cr_assert(isnan(nb_json_get_number(object, "v")));
    }
    cr_assert(isnan(nb_json_get_number(NULL, "v")));
}

Test(json, exact_values_keep_what_json_has_no_word_for) {
    double values[] = {NAN, INFINITY, -INFINITY, 0x1.fffffep-127, -0.0, 0x1p-1074};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        cJSON *object = kept_json(cJSON_CreateObject());
        nb_json_exact(object, "v", values[i]);
        double back = nb_json_get_exact(object, "v");
        cr_assert(isnan(values[i]) ? isnan(back) : memcmp(&back, &values[i], sizeof back) == 0, "%a became %a",
                  values[i], back);
    }
    cJSON *wrong = kept_json(cJSON_Parse("{\"more\":\"0x1p+0 and more\",\"none\":\"x\",\"number\":1}"));
    cr_assert(isnan(nb_json_get_exact(wrong, "more")) && isnan(nb_json_get_exact(wrong, "none")));
    cr_assert(isnan(nb_json_get_exact(wrong, "number")) && isnan(nb_json_get_exact(wrong, "absent")));
}

Test(json, text_is_escaped_and_stays_utf8) {
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"line\nbreak\ttab\x01", "\"line\\nbreak\\u0009tab\\u0001\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"bad\xff\xc3", "\"bad\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *string = kept_json(cJSON_CreateString(cases[i].text));
        cr_assert_str_eq(json_text(string), cases[i].json);
    }
}

Test(json, a_text_that_does_not_fit_its_field_is_refused) {
    char field[4];
    cJSON *json = kept_json(cJSON_Parse("{\"fits\":\"abc\",\"long\":\"abcd\",\"number\":1}"));
    cr_assert_eq(nb_json_copy_text(field, sizeof field, json, "fits"), 0);
    cr_assert_str_eq(field, "abc");
    cr_assert_eq(nb_json_copy_text(field, sizeof field, json, "number"), 0);
    cr_assert_str_eq(field, "");
    cr_assert_eq(nb_json_copy_text(field, sizeof field, json, "long"), -1);
}

Test(json, utf8_is_told_from_what_is_none) {
    static const char *const valid[] = {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    static const char *const invalid[] = {"\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"};
    for (size_t i = 0; i < 5; i++) {
        cr_expect(nb_json_is_utf8(valid[i]), "%zu", i);
        cr_expect_not(nb_json_is_utf8(invalid[i]), "%zu", i);
    }
}

/* ---- tables of members ---- */

enum fruit { APPLE, PEAR };
struct inner {
    int32_t narrow;
    double exact;
};
struct outer {
    double number;
    int64_t wide, counts[3];
    uint64_t bits;
    bool flag;
    char text[8], *owned;
    enum fruit fruit;
    struct nb_interval interval;
    struct inner inner;
    double grouped;
    const char *borrowed;
    int32_t index, none;
    int64_t positive, zero;
    char absent[8];
};
static const char *const fruits[] = {"apple", "pear", NULL};
static const struct nb_member inner[] = {NB_MEMBER(COUNT, struct inner, narrow), NB_MEMBER(EXACT, struct inner, exact),
                                         NB_MEMBERS_END};
static const struct nb_member group[] = {NB_MEMBER_AS("renamed", NUMBER, struct outer, grouped), NB_MEMBERS_END};
static const struct nb_member outer[] = {NB_MEMBER(NUMBER, struct outer, number),
                                         NB_MEMBER(COUNT, struct outer, wide),
                                         NB_MEMBER(COUNTS, struct outer, counts),
                                         NB_MEMBER(UINT64, struct outer, bits),
                                         NB_MEMBER(BOOL, struct outer, flag),
                                         NB_MEMBER(TEXT, struct outer, text),
                                         NB_MEMBER(STRING, struct outer, owned),
                                         NB_MEMBER_NAMED(struct outer, fruit, fruits),
                                         NB_MEMBER(INTERVAL, struct outer, interval),
                                         NB_MEMBER_STRUCT(struct outer, inner, inner),
                                         NB_MEMBER_GROUP("group", group),
                                         NB_MEMBER(BORROWED, struct outer, borrowed),
                                         NB_MEMBER(INDEX, struct outer, index),
                                         NB_MEMBER(INDEX, struct outer, none),
                                         NB_MEMBER(POSITIVE, struct outer, positive),
                                         NB_MEMBER_OPTIONAL(POSITIVE, struct outer, zero),
                                         NB_MEMBER_OPTIONAL(TEXT, struct outer, absent),
                                         NB_MEMBERS_END};

Test(json, members_that_are_not_what_they_must_be_are_refused_by_name) {
    static const struct {
        const char *key, *value;
    } wrong[] = {{"wide", "-1"},
                 {"wide", "0.5"},
                 {"wide", "null"},
                 {"counts", "[1,2]"},
                 {"counts", "[1,2,-3]"},
                 {"bits", "7"},
                 {"bits", "\"-1\""},
                 {"bits", "\"18446744073709551616\""},
                 {"fruit", "\"plum\""},
                 {"text", "\"too long\""},
                 {"index", "-1"},
                 {"positive", "\"7\""},
                 {"inner", "{\"narrow\":2147483648,\"exact\":\"0\"}"},
                 {"inner", "[]"},
                 {"interval", "3"}};
    const struct outer a = {.text = "", .fruit = APPLE};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct outer b = {0};
        cJSON *json = kept_json(cJSON_CreateObject());
        nb_json_add_members(json, outer, &a);
        cr_assert_eq(nb_json_get_members(json, outer, &b, "a test"), 0);
        cJSON_ReplaceItemInObjectCaseSensitive(json, wrong[i].key, cJSON_Parse(wrong[i].value));
        cr_expect_eq(nb_json_get_members(json, outer, &b, "a test"), -1, "%s: %s", wrong[i].key, wrong[i].value);
    }
}

Test(strings, a_list_is_split_at_each_separator_and_a_word_may_be_empty) {
    struct nb_strings words released_by(nb_strings_release) = {0};
    nb_strings_split(&words, "a,,b c,", ',');
    nb_strings_split(&words, "", ',');
    static const char *const want[] = {"a", "", "b c", "", ""};
    cr_assert_eq(words.n, 5);
    for (size_t i = 0; i < words.n; i++) cr_expect_str_eq(words.items[i], want[i]);
}
