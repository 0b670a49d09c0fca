// SPDX-License-Identifier: Apache-2.0
/* Lines for a terminal of 80 columns. */
#include "reports/tune_view.h"

#include <math.h>
#include <string.h>

#include "src/base/json.h"
#include "src/case/tuning.h"

static const cJSON *member(const cJSON *json, const char *name) { return cJSON_GetObjectItemCaseSensitive(json, name); }

static void print_fields(const cJSON *fields, struct nb_strbuf *out) {
    struct nb_tuning t = {.interleave_rows = 1};
    struct nb_strbuf value = {0};
    if (!cJSON_IsObject(fields) || nb_tuning_from_json(&t, fields) != 0) return;
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        nb_strbuf_clear(&value);
        nb_tuning_print_field(&t, &nb_tuning_fields[i], &value);
        nb_strbuf_addf(out, "  %-17s %-12s %s\n", nb_tuning_fields[i].name, value.text, nb_tuning_fields[i].help);
    }
    nb_strbuf_release(&value);
}

static void print_origin(const cJSON *json, struct nb_strbuf *out) {
    const char *source = nb_json_get_text(json, "source"), *file = nb_json_get_text(json, "file");
    const char *measured = nb_json_get_text(json, "measured");
    if (source && strcmp(source, "defaults") == 0)
        nb_strbuf_add(out, ": defaults for this CPU; `normbench tune` measures what is better");
    else if (source)
        nb_strbuf_addf(out, ": %s%s", strcmp(source, "option") == 0 ? "by option" : "", file ? file : "");
    if (source && measured) nb_strbuf_addf(out, ", measured %s", measured);
    nb_strbuf_add(out, "\n");
}

/* "7.1 % faster (5.2 to 9.0)" */
static void print_gain(const cJSON *gain, struct nb_strbuf *out) {
    const double value = nb_json_get_number(gain, "value"), low = nb_json_get_number(gain, "low"),
                 high = nb_json_get_number(gain, "high");
    if (!isfinite(value)) return;
    nb_strbuf_addf(out, "%+.1f %%", value);
    if (isfinite(low) && isfinite(high)) nb_strbuf_addf(out, " (%+.1f to %+.1f)", low, high);
}

static void print_trials(const cJSON *topic, struct nb_strbuf *out) {
    const cJSON *trial, *arm;
    cJSON_ArrayForEach(trial, member(topic, "trials")) {
        const char *key = nb_json_get_text(trial, "key");
        nb_strbuf_addf(out, "    %.*s\n",
                       (int)(key ? strcspn(key, "/") + strcspn(key + strcspn(key, "/") + 1, "/") + 1 : 1),
                       key ? key : "?");
        cJSON_ArrayForEach(arm, member(trial, "arms")) {
            const char *setting = nb_json_get_text(arm, "setting");
            nb_strbuf_addf(out, "      %-44s ", setting ? setting : "?");
            if (nb_json_get_bool(arm, "default"))
                nb_strbuf_add(out, "default");
            else
                print_gain(member(arm, "faster_percent"), out);
            nb_strbuf_add(out, "\n");
        }
    }
}

static void print_topic(const cJSON *topic, struct nb_strbuf *out) {
    const char *name = nb_json_get_text(topic, "name"), *verdict = nb_json_get_text(topic, "verdict");
    const char *setting = nb_json_get_text(topic, "setting"), *reason = nb_json_get_text(topic, "reason");
    nb_strbuf_addf(out, "\n  %s: ", name ? name : "?");
    if (setting) {
        nb_strbuf_addf(out, "%s, ", setting);
        print_gain(member(topic, "faster_percent"), out);
        nb_strbuf_addf(out, " where it differs from the default, %.0f trials",
                       nb_json_get_number(topic, "trials_that_differ"));
    } else if (verdict && strcmp(verdict, "default") == 0) {
        nb_strbuf_add(out, "the default stays; nothing is faster by more than noise");
    } else {
        nb_strbuf_add(out, "not measured, the default holds");
    }
    nb_strbuf_addf(out, "%s%s\n", reason ? "; " : "", reason ? reason : "");
    print_trials(topic, out);
}

void nb_tune_print(const cJSON *json, struct nb_strbuf *out) {
    const cJSON *topics = member(json, "topics"), *topic;
    const char *measured = nb_json_get_text(json, "measured");
    const cJSON *fields = member(json, "tuning");
    nb_strbuf_add(out, "Tuning");
    print_origin(json, out);
    print_fields(fields ? fields : member(json, "fields"), out);
    if (topics && measured)
        nb_strbuf_addf(out, "\nMeasured %s in %.0f s; percent faster than the default, with the 95%% interval\n",
                       measured, nb_json_get_number(json, "elapsed_s"));
    cJSON_ArrayForEach(topic, topics) print_topic(topic, out);
}
