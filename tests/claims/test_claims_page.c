// SPDX-License-Identifier: Apache-2.0
/* What a reader of the page sees first: the paper's rows beside this machine, then each claim in a sentence with an answer. */
#include <criterion/criterion.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "src/core/text.h"
#include "tests/support/files.h"

TestSuite(claims_page, .init = quiet);

/* A reading whose figures are low and high; seen: its words for them. */
static void add_reading(struct nb_strbuf *out, const char *id, const char *verdict, const char *seen, double low,
                        double high, const char *rest) {
    nb_strbuf_addf(
        out,
        "{\"id\":\"%s\",\"verdict\":\"%s\",\"seen\":\"%s\",\"alternative\":false,\"reason\":\"2 of 2 figures hold\","
        "\"expect\":[{\"figure\":\"moved\"}],\"figures\":[{\"value\":%g,\"low\":%g,\"high\":%g,\"rule\":0,\"outcome\":\"holds\",\"unit\":"
        "\"share\"},{\"value\":%g,\"low\":%g,\"high\":%g,\"rule\":0,\"outcome\":\"fails\",\"unit\":\"share\"}]}%s",
        id, verdict, seen, low, low, low, high, high, high, rest);
}

static void begin_claim(struct nb_strbuf *out, const char *id, const char *verdict) {
    nb_strbuf_addf(out,
                   "{\"id\":\"%s\",\"title\":\"it moves\",\"verdict\":\"%s\",\"reason\":\"as it is\",\"readings\":[",
                   id, verdict);
}

static cJSON *document_of(struct nb_strbuf *claims, const char *more) {
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "{\"complete\":true%s,\"claims\":[%s]}", more, claims->text);
    cJSON *document = kept_json(cJSON_Parse(text.text));
    cr_assert(document, "%s", text.text);
    nb_strbuf_release(&text);
    nb_strbuf_release(claims);
    return document;
}

static const char *page_of(const cJSON *document) {
    struct nb_strbuf page = {0};
    nb_claims_markdown(document, NULL, &page);
    return kept(page.text);
}

Test(claims_page, a_claim_is_a_sentence_with_an_answer) {
    static const struct {
        const char *verdict, *line;
    } cases[] = {
        {"REPRODUCED", "- **yes**, it moves: the output by 16.0 % to 82.0 % \\(bn-it\\)"},
        {"NOT REPRODUCED", "- **no**, it moves: the output by 16.0 % to 82.0 % \\(bn-it\\)"},
        {"PARTLY", "- **in part**, it moves: the output by 16.0 % to 82.0 % \\(as it is\\) \\(bn-it\\)"},
        {"NEEDS A GPU", "- **needs a GPU**, it moves: as it is \\(bn-it\\)"},
        {"NOT TESTABLE HERE", "- **NOT TESTABLE HERE**, it moves: as it is \\(bn-it\\)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nb_strbuf claims = {0}, plain = {0};
        begin_claim(&claims, "bn-it", cases[i].verdict);
        add_reading(&claims, "r", cases[i].verdict, "the output by {}", 0.16, 0.82, "]}");
        const char *page = page_of(document_of(&claims, ""));
        for (const char *p = cases[i].line; *p; p++)
            if (*p != '\\') nb_strbuf_addf(&plain, "%c", *p);
        cr_expect(strstr(page, plain.text), "no line %s: %s", plain.text, page);
        cr_expect(strstr(page, "## BatchNorm against LayerNorm"), "%s", page);
        cr_expect(strstr(page, "<details><summary>bn-it"), "the evidence is folded: %s", page);
        nb_strbuf_release(&plain);
    }
}

/* The value of a column of the row that begins so. */
static const char *cell(const struct nb_grid *grid, const char *row, size_t column) {
    for (size_t i = 0; i + column < grid->n_cells; i += grid->n_columns)
        if (strstr(grid->cells[i], row) == grid->cells[i]) return grid->cells[i + column];
    return "";
}

Test(claims_page, the_headline_sets_the_paper_beside_this_machine) {
    struct nb_strbuf claims = {0}, empty = {0};
    struct nb_grid grid;
    begin_claim(&claims, "speed-paper-range", "NOT REPRODUCED");
    add_reading(&claims, "cifar", "NOT REPRODUCED", "", 0.01, 0.01, ",");
    add_reading(&claims, "cifar-norm", "REPRODUCED", "", 0.4, 0.5, ",");
    add_reading(&claims, "transformer-fused", "REPRODUCED", "", 0.2, 0.2, "]}");
    const cJSON *document = document_of(
        &claims,
        ",\"training\":{\"regime\":[{\"row\":\"Table 10, Theano\",\"needed_here_us\":{\"value\":5.1,\"low\":4,\"high\":6},"
        "\"needed_there_us\":{\"value\":1000,\"low\":1000,\"high\":1000}},{\"row\":\"Table 10, Theano, pRMSNorm\",\"needed_here_us\":{\"value\":1}}]}");
    cr_assert(nb_claims_headline(document, &grid));
    cr_expect_eq(grid.n_cells, 7 * grid.n_columns, "the seven rows of the paper");
    cr_expect_str_eq(cell(&grid, "CIFAR", 1), "20.5 % (16.6 to 24.2)");
    cr_expect_str_eq(cell(&grid, "CIFAR", 2), "1.0 %");
    cr_expect_str_eq(cell(&grid, "CIFAR", 3), "45.0 % (40.0 to 50.0)");
    cr_expect_str_eq(cell(&grid, "CIFAR", 4), "", "not measured");
    cr_expect_str_eq(cell(&grid, "CIFAR", 5), "5.1 us here, never on its GPU");
    cr_expect_str_eq(cell(&grid, "Transformer", 4), "20.0 %");
    cr_expect_str_eq(cell(&grid, "Transformer", 5), "");
    cr_expect_str_eq(cell(&grid, "RNNSearch, PyTorch", 6), "needs a GPU");
    nb_grid_release(&grid);
    nb_strbuf_add(&empty, "");
    cr_expect_not(nb_claims_headline(document_of(&empty, ""), &grid), "nothing of the paper was run");
    nb_grid_release(&grid);
}
