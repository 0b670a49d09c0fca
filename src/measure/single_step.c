// SPDX-License-Identifier: Apache-2.0
/* Counting by traps. The kernel clears the flag on entry to the handler and restores it on return, so that only the work is
 * stepped; vector state of any width is saved with the signal's frame, which is why AVX-512 code is no obstacle.
 * A signal handler can only speak through static data. */
#include "src/measure/counters.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/text.h"

#if defined(__x86_64__)
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100

static struct {
    volatile int64_t n_instructions, n_traps, limit;
    volatile uintptr_t last;
    volatile bool exceeded;
} steps;

/* A repeated string instruction traps after every turn with its own address still current: F2 or F3, maybe other prefixes, then
 * MOVS, CMPS, STOS, LODS or SCAS (A4-A7, AA-AF). */
static bool is_repeated_string(const unsigned char *code) {
    bool repeated = false;
    for (int i = 0; i < 4; i++) {
        unsigned char byte = code[i];
        bool is_rep = byte == 0xf2 || byte == 0xf3, is_prefix = byte == 0x66 || byte == 0x67 || (byte & 0xf0) == 0x40;
        if (!is_rep && !is_prefix) return repeated && byte >= 0xa4 && byte <= 0xaf && (byte & 0xfe) != 0xa8;
        repeated = repeated || is_rep;
    }
    return false;
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    steps.n_traps = steps.n_traps + 1;
    if (at != steps.last || !is_repeated_string((const unsigned char *)at))
        steps.n_instructions = steps.n_instructions + 1;
    steps.last = at;
    /* Turns of a string instruction cost time too. */
    if (steps.n_instructions <= steps.limit && steps.n_traps <= 64 * steps.limit) return;
    steps.exceeded = true;
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* nb_step_call(work, arg): calls with the flag set. nb_step_nothing: one instruction, its return. In assembler, so that the
 * instructions between setting and clearing the flag are always the same. The stack is aligned to 64 bytes, so that no path
 * through the work depends on where it happens to stand. */
void nb_step_call(nb_work work, void *arg);
void nb_step_nothing(void *arg);
void nb_step_known(void *arg);
__asm__(".text\n"
        ".type nb_step_call, @function\n"
        "nb_step_call:\n"
        "  .cfi_startproc\n"
        "  push %rbp\n"
        "  .cfi_def_cfa_offset 16\n"
        "  .cfi_offset %rbp, -16\n"
        "  mov %rsp, %rbp\n"
        "  .cfi_def_cfa_register %rbp\n"
        "  and $-64, %rsp\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %rdi\n"
        "  pushfq\n"
        "  orq $0x100, (%rsp)\n"
        "  popfq\n"
        "  call *%rax\n"
        "  pushfq\n"
        "  andq $-0x101, (%rsp)\n"
        "  popfq\n"
        "  leave\n"
        "  .cfi_def_cfa %rsp, 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size nb_step_call, .-nb_step_call\n"
        ".type nb_step_nothing, @function\n"
        "nb_step_nothing:\n"
        "  ret\n"
        ".size nb_step_nothing, .-nb_step_nothing\n"
        /* 1 + 2 * 100 + 2 (a string of 8) + 1 + 1 instructions; the zero flag ends the loop. */
        ".type nb_step_known, @function\n"
        "nb_step_known:\n"
        "  mov $100, %ecx\n"
        "1: dec %ecx\n"
        "  jnz 1b\n"
        "  mov $8, %ecx\n"
        "  lea -72(%rsp), %rdi\n"
        "  rep stosb\n"
        "  ret\n"
        ".size nb_step_known, .-nb_step_known\n");
enum { KNOWN_INSTRUCTIONS = 1 + 2 * 100 + 3 + 1 };

/* SIGTRAP to the handler on a stack of its own, unblocked; what stood before is kept. */
struct trap_setting {
    struct sigaction action;
    stack_t stack;
    sigset_t mask;
    void *memory;
};

static int enter(struct trap_setting *before) {
    size_t frame = (size_t)getauxval(AT_MINSIGSTKSZ), size = 65536 + 4 * frame;
    before->memory = nb_alloc(size, 1);
    stack_t stack = {.ss_sp = before->memory, .ss_size = size};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigset_t trap;
    sigfillset(&action.sa_mask);
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    if (sigaltstack(&stack, &before->stack) != 0) {
        free(before->memory);
        return -1;
    }
    sigaction(SIGTRAP, &action, &before->action);
    pthread_sigmask(SIG_UNBLOCK, &trap, &before->mask);
    return 0;
}

static void leave(const struct trap_setting *before) {
    sigaction(SIGTRAP, &before->action, NULL);
    pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    sigaltstack(&before->stack, NULL);
    free(before->memory);
}

/* All instructions between the two settings of the flag. */
static int64_t count(nb_work work, void *arg, int64_t limit) {
    steps.n_instructions = steps.n_traps = 0;
    steps.limit = limit;
    steps.last = 0;
    steps.exceeded = false;
    nb_step_call(work, arg);
    return steps.exceeded ? -1 : steps.n_instructions;
}

int64_t nb_single_step(nb_work work, void *arg, int64_t limit, char *reason, size_t n) {
    struct trap_setting before;
    work(arg);
    if (enter(&before) != 0) return nb_reason(reason, n, "no signal stack can be set");
    /* The call, the clearing of the flag, and the return of the empty work. */
    int64_t around = count(nb_step_nothing, NULL, 1000) - 1;
    int64_t total = around > 0 ? count(work, arg, limit + around) : -1;
    leave(&before);
    if (around <= 0)
        snprintf(reason, n, "the trap flag raises no signal here (a debugger or emulator takes it)");
    else if (total < 0)
        snprintf(reason, n, "more than %lld instructions", (long long)limit);
    return around > 0 && total >= 0 ? total - around : -1;
}

int nb_single_step_probe(char *reason, size_t n) {
    int64_t got = nb_single_step(nb_step_known, NULL, 1000, reason, n);
    if (got == KNOWN_INSTRUCTIONS) return 0;
    if (got >= 0)
        snprintf(reason, n, "single stepping counted %lld of %d instructions of a known loop", (long long)got,
                 KNOWN_INSTRUCTIONS);
    return -1;
}

#else

int64_t nb_single_step(nb_work work, void *arg, int64_t limit, char *reason, size_t n) {
    return nb_reason(reason, n, "single stepping is written for x86-64 only");
}

int nb_single_step_probe(char *reason, size_t n) {
    return nb_reason(reason, n, "single stepping is written for x86-64 only");
}

#endif

struct stepped_call {
    const struct nb_kernel *kernel;
    const struct nb_call *call;
    int n_phases;
    const int64_t *n_units; /* of each phase */
};

static void run_phases(void *arg) {
    const struct stepped_call *c = arg;
    for (int phase = 0; phase < c->n_phases; phase++) c->kernel->run(c->call, phase, 0, c->n_units[phase]);
}

int64_t nb_single_step_kernel(const struct nb_kernel *kernel, const struct nb_call *call, int64_t limit, char *reason,
                              size_t n) {
    const int n_phases = nb_kernel_n_phases(kernel, call);
    int64_t *n_units freed = nb_alloc((unsigned)n_phases, sizeof *n_units);
    for (int phase = 0; phase < n_phases; phase++) n_units[phase] = nb_kernel_n_units(kernel, call, phase);
    return nb_single_step(run_phases, &(struct stepped_call){kernel, call, n_phases, n_units}, limit, reason, n);
}
