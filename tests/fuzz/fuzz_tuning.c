// SPDX-License-Identifier: Apache-2.0
/* The file of `normbench tune`: whatever stands in it, a tuning is chosen or refused with a reason, and what is chosen can be written
 * down. @CPU@ stands for the CPU at hand, since a file of another one is left aside unread. */
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/tuning.h"
#include "tests/fuzz/fuzz.h"

static void put_cpu(struct nb_strbuf *out, const uint8_t *bytes, size_t n) {
    static const char mark[] = "@CPU@";
    const size_t len = sizeof mark - 1;
    char *cpu = nb_tuning_cpu();
    for (size_t i = 0; i < n;) {
        const bool is_mark = i + len <= n && memcmp(bytes + i, mark, len) == 0;
        if (is_mark) nb_strbuf_add(out, cpu);
        if (!is_mark) nb_strbuf_addn(out, (const char *)bytes + i, 1);
        i += is_mark ? len : 1;
    }
    free(cpu);
}

/* What was read is shown, and written so that it reads as the same. */
static void keep(const char *path, const cJSON *json) {
    struct nb_strbuf shown = {0}, once = {0}, twice = {0};
    nb_tune_print(json, &shown);
    nb_json_print(json, &once);
    fuzz_check(nb_tuning_file_write(path, json) == 0, "a file can be written");
    cJSON *again = nb_tuning_file_read(path);
    fuzz_check(again != NULL, "what is written can be read");
    nb_json_print(again, &twice);
    fuzz_same(once.text, twice.text, "a tuning reads as what it was written from");
    cJSON_Delete(again);
    nb_strbuf_release(&shown);
    nb_strbuf_release(&once);
    nb_strbuf_release(&twice);
}

/* What --tuning must say to have the same without the file, says it. */
static void check_replay(void) {
    const struct nb_tuning chosen = *nb_tuning_used();
    char *replay = nb_tuning_replay();
    fuzz_check((chosen.native & ~nb_cpu_light()->features) == 0, "no instructions that the CPU does not have");
    fuzz_check(nb_tuning_choose(replay ? replay : "default") == 0, "what is to be said again can be read");
    fuzz_check(nb_tuning_equal(nb_tuning_used(), &chosen), "and says the same");
    free(replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct nb_strbuf text = {0};
    put_cpu(&text, bytes, n);
    char *path = nb_path_join(fuzz_file("tuning.json", (const uint8_t *)text.text, text.len), "tuning.json");
    setenv("NORMBENCH_TUNING", path, 1);
    cJSON *json = nb_tuning_file_read(path);
    if (nb_tuning_choose(NULL) == 0)
        check_replay();
    else
        fuzz_check(json != NULL, "a file that cannot be used is left aside");
    if (json) keep(path, json);
    cJSON_Delete(json);
    free(path);
    nb_strbuf_release(&text);
    return 0;
}
