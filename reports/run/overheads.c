// SPDX-License-Identifier: Apache-2.0
/* Overheads as lines of text. */
#include "reports/run/overheads.h"

#include <math.h>
#include <stdlib.h>

#include "reports/text/format.h"
#include "src/record/call_overhead.h"

static void add_one(const struct nb_kernel_overhead *k, struct nb_strbuf *out) {
    const struct nb_overhead *o = &k->overhead;
    nb_strbuf_addf(out, "  %s, rows of %lld, threads %d: ", k->record->c.variant, (long long)k->record->c.shape.cols,
                   k->record->c.threads);
    if (isnan(o->ns.value)) {
        nb_strbuf_addf(out, "unknown, %s\n", o->reason);
        return;
    }
    nb_format_time(out, o->ns.value);
    nb_strbuf_addf(out, " [%.4g, %.4g ns]", o->ns.low, o->ns.high);
    if (o->ns_per_byte > 0) nb_strbuf_addf(out, ", then %.4g GB/s", 1 / o->ns_per_byte);
    nb_strbuf_add(out, "\n");
}

void nb_overheads_print(const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_kernel_overhead *found;
    const size_t n = nb_overheads(results->records, results->n, &found);
    nb_strbuf_add(out, n ? "Call overhead, where the line through a ladder of rows meets zero bytes:\n" : "");
    for (size_t i = 0; i < n; i++) add_one(&found[i], out);
    free(found);
}
