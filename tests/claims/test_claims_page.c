// SPDX-License-Identifier: Apache-2.0
/* What a reader of the page sees first: the paper's rows beside this machine, then each claim in a sentence with an answer. */
#include <criterion/criterion.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "src/claims/claims_document.c"
#include "src/core/log.h"
#include "src/core/text.h"
#include "tests/support/files.h"

TestSuite(claims_page, .init = quiet);

/* A reading whose figures are low and high; seen: its words for them. */
static void add_reading(struct nb_strbuf *out, const char *id, const char *verdict, const char *seen, double low,
                        double high, const char *rest) {
    nb_strbuf_addf(
        out,
        "{'id':'%s','verdict':'%s','seen':'%s','alternative':false,'reason':'2 of 2 figures hold',"
        "'expect':[{'figure':'moved'}],'figures':[{'value':%g,'low':%g,'high':%g,'rule':0,'outcome':'holds','unit':"
        "'share'},{'value':%g,'low':%g,'high':%g,'rule':0,'outcome':'fails','unit':'share'}]}%s",
        id, verdict, seen, low, low, low, high, high, high, rest);
}

static void begin_claim(struct nb_strbuf *out, const char *id, const char *verdict) {
    nb_strbuf_addf(out, "{'id':'%s','title':'it moves','verdict':'%s','reason':'as it is','readings':[", id, verdict);
}

/* Single quotes stand for double ones. claims: taken over; null: none. */
static cJSON *document_of(struct nb_strbuf *claims, const char *more) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&text, "{'complete':true%s,'claims':[%s]}", more, claims ? claims->text : "");
    for (char *p = text.text; *p; p++)
        if (*p == '\'') *p = '"';
    cJSON *document = kept_json(cJSON_Parse(text.text));
    cr_assert(document, "%s", text.text);
    if (claims) nb_strbuf_release(claims);
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
        {"REPRODUCED", "- **Yes:** it moves: the output by 16% to 82% over 2 cases (bn-it)"},
        {"NOT REPRODUCED",
         "- **No:** \"it moves\" is not reproduced here: the output by 16% to 82% over 2 cases (bn-it)"},
        {"PARTLY",
         "- **In part:** \"it moves\" is true only in part: the output by 16% to 82% over 2 cases (as it is) (bn-it)"},
        {"UNDECIDED",
         "- **Undecided:** \"it moves\" is not decided: the output by 16% to 82% over 2 cases (as it is) (bn-it)"},
        {"NEEDS A GPU",
         "- **Needs a GPU:** \"it moves\" is said of GPUs: the output by 16% to 82% over 2 cases (as it is) (bn-it)"},
        {"NOT TESTABLE HERE",
         "- **NOT TESTABLE HERE:** \"it moves\": the output by 16% to 82% over 2 cases (as it is) (bn-it)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nb_strbuf claims = {0};
        begin_claim(&claims, "bn-it", cases[i].verdict);
        add_reading(&claims, "r", cases[i].verdict, "the output by {}", 0.16, 0.82, "]}");
        const char *page = page_of(document_of(&claims, ""));
        cr_expect(strstr(page, cases[i].line), "no line %s: %s", cases[i].line, page);
        cr_expect(strstr(page, "## BatchNorm against LayerNorm"), "%s", page);
        cr_expect(strstr(page, "<details><summary>bn-it"), "the evidence is folded: %s", page);
    }
}

Test(claims_page, a_sign_is_a_word_and_too_few_launches_are_said) {
    static const char *const cases[][2] = {
        {"'seen':'it is {} {above|below} that','figures':[{'value':-0.229,'low':-0.266,'high':-0.191,'unit':'points','launches':8}]",
         "it is 22.9 points [19.1, 26.6] below that"},
        {"'seen':'it is {} {above|below} that','figures':[{'value':0.25,'low':0.25,'high':0.25,'unit':'share','tags':{'width':'256'}},"
         "{'value':0.5,'low':0.5,'high':0.5,'unit':'share','tags':{'width':'512'}}]",
         "it is 25% to 50% over 2 widths above that"},
        {"'seen':'it ends at {}','figures':[{'value':1.5,'low':null,'high':null,'unit':'','launches':1}]",
         "so far, without an interval: it ends at 1.500"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nb_strbuf claims = {0};
        struct nb_claims_sentence *all;
        begin_claim(&claims, "bn-it", "REPRODUCED");
        nb_strbuf_addf(&claims, "{'id':'r','alternative':false,'expect':[{'figure':'f'}],%s}]}", cases[i][0]);
        const size_t n = nb_claims_sentences(document_of(&claims, ""), &all);
        cr_assert_eq(n, 1);
        cr_expect_str_eq(all[0].seen, cases[i][1]);
        nb_claims_sentences_release(all, n);
    }
}

/* The cells of the row that begins so, from the second column on. */
static const char *row_of(const struct nb_grid *grid, const char *row) {
    struct nb_strbuf cells = {0};
    for (size_t i = 0; i < grid->n_cells; i += grid->n_columns)
        for (size_t k = 1; k < grid->n_columns && strstr(grid->cells[i], row) == grid->cells[i]; k++)
            nb_strbuf_addf(&cells, "%s%s", k > 1 ? " | " : "", grid->cells[i + k]);
    return kept(cells.text);
}

/* A sum of each style of the model, and of rows what they need, "row", .. */
static void add_sum(struct nb_strbuf *out, const char *model, const char *style, double share, double cut, double alone,
                    const char *dispatch) {
    nb_strbuf_addf(
        out,
        "%s{'model':'%s','norm':'rmsnorm','style':'%s','training':true,'tokens':4096,'parts':[{'part':'passes',"
        "'norm_share':{'value':%g},'cut':{'value':%g,'low':0.009,'high':0.012},'norm_cut':{'value':%g}}],"
        "'dispatch':[%s]}",
        out->len ? "," : "", model, style, share, cut, alone, dispatch);
}

#define NEEDED(row, here, there)                                                                                       \
    "{'row':'" row "','needed_here_us':{'value':" here "},'needed_there_us':{'value':" there                           \
    "},'sentence':'what it needs'}"

static char *steps_of_models(void) {
    struct nb_strbuf models released_by(nb_strbuf_release) = {0};
    add_sum(&models, "convpool", "composed", 0.02, 0.01, 0.5,
            NEEDED("Table 10, Theano", "5.1", "1000") "," NEEDED("Table 10, Theano, pRMSNorm", "1", "1"));
    add_sum(&models, "convpool", "fused", 0.01, 0.002, 0.2, "");
    add_sum(&models, "transformer-base", "composed", 0.03, 0.012, 0.4, NEEDED("Table 4, TensorFlow", "7", "3"));
    add_sum(&models, "llama-3-8b", "composed", 0.02, 0.011, 0.45, "");
    return kept(nb_textf(
        ",'steps':{'models':[%s]},'training':{'steps':[{'workload':'convpool','arm':'rmsnorm','norm':'rmsnorm','style':'printed',"
        "'cut':{'value':0.05}}]},'recorded':[{'interval':'spreads','device':'cuda','date':'2026-11-26','machine':'a GPU','readings':["
        "{'workload':'transformer-base','style':'printed','saves':0.063,'low':0.051,'high':0.066},"
        "{'workload':'transformer-base','style':'nn','saves':0.007,'low':0.006,'high':0.011},"
        "{'workload':'norm','what':'4x4','style':'nn','saves':0.1,'low':0,'high':1}]}]",
        models.text));
}

Test(claims_page, the_headline_sets_what_was_published_beside_this_machine_and_pytorch) {
    struct nb_grid grid;
    const cJSON *document = document_of(NULL, steps_of_models());
    cr_assert(nb_claims_headline(document, false, &grid));
    cr_expect_eq(grid.n_cells, 3 * grid.n_columns,
                 "the rows of the paper whose steps were summed, and a step of no source");
    cr_expect_str_eq(row_of(&grid, "llama-3-8b, 4096 tokens"), " | 1.1% [0.9, 1.2] |  | 45.0% |  |  | ");
    cr_expect_str_eq(row_of(&grid, "CIFAR"),
                     "20.5% [16.6, 24.2] | 1.0% [0.9, 1.2] |  | 50.0% | 20.0% | never there; 5.1 us here | ~5.0%");
    cr_expect_str_eq(
        row_of(&grid, "Transformer"),
        "6.9% [5.6, 8.1] | 1.2% [0.9, 1.2] | 6.3% [5.1, 6.6]; nn 0.7% [0.6, 1.1] | 40.0% |  | 3 us there; 7 us here | ");
    nb_grid_release(&grid);
    cr_assert(nb_claims_headline(document, true, &grid));
    cr_expect_str_eq(row_of(&grid, "CIFAR"), "21% [17, 24] | 1.0% [0.9, 1.2] |  | 50% | 20% | never | ~5%");
    cr_expect_str_eq(row_of(&grid, "Transformer"), "7% [6, 8] | 1.2% [0.9, 1.2] | 6.3% [5.1, 6.6] | 40% |  | 3 | ");
    nb_grid_release(&grid);
    cr_expect_not(nb_claims_headline(document_of(NULL, ""), false, &grid), "no step was summed");
    nb_grid_release(&grid);
}

Test(claims_page, sentences_are_made_of_the_figures_that_are_there) {
    struct nb_strbuf all released_by(nb_strbuf_release) = {0};
    struct nb_strings sentences = {0};
    nb_claims_takeaways(document_of(NULL, steps_of_models()), &sentences);
    cr_expect_eq(sentences.n, 4, "nothing was read on a CPU");
    for (size_t i = 0; i < sentences.n; i++) nb_strbuf_addf(&all, "%s\n", sentences.items[i]);
    HAS(all.text, "RMSNorm takes 40% to 50% less time than LayerNorm", ", fused 20% less, over 3 rows of the table",
        "unfused LayerNorm is 2.0% to 3.0% of it", "RMSNorm saves 1.0% to 1.2% (fused 0.2%)",
        "published are 6.9% to 21% over 2 figures",
        "1 of the 2 published savings are reached on the source's GPU, and 2 with", "PyTorch on a GPU (2026-11-26)",
        "saves 6.3% of a step, with PyTorch's own norms 0.7%, and of these norms alone 10%");
    nb_strings_release(&sentences);
    nb_claims_takeaways(document_of(NULL, ""), &sentences);
    cr_expect_eq(sentences.n, 0, "nothing was summed");
}

Test(claims_page, the_section_of_steps_has_sums_what_they_need_and_readings) {
    const char *page = page_of(document_of(NULL, steps_of_models()));
    HAS(page, "## Whole steps", "| transformer-base | rmsnorm |", "brackets: spreads", "what it needs", "as recorded",
        "| transformer-base |");
}

/* As they stood on the page of the instrument before, of models that were trained. */
Test(claims_page, every_row_of_the_paper_has_its_published_figure) {
    static const char *const published[][2] = {
        {"RNNSearch, TensorFlow", "24.7% [13.8, 34.2]"},    {"RNNSearch, Theano", "34.0% [27.7, 39.8]"},
        {"RNNSearch, PyTorch", "11.0% [4.3, 17.2]"},        {"Transformer, TensorFlow", "6.9% [5.6, 8.1]"},
        {"Attentive reader, Theano", "15.1% [10.4, 19.4]"}, {"Order-embedding, Theano", "40.8% [35.7, 45.4]"},
        {"CIFAR-10, Theano", "20.5% [16.6, 24.2]"}};
    static const char *const tables[][2] = {{"rnnsearch", NEEDED("Table 2, TensorFlow", "1", "1")},
                                            {"rnnsearch", NEEDED("Table 3, Theano", "1", "1")},
                                            {"rnnsearch", NEEDED("Table 3, PyTorch", "1", "1")},
                                            {"transformer-base", NEEDED("Table 4, TensorFlow", "1", "1")},
                                            {"attentive-reader", NEEDED("Table 6, Theano", "1", "1")},
                                            {"order-embedding", NEEDED("Table 8, Theano", "1", "1")},
                                            {"convpool", NEEDED("Table 10, Theano", "1", "1")}};
    struct nb_strbuf models released_by(nb_strbuf_release) = {0};
    struct nb_grid grid released_by(nb_grid_release);
    for (int i = 0; i < 7; i++) add_sum(&models, tables[i][0], "composed", 0.02, 0.01, 0.5, tables[i][1]);
    const char *all = kept(nb_textf(",'steps':{'models':[%s]}", models.text));
    cr_assert(nb_claims_headline(document_of(NULL, all), false, &grid));
    cr_expect_eq(grid.n_cells, 7 * grid.n_columns);
    for (int i = 0; i < 7; i++) {
        const char *row = row_of(&grid, published[i][0]);
        cr_expect_eq(strstr(row, published[i][1]), row, "%s: %s", published[i][0], row);
    }
}

Test(claims_page, a_quick_run_says_what_it_cannot_decide) {
    struct nb_strbuf claims = {0}, note released_by(nb_strbuf_release) = {0};
    begin_claim(&claims, "train-it", "NOT MEASURED");
    nb_strbuf_add(&claims, "]},");
    begin_claim(&claims, "speed-it", "UNDECIDED");
    nb_strbuf_add(&claims, "]}");
    nb_claims_quick_note(document_of(&claims, ",'quick':true"), &note);
    cr_assert_not_null(note.text);
    HAS(note.text, "(--train-budget SECONDS includes it): train-it.", "Undecided for lack of launches: speed-it.");
    nb_strbuf_clear(&note);
    begin_claim(&claims, "train-it", "NOT MEASURED");
    nb_strbuf_add(&claims, "]}");
    nb_claims_quick_note(document_of(&claims, ""), &note);
    cr_expect_eq(note.len, 0, "a full run: %s", note.text);
}

Test(claims_page, a_sum_stands_beside_the_step_that_it_is_of) {
    cJSON *document = document_of(
        NULL, ",'steps':{'models':[{'model':'rnnsearch','training':true,'tokens':6400,'norm':'rmsnorm','style':"
              "'composed','parts':[{'part':'passes','seconds':{'value':2}}],'dispatch':[]},"
              "{'model':'minimind2-small-inference','training':false,'tokens':512,'norm':'rmsnorm','style':"
              "'fused','parts':[{'part':'step','seconds':{'value':0.5}}],'dispatch':[]}]},"
              "'training':{'device':'cpu','steps':[{'workload':'rnnsearch','arm':'layernorm batch=20 sequence=30',"
              "'norm':'layernorm','style':'printed','threads':2,'forward':{'value':0.05},'backward':{'value':0.1}}],"
              "'inference':[{'workload':'minimind2-small','arm':'layernorm nn batch=1','norm':'layernorm',"
              "'style':'nn','threads':1,'forward':{'value':0.25}}]}");
    add_checks(document);
    const cJSON *checks = nb_json_get(nb_json_get(document, "steps"), "checks");
    cr_assert_eq(cJSON_GetArraySize(checks), 2);
    cr_expect_float_eq(nb_json_get_number(cJSON_GetArrayItem(checks, 0), "ratio"), 1.6, 1e-9, "600 of 6400 tokens");
    cr_expect_float_eq(nb_json_get_number(cJSON_GetArrayItem(checks, 1), "ratio"), 0.5, 1e-9, "all of its tokens");
    const char *page = page_of(document);
    cr_expect_not_null(strstr(page, "| 9.38% |"), "%s", page);
}
