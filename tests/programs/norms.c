// SPDX-License-Identifier: Apache-2.0
/* A program with kernels that speaks the protocol of cmd/guide/protocol.md, in plain C and with nothing of normbench: RMSNorm of f32 rows,
 * right, and wrong in the ways that a program can be. NORMS_FAULT says what is wrong with
 * the program itself; faults of a kernel have its name. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../plugins/silent.h"

enum { HELLO = 1, DESCRIBE, OPEN, CALL, CLOSE, BYE };
enum { X, RESIDUAL, GAMMA, BETA, Y, N_TENSORS = 19 };
enum { ROW_LOCAL = 1, STRIDES = 2 };

struct head {
    char magic[4];
    uint16_t version, type;
    uint32_t sequence, bytes;
};
struct tensor {
    int64_t offset, rows, cols, stride;
    uint32_t dtype, is_written;
};
struct area {
    int64_t offset, bytes;
};
struct question {
    struct head head;
    union {
        uint64_t memory_bytes; /* hello */
        uint32_t kernel;       /* describe */
        struct {
            uint32_t kernel, handle, mode, layout, n_threads, n_areas;
            int64_t rows, cols, n, c, hw, k;
            double eps, alpha, momentum;
            uint32_t formula[7], reserved;
            struct tensor tensors[N_TENSORS];
            struct area areas[N_TENSORS];
        } open;
        struct {
            uint32_t first, n, start, flags;
            uint64_t amount;
        } call;
        struct {
            uint32_t first, n;
        } close;
    };
};
struct answer {
    struct head head;
    int32_t status;
    uint32_t text_bytes;
    union {
        struct {
            uint32_t n_kernels, reserved;
        } hello;
        struct {
            uint32_t op, pass, dtype, flags, formulas[7], layouts, modes, properties[4];
            float loads, stores, flops;
            float min_rms, max_abs, max_rho;
            uint32_t reserved;
            char name[96], variant[96];
        } kernel;
        struct {
            uint64_t n_done, ns;
        } call;
        char text[512];
    };
};
_Static_assert(sizeof(struct question) == 904 + 16 * N_TENSORS, "as the protocol has it");

/* ---- kernels ---- */

struct prepared {
    uint32_t handle, kernel;
    int64_t rows, cols, x_stride, y_stride;
    double eps;
    const float *x, *gamma, *beta;
    float *y;
    struct area areas[N_TENSORS];
    uint32_t n_areas;
};

/* Returns a status, with its text. */
#define A_CALL const struct prepared *p __attribute__((unused)), const char **text __attribute__((unused))
typedef int kernel_fn(const struct prepared *p, const char **text);

static int right(A_CALL) {
    for (int64_t row = 0; row < p->rows; row++) {
        const float *x = p->x + row * p->x_stride;
        float *y = p->y + row * p->y_stride;
        double sum = 0;
        for (int64_t i = 0; i < p->cols; i++) sum += (double)x[i] * x[i];
        const double rstd = 1 / sqrt(sum / (double)p->cols + p->eps);
        for (int64_t i = 0; i < p->cols; i++)
            y[i] = (float)(x[i] * rstd * (p->gamma ? p->gamma[i] : 1) + (p->beta ? p->beta[i] : 0));
    }
    return 0;
}

/* ---- kernels with a fault ---- */

/* Checks make fewer calls of a process, launches more. */
enum { LATE = 8 };

static int send_junk, send_twice, n_calls;
static bool leaves_trap; /* the first of two kernels does not harm itself, but the other */
static uint32_t last_called;
static float *kept;

static int crash(A_CALL) {
    ((volatile float *)p->y)[p->rows * p->y_stride + (64 << 20)] = 0;
    return right(p, text);
}
static int abort_call(A_CALL) {
    signal(SIGABRT, SIG_DFL);
    abort();
}
static int stay(A_CALL) { hang(); }
static int leave(A_CALL) { exit(0); }
/* The child holds everything that it inherited, and outlives its parent unless somebody ends it. */
static int fork_once(A_CALL) {
    static int forked;
    if (!forked++ && fork() == 0)
        for (;;) pause();
    return right(p, text);
}
static int print(A_CALL) {
    static int n_printed;
    if (n_printed++ < 3) printf("a kernel was here\n");
    fflush(stdout);
    return right(p, text);
}
static int flood(A_CALL) {
    for (int i = 0; i < 2000; i++) printf("line %d of a flood\n", i);
    printf("the end of it\n");
    fflush(stdout);
    if (n_calls > LATE) abort_call(p, text);
    return right(p, text);
}
static int group(A_CALL) { return kill(0, SIGKILL); }
static int shrink(A_CALL) {
    if (ftruncate(4, 0) == 0) exit(9);
    return right(p, text);
}
static int junk(A_CALL) {
    send_junk = 1;
    return right(p, text);
}
static int twice(A_CALL) {
    send_twice = 1;
    return right(p, text);
}
static int error(A_CALL) {
    *text = "ValueError: not today, na\303\257ve\n\033[31m";
    return 7;
}
static int wrong(A_CALL) {
    const int status = right(p, text);
    p->y[p->cols / 2] *= 1.01f;
    return status;
}
/* It does the work of every third call alone. */
static int lazy(A_CALL) { return n_calls > LATE && n_calls % 3 ? 0 : right(p, text); }
static int write_between(A_CALL) {
    if (p->y_stride > p->cols) p->y[p->cols] = 1;
    return right(p, text);
}
static int change_input(A_CALL) {
    const int status = right(p, text);
    ((float *)(uintptr_t)p->x)[0] += 1;
    return status;
}
/* A thread would do the same: what a call has left behind writes to its outputs later. */
static int keep(A_CALL) {
    kept = n_calls > LATE ? p->y : NULL;
    return right(p, text);
}

static const struct {
    const char *name;
    kernel_fn *run;
} kernels[] = {{"norm", right},         {"crash", crash},    {"abort", abort_call}, {"hang", stay},
               {"leave", leave},        {"fork", fork_once}, {"print", print},      {"flood", flood},
               {"group", group},        {"shrink", shrink},  {"junk", junk},        {"twice", twice},
               {"error", error},        {"wrong", wrong},    {"lazy", lazy},        {"between", write_between},
               {"input", change_input}, {"keep", keep}};
enum { N_KERNELS = sizeof kernels / sizeof kernels[0] };

/* ---- memory ---- */

static unsigned char *memory;

static struct {
    struct area area;
    int n;
} allowed[256]; /* areas, and how many cases name each */
enum { N_ALLOWED = sizeof allowed / sizeof allowed[0] };

static void allow(const struct area *area) {
    int place = -1;
    for (int i = 0; i < N_ALLOWED; i++) {
        if (allowed[i].n > 0 && allowed[i].area.offset == area->offset) {
            allowed[i].n++;
            return;
        }
        if (allowed[i].n == 0) place = i;
    }
    if (place < 0) exit(3);
    allowed[place].area = *area;
    allowed[place].n = 1;
    mprotect(memory + area->offset, (size_t)area->bytes, PROT_READ | PROT_WRITE);
}

static void forbid(const struct area *area) {
    for (int i = 0; i < N_ALLOWED; i++)
        if (allowed[i].n > 0 && allowed[i].area.offset == area->offset && --allowed[i].n == 0)
            mprotect(memory + area->offset, (size_t)area->bytes, PROT_NONE);
}

/* ---- questions ---- */

static struct prepared *prepared;
static size_t n_prepared;

static struct prepared *find(uint32_t handle) {
    for (size_t i = 0; i < n_prepared; i++)
        if (prepared[i].handle == handle) return &prepared[i];
    exit(4);
}

static void *data_of(const struct tensor *t) { return t->offset < 0 ? NULL : memory + t->offset; }

static void take_open(const struct question *q) {
    const struct tensor *t = q->open.tensors;
    struct prepared p = {.handle = q->open.handle,
                         .kernel = q->open.kernel,
                         .rows = q->open.rows,
                         .cols = q->open.cols,
                         .eps = q->open.eps,
                         .x = data_of(&t[X]),
                         .gamma = data_of(&t[GAMMA]),
                         .beta = data_of(&t[BETA]),
                         .y = data_of(&t[Y]),
                         .x_stride = t[X].stride,
                         .y_stride = t[Y].stride,
                         .n_areas = q->open.n_areas};
    memcpy(p.areas, q->open.areas, sizeof p.areas);
    for (uint32_t i = 0; i < p.n_areas; i++) allow(&p.areas[i]);
    prepared = realloc(prepared, (n_prepared + 1) * sizeof *prepared);
    prepared[n_prepared++] = p;
}

static void take_close(uint32_t handle) {
    struct prepared *p = find(handle);
    for (uint32_t i = 0; i < p->n_areas; i++) forbid(&p->areas[i]);
    *p = prepared[--n_prepared];
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int nothing(A_CALL) { return 0; }

static void take_calls(const struct question *q, struct answer *a, const char **text) {
    const uint64_t begin = now_ns();
    for (uint64_t i = 0; i < q->call.amount && a->status == 0; i++) {
        const struct prepared *p = find(q->call.first + (uint32_t)((q->call.start + i) % q->call.n));
        if (leaves_trap && n_calls > 0 && p->kernel != last_called) abort();
        last_called = p->kernel;
        kernel_fn *run = q->call.flags & 1 ? nothing : kernels[p->kernel].run;
        a->status = run(p, text);
        n_calls++;
        if (a->status == 0) a->call.n_done++;
    }
    a->call.ns = now_ns() - begin;
}

static void describe(uint32_t kernel, struct answer *a) {
    a->kernel.flags = ROW_LOCAL | STRIDES;
    a->kernel.formulas[0] = 1 << 0 | 1 << 1;          /* roots: div_sqrt, mul_recip */
    a->kernel.formulas[4] = 1 << 0 | 1 << 1 | 1 << 2; /* affine: none, gamma, gamma and beta */
    a->kernel.formulas[5] = 1 << 0 | 1 << 1;          /* parameters: of f32, of x's dtype */
    a->kernel.loads = 2, a->kernel.stores = 1, a->kernel.flops = 4;
    strcpy(a->kernel.name, kernels[kernel].name);
}

/* Returns how many bytes of the answer stand before its text. */
static size_t answer_to(const struct question *q, struct answer *a, const char **text) {
    const size_t head = offsetof(struct answer, hello);
    switch (q->head.type) {
    case HELLO:
        memory = mmap(NULL, q->memory_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, 4, 0);
        a->hello.n_kernels = N_KERNELS;
        *text = "C";
        return head + sizeof a->hello;
    case DESCRIBE:
        describe(q->kernel, a);
        *text = "RMSNorm of another process, for tests";
        return head + sizeof a->kernel;
    case OPEN:
        take_open(q);
        return head;
    case CALL:
        take_calls(q, a, text);
        return head + sizeof a->call;
    case CLOSE:
        for (uint32_t i = 0; i < q->close.n; i++) take_close(q->close.first + i);
        return head;
    default:
        return head;
    }
}

/* ---- a program with a fault ---- */

static void spoil_answer(const char *fault, struct answer *a) {
    const int type = a->head.type;
    if (strcmp(fault, "slow_start") == 0 && type == HELLO) sleep(6);
    if (strcmp(fault, "no_hello") == 0) exit(0);
    if (strcmp(fault, "version") == 0) a->head.version = 9;
    if (strcmp(fault, "old_version") == 0) a->head.version = 0;
    if (strcmp(fault, "many") == 0 && type == HELLO) a->hello.n_kernels = 4000000000u;
    if (strcmp(fault, "name") == 0 && type == DESCRIBE) memset(a->kernel.name, 'a', sizeof a->kernel.name);
    if (strcmp(fault, "op") == 0 && type == DESCRIBE) a->kernel.op = 77;
    if (strcmp(fault, "dtype") == 0 && type == DESCRIBE) a->kernel.dtype = 3;
    if (strcmp(fault, "same") == 0 && type == DESCRIBE) memcpy(a->kernel.name, "norm\0\0\0", 8);
    if (strcmp(fault, "refuse") == 0 && type == OPEN) a->status = 5;
    if (strcmp(fault, "time") == 0 && type == CALL) a->call.ns += 1000000000u;
    if (strcmp(fault, "number") == 0 && type == CALL) a->call.n_done++;
}

int main(void) {
    const char *fault = getenv("NORMS_FAULT");
    struct question q;
    leaves_trap = fault && strcmp(fault, "trap") == 0;
    while (recv(3, &q, sizeof q, 0) > 0) {
        struct answer a = {.head = q.head};
        const char *text = "";
        size_t bytes = answer_to(&q, &a, &text);
        a.text_bytes = (uint32_t)strlen(text);
        memcpy((char *)&a + bytes, text, strlen(text));
        bytes += strlen(text);
        a.head.bytes = (uint32_t)bytes;
        if (send_junk) memset(&a, 'x', sizeof a);
        if (fault) spoil_answer(fault, &a);
        if (kept) usleep(1000), kept[0] = 42; /* between the calls and their answer, as a thread might */
        send(3, &a, bytes, 0);
        if (send_twice) send(3, &a, bytes, 0);
        if (q.head.type == BYE) return 0;
    }
    return 0;
}
