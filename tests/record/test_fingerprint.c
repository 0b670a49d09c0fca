// SPDX-License-Identifier: Apache-2.0
/* The fingerprint says the same each time, and the hashes are the published function. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/record/fingerprint.c"

/* Test vectors of the function's authors. */
Test(fingerprint, hashes_are_fnv1a) {
    char hash[20];
    nb_text_hash("", hash);
    cr_expect_str_eq(hash, "cbf29ce484222325");
    nb_text_hash("a", hash);
    cr_expect_str_eq(hash, "af63dc4c8601ec8c");
    nb_text_hash("foobar", hash);
    cr_expect_str_eq(hash, "85944171f73967e8");
}

Test(fingerprint, a_file_hashes_as_its_bytes) {
    char path[] = "/tmp/normbench-test-XXXXXX", of_file[20], of_text[20], text[200001];
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    for (int i = 0; i < 200000; i++) text[i] = (char)('a' + i % 23);
    text[200000] = '\0';
    cr_assert_eq(write(fd, text, 200000), 200000);
    close(fd);
    nb_file_hash(path, of_file);
    nb_text_hash(text, of_text);
    cr_expect_str_eq(of_file, of_text);
    unlink(path);
    nb_file_hash(path, of_file);
    cr_expect_str_eq(of_file, "", "a file that is gone has no hash");
    nb_file_hash("/tmp", of_file);
    cr_expect_str_eq(of_file, "");
}

Test(fingerprint, the_signature_is_in_hexadecimal_where_there_is_one) {
    const struct {
        struct nb_cpu cpu;
        const char *text;
    } known[] = {{{.vendor = "AuthenticAMD", .signature = 0xa00f11}, "0x00a00f11"},
                 {{.vendor = "Arm", .signature = 0x414fd0c1}, "0x414fd0c1"},
                 {{.vendor = ""}, NULL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        cJSON *object released_by(nb_json_release) = cJSON_CreateObject();
        add_signature(object, &known[i].cpu);
        const char *text = nb_json_get_text(object, "signature");
        cr_expect(text == known[i].text || (text && known[i].text && strcmp(text, known[i].text) == 0), "%s",
                  text ? text : "none");
    }
}
