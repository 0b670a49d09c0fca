// SPDX-License-Identifier: Apache-2.0
/* A packet is a head and a part of a message. The parent knows the mark of the one packet that may come next, and that of last words,
 * which may come between any two. */
#include "src/measure/answers.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/random.h"

enum { PART_BYTES = 32 << 10 }; /* well below what a socket's buffer holds */

struct head {
    uint64_t mark;
    uint64_t is_last; /* part of its message */
};

static const uint64_t last_words_place = UINT64_MAX;

/* Not to be undone: a mark that is left somewhere on the stack does not give the secret away. */
static uint64_t mark_of(uint64_t secret, uint64_t place) {
    return nb_random_bits(nb_random_stream(secret, place), 0) ^ secret;
}

/* ---- the worker's side ---- */

static struct {
    int fd;
    uint64_t secret;
} mine = {.fd = -1};

/* What the worker and a process that it forks have in common. */
static struct turn {
    uint64_t next, said;
    pid_t speaker;
} first_turn, *turn = &first_turn;

void nb_answers_begin(int fd, uint64_t secret, bool alone) {
    if (mine.fd >= 0) close(mine.fd);
    mine.fd = nb_fd_out_of_reach(fd, alone);
    mine.secret = secret;
    void *shared = mmap(NULL, sizeof *turn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    turn = shared != MAP_FAILED ? shared : &first_turn;
    *turn = (struct turn){.speaker = getpid()};
}

void nb_answers_take_over(void) { turn->speaker = getpid(); }

uint64_t nb_answers_said(void) { return turn->said; }

int nb_answers_fd(void) { return mine.fd; }

/* A kernel may have made the socket one that does not wait. */
static bool wait_for_room(void) {
    struct pollfd p = {.fd = mine.fd, .events = POLLOUT};
    return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

static bool send_part(const char *text, size_t n, bool is_last, uint64_t place) {
    struct head head = {mark_of(mine.secret, place), is_last};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)(uintptr_t)text, n}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    for (;;) {
        const ssize_t sent = sendmsg(mine.fd, &message, MSG_NOSIGNAL);
        if (sent == (ssize_t)(sizeof head + n)) return true;
        if (sent >= 0 || (errno != EINTR && (errno != EAGAIN || !wait_for_room()))) return false;
    }
}

bool nb_answers_say(const char *text, size_t n, bool last_words) {
    if (getpid() != turn->speaker) return false;
    do {
        const size_t part = n < PART_BYTES ? n : PART_BYTES;
        if (!send_part(text, part, part == n, last_words ? last_words_place : turn->next++)) return false;
        text += part;
        n -= part;
    } while (n > 0);
    turn->said += !last_words;
    return true;
}

/* ---- the parent's side ---- */

int nb_answers_open(struct nb_answers *a, int ends[2]) {
    *a = (struct nb_answers){0};
    while (getrandom(&a->secret, sizeof a->secret, 0) < 0 && errno == EINTR) continue;
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

/* Nobody holds the other end, and nothing is left of what was sent. A packet without a byte reads like the end. */
static bool is_at_end(int fd) {
    struct pollfd p = {.fd = fd};
    int waiting = 0;
    return poll(&p, 1, 0) > 0 && p.revents & POLLHUP && ioctl(fd, FIONREAD, &waiting) == 0 && waiting == 0;
}

bool nb_answers_read(struct nb_answers *a, int fd, void (*take)(const char *text, size_t n, void *arg), void *arg) {
    struct {
        struct head head;
        char text[PART_BYTES + 1];
    } packet;
    const ssize_t got = recv(fd, &packet, sizeof packet - 1, MSG_DONTWAIT);
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    if (got == 0 && is_at_end(fd)) return false;
    const size_t n = (size_t)got < sizeof packet.head ? 0 : (size_t)got - sizeof packet.head;
    packet.text[n] = '\0';
    if ((size_t)got < sizeof packet.head) {
        a->n_strange++;
    } else if (packet.head.mark == mark_of(a->secret, last_words_place)) {
        take(packet.text, n, arg);
    } else if (packet.head.mark != mark_of(a->secret, a->next)) {
        a->n_strange++;
    } else {
        a->next++;
        nb_strbuf_addn(&a->begun, packet.text, n);
        if (!packet.head.is_last) return true;
        take(a->begun.text, a->begun.len, arg);
        nb_strbuf_clear(&a->begun);
    }
    return true;
}
