// SPDX-License-Identifier: Apache-2.0
/* Targets that read one text or one file. What is read and printed again reads as the same; what is refused has a reason. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/run/report.h"
#include "src/claims/claims.h"
#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/shape.h"
#include "src/core/tuning.h"
#include "src/gate/code_identity.h"
#include "src/lab/emulate/emulate.h"
#include "src/models/rates.h"
#include "src/plan/config.h"
#include "src/plan/npy.h"
#include "tests/fuzz/fuzz.h"

/* ---- a case's key; its first byte says what the kernel would: op and dtype ---- */

static int read_key(struct nb_case *c, const char *key, uint8_t kernel) {
    static const uint32_t ops[] = {NB_OP_RMSNORM, NB_OP_PRMSNORM,      NB_OP_BATCHNORM,
                                   NB_OP_DYT,     NB_OP_ADD_LAYERNORM, NB_OP_COPY};
    if (nb_case_parse(c, key) != 0) return -1;
    c->op = ops[kernel % (sizeof ops / sizeof ops[0])];
    c->dtype = kernel & 0x80 ? NB_BF16 : NB_F32;
    nb_case_normalize(c);
    return 0;
}

void fuzz_key(const uint8_t *bytes, size_t n) {
    struct nb_case c, again;
    if (n == 0) return;
    char *text freed = fuzz_text(bytes + 1, n - 1, NULL);
    if (read_key(&c, text, bytes[0]) == 0) {
        char *once freed = nb_case_key(&c);
        fuzz_check(read_key(&again, once, bytes[0]) == 0, "a printed key can be read");
        char *twice freed = nb_case_key(&again);
        fuzz_same(once, twice, "a key reads as the case that it was printed from");
        fuzz_check(c.shape.rows > 0 && c.shape.cols > 0 && nb_case_bytes(&c) >= 0, "a case has a size");
        nb_case_conflict(&c);
    }
}

/* ---- shapes: plain, by name, a range, of a level of memory: every text that one stands for is a shape ---- */

static void check_plain(const char *text, const char *property) {
    char reason[256] = "";
    struct nb_shape shape, again;
    const bool read = nb_shape_parse(&shape, text, reason, sizeof reason) == 0;
    if (property) fuzz_check(read, property);
    fuzz_check(read || reason[0] != '\0', "a refusal has a reason");
    if (!read) return;
    fuzz_check(shape.rows > 0 && shape.cols > 0, "a shape is not empty");
    fuzz_check(nb_shape_parse(&again, shape.text, reason, sizeof reason) == 0, "a printed shape can be read");
    fuzz_check(memcmp(&shape, &again, sizeof shape) == 0, "a shape reads as what it was printed from");
}

static void expand(const char *text) {
    char reason[256] = "", plain[256];
    struct nb_strings texts released_by(nb_strings_release);
    const int result = nb_shape_expand(text, &texts, reason, sizeof reason);
    fuzz_check(result == 0 ? texts.n > 0 : reason[0] != '\0', "a text stands for shapes, or it is said why not");
    for (size_t i = 0; i < texts.n; i++) {
        enum nb_level level;
        const bool of_level = nb_shape_level(texts.items[i], &level, plain, sizeof plain) == 0;
        check_plain(of_level ? plain : texts.items[i], "what a text stands for is a shape");
    }
}

void fuzz_shape(const uint8_t *bytes, size_t n) {
    char *text freed = fuzz_text(bytes, n, NULL);
    check_plain(text, NULL);
    expand(text);
}

/* A name, a null byte, and shapes.json. */
void fuzz_shapes(const uint8_t *bytes, size_t n) {
    size_t rest;
    char *name freed = fuzz_text(bytes, n, &rest);
    char *dir freed = fuzz_file_in("configs", "shapes.json", bytes + n - rest, rest),
              *usual = getenv("NORMBENCH_CONFIGS");
    if (usual) usual = nb_strdup(usual);
    setenv("NORMBENCH_CONFIGS", dir, 1);
    expand(name);
    usual ? setenv("NORMBENCH_CONFIGS", usual, 1) : unsetenv("NORMBENCH_CONFIGS");
    free(usual);
}

/* ---- a config; what follows its first null byte is an --axis option ---- */

void fuzz_config(const uint8_t *bytes, size_t n) {
    size_t rest;
    char *text freed = fuzz_text(bytes, n, &rest);
    const size_t len = strlen(text);
    struct nb_config config released_by(nb_config_release) = {0};
    if (nb_config_parse(&config, "config.json", text, len) == 0) {
        fuzz_check(config.n_blocks > 0, "a config that is read has blocks");
        if (rest > 0) nb_config_axis(&config, text + len + 1);
    }
}

/* ---- a design: what is read prints as a text that reads as the same, and can be executed ---- */

void fuzz_design(const uint8_t *bytes, size_t n) {
    enum { COLS = 8 };
    static const double x[COLS] = {1, -2, 0.5, 3, -0.25, 1.5, -1, 0.125};
    struct nb_design d, again;
    struct nb_strbuf once released_by(nb_strbuf_release) = {0}, twice released_by(nb_strbuf_release) = {0};
    char *text freed = fuzz_text(bytes, n, NULL);
    nb_design_init(&d);
    nb_design_init(&again);
    if (nb_design_parse(&d, text) == 0) {
        double y[COLS];
        nb_design_print(&d, &once);
        nb_strbuf_add(&once, "");
        fuzz_check(nb_design_parse(&again, once.text) == 0, "a printed design can be read");
        nb_design_print(&again, &twice);
        nb_strbuf_add(&twice, "");
        fuzz_same(once.text, twice.text, "a design reads as what it was printed from");
        const int64_t elements = nb_design_elements(&d, COLS);
        fuzz_check(elements >= 1 && elements <= COLS, "the statistics see some of a row");
        fuzz_check(nb_design_chain(&d, COLS) >= 0, "a chain has a length");
        nb_design_unbounded(&d);
        nb_emulate_row(&d, COLS, x, NULL, NULL, y, 1);
    }
}

/* ---- the file of `normbench tune`: whatever stands in it, a tuning is chosen or refused with a reason, and what is chosen can be written
 * down. @CPU@ stands for the CPU at hand, since a file of another one is left aside unread. ---- */

static void put_cpu(struct nb_strbuf *out, const uint8_t *bytes, size_t n) {
    static const char mark[] = "@CPU@";
    const size_t len = sizeof mark - 1;
    char *cpu freed = nb_tuning_cpu();
    for (size_t i = 0; i < n;) {
        const bool is_mark = i + len <= n && memcmp(bytes + i, mark, len) == 0;
        if (is_mark) nb_strbuf_add(out, cpu);
        if (!is_mark) nb_strbuf_addn(out, (const char *)bytes + i, 1);
        i += is_mark ? len : 1;
    }
}

/* What was read is shown, and written so that it reads as the same. */
static void keep_tuning(const char *path, const cJSON *json) {
    struct nb_strbuf shown released_by(nb_strbuf_release) = {0}, once released_by(nb_strbuf_release) = {0},
                           twice released_by(nb_strbuf_release) = {0};
    nb_tune_print(json, &shown);
    nb_json_print(json, &once);
    fuzz_check(nb_tuning_file_write(path, json) == 0, "a file can be written");
    cJSON *again released_by(nb_json_release) = nb_tuning_file_read(path);
    fuzz_check(again != NULL, "what is written can be read");
    nb_json_print(again, &twice);
    fuzz_same(once.text, twice.text, "a tuning reads as what it was written from");
}

/* What --tuning must say to have the same without the file, says it. */
static void check_replay(void) {
    const struct nb_tuning chosen = *nb_tuning_used();
    char *replay freed = nb_tuning_replay();
    fuzz_check((chosen.native & ~nb_cpu_light()->features) == 0, "no instructions that the CPU does not have");
    fuzz_check(nb_tuning_choose(replay ? replay : "default") == 0, "what is to be said again can be read");
    fuzz_check(nb_tuning_equal(nb_tuning_used(), &chosen), "and says the same");
}

void fuzz_tuning(const uint8_t *bytes, size_t n) {
    struct nb_strbuf text released_by(nb_strbuf_release) = nb_strbuf_empty();
    put_cpu(&text, bytes, n);
    char *path freed = fuzz_file("tuning.json", (const uint8_t *)text.text, text.len);
    setenv("NORMBENCH_TUNING", path, 1);
    cJSON *json released_by(nb_json_release) = nb_tuning_file_read(path);
    if (nb_tuning_choose(NULL) == 0)
        check_replay();
    else
        fuzz_check(json != NULL, "a file that cannot be used is left aside");
    if (json) keep_tuning(path, json);
}

/* ---- a model's step: one that can be read consists of something, and its products can be timed ---- */

void fuzz_model(const uint8_t *bytes, size_t n) {
    char *text freed = fuzz_text(bytes, n, NULL);
    struct nb_model_step step released_by(nb_model_step_release);
    struct nb_rates rates released_by(nb_rates_release) = {0};
    if (nb_model_step_parse(&step, "model.json", text, strlen(text), 0) == 0) {
        fuzz_check(step.n_works > 0 && step.tokens >= 1, "a step consists of something");
        nb_rates_add(&rates, &step);
        for (size_t i = 0; i < rates.n; i++) {
            const struct nb_rate_product *p = &rates.products[i];
            const struct nb_rate_size *s = &p->size, *t = &p->timed;
            fuzz_check(t->rows > 0 && t->inner > 0 && t->cols > 0 && t->rows <= s->rows && t->inner <= s->inner &&
                           t->cols <= s->cols && t->inner * t->cols <= NB_TIMED_FLOATS,
                       "a product is timed at a size that it has");
        }
    }
}

/* ---- a claim: one that can be read can be explained, and judged without a single measurement ---- */

void fuzz_claim(const uint8_t *bytes, size_t n) {
    char *text freed = fuzz_text(bytes, n, NULL);
    struct nb_claim claim released_by(nb_claim_release);
    if (nb_claim_parse(&claim, "claim.json", text, strlen(text)) == 0) {
        struct nb_strbuf words released_by(nb_strbuf_release) = {0};
        struct nb_claim_result result released_by(nb_claim_result_release) = {.claim = &claim};
        result.findings = nb_alloc(claim.n_experiments + 1, sizeof *result.findings);
        nb_claim_explain(&claim, &words);
        nb_claim_judge(&result);
        fuzz_check(result.verdict >= NB_FIRST_OPEN || result.verdict == NB_FALSE_IN_PART,
                   "nothing measured decides nothing");
        fuzz_check(result.reason && *result.reason, "a verdict has a reason");
    }
}

/* ---- .npy: the header alone, and a file with its values ---- */

void fuzz_npy_header(const uint8_t *bytes, size_t n) {
    struct nb_npy_header h;
    char reason[256] = "";
    if (nb_npy_header_parse(&h, bytes, n, reason, sizeof reason) != 0) {
        fuzz_check(reason[0] != '\0', "a refusal has a reason");
        return;
    }
    fuzz_check(h.data_offset <= n, "the values begin inside the file or at its end");
    fuzz_check(h.n_dims >= 0 && h.n_dims <= NB_NPY_MAX_DIMS, "the dimensions fit");
    fuzz_check(memchr(h.descr, '\0', sizeof h.descr) != NULL, "descr is a text");
    for (int i = 0; i < h.n_dims; i++) fuzz_check(h.dims[i] >= 0, "no dimension is negative");
}

void fuzz_npy(const uint8_t *bytes, size_t n) {
    struct nb_array a;
    char reason[256] = "";
    if (n == 0) return;
    char *path freed = fuzz_file("x.npy", bytes + 1, n - 1);
    if (nb_array_read(&a, path, false, reason, sizeof reason) == 0) {
        double sum = 0;
        fuzz_check(a.rows > 0 && a.cols > 0, "an array is not empty");
        fuzz_check((uint64_t)a.rows * (uint64_t)a.cols <= n, "an array is no larger than its file");
        for (int64_t i = 0; i < a.rows * a.cols; i++) sum += a.values[i]; /* all of them are there */
        fuzz_check(isnan(sum) || !isnan(sum), "values can be added");
    } else {
        fuzz_check(reason[0] != '\0', "a refusal has a reason");
        fuzz_check(a.values == NULL, "a refused array is empty");
    }
    nb_array_release(&a);
}

/* ---- shared objects whose machine code is compared: broken ones give a reason, or the same digest twice ---- */

void fuzz_elf(const uint8_t *bytes, size_t n) {
    enum { MAX_FUNCTIONS = 64 };
    char reason[200] = "";
    uint64_t functions[MAX_FUNCTIONS], first[2], second[2];
    size_t n_functions = 0;
    char *path freed = fuzz_file("code.so", bytes, n);
    struct nb_code *code = nb_code_open(path, reason, sizeof reason);
    fuzz_check(code || reason[0] != '\0', "a refusal has a reason");
    for (uint64_t address = 0; code && address < 16384 && n_functions < MAX_FUNCTIONS; address += 16) {
        const struct nb_code_place *place = nb_code_place(code, address);
        if (place && place->address == address) functions[n_functions++] = address;
    }
    if (code && nb_code_digest_of(code, functions, n_functions, first, reason, sizeof reason) == 0) {
        fuzz_check(nb_code_digest_of(code, functions, n_functions, second, reason, sizeof reason) == 0, "twice");
        fuzz_check(memcmp(first, second, sizeof first) == 0, "the same code has the same digest");
    } else {
        fuzz_check(reason[0] != '\0', "no digest has a reason");
    }
    nb_code_close(code);
}
