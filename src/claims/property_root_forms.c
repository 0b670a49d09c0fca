// SPDX-License-Identifier: Apache-2.0
/* Ways to form 1/sqrt(v) in f32 (src/lab/exhaustive/root_variants.h) against the correctly rounded one, over every so many of the numbers of
 * [1, 4), which represent all normal ones: the error is the same under a scaling by 4. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/dtype.h"
#include "src/lab/exhaustive/root_variants.h"

struct off {
    double max_ulp, n_differ, n;
};

static void take(struct off *o, const float *x, const float *r, const float *right) {
    for (int i = 0; i < NB_BATCH; i++) {
        const double exact = 1 / sqrt((double)x[i]);
        o->max_ulp = fmax(o->max_ulp, fabs((double)r[i] - exact) / nb_ulp(exact, NB_F32));
        o->n_differ += r[i] != right[i];
        o->n++;
    }
}

static void sweep(const struct nb_root_variant *v, uint32_t stride, struct off *o) {
    const uint32_t first = 0x3f800000, last = 0x40800000; /* 1 and 4 */
    const struct nb_root_variant *rounded = nb_root_variant_find("double");
    float x[NB_BATCH], r[NB_BATCH], right[NB_BATCH];
    int n = 0;
    for (uint32_t bits = first; bits < last; bits += stride) {
        memcpy(&x[n++], &bits, sizeof bits);
        if (n < NB_BATCH) continue;
        v->fill(x, r);
        rounded->fill(x, right);
        take(o, x, r, right);
        n = 0;
    }
}

static void try_form(const struct nb_property_call *call, const struct nb_root_variant *v, uint32_t stride) {
    struct off o = {0};
    const char *refused = nb_root_variant_refuses(v);
    if (refused) return; /* another machine's instruction is no part of the question here */
    sweep(v, stride, &o);
    nb_finding_tag(nb_property_add(call, "max_ulp", "ulp", o.max_ulp), "form", v->name);
    nb_finding_tag(nb_property_add(call, "misrounded", "share", o.n_differ / o.n), "form", v->name);
}

static void root_forms_run(const struct nb_property_call *call) {
    const double stride = nb_param_number(call, "stride");
    for (size_t i = 0; i < nb_n_root_variants; i++)
        for (int j = 0; j < nb_param_count(call, "form"); j++)
            if (fnmatch(nb_param_text_at(call, "form", j), nb_root_variants[i].name, 0) == 0) {
                try_form(call, &nb_root_variants[i], stride >= 1 && stride < 1e6 ? (uint32_t)stride : 17);
                break;
            }
}

const struct nb_property nb_property_root_forms = {
    .name = "root_forms",
    .summary = "ways to form 1/sqrt in f32",
    .params = {{"form", "[\"recip_sqrt\", \"rsqrt*\", \"kernel*\"]", "globs on their names (`normbench stress --help`)",
                false},
               {"stride", "17", "of the 2^24 numbers every so many", false}},
    .run = root_forms_run,
};
