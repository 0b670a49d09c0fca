// SPDX-License-Identifier: Apache-2.0
/* Metrics with their bounds. */
#include "reports/text/bencher.h"

#include <math.h>
#include <string.h>

#include "reports/text/format.h"
#include "src/core/json.h"
#include "src/core/log.h"

void nb_bencher_add(cJSON *benchmark, const char *measure, const struct nb_interval *i) {
    if (!isfinite(i->value)) return;
    cJSON *metric = cJSON_AddObjectToObject(benchmark, measure);
    nb_json_number(metric, "value", i->value);
    if (!nb_interval_known(i)) return;
    nb_json_number(metric, "lower_value", i->low);
    nb_json_number(metric, "upper_value", i->high);
}

void nb_stable_name(const char *key, struct nb_strbuf *out) {
    nb_strbuf_add(out, "");
    for (const char *s = key; *s; s++) nb_strbuf_addn(out, (unsigned char)*s <= ' ' || *s == 0x7F ? "_" : s, 1);
}

void nb_bencher_keep(cJSON *document, const char *key, cJSON *benchmark) {
    struct nb_strbuf name = {0};
    nb_stable_name(key, &name);
    if (name.len > NB_BENCHER_LONGEST)
        nb_warn("%.80s...: the name is too long for Bencher, and is left out", name.text);
    if (benchmark->child && name.len <= NB_BENCHER_LONGEST)
        cJSON_AddItemToObject(document, name.text, benchmark);
    else
        cJSON_Delete(benchmark);
    nb_strbuf_release(&name);
}
