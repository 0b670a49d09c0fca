// SPDX-License-Identifier: Apache-2.0
/* Signal handlers on a stack of their own. They use nothing but system calls, since anything may be broken when they run. */
#include "src/measure/faults.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/core/tuning.h"
#include "src/measure/answers.h"

static const struct nb_buffers *volatile watched;

struct line {
    char text[256];
    size_t len;
};
static void add(struct line *l, const char *s) {
    for (; *s && l->len < sizeof l->text - 1; s++) l->text[l->len++] = *s;
}

static void add_number(struct line *l, int n) {
    char digits[12];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    add(l, digits + at);
}

static const struct {
    int number;
    const char *text;
} signals[] = {{SIGSEGV, "segmentation fault"},
               {SIGBUS, "bus error"},
               {SIGFPE, "arithmetic exception"},
               {SIGILL, "illegal instruction"},
               {SIGABRT, "abort"}};
enum { N_SIGNALS = sizeof signals / sizeof signals[0] };

static const char *signal_text(int number) {
    int i = 0;
    while (i < N_SIGNALS - 1 && signals[i].number != number) i++;
    return signals[i].text;
}

/* x86 reports in the page fault's error code whether the access was a write; elsewhere it is not known. */
static int access_was_write(const void *context) {
#if defined(__x86_64__)
    const ucontext_t *uc = context;
    return (uc->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    return -1;
#endif
}

struct deed {
    const char *status, *what, *where;
};

/* Of an access to memory that somebody watches; status null: it was elsewhere. */
static struct deed deed_at(const void *address, const void *context) {
    if (nb_tuning_holds(address))
        return (struct deed){.status = "wrote_outside", .what = "wrote to ", .where = "call->tuning"};
    const char *input = watched ? nb_buffers_input_of(watched, address) : NULL;
    if (input) return (struct deed){.status = "changed_input", .what = "wrote to ", .where = input};
    bool after = false;
    const char *tensor = watched ? nb_buffers_guard_of(watched, address, &after) : NULL;
    if (!tensor) return (struct deed){.status = NULL};
    const int write_access = access_was_write(context);
    const char *const what[][2] = {{"accessed memory before ", "accessed memory behind "},
                                   {"read before ", "read behind "},
                                   {"wrote before ", "wrote behind "}};
    return (struct deed){.status = write_access == 0 ? "read_outside" : "wrote_outside",
                         .what = what[write_access + 1][after],
                         .where = tensor};
}

static void describe(struct line *l, int number, const siginfo_t *info, const void *context) {
    struct deed d = {.status = NULL};
    if (number == SIGSEGV || number == SIGBUS) d = deed_at(info->si_addr, context);
    if (!d.status) d = (struct deed){.status = "crashed", .what = signal_text(number), .where = ""};
    add(l, "{\"type\":\"fault\",\"signal\":");
    add_number(l, number);
    add(l, ",\"status\":\"");
    add(l, d.status);
    add(l, "\",\"reason\":\"");
    add(l, d.what);
    add(l, d.where);
    add(l, "\"}");
}

static void on_fault(int number, siginfo_t *info, void *context) {
    struct line l = {.len = 0};
    describe(&l, number, info, context);
    nb_answers_say(l.text, l.len, true); /* nobody is left who could be informed that it failed */
    signal(number, SIG_DFL);
    raise(number);
}

_Noreturn void nb_faults_end(const char *whose, const char *how) {
    struct nb_strbuf text = {0};
    cJSON *line = cJSON_CreateObject();
    const char *reason = nb_textf("%s %s", whose, how);
    nb_json_text(line, "type", "fault");
    nb_json_text(line, "status", "crashed");
    nb_json_text(line, "reason", reason);
    nb_json_print(line, &text);
    if (!nb_answers_say(text.text, text.len, true)) nb_error("a kernel cannot be called: %s", reason);
    _exit(1);
}

enum { N_BLOCKS = 512, LARGE = 100000 };
static const size_t block_sizes[] = {24, 40, 56, 72, 104, 136, 264, 520, 1032, 2056};
static unsigned char *blocks[N_BLOCKS];

static size_t size_of_block(int i) { return block_sizes[(size_t)i % (sizeof block_sizes / sizeof block_sizes[0])]; }

static bool is_harmed(int i) {
    const unsigned char *block = blocks[i];
    return block && (block[0] != (i & 0xff) || memcmp(block, block + 1, size_of_block(i) - 1) != 0);
}

/* Each with a free block of its size behind it. The allocator keeps the first few of a size that are freed for whoever asks next, and
 * so had those that it gives out first, which may lie anywhere: the last are freed first. */
void nb_faults_guard_heap(void) {
    void *gaps[N_BLOCKS];
    for (int i = 0; i < N_BLOCKS; i++) /* of a check that came to no end */
        if (!is_harmed(i)) free(blocks[i]);
    for (int i = 0; i < N_BLOCKS; i++) {
        blocks[i] = malloc(size_of_block(i));
        gaps[i] = malloc(size_of_block(i));
        if (blocks[i]) memset(blocks[i], i & 0xff, size_of_block(i));
    }
    for (int i = N_BLOCKS; i-- > 0;) free(gaps[i]);
}

bool nb_faults_heap_harmed(void) {
    for (int i = 0; i < N_BLOCKS; i++)
        if (is_harmed(i)) return true;
    for (int i = 0; i < N_BLOCKS; i++) free(blocks[i]);
    memset(blocks, 0, sizeof blocks);
    void *volatile last = malloc(LARGE); /* from the end of the heap, where the allocator looks at its own words */
    free(last);
    return false;
}

static bool watches;

void nb_faults_watch(void) {
    static unsigned char stack[64 * 1024];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (int i = 0; i < N_SIGNALS; i++) sigaction(signals[i].number, &action, NULL);
    watches = true;
}

int nb_faults_unwatched(void) {
    struct sigaction now;
    for (int i = 0; i < N_SIGNALS && watches; i++) {
        const bool is_known = sigaction(signals[i].number, NULL, &now) == 0;
        if (is_known && (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_fault)) return signals[i].number;
    }
    return 0;
}

void nb_faults_set_buffers(const struct nb_buffers *b) { watched = b; }

/* ---- the floating-point state of a thread ----
 *
 * MXCSR and the x87 control word, which the C library's fegetround() reads, on x86. Dirty upper halves would slow the SSE code of a kernel
 * that comes later. FPCR on aarch64. Elsewhere there is nothing that is known to be left behind. */

#if defined(__x86_64__)
struct nb_fp_state nb_fp_state(void) {
    struct nb_fp_state state = {.control = _mm_getcsr()};
    __asm__ volatile("fnstcw %0" : "=m"(state.x87));
    return state;
}

void nb_fp_state_set(struct nb_fp_state state) {
    /* No clobber is named: compiled without AVX, nothing here holds a value in an upper half. */
    if (nb_cpu_light()->features & NB_CPU_AVX2) __asm__ volatile("vzeroupper");
    __asm__ volatile("fldcw %0" : : "m"(state.x87));
    _mm_setcsr((unsigned)state.control);
}

#elif defined(__aarch64__)

struct nb_fp_state nb_fp_state(void) {
    struct nb_fp_state state = {0};
    __asm__ volatile("mrs %0, fpcr" : "=r"(state.control));
    return state;
}

void nb_fp_state_set(struct nb_fp_state state) { __asm__ volatile("msr fpcr, %0" : : "r"(state.control)); }

#else

struct nb_fp_state nb_fp_state(void) {
    return (struct nb_fp_state){0};
}
void nb_fp_state_set(struct nb_fp_state state) { (void)state; }

#endif
