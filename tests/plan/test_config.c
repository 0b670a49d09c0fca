// SPDX-License-Identifier: Apache-2.0
/* Configs: what is read, and that every mistake is named with its place and the mend. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "src/core/axes.h"
#include "src/plan/config.h"
#include "tests/support/files.h"

static void release_config(void *config) { nb_config_release(config); }

static struct nb_config taken(const char *text) {
    struct nb_config config;
    begin_errors();
    const int result = nb_config_parse(&config, "dir/mine.json", text, strlen(text));
    char *errors = end_errors();
    cr_assert_eq(result, 0, "%s\n%s", text, errors);
    release_at_end(&config, sizeof config, release_config);
    return config;
}

static void refused(const char *text, const char *place, const char *words) {
    struct nb_config config;
    begin_errors();
    const int result = nb_config_parse(&config, "dir/mine.json", text, strlen(text));
    char *errors = end_errors();
    cr_expect_eq(result, -1, "was taken: %s", text);
    cr_expect(strstr(errors, place), "wanted \"%s\" for %s in: %s", place, text, errors);
    cr_expect(strstr(errors, words), "wanted \"%s\" for %s in: %s", words, text, errors);
    if (result == 0) nb_config_release(&config);
}

static const struct nb_values *list(const struct nb_config *config, size_t block, const char *axis) {
    return &config->blocks[block].values[nb_axis_find(axis) - nb_axes];
}

static const char *joined(const struct nb_values *values) {
    static char out[4096];
    out[0] = '\0';
    for (size_t i = 0; i < values->n; i++)
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s", i ? " " : "", values->texts[i]);
    return out;
}

/* What JSON's numbers hold exactly is taken exactly. */
Test(config, whole_numbers_and_zeros_are_taken_as_written) {
    struct nb_config c =
        taken("{ \"blocks\": [{ \"seed\": [9007199254740992, 1000000000000001, 9223372036854775808, 12e3],"
              " \"eps\": [0, 0.0, 0e-400, 5e-300], \"data\": \"normal/1e-400 9007199254740993\" }] }");
    cr_expect_str_eq(joined(list(&c, 0, "seed")), "9007199254740992 1000000000000001 9223372036854775808 12000");
    cr_expect_str_eq(joined(list(&c, 0, "eps")), "0 0 0 5e-300");
}

Test(config, reads_blocks_with_lists_and_single_values) {
    struct nb_config c =
        taken("{ \"description\": \"d\", \"launches\": 7, \"blocks_per_launch\": 9, \"sample_ms\": 0.25,\n"
              "  \"reference\": \"*layernorm*\", \"order_seed\": \"18446744073709551615\",\n"
              "  \"blocks\": [ { \"op\": \"ln\", \"dtype\": [\"fp32\", \"bfloat16\"],\n"
              "    \"eps\": [\"1e-05\", 1e-8], \"threads\": 2, \"weight_offset\": [true, 0],\n"
              "    \"shape\": [\"64x384\", \"8x16:64:*2\", \"rnnsearch\"] }, {} ] }");
    cr_expect_str_eq(c.name, "mine");
    cr_expect(c.launches == 7 && c.blocks_per_launch == 9 && c.sample_ms == 0.25 && c.order_seed == UINT64_MAX);
    cr_assert_eq(c.n_blocks, 2);
    cr_expect_str_eq(joined(list(&c, 0, "op")), "layernorm");
    cr_expect_str_eq(joined(list(&c, 0, "dtype")), "f32 bf16");
    cr_expect_str_eq(joined(list(&c, 0, "eps")), "1e-05 1e-08");
    cr_expect_str_eq(joined(list(&c, 0, "threads")), "2");
    cr_expect_str_eq(joined(list(&c, 0, "weight_offset")), "1 0");
    cr_expect_str_eq(joined(list(&c, 0, "shape")), "64x384 8x16 8x32 8x64 80x1024 80x2048");
    cr_expect_eq(list(&c, 0, "eps")->line, 4);
    cr_expect_eq(c.blocks[0].line, 3);
    cr_expect_eq(list(&c, 1, "eps")->n, 0, "an empty block is all defaults");
}

Test(config, comments_are_blanked_and_lines_stay) {
    struct nb_config c = taken(
        "// one\n/* two\n three */ { // four\n \"blocks\": [ /* \"//\" */ { \"data\": \"a//b/*c*/\" } ]\n} // end");
    cr_expect_str_eq(joined(list(&c, 0, "data")), "a//b/*c*/", "a string is no comment");
    cr_expect_eq(list(&c, 0, "data")->line, 4);
    refused("{\n /* a\n b */\n // c\n \"blocks\": [{\n \"dtpe\": \"f32\" }] }",
            "dir/mine.json:6:", "did you mean \"dtype\"");
    refused("{ \"blocks\": [{}] \n /* never", "dir/mine.json:2:", "never ends");
}

Test(config, unknown_keys_are_named_with_the_nearest) {
    refused("{\n\n\"blok\": [] }", "dir/mine.json:3:", "unknown key \"blok\"; did you mean \"blocks\"");
    refused("{ \"blocks\": [\n{ \"epsilom\": 1 }] }", ":2:", "unknown key \"epsilom\"");
    refused("{ \"blocks\": [{ \"include\": { \"include\": {} } }] }", ":1:", "unknown key \"include\"");
    refused("{ \"zzzzzzzzzz\": 1 }", ":1:", "valid keys here: description, blocks");
}

Test(config, wrong_types_and_values_are_named_with_their_line) {
    refused("[]", ":1:", "is an object");
    refused("{}", "dir/mine.json:", "has no \"blocks\"");
    refused("{ \"blocks\": {} }", ":1:", "\"blocks\" is an object; it must be a list of objects");
    refused("{ \"blocks\": [] }", ":1:", "1 to 1000");
    refused("{ \"blocks\": [\n 3 ] }", ":2:", "\"blocks\" is a number");
    refused("{ \"blocks\": [{ \"dtype\": null }] }", ":1:", "\"dtype\" is null; it must be a text");
    refused("{ \"blocks\": [{ \"dtype\": [\n\"f32\",\n[\"f16\"]] }] }", ":3:", "\"dtype\" is a list");
    refused("{ \"blocks\": [{ \"dtype\": true }] }", ":1:", "\"dtype\" is true or false");
    refused("{ \"blocks\": [{ \"eps\": 1e999 }] }", ":1:", "\"eps\"");
    refused("{ \"launches\": [0, 4], \"blocks\": [{}] }", ":1:", "the fewest and the most");
    refused("{ \"blocks\": [{ \"dtype\": [] }] }", ":1:", "empty list");
    refused("{ \"blocks\": [{ \"dtype\": [\"f32\",\n\"f33\"] }] }",
            ":2:", "\"dtype\": 'f33' is not one of f32, f16, bf16");
    refused("{ \"blocks\": [{ \"eps\": -1 }] }", ":1:", "\"eps\": '-1' is not a number from 0");
    refused("{ \"blocks\": [{ \"kernel\": \"\" }] }", ":1:", "name or glob");
    refused("{ \"launches\": -1, \"blocks\": [{}] }", ":1:", "\"launches\": -1 is not a whole number from 0 to 1000");
    refused("{ \"launches\": [8], \"blocks\": [{}] }", ":1:", "the fewest and the most, such as [8, 40]");
    refused("{ \"launches\": [8, 4], \"blocks\": [{}] }", ":1:", "the fewest and the most");
    refused("{ \"launches\": [8, 4000], \"blocks\": [{}] }", ":1:", "4000 is not a whole number from 1 to 1000");
    refused("{ \"sample_ms\": 0, \"blocks\": [{}] }", ":1:", "from 0.01 to 1000");
    refused("{ \"order_seed\": \"-1\", \"blocks\": [{}] }", ":1:", "2^64");
    refused("{ \"order_seed\":\n 9007199254740993, \"blocks\": [{}] }",
            ":2:", "write it as a text: \"9007199254740993\"");
    refused("{ \"blocks\": [{ \"seed\": [1, 18446744073709551615] }] }",
            ":1:", "write it as a text: \"18446744073709551615\"");
    refused("{ \"blocks\": [{ \"seed\": 18446744073709551616 }] }", ":1:", "from 0 to 2^64 - 1");
    refused("{ \"blocks\": [{ \"eps\": 1e-400 }] }", ":1:", "1e-400 is smaller than any number but 0");
}

Test(config, keys_that_stand_twice_are_refused) {
    refused("{ \"blocks\": [{}],\n \"blocks\": [{}] }", ":2:", "key \"blocks\" is given twice");
    refused("{ \"blocks\": [{ \"eps\": 1,\n \"eps\": 2 }] }", ":2:", "key \"eps\" is given twice");
    refused("{ \"blocks\": [{ \"eps\": 1,\n \"epsilon\": 2 }] }", ":2:", "given twice");
    refused("{ \"blocks\": [{ \"include\": {\"eps\": 1},\n \"include\": {\"eps\": 1} }] }", ":2:", "given twice");
}

Test(config, broken_json_is_named_with_its_line) {
    refused("", ":1:", "empty");
    refused("{\n\"blocks\": [{}]\n", ":", "last bracket is missing");
    refused("{ \"blocks\": [{},\n] }", ":2:", "a comma before ']'");
    refused("{ \"blocks\": [{ \"eps\": 1,\n } ] }", ":2:", "a comma before '}'");
    refused("{ \"blocks\": [{}] }\n\n x", ":3:", "something follows");
    refused("{ \"blocks\": [{}] \n\"launches\": 3 }", ":2:", "not valid JSON");
    refused("{ \"blocks\": [{ \"data\": \"abc\n\" }] }", ":1:", "does not end on its line");
    refused("{ \"blocks\": [{ \"data\": \"a\\u0000b\" }] }", ":1:", "\\u0000");
}

Test(config, depth_and_size_are_bounded) {
    struct nb_strbuf deep released_by(nb_strbuf_release) = {0};
    for (int i = 0; i < 100000; i++) nb_strbuf_add(&deep, "[");
    refused(deep.text, ":1:", "deeper than 32");
    struct nb_strbuf large released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&large, "{ \"blocks\": [{}] }");
    while (large.len <= NB_JSONC_MAX_BYTES) nb_strbuf_add(&large, "                                ");
    refused(large.text, "dir/mine.json", "larger than");
    struct nb_config config released_by(nb_config_release);
    expect_refused(nb_config_parse(&config, "mine", "{\n\0}", 4), "a zero byte", "mine:2: holds a zero byte");
    cr_assert_eq(nb_config_parse(&config, "mine", "{\"blocks\":[{}]}", 15), 0);
    cr_expect_str_eq(config.name, "mine");
}

Test(config, include_and_exclude_are_partial_blocks) {
    struct nb_config c =
        taken("{ \"blocks\": [ { \"eps\": \"1e-5\", \"include\": { \"dtype\": \"bf16\" },\n"
              " \"exclude\": [ { \"width\": \"512\" }, { \"op\": \"dyt\", \"root\": \"div_sqrt\" } ] } ] }");
    cr_expect(c.blocks[0].n_includes == 1 && c.blocks[0].n_excludes == 2);
    cr_expect_eq(c.blocks[0].excludes[1].line, 2);
    refused("{ \"blocks\": [{ \"exclude\": [\n{}] }] }", ":2:", "names no axis");
    refused("{ \"blocks\": [{ \"exclude\": [] }] }", ":1:", "empty list");
    refused("{ \"blocks\": [{ \"exclude\": \"dyt\" }] }", ":1:", "list of objects that name axes");
}

/* ---- --axis ---- */

static void option_refused(struct nb_config *config, const char *text, const char *words) {
    expect_refused(nb_config_axis(config, text), text, words);
}

Test(config, axis_replaces_in_every_block_and_the_last_wins) {
    struct nb_config c = taken(
        "{ \"blocks\": [ { \"dtype\": \"f16\", \"include\": [ { \"dtype\": \"bf16\" }, { \"eps\": \"1\" } ] }, {} ] }");
    cr_expect_eq(nb_config_axis(&c, "dtype=f16,f32"), 0);
    cr_expect_eq(nb_config_axis(&c, "dtype=fp32,bf16"), 0);
    cr_expect_eq(nb_config_axis(&c, "shape=2x[3,4]"), -1);
    cr_expect_eq(nb_config_axis(&c, "data=values(1,2,3),normal"), 0);
    cr_expect_str_eq(joined(list(&c, 0, "data")), "values(1,2,3) normal");
    cr_expect_eq(nb_config_axis(&c, "shape=64x384,2x[3x4],rnnsearch"), 0);
    const size_t dtype = (size_t)(nb_axis_find("dtype") - nb_axes);
    for (size_t i = 0; i < c.n_blocks; i++) {
        cr_expect_str_eq(joined(list(&c, i, "dtype")), "f32 bf16");
        cr_expect_str_eq(joined(list(&c, i, "shape")), "64x384 2x[3x4] 80x1024 80x2048");
        cr_expect_eq(list(&c, i, "shape")->line, 0);
    }
    cr_expect_str_eq(joined(&c.blocks[0].includes[0].values[dtype]), "f32 bf16");
    cr_expect_eq(c.blocks[0].includes[1].values[dtype].n, 0, "an include that leaves the axis out has the block's");
}

Test(config, bad_axis_options_are_named) {
    struct nb_config c = taken("{ \"blocks\": [ {} ] }");
    option_refused(&c, "dtype", "NAME=VALUE");
    option_refused(&c, "dtpe=f32", "unknown axis 'dtpe'; did you mean 'dtype'");
    option_refused(&c, "=f32", "unknown axis ''");
    option_refused(&c, "dtype=", "empty value");
    option_refused(&c, "dtype=f32,,f16", "empty value");
    option_refused(&c, "dtype=f32,f61", "'f61' is not one of f32, f16, bf16");
    option_refused(&c, "eps=1e-5,abc", "'abc' is not a number");
    cr_expect_eq(list(&c, 0, "dtype")->n, 0, "a bad option changes nothing");
}

static void name_refused(const char *name, const char *words) {
    struct nb_config c;
    expect_refused(nb_config_read(&c, name), name, words);
}

Test(config, a_name_that_is_no_preset_has_a_nearest_one) {
    name_refused("quik", "did you mean 'quick'");
    name_refused("shapes", "no such preset");
    name_refused("", "no such preset");
    name_refused("dir/none.json", "dir/none.json");
    name_refused("/", "folder");
}

/* ---- what is said about gating ---- */

Test(config, margins_and_budgets_of_the_gate_are_read) {
    struct nb_config c = taken("{ \"blocks\": [ {} ], \"gate\": { \"fail_margin\": 1.2, \"level\": 0.5,\n"
                               "  \"instructions\": { \"rmsnorm_*\": \"+2.5%\", \"*\": 5200, \"none\": \"+0%\" } } }");
    cr_expect_float_eq(c.gate.fail_margin, 0.012, 1e-12);
    cr_expect_eq(c.gate.pass_margin, 0, "not said");
    cr_expect_eq(c.gate.level, 0.005);
    cr_assert_eq(c.gate.n_budgets, 3);
    cr_expect_str_eq(c.gate.budgets[0].filter, "rmsnorm_*");
    cr_expect(c.gate.budgets[0].relative && c.gate.budgets[0].most == 0.025);
    cr_expect(!c.gate.budgets[1].relative && c.gate.budgets[1].most == 5200);
    cr_expect(c.gate.budgets[2].relative && c.gate.budgets[2].most == 0);
}

Test(config, mistakes_about_gating_are_named) {
    refused("{ \"blocks\": [ {} ],\n \"gate\": { \"margin\": 2 } }", "dir/mine.json:2", "unknown key");
    refused("{ \"blocks\": [ {} ], \"gate\": { \"fail_margin\": \"1%\" } }", "fail_margin", "a number");
    refused("{ \"blocks\": [ {} ], \"gate\": { \"fail_margin\": 0 } }", "fail_margin", "0.1 to 100");
    refused("{ \"blocks\": [ {} ], \"gate\": { \"level\": 1, \"level\": 2 } }", "level", "twice");
    refused("{ \"blocks\": [ {} ], \"gate\": { \"instructions\": {} } }", "instructions", "0 entries");
    refused("{ \"blocks\": [ {} ], \"gate\": { \"instructions\": { \"*\": 0 } } }", "\"*\"", "whole number");
    refused("{ \"blocks\": [ {} ], \"gate\": { \"instructions\": { \"*\": \"2%\" } } }", "\"*\"", "is no budget");
    refused("{ \"blocks\": [ {} ], \"gate\": { \"instructions\": { \"*\": \"+nan%\" } } }", "\"*\"", "is no budget");
    refused("{ \"blocks\": [ {} ], \"gate\": { \"instructions\": { \"*\": true } } }", "\"*\"",
            "number of instructions");
    refused("{ \"blocks\": [ {} ], \"gate\": { \"instructions\": { \"\": 5 } } }", "dir/mine.json:1", "empty filter");
}
