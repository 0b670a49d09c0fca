// SPDX-License-Identifier: Apache-2.0
/* The gate as metrics: ratios travel between machines, where times do not. */
#include <math.h>

#include "reports/gate/gate_parts.h"
#include "reports/text/bencher.h"
#include "src/core/json.h"

void nb_gate_add_bencher(const struct nb_gate_view *view, struct nb_strbuf *out) {
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[i];
        cJSON *benchmark = cJSON_CreateObject();
        if (nb_gate_judged(c)) {
            nb_bencher_add(benchmark, "ratio", &c->judgement.ratio);
            nb_bencher_add(benchmark, "control", &c->judgement.control);
        }
        nb_bencher_keep(json, c->key, benchmark);
    }
    nb_json_print_pretty(json, 0, out);
    nb_strbuf_add(out, "\n");
    cJSON_Delete(json);
}
