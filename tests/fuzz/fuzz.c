// SPDX-License-Identifier: Apache-2.0
/* The table of targets, libFuzzer's entry, and what the targets share. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/utf8.h"

static const struct {
    const char *name;
    fuzz_target *feed;
} targets[] = {
    {"key", fuzz_key},         {"shape", fuzz_shape},     {"shapes", fuzz_shapes},
    {"config", fuzz_config},   {"design", fuzz_design},   {"tuning", fuzz_tuning},
    {"claim", fuzz_claim},     {"model", fuzz_model},     {"npy_header", fuzz_npy_header},
    {"npy", fuzz_npy},         {"elf", fuzz_elf},         {"journal", fuzz_journal},
    {"results", fuzz_results}, {"merge", fuzz_merge},     {"compare", fuzz_compare},
    {"stress", fuzz_stress},   {"claims", fuzz_claims},   {"training", fuzz_training},
    {"job", fuzz_job},         {"answers", fuzz_answers}, {"program", fuzz_program},
};
static fuzz_target *feed;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* FUZZ_TARGET=list prints the names. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    const char *name = getenv("FUZZ_TARGET");
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        if (name && strcmp(name, "list") == 0) puts(targets[i].name);
        if (name && strcmp(name, targets[i].name) == 0) feed = targets[i].feed;
    }
    if (name && strcmp(name, "list") == 0) exit(0);
    fuzz_check(feed != NULL, "$FUZZ_TARGET names a target");
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere) stderr = nowhere; /* messages by the thousand; libFuzzer and the sanitizers have their own way there */
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    feed(bytes, n);
    return 0;
}

void fuzz_check(bool holds, const char *property) {
    if (holds) return;
    dprintf(STDERR_FILENO, "does not hold: %s\n", property);
    abort();
}

void fuzz_same(const char *a, const char *b, const char *property) {
    size_t at = 0;
    while (a[at] && a[at] == b[at]) at++;
    if (a[at] == b[at]) return;
    const size_t from = at > 100 ? at - 100 : 0;
    dprintf(STDERR_FILENO, "first:  %.200s\nsecond: %.200s\n", a + from, b + from);
    fuzz_check(false, property);
}

char *fuzz_text(const uint8_t *bytes, size_t n, size_t *rest) {
    char *text = nb_alloc(n + 1, 1);
    memcpy(text, bytes, n);
    const size_t len = strlen(text);
    if (rest) *rest = len < n ? n - len - 1 : 0;
    return text;
}

/* libFuzzer leaves without atexit(), so the folder is made and removed by whoever starts it, or stays. */
static const char *own_folder(void) {
    static char made[] = "/tmp/normbench-fuzz-XXXXXX";
    static const char *folder;
    if (!folder) folder = getenv("FUZZ_FOLDER");
    if (!folder) folder = mkdtemp(made);
    fuzz_check(folder != NULL, "a folder can be made");
    return folder;
}

static char *write_bytes(const char *dir, const char *name, const uint8_t *bytes, size_t n) {
    char *path = nb_path_join(dir, name);
    FILE *f = fopen(path, "wb");
    fuzz_check(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "a file can be written");
    return path;
}

char *fuzz_file(const char *name, const uint8_t *bytes, size_t n) { return write_bytes(own_folder(), name, bytes, n); }

char *fuzz_file_in(const char *folder, const char *name, const uint8_t *bytes, size_t n) {
    char *dir = nb_path_join(own_folder(), folder);
    fuzz_check(nb_dir_make(dir) == 0, "a folder can be made");
    free(write_bytes(dir, name, bytes, n));
    return dir;
}

static struct {
    FILE *out;
    char *text;
    size_t n;
} page;

FILE *fuzz_page_begin(void) {
    page.out = open_memstream(&page.text, &page.n);
    fuzz_check(page.out != NULL, "a stream can be opened");
    return page.out;
}

void fuzz_page_end(bool holds, const char *property) {
    fuzz_check(holds, property);
    fclose(page.out);
    for (const char *s = page.text; *s;) {
        uint32_t code = 0;
        const size_t n = nb_utf8_decode(s, &code);
        const bool plain = n > 0 && (!nb_utf8_is_command(code) || strchr("\n\r\t", (int)code));
        if (!plain) dprintf(STDERR_FILENO, "%.*s\n", 100, s > page.text + 50 ? s - 50 : page.text);
        fuzz_check(plain, "a report holds UTF-8 and no command of a terminal");
        s += n;
    }
    free(page.text);
}
