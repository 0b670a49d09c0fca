// SPDX-License-Identifier: Apache-2.0
/* Targets of the way between a worker and its parent: the job that a worker reads, and the packets that its parent gets, of which a kernel
 * may have written any. */
#include <sys/socket.h>
#include <unistd.h>

#include "src/measure/answers.c"
#include "src/measure/process.c"
#include "src/measure/worker.c"
#include "tests/fuzz/fuzz.h"

/* Kernels are not loaded: a job's cases are found in no registry. */
void fuzz_job(const uint8_t *bytes, size_t n) {
    struct nb_job job;
    char *text freed = fuzz_text(bytes, n, NULL);
    if (job_read(&job, text) == 0) {
        const cJSON *item;
        int i = 0;
        use_tuning(cJSON_GetObjectItemCaseSensitive(job.json, "tuning"));
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(job.json, "cases")) get_case(&job, i++, item);
    }
    job_release(&job);
}

static void send_marked(int fd, uint64_t mark, bool is_last, const uint8_t *bytes, size_t n) {
    const struct head head = {mark, is_last};
    struct nb_strbuf packet released_by(nb_strbuf_release) = {0};
    nb_strbuf_addn(&packet, (const char *)&head, sizeof head);
    nb_strbuf_addn(&packet, (const char *)bytes, n);
    send(fd, packet.text, packet.len, MSG_DONTWAIT);
}

/* A packet for each text up to a null byte. The first byte says which: '=' a whole message, '-' a part of one, '!' last words, all with the
 * right mark; others are a kernel's own. */
void fuzz_answers(const uint8_t *bytes, size_t n) {
    struct nb_outcome outcome = {0};
    struct reader r = {.lines = cJSON_CreateArray(), .outcome = &outcome};
    const cJSON *line;
    int ends[2];
    fuzz_check(nb_answers_open(&r.answers, ends) == 0, "a socket can be opened");
    const uint64_t secret = r.answers.secret;
    for (size_t at = 0; at < n;) {
        const uint8_t *begin = bytes + at, *end = memchr(begin, '\0', n - at);
        const size_t len = end ? (size_t)(end - begin) : n - at;
        const char kind = len > 0 ? (char)*begin : ' ';
        if (kind == '=' || kind == '-')
            send_marked(ends[1], mark_of(secret, r.answers.next), kind == '=', begin + 1, len - 1);
        else if (kind == '!')
            send_marked(ends[1], mark_of(secret, last_words_place), true, begin + 1, len - 1);
        else
            send(ends[1], begin, len, MSG_DONTWAIT);
        nb_answers_read(&r.answers, ends[0], take_line, &r);
        at += len + 1;
    }
    close(ends[1]);
    while (nb_answers_read(&r.answers, ends[0], take_line, &r)) continue;
    close(ends[0]);
    nb_strbuf_release(&r.answers.begun);
    cJSON_ArrayForEach(line, r.lines) fuzz_check(nb_json_get_text(line, "type") != NULL, "a line has a type");
    cJSON_Delete(r.lines);
    fuzz_check(memchr(outcome.fault_status, '\0', sizeof outcome.fault_status) != NULL, "a fault's status is a text");
}
