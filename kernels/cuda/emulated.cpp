// SPDX-License-Identifier: Apache-2.0
/* Device functions on the CPU, to see that they are right. The blocks of a cluster run together, clusters one after another. Which warp goes
 * on is drawn at random, and one is drawn again and again, so that it runs far ahead of the others where no barrier holds it; within a warp
 * the first lane is drawn. Shared memory is filled with NaNs for each block, and ends at a page that nobody may touch.
 *
 * An error ends the launch and says block and thread: a barrier or a shuffle that not all reach whom it waits for, one that threads meet at
 * different lines, a thread outside of its own mask. A copy to shared memory is done as late as may be, when it is waited for: until then NaNs
 * stand there. Not seen: the order of memory between threads that no barrier orders but that run one after another here, and how fast
 * anything is.
 *
 * NORMBENCH_EMULATED="seed=2 clusters=0 shared=49152" chooses the order and what the device has. */
#include "kernels/cuda/emulated.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cuda/launch.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
enum { STACK_BYTES = 128 << 10 };
#define FORGET(p, n) __asan_unpoison_memory_region(p, n) /* frames of fibers that an error left */
#else
enum { STACK_BYTES = 32 << 10 };
#define FORGET(p, n) (void)0
#endif
enum { COPIES = 64 }; /* of a thread, under way */
enum { FIBERS = CLUSTER * BLOCK, WARPS = FIBERS / WARP, SHARED_BYTES = 227 << 10, PAGE = 4096 };
enum state { ABSENT, READY, AT_SHUFFLE, AT_BARRIER, AT_CLUSTER, AT_BOX, ENDED };

struct fiber {
    void *stack_pointer;
    struct emulated_thread thread;
    enum state state;
    int line;
    uint32_t mask, distance;
    float value;
    const struct box *box;
    uint32_t parity;
};
/* A round ends when as many bytes have come as are expected; they may come before it is said how many these are. */
struct box {
    int32_t left;
    uint16_t expected, round;
};
static_assert(sizeof(struct box) == sizeof(uint64_t), "in its place");

/* What a thread copies later: groups are counted as they are closed. */
struct copies {
    uint32_t n, closed;
    struct {
        void *to;
        const void *from;
        uint32_t bytes, group;
    } waiting[COPIES];
};

/* One for each thread of the program that launches. Stacks are taken once and kept. */
struct emulator {
    const struct nb_launch *launch;
    const struct emulated_entry *entry;
    void *scheduler; /* its stack pointer */
    struct fiber *running, *fibers;
    struct copies *copies;
    char *stacks, *shared[CLUSTER];
    uint32_t grid, n_fibers, n_ended, last_warp, ready[WARPS];
    uint64_t random;
    bool failed;
};

static struct emulated_entry *entries;
static __thread struct emulator *emulator;
__thread const struct emulated_thread *emulated_now;

void emulated_register(struct emulated_entry *entry) {
    entry->next = entries;
    entries = entry;
}

/* ---- fibers ------------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
extern "C" void emulated_switch(void **save, void *load);
__asm__(".text\n"
        ".local emulated_switch\n"
        ".type emulated_switch, @function\n"
        "emulated_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
        ".size emulated_switch, . - emulated_switch\n");
static void *new_stack(char *stack, void (*run)(void)) {
    void **top = (void **)(stack + STACK_BYTES) - 2; /* as after a call */
    top[0] = (void *)run;
    memset(top - 6, 0, 6 * sizeof *top);
    return top - 6;
}
#else
#include <ucontext.h>
static void emulated_switch(void **save, void *load) {
    ucontext_t here;
    *save = &here;
    swapcontext(&here, (ucontext_t *)load);
}
static void *new_stack(char *stack, void (*run)(void)) {
    ucontext_t *context = (ucontext_t *)stack;
    getcontext(context);
    context->uc_stack.ss_sp = stack + sizeof *context;
    context->uc_stack.ss_size = STACK_BYTES - sizeof *context;
    makecontext(context, run, 0);
    return context;
}
#endif

static void to_scheduler(enum state state, int line) {
    struct fiber *const me = emulator->running;
    me->state = state;
    me->line = line;
    emulated_switch(&me->stack_pointer, emulator->scheduler);
}
static void run_thread(void) {
    emulator->entry->thread(emulator->launch->args);
    to_scheduler(ENDED, 0);
    abort(); /* never resumed */
}

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

static void report(const struct fiber *f, const char *what, int line) {
    if (!emulator->failed)
        fprintf(stderr, "emulated %s: block %u, thread %u %s", emulator->entry->name, f->thread.block, f->thread.index,
                what);
    if (!emulator->failed && line) fprintf(stderr, " (line %d)", line);
    if (!emulator->failed) fprintf(stderr, "\n");
    emulator->failed = true;
}
void emulated_fail(const char *what) {
    report(emulator->running, what, 0);
    for (;;) to_scheduler(ABSENT, 0);
}

/* ---- what a thread waits for --------------------------------------------------------------------------------------------- */

void emulated_barrier(bool of_cluster, int line) { to_scheduler(of_cluster ? AT_CLUSTER : AT_BARRIER, line); }
float emulated_shuffle(uint32_t mask, float v, uint32_t d, int line) {
    struct fiber *const me = emulator->running;
    me->mask = mask, me->distance = d, me->value = v;
    to_scheduler(AT_SHUFFLE, line);
    return me->value;
}
const float *emulated_on_rank(const float *p, uint32_t rank) {
    const uint32_t mine = emulated_now->block % emulator->launch->cluster;
    if (rank >= emulator->launch->cluster) emulated_fail("reads from a block that its cluster does not have");
    return (const float *)(emulator->shared[rank] + ((const char *)p - emulator->shared[mine]));
}

static struct copies *own_copies(void) { return &emulator->copies[emulator->running - emulator->fibers]; }
void emulated_copy(void *to, const void *from, uint32_t bytes) {
    struct copies *const c = own_copies();
    if ((uintptr_t)to % bytes || (uintptr_t)from % bytes) emulated_fail("copies what is not aligned");
    if (c->n == COPIES) emulated_fail("has more copies under way than are known here");
    memset(to, 0xff, bytes);
    c->waiting[c->n++] = {to, from, bytes, c->closed};
}
void emulated_copies_end() { own_copies()->closed++; }
void emulated_copies_wait(uint32_t but) {
    struct copies *const c = own_copies();
    uint32_t left = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->waiting[i].group + but < c->closed)
            memcpy(c->waiting[i].to, c->waiting[i].from, c->waiting[i].bytes);
        else
            c->waiting[left++] = c->waiting[i];
    c->n = left;
}

static void resume(struct fiber *f) {
    f->state = READY;
    emulator->ready[(f - emulator->fibers) / WARP]++;
}

static void settle_box(struct box *b) {
    if (!b->expected || b->left) return;
    b->expected = 0, b->round++;
    for (uint32_t i = 0; i < emulator->n_fibers; i++) {
        struct fiber *const f = &emulator->fibers[i];
        if (f->state == AT_BOX && f->box == b && f->parity != (b->round & 1u)) resume(f);
    }
}
void emulated_expect(uint64_t *box, uint32_t bytes) {
    struct box *const b = (struct box *)box;
    if (b->expected) emulated_fail("begins a round of a box whose last has not ended");
    b->expected = 1, b->left += (int32_t)bytes;
    settle_box(b);
}
void emulated_posted(uint64_t *box, uint32_t bytes) {
    struct box *const b = (struct box *)box;
    b->left -= (int32_t)bytes;
    settle_box(b);
}
void emulated_wait(uint64_t *box, uint32_t parity, int line) {
    struct fiber *const me = emulator->running;
    me->box = (const struct box *)box, me->parity = parity;
    if (parity == (me->box->round & 1u)) to_scheduler(AT_BOX, line);
}

/* Shuffles of a warp whose lanes are all there. */
static void settle_shuffles(struct fiber *warp) {
    for (uint32_t lane = 0; lane < WARP; lane++) {
        const struct fiber *f = &warp[lane];
        const uint32_t mask = f->mask, distance = f->distance;
        if (f->state != AT_SHUFFLE) continue;
        if (!(mask >> lane & 1)) return report(f, "shuffles outside of its own mask", f->line);
        bool complete = true;
        for (uint32_t i = 0; i < WARP; i++) {
            if (!(mask >> i & 1)) continue;
            if (warp[i].state == ENDED) return report(f, "waits in a shuffle for a lane that has ended", f->line);
            if (warp[i].state != AT_SHUFFLE)
                complete = false;
            else if (warp[i].mask != mask || warp[i].distance != distance)
                return report(f, "meets another shuffle, or another mask, in its warp", f->line);
        }
        if (!complete) continue;
        float values[WARP];
        for (uint32_t i = 0; i < WARP; i++) values[i] = warp[i].value;
        for (uint32_t i = 0; i < WARP; i++) {
            if (!(mask >> i & 1)) continue;
            if (!(mask >> (i ^ distance) & 1))
                return report(&warp[i], "takes the value of a lane outside of the mask", f->line);
            warp[i].value = values[i ^ distance];
            resume(&warp[i]);
        }
    }
}
/* A barrier of n fibers. */
static void settle_barrier(struct fiber *fibers, uint32_t n, enum state at) {
    const struct fiber *first = NULL, *ended = NULL;
    uint32_t there = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (fibers[i].state == ENDED) ended = &fibers[i];
        if (fibers[i].state != at) continue;
        if (!first) first = &fibers[i];
        if (fibers[i].line != first->line)
            return report(&fibers[i], "meets a barrier while others wait at another", fibers[i].line);
        there++;
    }
    if (first && ended) return report(first, "waits at a barrier for a thread that has ended", first->line);
    if (there < n) return;
    for (uint32_t i = 0; i < n; i++) resume(&fibers[i]);
}

/* ---- the scheduler ---------------------------------------------------------------------------------------------------------- */

static uint32_t draw(struct emulator *e, uint32_t below) {
    e->random ^= e->random << 13, e->random ^= e->random >> 7, e->random ^= e->random << 17;
    return (uint32_t)(e->random >> 32) % below;
}
/* Of those that can go on: the last one seven times in eight. */
static int draw_warp(struct emulator *e) {
    const uint32_t warps = (e->n_fibers + WARP - 1) / WARP;
    if (e->ready[e->last_warp] && draw(e, 8)) return (int)e->last_warp;
    const uint32_t from = draw(e, warps);
    for (uint32_t i = 0; i < warps; i++)
        if (e->ready[(from + i) % warps]) return (int)(e->last_warp = (from + i) % warps);
    return -1;
}
static void run_warp(struct emulator *e, uint32_t warp) {
    const uint32_t from = draw(e, WARP);
    for (uint32_t i = 0; i < WARP && !e->failed; i++) {
        struct fiber *f = &e->fibers[warp * WARP + (from + i) % WARP];
        if (f->state != READY) continue;
        e->ready[warp]--;
        e->running = f;
        emulated_now = &f->thread;
        emulated_switch(&e->scheduler, f->stack_pointer);
        if (f->state == ENDED) e->n_ended++;
    }
}

static void start_cluster(struct emulator *e, uint32_t first_block) {
    const struct nb_launch *l = e->launch;
    e->n_fibers = l->cluster * l->block;
    e->n_ended = 0;
    e->last_warp = 0;
    memset(e->ready, 0, sizeof e->ready);
    for (uint32_t b = 0; b < l->cluster; b++) memset(e->shared[b], 0xff, l->shared);
    for (uint32_t i = 0; i < e->n_fibers; i++) {
        struct fiber *f = &e->fibers[i];
        f->thread =
            emulated_thread{i % l->block, first_block + i / l->block, l->block, e->grid, e->shared[i / l->block]};
        e->copies[i].n = e->copies[i].closed = 0;
        f->stack_pointer = new_stack(e->stacks + (size_t)i * STACK_BYTES, run_thread);
        resume(f);
    }
}
static void run_cluster(struct emulator *e) {
    const uint32_t block = e->launch->block;
    while (e->n_ended < e->n_fibers && !e->failed) {
        const int warp = draw_warp(e);
        if (warp < 0) {
            const struct fiber *f = e->fibers;
            while (f->state == ENDED) f++;
            return report(f, "waits for threads that wait for something else", f->line);
        }
        struct fiber *const lanes = &e->fibers[(uint32_t)warp * WARP];
        run_warp(e, (uint32_t)warp);
        settle_shuffles(lanes);
        settle_barrier(lanes - lanes->thread.index, block, AT_BARRIER);
        if (e->launch->cluster > 1) settle_barrier(e->fibers, e->n_fibers, AT_CLUSTER);
    }
}

/* ---- the host's side -------------------------------------------------------------------------------------------------------- */

static const char *setting(const char *name) {
    const char *const settings = getenv("NORMBENCH_EMULATED"), *const at = settings ? strstr(settings, name) : NULL;
    return at ? at + strlen(name) : NULL;
}
const struct nb_device *nb_launch_device(void) {
    static struct nb_device device;
    const char *const clusters = setting("clusters="), *const shared = setting("shared=");
    device.has_clusters = !clusters || atoi(clusters) != 0;
    device.shared_bytes = shared && (size_t)atol(shared) < SHARED_BYTES ? (size_t)atol(shared) : (size_t)SHARED_BYTES;
    return &device;
}
const char *nb_launch_refused(void) { return NULL; }

static void *pages(size_t bytes) {
    void *const p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
static struct emulator *new_emulator(void) {
    struct emulator *const e = (struct emulator *)pages(sizeof *e + FIBERS * sizeof *e->fibers);
    if (!e) return NULL;
    e->fibers = (struct fiber *)(e + 1);
    e->stacks = (char *)pages((size_t)FIBERS * STACK_BYTES);
    e->copies = (struct copies *)pages(FIBERS * sizeof *e->copies);
    const size_t room = (SHARED_BYTES + PAGE - 1) / PAGE * PAGE;
    char *const shared = (char *)pages(CLUSTER * (room + PAGE));
    if (!e->stacks || !e->copies || !shared) return NULL;
    for (size_t b = 0; b < CLUSTER; b++) {
        e->shared[b] = shared + b * (room + PAGE) + room; /* its end */
        if (mprotect(e->shared[b], PAGE, PROT_NONE)) return NULL;
    }
    return e;
}

static __thread int last_error;
int nb_launch_error(void) {
    const int error = last_error;
    last_error = 0;
    return error;
}

static int launch_emulated(const struct nb_launch *launch) {
    if (!emulator) emulator = new_emulator();
    if (!emulator) return NB_LAUNCH_NO_MEMORY;
    struct emulator *const e = emulator;
    char *const ends[CLUSTER] = {e->shared[0], e->shared[1], e->shared[2], e->shared[3],
                                 e->shared[4], e->shared[5], e->shared[6], e->shared[7]};
    const struct emulated_entry *entry = entries;
    while (entry && strcmp(entry->name, launch->function) != 0) entry = entry->next;
    const struct nb_device *const device = nb_launch_device();
    if (!entry || launch->shared > device->shared_bytes || launch->block % WARP || launch->block > 2 * BLOCK ||
        launch->cluster > (device->has_clusters ? CLUSTER : 1) || launch->grid % launch->cluster) {
        fprintf(stderr, "emulated %s: no such function, or not with these sizes\n", launch->function);
        return NB_LAUNCH_FAILED;
    }
    const char *const seed = setting("seed=");
    e->random = 0x9e3779b97f4a7c15u * (1 + (seed ? (uint64_t)atol(seed) : 0));
    e->launch = launch;
    e->entry = entry;
    e->failed = false;
    FORGET(e->stacks, (size_t)FIBERS * STACK_BYTES);
    for (uint32_t b = 0; b < launch->cluster; b++) e->shared[b] -= launch->shared;
    /* Two clusters for all rows, so that they go on where a device has few. */
    const uint32_t grid = launch->goes_on && launch->grid > 2 * launch->cluster ? 2 * launch->cluster : launch->grid;
    e->grid = grid;
    for (uint32_t first = 0; first < grid && !e->failed; first += launch->cluster) {
        start_cluster(e, first);
        run_cluster(e);
    }
    memcpy(e->shared, ends, sizeof ends);
    return e->failed ? NB_LAUNCH_FAILED : 0;
}
int nb_launch(const struct nb_launch *launch) {
    const int code = launch_emulated(launch);
    if (code) last_error = code;
    return code;
}
int nb_launch_copy(void *to, const void *from, size_t bytes, void *) {
    memcpy(to, from, bytes);
    return 0;
}
