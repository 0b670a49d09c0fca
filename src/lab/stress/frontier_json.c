// SPDX-License-Identifier: Apache-2.0
/* What was found, in words and keys that replay it. */
#include "src/lab/stress/frontier.h"

#include <math.h>
#include <stdio.h>

#include "src/core/case.h"
#include "src/core/json.h"

static const char *const frontier_names[NB_N_FRONTIERS] = {"scale_max", "scale_min", "rho_max"};

static void add_key(cJSON *json, const char *name, const struct nb_trial *t, enum nb_frontier_of of, double value,
                    uint64_t seed) {
    char number[32], data[64];
    struct nb_strbuf key = {0}, replay = {0};
    nb_shortest_text(value, number);
    snprintf(data, sizeof data, "%s(%s)", of == NB_RHO_MAX ? "offset" : "scale", number);
    nb_trial_key(&t->c, data, seed, 0, &key);
    nb_json_text(json, name, key.text);
    nb_trial_replay(t, key.text, &replay);
    if (name[0] == 'b') nb_json_text(json, "replay", replay.text);
    nb_strbuf_release(&key);
    nb_strbuf_release(&replay);
}

static cJSON *seen_to_json(const struct nb_seen *seen) {
    cJSON *json = cJSON_CreateObject(), *witness = cJSON_AddObjectToObject(json, "witness");
    nb_json_number(json, "nan", (double)seen->nan);
    nb_json_number(json, "inf", (double)seen->inf);
    nb_json_number(json, "zero", (double)seen->zero);
    nb_json_number(json, "max_ulp", seen->max_ulp < 0 ? NAN : seen->max_ulp);
    nb_json_uint64(witness, "seed", seen->seed);
    nb_json_number(witness, "row", (double)seen->row);
    nb_json_number(witness, "col", (double)seen->col);
    nb_json_exact(witness, "got", seen->got);
    nb_json_exact(witness, "want", seen->want);
    return json;
}

static const char *status_of(const struct nb_frontier *f) {
    if (!f->has_good && !f->has_bad) return "does_not_apply";
    if (!f->has_good) return "never";
    return f->has_bad ? "found" : "none";
}

/* Null after a failure of the kernel. */
static cJSON *to_json(struct nb_prober *p, const struct nb_frontier *f) {
    cJSON *json = cJSON_CreateObject();
    const enum nb_family family = f->of == NB_RHO_MAX ? NB_FAMILY_OFFSET : NB_FAMILY_SCALE;
    nb_json_text(json, "of", frontier_names[f->of]);
    nb_json_text(json, "demand", nb_demand_names[f->demand]);
    nb_json_number(json, "relative", nb_demand_relative(f->demand, p->t->in.dtype));
    nb_json_number(json, "ulp", nb_granted_ulp(p->t->in.dtype));
    nb_json_number(json, "noise", NB_GRANTED_NOISE);
    nb_json_text(json, "status", status_of(f));
    nb_json_number(json, "good", f->good);
    nb_json_number(json, "bad", f->bad);
    nb_json_number(json, "searched_to", f->searched_to);
    cJSON_AddBoolToObject(json, "monotone", f->monotone);
    nb_json_number(json, "good_beyond", f->good_beyond);
    nb_json_number(json, "predicted", f->predicted.at);
    nb_json_text(json, "rule", f->predicted.rule);
    nb_json_number(json, "ratio", f->has_good && f->has_bad ? f->good / f->predicted.at : NAN);
    struct nb_seen seen = {.seed = p->t->c.seed};
    if (f->has_bad && nb_prober_look(p, family, f->bad, &seen) != 0) {
        cJSON_Delete(json);
        return NULL;
    }
    if (f->has_bad) cJSON_AddItemToObject(json, "seen", seen_to_json(&seen));
    if (f->has_good) add_key(json, "good_key", p->t, f->of, f->good, seen.seed);
    if (f->has_bad) add_key(json, "bad_key", p->t, f->of, f->bad, seen.seed);
    return json;
}

cJSON *nb_frontiers(struct nb_trial *t, const cJSON *options) {
    const double wanted = nb_json_get_number(options, "seeds");
    struct nb_prober p;
    if (nb_prober_init(&p, t, wanted >= 1 && wanted <= 64 ? (int)wanted : 2) != 0) return NULL;
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; all && i < NB_N_FRONTIERS * NB_N_DEMANDS; i++) {
        struct nb_frontier f;
        cJSON *one = NULL;
        if (nb_frontier_find(&p, (enum nb_frontier_of)(i / NB_N_DEMANDS), (enum nb_demand)(i % NB_N_DEMANDS), &f) == 0)
            one = to_json(&p, &f);
        if (one) {
            cJSON_AddItemToArray(all, one);
            continue;
        }
        cJSON_Delete(all);
        all = NULL;
    }
    nb_prober_release(&p);
    return all;
}
