// SPDX-License-Identifier: Apache-2.0
/* The page of precision and the files beside it: that foreign text stays text, and that partial or senseless files are drawn or
 * left out, never crashed on. */
#include <criterion/criterion.h>
#include <string.h>

#include "reports/lab/stress_report.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/stress/stress.h"
#include "tests/support/files.h"
#include "tests/support/reports.h"

static char *folder;
static void make_folder(void) { folder = new_folder(); }
TestSuite(stress_page, .init = make_folder);

/* ---- the page ---- */

static const char hostile[] = "rms'norm\"`id`\\<script>alert(1)</script>&\n$(id)@x_v256_f32";

static cJSON *hostile_stress(void) {
    cJSON *stress = nb_test_stress(), *bug = cJSON_CreateObject();
    nb_test_add_study(stress, hostile, "bf16");
    nb_test_add_grade(stress, hostile, hostile, hostile, hostile, "\" onmouseover='x' <b>");
    nb_test_add_grade(stress, hostile, hostile, "default", "F", "\" onmouseover='x' <b>");
    cJSON_ReplaceItemInObject(stress, "config", cJSON_CreateString("</title><script>x</script>"));
    cJSON *map = cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(stress, "studies"), 0), "map");
    cJSON *line = cJSON_GetArrayItem(cJSON_GetObjectItem(map, "predicted"), 0);
    cJSON_ReplaceItemInObject(line, "name", cJSON_CreateString("'; system('id'); '<script>"));
    nb_json_text(bug, "label", "<script>label</script>");
    nb_json_text(bug, "text", "<img src=x>");
    cJSON_AddItemToObject(bug, "failed",
                          cJSON_Parse("[{\"variant\":\"<a>\",\"grade\":\"<f>\",\"text\":\"<script>\"}]"));
    cJSON_AddItemToArray(cJSON_GetObjectItem(stress, "bugs"), bug);
    return stress;
}

Test(stress_page, page_shows_markup_as_text_and_every_figure) {
    cJSON *stress = kept_json(hostile_stress());
    nb_log_quiet(true);
    cr_assert_eq(nb_stress_report(folder, stress), 0);
    char *page = get_file(folder, NB_STRESS_PAGE);
    LACKS(page, "<script>alert", "<b> ", "<img src=x", "<a>", "<f>", "<i>rule", "<u>", "<q>", "https://",
          "\" onmouseover");
    for (const char *address = page; (address = strstr(address, "http://")); address++)
        cr_assert_eq(strncmp(address, "http://www.w3.org/", 18), 0, "an SVG's name space, which nothing fetches: %.60s",
                     address);
    HAS(page, "&lt;script&gt;alert(1)&lt;/script&gt;", "Content-Security-Policy", ">17.25<");
    cr_assert_not_null(strstr(page, ">99.99%<"), "not 100 %%, since some are wrong");
    HAS(page, "<td class=\"g gB\"", "normbench replay &#39;layernorm&#39;");
    cr_assert_null(strstr(page, ">nan<"), "what was not measured is empty");
    if (!have_gnuplot()) cr_skip("no gnuplot");
    cr_assert(!has_file(folder, NB_STRESS_PLOTS "/gnuplot.log"), "gnuplot complained");
    cr_assert(has_file(folder, NB_STRESS_PLOTS "/map-layernorm_onepass.png"));
    cr_assert_not_null(strstr(page, "src=\"data:image/png;base64,"));
}

Test(stress_page, senseless_files_are_rendered) {
    static const char *const texts[] = {
        "{}",
        "{\"grades\":5,\"studies\":\"x\",\"bugs\":{\"a\":1}}",
        "{\"grades\":[1,null,{},[],{\"declared\":5,\"why_all\":7}],\"studies\":[1,null,{},{\"dtype\":\"f32\"}],"
        "\"bugs\":[1,{}]}",
        "{\"studies\":[{\"variant\":\"v\",\"dtype\":\"f16\",\"map\":5,\"frontiers\":5,\"worst\":5}]}",
        "{\"studies\":[{\"variant\":\"v\",\"dtype\":\"f16\",\"map\":{\"log2_scale\":[null,\"x\"],\"log2_rho\":[1e300]},"
        "\"frontiers\":[5,{}],\"worst\":[5,{\"value\":1}]}]}",
    };
    nb_log_quiet(true);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cJSON *stress = kept_json(cJSON_Parse(texts[i]));
        cr_assert_not_null(stress, "%s", texts[i]);
        cr_assert_eq(nb_stress_report(folder, stress), 0, "%s", texts[i]);
        if (have_gnuplot())
            cr_assert(!has_file(folder, NB_STRESS_PLOTS "/gnuplot.log"), "gnuplot complained about %s", texts[i]);
    }
}
