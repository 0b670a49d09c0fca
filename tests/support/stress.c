// SPDX-License-Identifier: Apache-2.0
/* A small stress.json made by hand. */
#include "tests/support/reports.h"

#include <stdbool.h>

#include "src/core/json.h"

/* A map of 3 scales and 2 offsets, with a NaN and a lost zero. */
static const char study_text[] =
    "{\"replay\":\"normbench replay it\",\"status\":\"ok\",\"frontiers\":[{\"of\":\"rho_max\",\"status\":\"found\","
    "\"good\":4,\"bad\":5,\"predicted\":4096,\"ratio\":0.001,\"rule\":\"<i>rule</i>\"}],\"worst\":[{\"objective\":"
    "\"ulp\",\"value\":12.5,\"generator\":\"<u>greedy\",\"replay\":\"normbench replay '<q>'\"}],\"map\":{"
    "\"log2_scale\":[-8,0,8],\"log2_rho\":[-4,12],\"log10_ulp\":[[0.2,1.5,null],[-3.0,7.9,2.5]],\"state\":[[\"ok\","
    "\"ok\",\"nan\"],[\"ok\",\"ok\",\"zero\"]],\"predicted\":[{\"name\":\"x^2 overflows\",\"line\":[[4,-4],[3,12]]},"
    "{\"name\":\"too short\",\"line\":[[1,1]]}]}}";
static const char grade_text[] =
    "{\"op\":\"layernorm\",\"pass\":\"forward\",\"dtype\":\"f32\",\"width\":\"256\",\"all\":\"F\",\"max_ulp\":1e9,"
    "\"componentwise_ulp\":17.25,\"correct\":0.999999,\"nan\":1024,\"bias_u\":null}";
static const char why_text[] = "{\"key\":\"k\",\"replay\":\"normbench replay 'layernorm'\"}";

void nb_test_add_study(cJSON *stress, const char *variant, const char *dtype) {
    cJSON *study = cJSON_Parse(study_text);
    nb_json_text(study, "key", variant);
    nb_json_text(study, "variant", variant);
    nb_json_text(study, "dtype", dtype);
    cJSON_AddItemToArray(cJSON_GetObjectItem(stress, "studies"), study);
}

void nb_test_add_grade(cJSON *stress, const char *variant, const char *kernel, const char *formula, const char *grade,
                       const char *text) {
    cJSON *line = cJSON_Parse(grade_text), *why = cJSON_Parse(why_text);
    nb_json_text(line, "kernel", kernel);
    nb_json_text(line, "variant", variant);
    nb_json_text(line, "formula", formula);
    nb_json_text(line, "declared", grade);
    nb_json_text(why, "text", text);
    cJSON_AddItemToObject(line, "why_declared", why);
    cJSON_AddItemToObject(line, "why_all", cJSON_Duplicate(why, true));
    cJSON_AddItemToArray(cJSON_GetObjectItem(stress, "grades"), line);
}

static cJSON *empty_stress(void) {
    return cJSON_Parse(
        "{\"version\":\"1\",\"config\":\"stress\",\"started\":\"2026-01-02T03:04:05Z\",\"complete\":true,"
        "\"fingerprint\":{\"cpu\":{\"model\":\"CPU\"}},\"grades\":[],\"studies\":[],\"bugs\":[]}");
}

cJSON *nb_test_stress(void) {
    cJSON *stress = empty_stress();
    nb_test_add_study(stress, "layernorm_onepass_v256_f32", "f32");
    nb_test_add_study(stress, "layernorm_onepass_v256_f16", "f16");
    nb_test_add_study(stress, "layernorm_onepass_v512_f32", "f32");
    nb_test_add_grade(stress, "layernorm_onepass_v256_f32", "layernorm_onepass", "default", "B", "17 ulp");
    nb_test_add_grade(stress, "layernorm_onepass_v256_f32", "layernorm_onepass", "root:div_sqrt", "A", "1 ulp");
    return stress;
}
