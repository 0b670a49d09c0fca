// SPDX-License-Identifier: Apache-2.0
/* Two runs of claims compared: each difference has the cause that it was made with. */
#include <criterion/criterion.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "src/core/text.h"
#include "tests/support/files.h"

TestSuite(claims_against, .init = quiet);

/* One claim of one figure; figure: its members, "" for none. */
static cJSON *document_of(const char *verdict, const char *rule, const char *figure) {
    struct nb_strbuf text = {0};
    nb_strbuf_addf(
        &text,
        "{\"complete\":true,\"started\":\"2026\",\"fingerprint\":{\"cpu\":{\"model\":\"\\u001b[31mCPU\"}},\"claims\":"
        "[{\"id\":\"it\",\"verdict\":\"%s\",\"readings\":[{\"id\":\"one\",\"alternative\":false,\"verdict\":\"%s\","
        "\"reason\":\"because\",\"expect\":[{\"rule\":\"%s\"}],\"figures\":[%s]}]}]}",
        verdict, verdict, rule, figure);
    cJSON *document = kept_json(cJSON_Parse(text.text));
    cr_assert(document, "%s", text.text);
    nb_strbuf_release(&text);
    return document;
}

static const char *compared(const cJSON *here, const cJSON *there) {
    struct nb_strbuf out = {0};
    nb_claims_against(here, there, true, &out);
    cr_expect_null(strchr(out.text, '\033'), "what another file says is escaped");
    return kept(out.text);
}

#define FIGURE(outcome, value, low, high)                                                                              \
    "{\"rule\":0,\"outcome\":\"" outcome "\",\"value\":" value ",\"low\":" low ",\"high\":" high                       \
    ",\"unit\":\"share\",\"tags\":{\"cols\":\"64\"}}"

Test(claims_against, causes_are_told_apart) {
    cJSON *here = document_of("REPRODUCED", "cut >= 0.1", FIGURE("holds", "0.2", "0.15", "0.25"));
    static const struct {
        const char *verdict, *rule, *figure, *cause;
    } cases[] = {
        {"NOT REPRODUCED", "cut >= 0.1", FIGURE("fails", "0.05", "0.04", "0.06"), "| machine | one: 20.0 %"},
        {"UNDECIDED", "cut >= 0.1", FIGURE("undecided", "0.16", "0.05", "0.3"), "| interval | one: 20.0 %"},
        {"NOT REPRODUCED", "cut >= 0.3", FIGURE("fails", "0.05", "0.04", "0.06"), "| rule | one is judged"},
        {"NOT MEASURED", "cut >= 0.1", "", "| data | one: REPRODUCED here, NOT MEASURED there (because)"},
        {"NOT MEASURED", "cut >= 0.1", FIGURE("missing", "null", "null", "null"), "| data |"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *said = compared(here, document_of(cases[i].verdict, cases[i].rule, cases[i].figure));
        cr_expect(strstr(said, cases[i].cause) && strstr(said, "differ: 1 of 1"), "%s wanted: %s", cases[i].cause,
                  said);
    }
    cr_expect(strstr(compared(here, here), "differ: 0 of 1"));
    cr_expect(strstr(compared(here, kept_json(cJSON_Parse("{}"))), "differ: 0 of 0"));
}
