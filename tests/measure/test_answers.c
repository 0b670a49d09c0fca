// SPDX-License-Identifier: Apache-2.0
/* Messages between a worker and its parent stay whole, whatever a kernel writes to the socket. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/measure/answers.h"

struct taken {
    struct nb_strbuf all;
    int n;
    size_t n_strange;
};

static void keep(const char *text, size_t n, void *arg) {
    struct taken *t = arg;
    cr_assert_eq(strlen(text), n);
    nb_strbuf_addn(&t->all, text, n);
    t->n++;
}

static bool ends_first;

/* What a process that runs work() says, leading a group as a worker does. */
static struct taken said_by(void (*work)(void)) {
    struct nb_answers answers;
    struct taken taken = {0};
    int ends[2], status;
    cr_assert_eq(nb_answers_open(&answers, ends), 0);
    cr_assert(nb_answers_read(&answers, ends[0], keep, &taken), "nothing was said, and the end is not reached");
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        nb_answers_begin(ends[1], answers.secret, false);
        work();
        _exit(0);
    }
    close(ends[1]);
    if (ends_first) cr_assert_eq(waitpid(child, &status, 0), child); /* and what it said waits */
    struct pollfd readable = {.fd = ends[0], .events = POLLIN};
    do poll(&readable, 1, -1);
    while (nb_answers_read(&answers, ends[0], keep, &taken));
    if (!ends_first) cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    taken.n_strange = answers.n_strange;
    close(ends[0]);
    nb_strbuf_release(&answers.begun);
    return taken;
}

static void say(const char *text) { cr_assert(nb_answers_say(text, strlen(text), false)); }

enum { LONG = 1 << 20 }; /* more than a socket's buffer holds */

static void say_much(void) {
    char *text freed = malloc(LONG + 1);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    say(text);
    say("");
    say("end");
}

Test(answers, a_message_longer_than_any_packet_comes_whole) {
    struct taken taken = said_by(say_much);
    cr_assert_eq(taken.n, 3);
    cr_assert_eq(taken.all.len, (size_t)LONG + 3);
    cr_assert_str_eq(taken.all.text + LONG, "end");
    cr_assert_eq(taken.n_strange, 0);
    nb_strbuf_release(&taken.all);
}

static void expect_said(void (*work)(void), const char *text, size_t n_strange) {
    struct taken taken = said_by(work);
    cr_expect_str_eq(taken.n ? taken.all.text : "", text);
    cr_expect_eq(taken.n_strange, n_strange);
    nb_strbuf_release(&taken.all);
}

static void write_junk(void) {
    static const char junk[] = "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0{\"type\":\"launch\"}\n";
    for (int i = 0; i < 3; i++) cr_assert_eq(write(nb_answers_fd(), junk, (size_t)i * 8), i * 8);
    cr_assert_eq(write(nb_answers_fd(), junk, sizeof junk - 1), (ssize_t)sizeof junk - 1);
}

static void say_amid_junk(void) {
    write_junk();
    say("one ");
    write_junk();
    write_junk();
    say("two ");
    cr_assert(nb_answers_say("last", 4, true));
    write_junk();
}

Test(answers, junk_before_between_and_behind_messages_is_dropped_and_counted) {
    ends_first = true;
    expect_said(say_amid_junk, "one two last", 16);
}

static void say_without_waiting(void) {
    fcntl(nb_answers_fd(), F_SETFL, O_NONBLOCK);
    say_much();
}

Test(answers, a_socket_that_was_made_not_to_wait_loses_nothing) {
    struct taken taken = said_by(say_without_waiting);
    cr_assert_eq(taken.all.len, (size_t)LONG + 3);
    nb_strbuf_release(&taken.all);
}

static void say_in_a_fork(void) {
    int status;
    if (fork() == 0) _exit(nb_answers_say("forked", 6, false) || nb_answers_say("forked", 6, true));
    wait(&status);
    cr_assert_eq(status, 0);
    say("own");
}

Test(answers, what_a_kernel_forked_has_nothing_to_say) { expect_said(say_in_a_fork, "own", 0); }

static void say_when_closed(void) {
    shutdown(nb_answers_fd(), SHUT_RDWR);
    cr_assert_not(nb_answers_say("lost", 4, false));
    close(nb_answers_fd());
    cr_assert_not(nb_answers_say("lost", 4, false));
}

Test(answers, a_socket_that_was_closed_is_noticed_and_kills_nobody) { expect_said(say_when_closed, "", 0); }

Test(answers, the_socket_moves_to_where_counting_up_does_not_soon_lead_and_is_closed_on_exec) {
    struct nb_answers answers;
    int ends[2];
    cr_assert_eq(nb_answers_open(&answers, ends), 0);
    nb_answers_begin(ends[1], answers.secret, false);
    cr_assert_geq(nb_answers_fd(), 300);
    cr_assert(fcntl(nb_answers_fd(), F_GETFD) & FD_CLOEXEC);
    close(ends[0]);
}
