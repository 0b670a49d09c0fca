// SPDX-License-Identifier: Apache-2.0
/* Lines for a terminal. What a file says is escaped: files are sent from hand to hand. */
#include <string.h>

#include "reports/run/report.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/tuning.h"

static void add_text(struct nb_strbuf *out, const char *before, const char *text) {
    nb_strbuf_add(out, before);
    nb_escape_terminal(out, text ? text : "?", false);
}

static void print_fields(const cJSON *fields, struct nb_strbuf *out) {
    struct nb_tuning t = {0};
    struct nb_strbuf value released_by(nb_strbuf_release) = {0};
    if (!cJSON_IsObject(fields) || nb_tuning_from_json(&t, fields) != 0) return;
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        nb_strbuf_clear(&value);
        nb_tuning_print_field(&t, &nb_tuning_fields[i], &value);
        nb_strbuf_addf(out, "  %-17s %-12s %s\n", nb_tuning_fields[i].name, value.text, nb_tuning_fields[i].help);
    }
}

static void print_origin(const cJSON *json, struct nb_strbuf *out) {
    const char *source = nb_json_get_text(json, "source"), *file = nb_json_get_text(json, "file");
    const char *measured = nb_json_get_text(json, "measured");
    if (source && strcmp(source, "defaults") == 0)
        nb_strbuf_add(out, ": defaults for this CPU; `normbench tune` measures what is better");
    else if (source)
        add_text(out, strcmp(source, "option") == 0 ? ": by option" : ": ", file ? file : "");
    if (source && measured) add_text(out, ", measured ", measured);
    nb_strbuf_add(out, "\n");
}

/* "7.1% [5.2, 9.0]" faster than the default */
static void print_gain(const cJSON *topic, struct nb_strbuf *out) {
    nb_format_share(out, nb_interval_times(nb_json_get_interval(topic, "faster_percent"), 0.01));
}

static void print_trials(const cJSON *topic, struct nb_strbuf *out) {
    const cJSON *trial, *arm;
    cJSON_ArrayForEach(trial, nb_json_get(topic, "trials")) {
        const char *key = nb_json_get_text(trial, "key"), *shape = key ? strchr(key, '/') : NULL,
                   *rest = shape ? strchr(shape + 1, '/') : NULL;
        char *label freed = rest ? nb_textf("%.*s", (int)(rest - key), key) : nb_strdup(key ? key : "?");
        add_text(out, "    ", label);
        nb_strbuf_add(out, "\n");
        cJSON_ArrayForEach(arm, nb_json_get(trial, "arms")) {
            const char *setting = nb_json_get_text(arm, "setting");
            const size_t begin = out->len;
            add_text(out, "      ", setting);
            nb_strbuf_addf(out, "%*s", out->len - begin < 52 ? (int)(52 - (out->len - begin)) : 1, "");
            if (nb_json_get_bool(arm, "default"))
                nb_strbuf_add(out, "default");
            else
                print_gain(arm, out);
            nb_strbuf_add(out, "\n");
        }
    }
}

static void print_topic(const cJSON *topic, struct nb_strbuf *out) {
    const char *name = nb_json_get_text(topic, "name"), *verdict = nb_json_get_text(topic, "verdict");
    const char *setting = nb_json_get_text(topic, "setting"), *reason = nb_json_get_text(topic, "reason");
    add_text(out, "\n  ", name);
    nb_strbuf_add(out, ": ");
    if (setting) {
        add_text(out, "", setting);
        nb_strbuf_add(out, ", ");
        print_gain(topic, out);
        nb_strbuf_addf(out, " faster where it differs from the default, %.0f trials",
                       nb_json_get_number(topic, "trials_that_differ"));
    } else if (verdict && strcmp(verdict, "default") == 0) {
        nb_strbuf_add(out, "the default stays; nothing is faster over all shapes by more than noise");
    } else {
        nb_strbuf_add(out, "not measured, the default holds");
    }
    if (reason) add_text(out, "; ", reason);
    nb_strbuf_add(out, "\n");
    print_trials(topic, out);
}

void nb_tune_print(const cJSON *json, struct nb_strbuf *out) {
    const cJSON *topics = nb_json_get(json, "topics");
    const char *measured = nb_json_get_text(json, "measured");
    const cJSON *fields = nb_json_get(json, "tuning");
    nb_strbuf_add(out, "Tuning");
    print_origin(json, out);
    print_fields(fields ? fields : nb_json_get(json, "fields"), out);
    if (topics && measured) {
        add_text(out, "\nMeasured ", measured);
        nb_strbuf_addf(out, " in %.0f s; percent faster than the default [95%% interval]\n",
                       nb_json_get_number(json, "elapsed_s"));
    }
    for (const cJSON *topic = topics ? topics->child : NULL; topic; topic = topic->next) print_topic(topic, out);
}
