// SPDX-License-Identifier: Apache-2.0
/* An NVIDIA driver without a GPU, for tests: what src/device/device_cuda.c calls of libcuda.so.1 and libnvidia-ml.so.1, on the host's
 * memory. A test copies this to both names, into a folder that LD_LIBRARY_PATH names.
 *
 * It is as strict as a driver is: device memory cannot be touched but while calls run, what is enqueued runs when somebody waits for it, an
 * access to what is not mapped fails that call and all that follow, and a process that was forked off behind cuInit() is ended.
 * What goes wrong besides is said by NORMBENCH_TEST_CUDA: no_device, old, old_12, no_memory, misaligned (every call fails so),
 * throttled (every second time), cold_sensor (no temperature), slowed (its clock is 3 % lower but behind what was timed), counted (an event's time is the
 * number of calls before it, a millisecond each; else 20 us; an event that the device waited for is one call early), uncaptured (no call can be
 * captured); of launches no_context, no_image, no_function, no_launch, and ptx (the code
 * was compiled when it was loaded, and has no clusters).
 *
 * A device function of kernels/cuda/ runs in the emulation of mock_launcher.so (tests/cuda/mock_launcher.c),
 * which is looked for beside this. */
#define _GNU_SOURCE /* memfd_create() */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cuda/launch.h"

#define API(name, parameters)                                                                                          \
    int name parameters;                                                                                               \
    int name parameters

enum {
    SUCCESS,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    NO_BINARY_FOR_GPU = 209,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701,
    MISALIGNED_ADDRESS = 716,
    LAUNCH_FAILED = 719,
    INVALID_CLUSTER_SIZE = 912,
    MOST_SHARED = 227 << 10,
    USUAL_SHARED = 48 << 10,
    MOST_FUNCTIONS = 128,
    UNIT = 1 << 21, /* of memory */
    MOST_MAPPINGS = 4096,
};

typedef unsigned long long address;
typedef void (*device_fn)(const void *args);
/* How a kernel of a test enqueues: what cuLaunchKernel() is to a real one. */
int mock_cuda_enqueue(void *stream, device_fn fn, const void *args, size_t size);

static int failed; /* for good */
static pid_t owner;

static bool is(const char *what) {
    const char *wanted = getenv("NORMBENCH_TEST_CUDA");
    return wanted && strcmp(wanted, what) == 0;
}
static bool usable(void) {
    if (owner != 0 && owner != getpid()) {
        fprintf(stderr, "mock driver: called in a process that was forked off behind cuInit()\n");
        abort();
    }
    return owner != 0;
}
#define CALLED()                                                                                                       \
    if (!usable()) return INVALID_VALUE;                                                                               \
    if (failed) return failed

/* A function that gives something away, where it is asked rightly. */
#define GIVES(name, parameters, gives, right)                                                                          \
    API(name, parameters) {                                                                                            \
        CALLED();                                                                                                      \
        gives;                                                                                                         \
        return (right) ? SUCCESS : INVALID_VALUE;                                                                      \
    }

/* ---- memory --------------------------------------------------------------------------------------------------------- */

static struct mapping {
    void *at;
    size_t bytes;
} mappings[MOST_MAPPINGS];
static int n_mappings;

static void allow(bool access) {
    for (int i = 0; i < n_mappings; i++)
        if (mappings[i].at) mprotect(mappings[i].at, mappings[i].bytes, access ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* ---- what is enqueued ------------------------------------------------------------------------------------------------ */

struct op {
    device_fn fn;   /* null: an event */
    double *record; /* of an event */
    char args[512];
};
struct ops {
    struct op *items;
    size_t n;
};
static struct ops queue, captured;
static bool capturing;

static void append(struct ops *ops, const struct op *op) {
    ops->items = realloc(ops->items, (ops->n + 1) * sizeof *ops->items);
    if (!ops->items) abort();
    ops->items[ops->n++] = *op;
}

static double n_calls; /* so far */
static double now_ms(void) { return 2 + n_calls * (is("counted") ? 1 : 0.02); }

static sigjmp_buf landing;
static struct sigaction of_harness;
static void on_fault(int number) { siglongjmp(landing, 1); }

/* move: a copy that comes behind it; or null. */
static int run_queue(void (*move)(const void *args), const void *args) {
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    if (queue.n == 0 && !move) return failed;
    sigaction(SIGSEGV, &action, &of_harness);
    allow(true);
    if (sigsetjmp(landing, 1) == 0) {
        for (size_t i = 0; i < queue.n; i++)
            if (queue.items[i].fn)
                queue.items[i].fn(queue.items[i].args), n_calls++;
            else
                *queue.items[i].record = now_ms() - (i == 0 && is("counted"));
    } else {
        failed = ILLEGAL_ADDRESS;
    }
    if (queue.n > 0 && is("misaligned")) failed = MISALIGNED_ADDRESS;
    queue.n = 0;
    if (move && !failed) move(args);
    allow(false);
    sigaction(SIGSEGV, &of_harness, NULL);
    return failed;
}

int mock_cuda_enqueue(void *stream, device_fn fn, const void *args, size_t size) {
    struct op op = {.fn = fn};
    CALLED();
    if (size > sizeof op.args || stream == NULL || (capturing && is("uncaptured"))) return INVALID_VALUE;
    memcpy(op.args, args, size);
    append(capturing ? &captured : &queue, &op);
    return SUCCESS;
}

/* ---- the driver: the device --------------------------------------------------------------------------------------------- */

API(cuInit, (unsigned flags)) {
    const char *sanitized = getenv("NORMBENCH_TEST_SANITIZED"); /* the one process that a sanitizer bears */
    if (sanitized && atoi(sanitized) != getpid()) _exit(255);
    if (is("no_device")) return NO_DEVICE;
    usable();
    owner = getpid();
    return flags == 0 ? SUCCESS : INVALID_VALUE;
}
API(cuDriverGetVersion, (int *version)) {
    *version = is("old") ? 11020 : is("old_12") ? 12040 : 13000;
    return SUCCESS;
}
API(cuGetErrorName, (int error, const char **name)) {
#define NAMED(error) [error] = "CUDA_ERROR_" #error
    static const char *const names[] = {
        NAMED(OUT_OF_MEMORY),      NAMED(NO_DEVICE),       NAMED(NO_BINARY_FOR_GPU),
        NAMED(NOT_FOUND),          NAMED(ILLEGAL_ADDRESS), NAMED(LAUNCH_OUT_OF_RESOURCES),
        NAMED(MISALIGNED_ADDRESS), NAMED(LAUNCH_FAILED),   NAMED(INVALID_CLUSTER_SIZE)};
    const bool known = error >= 0 && error <= INVALID_CLUSTER_SIZE && names[error];
    *name = known ? names[error] : "CUDA_ERROR_INVALID_VALUE";
    return SUCCESS;
}
GIVES(cuDeviceGetCount, (int *n), *n = 1, true)
GIVES(cuDeviceGet, (int *device, int ordinal), *device = 7, ordinal == 0)
GIVES(cuDeviceGetName, (char *name, int length, int device), snprintf(name, (size_t)length, "Mock \"GPU\""),
      device == 7)
GIVES(cuDeviceGetUuid_v2, (unsigned char uuid[16], int device), memset(uuid, device, 16), true)
GIVES(cuDeviceGetPCIBusId, (char *id, int length, int device),
      snprintf(id, (size_t)length, "0000:%02x:00.0", (unsigned)device), true)
API(cuDeviceGetAttribute, (int *value, int attribute, int device)) {
    CALLED();
    static const int values[128] = {
        [16] = 2, [32] = 1, [36] = 2619000, [37] = 5120, [38] = 1 << 20, [75] = 9, [97] = MOST_SHARED};
    *value = attribute >= 0 && attribute < 128 ? values[attribute] : 0;
    return device == 7 ? SUCCESS : INVALID_VALUE;
}
GIVES(cuDeviceTotalMem_v2, (size_t * bytes, int device), *bytes = (size_t)1 << 30, device == 7)
static int context;
GIVES(cuDevicePrimaryCtxRetain, (void **out, int device), *out = &context, device == 7)
GIVES(cuCtxSetCurrent, (void *wanted), (void)0, wanted == &context)

/* ---- memory */

API(cuMemGetInfo_v2, (size_t * available, size_t *total)) {
    CALLED();
    *total = (size_t)1 << 30;
    *available = *total / 2;
    return SUCCESS;
}
GIVES(cuMemGetAllocationGranularity, (size_t * granularity, const void *prop, int option), *granularity = UNIT,
      prop != NULL && option == 0)
API(cuMemAddressReserve, (address * p, size_t size, size_t alignment, address at, unsigned long long flags)) {
    CALLED();
    if (size % UNIT != 0 || alignment != UNIT || at != 0 || flags != 0) return INVALID_VALUE;
    char *all = mmap(NULL, size + UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return OUT_OF_MEMORY;
    char *aligned = all + (UNIT - (uintptr_t)all % UNIT) % UNIT;
    if (aligned > all) munmap(all, (size_t)(aligned - all));
    munmap(aligned + size, (size_t)(all + UNIT - aligned));
    *p = (address)(uintptr_t)aligned;
    return SUCCESS;
}
GIVES(cuMemAddressFree, (address p, size_t size), (void)0, munmap((void *)(uintptr_t)p, size) == 0)
/* Pinned memory (1) of a device (1). */
API(cuMemCreate, (unsigned long long *handle, size_t size, const int prop[4], unsigned long long flags)) {
    CALLED();
    if (is("no_memory")) return OUT_OF_MEMORY;
    if (size % UNIT != 0 || flags != 0 || prop[0] != 1 || prop[1] != 0 || prop[2] != 1 || prop[3] != 7)
        return INVALID_VALUE;
    const int fd = memfd_create("mock", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0) return OUT_OF_MEMORY;
    *handle = (unsigned long long)fd;
    return SUCCESS;
}
GIVES(cuMemRelease, (unsigned long long handle), (void)0, close((int)handle) == 0)
API(cuMemMap, (address p, size_t size, size_t offset, unsigned long long handle, unsigned long long flags)) {
    void *at = (void *)(uintptr_t)p;
    CALLED();
    if (size % UNIT != 0 || offset != 0 || flags != 0 || p % UNIT != 0) return INVALID_VALUE;
    if (n_mappings == MOST_MAPPINGS) return OUT_OF_MEMORY;
    if (mmap(at, size, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)handle, 0) != at) return OUT_OF_MEMORY;
    mappings[n_mappings++].bytes = size; /* and nobody may access it yet */
    return SUCCESS;
}
API(cuMemSetAccess, (address p, size_t size, const int access[3], size_t n)) {
    CALLED();
    struct mapping *last = &mappings[n_mappings - 1];
    if (n != 1 || access[0] != 1 || access[1] != 7 || access[2] != 3 || size != last->bytes) return INVALID_VALUE;
    last->at = (void *)(uintptr_t)p;
    return SUCCESS;
}
/* Takes what is mapped at p out of the list; at null: nothing is. */
static struct mapping take_mapping(address p) {
    for (int i = 0; i < n_mappings; i++) {
        const struct mapping m = mappings[i];
        if (m.at != (void *)(uintptr_t)p) continue;
        mappings[i] = mappings[--n_mappings];
        return m;
    }
    return (struct mapping){NULL, 0};
}
API(cuMemUnmap, (address p, size_t size)) {
    CALLED();
    const struct mapping m = take_mapping(p);
    if (!m.at || m.bytes != size) return INVALID_VALUE;
    void *at = mmap(m.at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    return at == m.at ? SUCCESS : INVALID_VALUE;
}

API(cuMemAlloc_v2, (address * p, size_t bytes)) {
    CALLED();
    if (is("no_memory") || n_mappings == MOST_MAPPINGS) return OUT_OF_MEMORY;
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return OUT_OF_MEMORY;
    mappings[n_mappings++] = (struct mapping){at, bytes};
    *p = (address)(uintptr_t)at;
    return SUCCESS;
}
API(cuMemFree_v2, (address p)) {
    CALLED();
    const struct mapping m = take_mapping(p);
    return m.at && munmap(m.at, m.bytes) == 0 ? SUCCESS : INVALID_VALUE;
}

static bool is_mapped(address p, size_t bytes) {
    for (int i = 0; i < n_mappings; i++) {
        const address at = (address)(uintptr_t)mappings[i].at;
        if (p >= at && p + bytes <= at + mappings[i].bytes) return true;
    }
    return false;
}
struct move {
    void *to;
    const void *from;
    size_t bytes;
};
static void move_there(const void *args) {
    const struct move *m = args;
    memcpy(m->to, m->from, m->bytes);
}
static int stream;
/* Behind what was enqueued. */
static int copy(void *to, const void *from, size_t bytes, address on_device, const void *on) {
    const struct move m = {to, from, bytes};
    CALLED();
    if (capturing || on != &stream || !is_mapped(on_device, bytes)) return INVALID_VALUE;
    return run_queue(move_there, &m);
}
API(cuMemcpyHtoDAsync_v2, (address to, const void *from, size_t bytes, const void *on)) {
    return copy((void *)(uintptr_t)to, from, bytes, to, on);
}
API(cuMemcpyDtoHAsync_v2, (void *to, address from, size_t bytes, const void *on)) {
    return copy(to, (const void *)(uintptr_t)from, bytes, from, on);
}
struct fill {
    uint32_t *to, word;
    size_t words;
};
static void fill_there(const void *args) {
    const struct fill *f = args;
    for (size_t i = 0; i < f->words; i++) f->to[i] = f->word;
}
API(cuMemsetD32Async, (address to, unsigned word, size_t words, void *on)) {
    const struct fill f = {(uint32_t *)(uintptr_t)to, word, words};
    CALLED();
    if (to % 4 != 0 || on != &stream || !is_mapped(to, 4 * words)) return INVALID_VALUE;
    return mock_cuda_enqueue(on, fill_there, &f, sizeof f);
}

API(cuMemcpyDtoDAsync_v2, (address to, address from, size_t bytes, void *on)) {
    const struct move m = {(void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes};
    CALLED();
    if (on != &stream || !is_mapped(to, bytes) || !is_mapped(from, bytes)) return INVALID_VALUE;
    return mock_cuda_enqueue(on, move_there, &m, sizeof m);
}

/* ---- launches: what kernels/cuda/driver.c calls */

/* The functions of a module take one struct; there is none in the image. */
static const struct module {
    const char *name;
    size_t args;
} modules[] = {{"apply", sizeof(struct apply_args)},       {"batchnorm", sizeof(struct channel_args)},
               {"columns", sizeof(struct column_args)},    {"copies", sizeof(struct copy_args)},
               {"gradient", sizeof(struct gradient_args)}, {"operations", sizeof(struct element_args)},
               {"kept", sizeof(struct row_args)},          {"rows", sizeof(struct row_args)}};
static struct function {
    char name[64];
    size_t args;
    uint32_t shared; /* what a launch may ask for */
} functions[MOST_FUNCTIONS];
static int n_functions;

GIVES(cuCtxGetCurrent, (void **out), *out = is("no_context") ? NULL : &context, true)
GIVES(cuCtxGetDevice, (int *device), *device = 7, true)
API(cuModuleLoadData, (void **module, const void *image)) {
    CALLED();
    *module = &context;
    if (is("no_image")) return NO_BINARY_FOR_GPU;
    return image && !capturing ? SUCCESS : INVALID_VALUE;
}
/* Sums in operations and in columns have a struct of their own. */
static size_t args_of(const char *name) {
    if (strcmp(name, "columns_add") == 0) return sizeof(struct add_args);
    if (strncmp(name, "operations", 10) == 0 && strstr(name, "_sum")) return sizeof(struct sum_args);
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
        if (strncmp(name, modules[i].name, strlen(modules[i].name)) == 0) return modules[i].args;
    return 0;
}
API(cuModuleGetFunction, (struct function * *function, const void *module, const char *name)) {
    CALLED();
    if (is("no_function") || module != &context || args_of(name) == 0) return NOT_FOUND;
    if (n_functions == MOST_FUNCTIONS) return OUT_OF_MEMORY;
    *function = &functions[n_functions++];
    snprintf((*function)->name, sizeof(*function)->name, "%s", name);
    (*function)->args = args_of(name);
    (*function)->shared = USUAL_SHARED;
    return SUCCESS;
}
GIVES(cuFuncGetAttribute, (int *value, int attribute, const struct function *function), *value = is("ptx") ? 80 : 90,
      function != NULL && attribute == 5)
API(cuFuncSetAttribute, (struct function * function, int attribute, int value)) {
    CALLED();
    if (attribute == 9 && value >= -1 && value <= 100) return SUCCESS; /* a wish */
    if (attribute != 8 || value < 0 || value > MOST_SHARED) return INVALID_VALUE;
    function->shared = (uint32_t)value;
    return SUCCESS;
}

struct attribute {
    int id, unused;
    uint32_t value[16];
};
struct launch {
    uint32_t grid[3], block[3], shared;
    void *stream;
    const struct attribute *attributes;
    uint32_t n_attributes;
};
struct launched {
    const struct function *function;
    uint32_t grid, block, cluster, shared;
    char args[400];
};
static void launch_there(const void *p) {
    static int (*run)(const struct nb_launch *launch);
    const struct launched *l = p;
    const struct nb_launch launch = {.function = l->function->name,
                                     .grid = l->grid,
                                     .block = l->block,
                                     .cluster = l->cluster,
                                     .shared = l->shared,
                                     .args = l->args};
    void *library = run ? NULL : dlopen("mock_launcher.so", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "mock_launcher_run") : NULL;
    if (symbol) memcpy(&run, &symbol, sizeof symbol);
    if (!run || run(&launch) != 0) failed = LAUNCH_FAILED;
}
static void log_launch(const struct launched *l) {
    const char *log = getenv("NORMBENCH_TEST_CUDA_LAUNCHES");
    FILE *f = log ? fopen(log, "ae") : NULL;
    if (!f) return;
    fprintf(f, "%s grid %u block %u cluster %u shared %u\n", l->function->name, l->grid, l->block, l->cluster,
            l->shared);
    fclose(f);
}
GIVES(cuOccupancyMaxActiveClusters, (int *n, const struct function *function, const struct launch *l), *n = 3,
      function && l->n_attributes == 1 && l->attributes->id == 4)
API(cuLaunchKernelEx, (const struct launch *l, const struct function *function, void **args, void **extra)) {
    CALLED();
    struct launched launched = {function, l->grid[0], l->block[0], 1, l->shared, {0}};
    if (l->n_attributes > 1 || !args || !args[0] || extra || function->args > sizeof launched.args)
        return INVALID_VALUE;
    if (l->n_attributes == 1) {
        const uint32_t *cluster = l->attributes->value;
        if (l->attributes->id != 4 || cluster[0] == 0 || cluster[1] != 1 || cluster[2] != 1) return INVALID_VALUE;
        if (cluster[0] > 8 || l->grid[0] % cluster[0] != 0 || is("ptx")) return INVALID_CLUSTER_SIZE;
        launched.cluster = cluster[0];
    }
    if (l->grid[0] == 0 || l->grid[0] > INT32_MAX || l->grid[1] != 1 || l->grid[2] != 1) return INVALID_VALUE;
    if (l->block[0] == 0 || l->block[0] > 2 * BLOCK || l->block[1] != 1 || l->block[2] != 1) return INVALID_VALUE;
    if (l->shared > function->shared || l->stream != &stream) return INVALID_VALUE;
    if (is("no_launch")) return LAUNCH_OUT_OF_RESOURCES;
    memcpy(launched.args, args[0], function->args);
    log_launch(&launched);
    return mock_cuda_enqueue(l->stream, launch_there, &launched, sizeof launched);
}

/* ---- calls and events */

GIVES(cuStreamCreate, (void **out, unsigned flags), *out = &stream, flags == 1)
API(cuStreamSynchronize, (void *of)) {
    CALLED();
    return of == &stream && !capturing ? run_queue(NULL, NULL) : INVALID_VALUE;
}
API(cuEventCreate, (void **event, unsigned flags)) {
    CALLED();
    *event = calloc(1, sizeof(double));
    return *event && flags == 0 ? SUCCESS : OUT_OF_MEMORY;
}
API(cuEventRecord, (void *event, void *on)) {
    CALLED();
    if (on != &stream) return INVALID_VALUE;
    append(capturing ? &captured : &queue, &(struct op){.record = event});
    return SUCCESS;
}
API(cuEventSynchronize, (void *event)) {
    CALLED();
    return event && !capturing ? run_queue(NULL, NULL) : INVALID_VALUE;
}
static bool just_timed;
/* And the clock was not asked for since. */
int mock_cuda_just_timed(void);
int mock_cuda_just_timed(void) {
    const bool was = just_timed;
    just_timed = false;
    return was;
}
API(cuEventElapsedTime, (float *ms, const double *begin, const double *end)) {
    CALLED();
    *ms = (float)(*end - *begin);
    just_timed = true;
    return *begin > 0 && *end >= *begin ? SUCCESS : INVALID_VALUE;
}
API(cuStreamBeginCapture_v2, (void *on, int mode)) {
    CALLED();
    if (on != &stream || mode != 1 || capturing) return INVALID_VALUE;
    capturing = true;
    captured = (struct ops){0};
    return SUCCESS;
}
API(cuStreamEndCapture, (void *on, struct ops **graph)) {
    CALLED();
    if (on != &stream || !capturing) return INVALID_VALUE;
    capturing = false;
    *graph = malloc(sizeof **graph);
    if (!*graph) return OUT_OF_MEMORY;
    **graph = captured;
    return SUCCESS;
}
API(cuGraphInstantiateWithFlags, (struct ops * *exec, const struct ops *graph, unsigned long long flags)) {
    CALLED();
    *exec = calloc(1, sizeof **exec);
    if (!*exec || flags != 0) return OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->n; i++) append(*exec, &graph->items[i]);
    return SUCCESS;
}
API(cuGraphLaunch, (const struct ops *exec, void *on)) {
    CALLED();
    const char *log = getenv("NORMBENCH_TEST_CUDA_LOG"); /* of graphs that were launched */
    FILE *f = log ? fopen(log, "ae") : NULL;
    if (f) fprintf(f, "%zu\n", exec->n);
    if (f) fclose(f);
    if (on != &stream || capturing) return INVALID_VALUE;
    for (size_t i = 0; i < exec->n; i++) append(&queue, &exec->items[i]);
    return SUCCESS;
}
static int destroy(struct ops *ops) {
    free(ops->items);
    free(ops);
    return SUCCESS;
}
API(cuGraphDestroy, (struct ops * graph)) { return destroy(graph); }
API(cuGraphExecDestroy, (struct ops * exec)) { return destroy(exec); }

/* ---- the management library --------------------------------------------------------------------------------------------- */

static int managed;
#define OF_DEVICE(name, parameters, gives)                                                                             \
    API(name, parameters) {                                                                                            \
        gives;                                                                                                         \
        return device == &managed ? SUCCESS : INVALID_VALUE;                                                           \
    }

/* This is loaded twice: the other, by the driver's name, knows. */
static bool was_just_timed(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = driver ? dlsym(driver, "mock_cuda_just_timed") : NULL;
    return symbol && ((int (*)(void))(uintptr_t)symbol)() != 0;
}
API(nvmlInit_v2, (void)) { return SUCCESS; }
API(nvmlSystemGetDriverVersion, (char *version, unsigned length)) {
    snprintf(version, length, "580.65.06");
    return SUCCESS;
}
API(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, void **device)) {
    *device = &managed;
    return strcmp(id, "0000:07:00.0") == 0 ? SUCCESS : INVALID_VALUE;
}
OF_DEVICE(nvmlDeviceGetClockInfo, (const void *device, int clock, unsigned *mhz),
          *mhz = clock != 1                          ? 2619
                 : is("slowed") && !was_just_timed() ? 1700
                                                     : 1755)
API(nvmlDeviceGetMaxClockInfo, (const void *device, int clock, unsigned *mhz)) {
    *mhz = clock == 1 ? 1980 : 2619;
    return device == &managed && (clock == 1 || clock == 2) ? SUCCESS : INVALID_VALUE;
}
OF_DEVICE(nvmlDeviceGetEnforcedPowerLimit, (const void *device, unsigned *mw), *mw = 700000)
API(nvmlDeviceGetTemperature, (const void *device, int sensor, unsigned *celsius)) {
    *celsius = 41;
    return device == &managed && sensor == 0 && !is("cold_sensor") ? SUCCESS : INVALID_VALUE;
}
OF_DEVICE(nvmlDeviceGetEccMode, (const void *device, unsigned *current, unsigned *pending), *current = *pending = 1)
OF_DEVICE(nvmlDeviceGetMigMode, (const void *device, unsigned *current, unsigned *pending), *current = *pending = 0)
API(nvmlDeviceGetCurrentClocksThrottleReasons, (const void *device, unsigned long long *reasons)) {
    static int n;
    *reasons = is("throttled") && ++n % 2 ? 4 : 1; /* power cap; idle, which is no reason */
    return device == &managed ? SUCCESS : INVALID_VALUE;
}
