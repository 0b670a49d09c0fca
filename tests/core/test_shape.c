// SPDX-License-Identifier: Apache-2.0
/* Shapes: what each way of writing means, and what is refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernel.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/shape.h"

static struct nb_shape parsed(const char *text) {
    struct nb_shape shape = {0};
    char reason[256] = "";
    cr_assert_eq(nb_shape_parse(&shape, text, reason, sizeof reason), 0, "%s %s", text, reason);
    return shape;
}

Test(shape, brackets_are_the_normalized_dimensions) {
    struct nb_shape s = parsed("2x3x[4x5]");
    cr_expect(s.rows == 6 && s.cols == 20);
    cr_expect_str_eq(s.text, "2x3x[4x5]");
    s = parsed("[7]");
    cr_expect(s.rows == 1 && s.cols == 7);
    s = parsed("5x[2x3x4]");
    cr_expect(s.rows == 5 && s.cols == 24);
}

Test(shape, what_is_no_shape_is_refused_with_the_reason) {
    static const char *const wants[][2] = {
        {"", "not a shape"},
        {"x", "not a shape"},
        {"64", "one dimension"},
        {"64x", "not a shape"},
        {"64x384x", "not a shape"},
        {"64x-1", "not a shape"},
        {"64x384 ", "something other"},
        {"0x5", "dimension of 0"},
        {"5x0", "dimension of 0"},
        {"2x3x4", "brackets"},
        {"2x[3", "does not close"},
        {"2x[3]x4", "after its bracket"},
        {"2x[3x[4]]", "not a shape"},
        {"2x]3", "not a shape"},
        {"65536x65537", "2^32"},
        {"4294967297x1", "2^32"},
        {"99999999999999999999999x1", "2^32"},
        {"nchw:5", "at least N and C"},
        {"nchw:[2x3]", "brackets"},
        {"1x1x1x1x1x1x1x1x[1]", "8 dimensions"},
        {"64*384", "something other"},
        {"nchv:1x2", "not a shape"},
        {"1e3x5", "something other"},
    };
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        struct nb_shape s;
        char reason[256] = "";
        cr_expect_eq(nb_shape_parse(&s, wants[i][0], reason, sizeof reason), -1, "'%s' was taken", wants[i][0]);
        cr_expect(strstr(reason, wants[i][1]), "'%s': %s", wants[i][0], reason);
    }
}

/* The shapes that a text stands for, separated by blanks; the reason when it is refused. */
static const char *expanded(const char *text) {
    static char out[4096];
    char reason[256] = "";
    struct nb_strings texts released_by(nb_strings_release);
    if (nb_shape_expand(text, &texts, reason, sizeof reason) != 0) {
        snprintf(out, sizeof out, "! %s", reason);
        return out;
    }
    out[0] = '\0';
    for (size_t i = 0; i < texts.n; i++)
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s", i ? " " : "", texts.items[i]);
    return out;
}

Test(shape, ranges_multiply_and_add) {
    cr_expect_str_eq(expanded("64x384"), "64x384");
    cr_expect_str_eq(expanded("64x256:4096:*4"), "64x256 64x1024 64x4096");
    cr_expect_str_eq(expanded("64x256:5000:*4"), "64x256 64x1024 64x4096");
    cr_expect_str_eq(expanded("64x10:40:+10"), "64x10 64x20 64x30 64x40");
    cr_expect_str_eq(expanded("1:2:+1x3:4:+1"), "1x3 1x4 2x3 2x4");
    cr_expect_str_eq(expanded("2x[3:5:+2x7]"), "2x[3x7] 2x[5x7]");
    cr_expect_str_eq(expanded("nchw:1:2:*2x3x4"), "nchw:1x3x4 nchw:2x3x4");
    cr_expect_str_eq(expanded("7:7:*2x1"), "7x1");
}

Test(shape, bad_ranges_are_refused) {
    static const char *const wants[][2] = {{"64x256:4096", "FIRST:LAST"},
                                           {"64x256:4096:4", "FIRST:LAST"},
                                           {"64x256:128:*2", "FIRST:LAST"},
                                           {"64x1:9:*1", "FIRST:LAST"},
                                           {"64x1:9:+0", "FIRST:LAST"},
                                           {"64x0:9:*2", "FIRST:LAST"},
                                           {"64x:9:*2", "FIRST:LAST"},
                                           {"1:100000:+1x5", "more than 4096"},
                                           {"1:65:+1x1:65:+1", "more than 4096"},
                                           {"1x1:1099511627776:*1099511627776", "2^32"}};
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++)
        cr_expect(strstr(expanded(wants[i][0]), wants[i][1]), "'%s': %s", wants[i][0], expanded(wants[i][0]));
    char longer[400];
    memset(longer, '1', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    cr_expect(strstr(expanded(longer), "longer than 200"));
}

Test(shape, every_preset_has_shapes_and_a_source) {
    struct nb_jsonc file released_by(nb_jsonc_release);
    char *path freed = nb_jsonc_find("shapes.json");
    cr_assert(path);
    cr_assert_eq(nb_jsonc_read(&file, path), 0);
    cr_assert_gt(cJSON_GetArraySize(file.root), 15);
    for (const cJSON *preset = file.root->child; preset; preset = preset->next) {
        const cJSON *source = nb_json_get(preset, "source");
        cr_expect(cJSON_IsString(source) && *source->valuestring, "%s has no source", preset->string);
        cr_expect_neq(expanded(preset->string)[0], '!', "%s: %s", preset->string, expanded(preset->string));
        for (const cJSON *other = preset->next; other; other = other->next)
            cr_expect_str_neq(other->string, preset->string, "a name twice");
    }
}
