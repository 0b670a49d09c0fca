// SPDX-License-Identifier: Apache-2.0
/* A GPU through the driver's API (libcuda.so.1) and its management library (libnvidia-ml.so.1), both looked for when they are needed: the
 * prototypes are our own, so that this compiles where no CUDA is. The library of the runtime is not used: it would bring its own and blame an
 * old driver where there is none. */
#include <assert.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/device/device.h"

/* ---- cuda.h, as far as it is used here: names and values are the driver's ------------------------------------------ */

typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct {
    int type, id;
} CUmemLocation;
typedef struct {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;
typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;
enum {
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_STREAM_NON_BLOCKING = 1,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
};

/* F(name, parameters): what each is called in the table and in the library. */
#define CUDA_FUNCTIONS(F)                                                                                              \
    F(cuInit, (unsigned flags))                                                                                        \
    F(cuDriverGetVersion, (int *version))                                                                              \
    F(cuGetErrorName, (int error, const char **name))                                                                  \
    F(cuDeviceGetCount, (int *n))                                                                                      \
    F(cuDeviceGet, (CUdevice * device, int ordinal))                                                                   \
    F(cuDeviceGetName, (char *name, int length, CUdevice device))                                                      \
    F(cuDeviceGetUuid_v2, (unsigned char uuid[16], CUdevice device))                                                   \
    F(cuDeviceGetPCIBusId, (char *id, int length, CUdevice device))                                                    \
    F(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                                              \
    F(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                                          \
    F(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                                                \
    F(cuCtxSetCurrent, (CUcontext context))                                                                            \
    F(cuMemAlloc_v2, (CUdeviceptr * p, size_t bytes))                                                                  \
    F(cuMemFree_v2, (CUdeviceptr p))                                                                                   \
    F(cuMemGetInfo_v2, (size_t * available, size_t * total))                                                           \
    F(cuMemGetAllocationGranularity, (size_t * granularity, const CUmemAllocationProp *prop, int option))              \
    F(cuMemAddressReserve, (CUdeviceptr * p, size_t size, size_t alignment, CUdeviceptr at, unsigned long long flags)) \
    F(cuMemAddressFree, (CUdeviceptr p, size_t size))                                                                  \
    F(cuMemCreate,                                                                                                     \
      (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags)) \
    F(cuMemRelease, (CUmemGenericAllocationHandle handle))                                                             \
    F(cuMemMap,                                                                                                        \
      (CUdeviceptr p, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags))      \
    F(cuMemUnmap, (CUdeviceptr p, size_t size))                                                                        \
    F(cuMemSetAccess, (CUdeviceptr p, size_t size, const CUmemAccessDesc *access, size_t n))                           \
    F(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                         \
    F(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                               \
    F(cuMemsetD32Async, (CUdeviceptr to, unsigned word, size_t words, CUstream stream))                                \
    F(cuStreamCreate, (CUstream * stream, unsigned flags))                                                             \
    F(cuStreamSynchronize, (CUstream stream))                                                                          \
    F(cuEventCreate, (CUevent * event, unsigned flags))                                                                \
    F(cuEventRecord, (CUevent event, CUstream stream))                                                                 \
    F(cuEventSynchronize, (CUevent event))                                                                             \
    F(cuEventElapsedTime, (float *ms, CUevent begin, CUevent end))                                                     \
    F(cuStreamBeginCapture_v2, (CUstream stream, int mode))                                                            \
    F(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                                          \
    F(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                      \
    F(cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                                              \
    F(cuGraphDestroy, (CUgraph graph))                                                                                 \
    F(cuGraphExecDestroy, (CUgraphExec exec))

/* nvml.h. All may be missing, and each may be refused, as for a part of a GPU (MIG). */
typedef struct nvmlDevice_st *nvmlDevice_t;
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_TEMPERATURE_GPU = 0 };
#define NVML_FUNCTIONS(F)                                                                                              \
    F(nvmlInit_v2, (void))                                                                                             \
    F(nvmlSystemGetDriverVersion, (char *version, unsigned length))                                                    \
    F(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, nvmlDevice_t *device))                                        \
    F(nvmlDeviceGetClockInfo, (nvmlDevice_t device, int clock, unsigned *mhz))                                         \
    F(nvmlDeviceGetMaxClockInfo, (nvmlDevice_t device, int clock, unsigned *mhz))                                      \
    F(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned *mw))                                            \
    F(nvmlDeviceGetTemperature, (nvmlDevice_t device, int sensor, unsigned *celsius))                                  \
    F(nvmlDeviceGetEccMode, (nvmlDevice_t device, unsigned *current, unsigned *pending))                               \
    F(nvmlDeviceGetMigMode, (nvmlDevice_t device, unsigned *current, unsigned *pending))                               \
    F(nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t device, unsigned long long *reasons))

#define AS_POINTER(name, parameters) int(*name) parameters;
static struct { CUDA_FUNCTIONS(AS_POINTER) } cuda;
static struct { NVML_FUNCTIONS(AS_POINTER) } nvml;

struct symbol {
    const char *name;
    void *slot; /* a pointer to a function */
};
#define AS_CUDA_SYMBOL(name, parameters) {#name, &cuda.name},
#define AS_NVML_SYMBOL(name, parameters) {#name, &nvml.name},
static const struct symbol cuda_symbols[] = {CUDA_FUNCTIONS(AS_CUDA_SYMBOL)},
                           nvml_symbols[] = {NVML_FUNCTIONS(AS_NVML_SYMBOL)};
enum {
    N_CUDA = sizeof cuda_symbols / sizeof cuda_symbols[0],
    N_NVML = sizeof nvml_symbols / sizeof nvml_symbols[0],
};

/* ---- opening ------------------------------------------------------------------------------------------------------- */

enum { LEAST_VERSION = 12000 }; /* of the driver's API: what kernels/cuda/ is compiled with at least */

static struct {
    bool is_tried, is_open;
    char refusal[200];
    CUdevice device;
    CUstream stream;
    CUevent events[2];
    nvmlDevice_t managed; /* null: the management library says nothing of it */
    char unmanaged[100];  /* why, then, or what it refused last */
    int error;            /* the last one */
    size_t held_bytes;    /* of its memory, by this process */
    unsigned highest_mhz; /* of the clock, in is_disturbed() */
    double was_throttled; /* there, since throttled() was called; NaN: not known */
} gpu;

/* 0, or -1 with the error kept. */
static int done(int error) {
    if (error) gpu.error = error;
    return error ? -1 : 0;
}

static const char *error_name(int error) {
    const char *name = NULL;
    if (cuda.cuGetErrorName && cuda.cuGetErrorName(error, &name) == 0 && name) return name;
    static char number[24];
    snprintf(number, sizeof number, "error %d", error);
    return number;
}

static const char *last_error(bool *outside) {
    /* What a write past the guard and what a wide access at an odd address come to. */
    if (outside) *outside = gpu.error == CUDA_ERROR_ILLEGAL_ADDRESS;
    return error_name(gpu.error);
}

#define refuse(...) (nb_reason(gpu.refusal, sizeof gpu.refusal, __VA_ARGS__), gpu.refusal)

/* The first symbol that is missing, or null. */
static const char *look_up(void *library, const struct symbol *symbols, size_t n) {
    const char *missing = NULL;
    for (size_t i = 0; i < n; i++) {
        void *found = dlsym(library, symbols[i].name);
        memcpy(symbols[i].slot, &found, sizeof found);
        if (!found && !missing) missing = symbols[i].name;
    }
    return missing;
}

/* Keeps why something is not known. */
static bool refused(const char *what, int error) {
    if (error) snprintf(gpu.unmanaged, sizeof gpu.unmanaged, "%s: error %d", what, error);
    return error != 0;
}
#define ASKED(name, ...) (gpu.managed && !refused(#name, nvml.name(gpu.managed, __VA_ARGS__)))

/* Clocks and power are told by a library of their own, without which there is all but these. */
static void open_management(void) {
    char id[32];
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *missing = library ? look_up(library, nvml_symbols, N_NVML) : NULL;
    if (!library || missing) {
        snprintf(gpu.unmanaged, sizeof gpu.unmanaged, "libnvidia-ml.so.1 %s%s",
                 missing ? "has no function " : "is not found", missing ? missing : "");
        return;
    }
    if (refused("nvmlInit_v2", nvml.nvmlInit_v2())) return;
    if (refused("cuDeviceGetPCIBusId", cuda.cuDeviceGetPCIBusId(id, sizeof id, gpu.device))) return;
    if (refused("nvmlDeviceGetHandleByPciBusId_v2", nvml.nvmlDeviceGetHandleByPciBusId_v2(id, &gpu.managed)))
        gpu.managed = NULL;
}

/* The primary context, which the kernels' library uses too. */
static int open_context(void) {
    CUcontext context;
    int error = cuda.cuDevicePrimaryCtxRetain(&context, gpu.device);
    if (!error) error = cuda.cuCtxSetCurrent(context);
    if (!error) error = cuda.cuStreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 2 && !error; i++) error = cuda.cuEventCreate(&gpu.events[i], 0);
    return error;
}

static const char *try_to_open(void) {
    int version = 0, n = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return refuse("there is no NVIDIA driver: libcuda.so.1 is not found");
    const char *missing = look_up(library, cuda_symbols, N_CUDA);
    if (cuda.cuDriverGetVersion && cuda.cuDriverGetVersion(&version) == 0 && version < LEAST_VERSION)
        return refuse("the NVIDIA driver is too old: it serves CUDA %d.%d, and %d.%d is needed", version / 1000,
                      version % 1000 / 10, LEAST_VERSION / 1000, LEAST_VERSION % 1000 / 10);
    if (missing) return refuse("the NVIDIA driver's libcuda.so.1 has no function %s", missing);
    int error = cuda.cuInit(0);
    if (error) return refuse("the NVIDIA driver finds no GPU that it can use: %s", error_name(error));
    if (cuda.cuDeviceGetCount(&n) != 0 || n == 0)
        return refuse("there is no GPU: the NVIDIA driver counts none%s",
                      getenv("CUDA_VISIBLE_DEVICES") ? " (CUDA_VISIBLE_DEVICES is set)" : "");
    error = cuda.cuDeviceGet(&gpu.device, 0);
    if (!error) error = open_context();
    if (error) return refuse("the GPU cannot be used: %s", error_name(error));
    open_management();
    gpu.is_open = true;
    return NULL;
}

static const char *open_cuda(void) {
    if (!gpu.is_tried) try_to_open();
    gpu.is_tried = true;
    return gpu.is_open ? NULL : gpu.refusal;
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

/* Addresses with a mapping in their middle: what is before and behind it faults, as the host's guards do. */

static const size_t guard_bytes = (size_t)1 << 30;

static CUdeviceptr address_of(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

static int map_held(struct nb_device_memory *m, const CUmemAllocationProp *prop) {
    const CUmemAccessDesc access = {prop->location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    int error = cuda.cuMemCreate(&handle, m->held_bytes, prop, 0);
    if (error) return error;
    const CUdeviceptr at = address_of(m->map) + guard_bytes;
    error = cuda.cuMemMap(at, m->held_bytes, 0, handle, 0);
    if (error) {
        cuda.cuMemRelease(handle);
        return error;
    }
    m->handle = handle;
    return cuda.cuMemSetAccess(at, m->held_bytes, &access, 1);
}

static int alloc_guarded(struct nb_device_memory *m, size_t bytes, enum nb_device_end end) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu.device}};
    size_t unit;
    CUdeviceptr at = 0;
    int error = cuda.cuMemGetAllocationGranularity(&unit, &prop, 0);
    if (error) return error;
    m->held_bytes = (bytes + unit - 1) / unit * unit;
    m->map_bytes = m->held_bytes + 2 * guard_bytes;
    error = cuda.cuMemAddressReserve(&at, m->map_bytes, unit, 0, 0);
    m->map = (unsigned char *)(uintptr_t)at;
    m->area = m->map + guard_bytes + (end == NB_DEVICE_END ? m->held_bytes - bytes : 0);
    return error ? error : map_held(m, &prop);
}

static int alloc_anywhere(struct nb_device_memory *m, size_t bytes) {
    CUdeviceptr at = 0;
    const int error = cuda.cuMemAlloc_v2(&at, bytes);
    m->area = (unsigned char *)(uintptr_t)at;
    m->held_bytes = bytes;
    return error;
}

static void release_cuda(struct nb_device_memory *m) {
    if (m->handle) {
        cuda.cuMemUnmap(address_of(m->map) + guard_bytes, m->held_bytes);
        cuda.cuMemRelease(m->handle);
    }
    if (m->map) cuda.cuMemAddressFree(address_of(m->map), m->map_bytes);
    if (!m->map && m->area) cuda.cuMemFree_v2(address_of(m->area));
    gpu.held_bytes -= m->held_bytes;
    *m = (struct nb_device_memory){0};
}

/* Never more than half of what is free: others use the device too. */
static int alloc_cuda(struct nb_device_memory *m, size_t bytes, enum nb_device_end end) {
    size_t available, total;
    *m = (struct nb_device_memory){0};
    if (open_cuda()) return nb_error("%s", gpu.refusal);
    int error = cuda.cuMemGetInfo_v2(&available, &total);
    if (!error && gpu.held_bytes + bytes > (available + gpu.held_bytes) / 2)
        return nb_error("a buffer of %zu bytes would take more than half of the GPU's memory that is free", bytes);
    if (!error) error = end == NB_DEVICE_ANYWHERE ? alloc_anywhere(m, bytes) : alloc_guarded(m, bytes, end);
    gpu.held_bytes += m->held_bytes;
    if (!error) return 0;
    release_cuda(m);
    done(error);
    return nb_error("no memory on the GPU for a buffer of %zu bytes: %s", bytes, error_name(error));
}

/* On the stream of the calls, which waits for no other: what is not put there may overtake them or come too late. */
static int synchronise(void) { return done(cuda.cuStreamSynchronize(gpu.stream)); }

static int copy_in(void *device, const void *host, size_t bytes) {
    const int result = done(cuda.cuMemcpyHtoDAsync_v2(address_of(device), host, bytes, gpu.stream));
    return result == 0 ? synchronise() : result;
}
static int copy_out(void *host, const void *device, size_t bytes) {
    const int result = done(cuda.cuMemcpyDtoHAsync_v2(host, address_of(device), bytes, gpu.stream));
    return result == 0 ? synchronise() : result;
}
static int fill(void *device, uint32_t word, size_t words) {
    return done(cuda.cuMemsetD32Async(address_of(device), word, words, gpu.stream));
}

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

static void *stream(void) { return gpu.stream; }

static int record(int event) {
    assert(event == 0 || event == 1);
    return done(cuda.cuEventRecord(gpu.events[event], gpu.stream));
}
static double elapsed_s(void) {
    float ms = 0;
    if (done(cuda.cuEventSynchronize(gpu.events[1])) != 0) return NAN;
    if (done(cuda.cuEventElapsedTime(&ms, gpu.events[0], gpu.events[1])) != 0) return NAN;
    return 1e-3 * (double)ms;
}

static int capture_begin(void) {
    return done(cuda.cuStreamBeginCapture_v2(gpu.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}
static int capture_end(void **graph) {
    CUgraph captured = NULL;
    CUgraphExec exec = NULL;
    int result = done(cuda.cuStreamEndCapture(gpu.stream, &captured));
    if (result == 0) result = done(cuda.cuGraphInstantiateWithFlags(&exec, captured, 0));
    if (captured) cuda.cuGraphDestroy(captured);
    *graph = result == 0 ? exec : NULL;
    return result;
}
static int replay(void *graph) { return done(cuda.cuGraphLaunch(graph, gpu.stream)); }
static void release_graph(void *graph) {
    if (graph) cuda.cuGraphExecDestroy(graph);
}

/* ---- what it is, and what disturbs it ------------------------------------------------------------------------------- */

/* Reasons for a lower clock that come from outside of a run: power, heat, the power
 * supply. Idleness and clocks that somebody set are none. */
static const struct {
    unsigned long long mask;
    const char *name;
} throttles[] = {{0x04, "power cap"},
                 {0x08, "hardware slowdown"},
                 {0x20, "software thermal"},
                 {0x40, "hardware thermal"},
                 {0x80, "power brake"}};
enum { N_THROTTLES = sizeof throttles / sizeof throttles[0] };

/* -1: not known. */
static long long throttle_reasons(void) {
    unsigned long long reasons = 0, known = 0;
    if (!ASKED(nvmlDeviceGetCurrentClocksThrottleReasons, &reasons)) return -1;
    for (int i = 0; i < N_THROTTLES; i++) known |= throttles[i].mask;
    return (long long)(reasons & known);
}

static bool is_disturbed(void) {
    unsigned mhz = 0;
    const long long reasons = throttle_reasons();
    if (reasons < 0) gpu.was_throttled = NAN;
    if (reasons > 0 && gpu.was_throttled == 0) gpu.was_throttled = 1;
    if (!ASKED(nvmlDeviceGetClockInfo, NVML_CLOCK_SM, &mhz)) return reasons > 0;
    if (mhz > gpu.highest_mhz) gpu.highest_mhz = mhz;
    return reasons > 0 || mhz < 0.98 * gpu.highest_mhz;
}

static double throttled(void) {
    const double was = gpu.was_throttled;
    gpu.was_throttled = 0;
    return was;
}

static int attribute(int which) {
    int value = 0;
    return cuda.cuDeviceGetAttribute(&value, which, gpu.device) == 0 ? value : -1;
}
static void add_attribute(cJSON *object, const char *name, int which) {
    const int value = attribute(which);
    nb_json_number(object, name, value >= 0 ? value : (double)NAN);
}
static double l2_bytes(void) {
    const int bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    return bytes > 0 ? bytes : 0;
}

/* A serial number is nobody's business; a hash of it still says which results are of one device. */
static void add_uuid(cJSON *object) {
    unsigned char uuid[16];
    char hash[20] = "";
    if (cuda.cuDeviceGetUuid_v2(uuid, gpu.device) == 0)
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)nb_hash(NB_HASH_EMPTY, uuid, sizeof uuid));
    nb_json_text(object, "uuid_hash", *hash ? hash : NULL);
}

static void add_known(cJSON *object, const char *name, bool is_known, const unsigned *value) {
    nb_json_number(object, name, is_known ? *value : (double)NAN);
}

static void add_throttles(cJSON *object) {
    const long long reasons = throttle_reasons();
    cJSON *list =
        reasons < 0 ? cJSON_AddNullToObject(object, "throttled") : cJSON_AddArrayToObject(object, "throttled");
    for (int i = 0; i < N_THROTTLES && reasons > 0; i++)
        if ((unsigned long long)reasons & throttles[i].mask)
            cJSON_AddItemToArray(list, cJSON_CreateString(throttles[i].name));
}

static void state(cJSON *object) {
    unsigned value = 0, pending;
    if (gpu.managed) gpu.unmanaged[0] = '\0';
    add_known(object, "sm_mhz", ASKED(nvmlDeviceGetClockInfo, NVML_CLOCK_SM, &value), &value);
    add_known(object, "memory_mhz", ASKED(nvmlDeviceGetClockInfo, NVML_CLOCK_MEM, &value), &value);
    add_known(object, "temperature_c", ASKED(nvmlDeviceGetTemperature, NVML_TEMPERATURE_GPU, &value), &value);
    add_known(object, "ecc", ASKED(nvmlDeviceGetEccMode, &value, &pending), &value);
    add_known(object, "mig", ASKED(nvmlDeviceGetMigMode, &value, &pending), &value);
    add_throttles(object);
    nb_json_text(object, "reason", gpu.unmanaged[0] ? gpu.unmanaged : NULL);
}

/* Of the datasheet: two transfers a clock over the whole bus. NaN: not known. */
static double bandwidth(void) {
    const int bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    const int khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    unsigned mhz = 0;
    if (!ASKED(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_MEM, &mhz)) mhz = 0;
    const double hz = mhz > 0 ? 1e6 * mhz : khz > 0 ? 1e3 * khz : (double)NAN;
    return bits > 0 ? 2 * hz * bits / 8 : (double)NAN;
}

static void properties(cJSON *object) {
    char text[128] = "";
    int version = 0;
    unsigned value = 0, pending;
    size_t bytes;
    nb_json_text(object, "name", cuda.cuDeviceGetName(text, sizeof text, gpu.device) == 0 ? text : NULL);
    add_uuid(object);
    const bool is_told = gpu.managed && nvml.nvmlSystemGetDriverVersion(text, sizeof text) == 0;
    nb_json_text(object, "driver", is_told ? text : NULL);
    cuda.cuDriverGetVersion(&version);
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    nb_json_text(object, "cuda", text);
    snprintf(text, sizeof text, "%d.%d", attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
             attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    nb_json_text(object, "compute_capability", text);
    add_attribute(object, "multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    nb_json_number(object, "memory_bytes",
                   cuda.cuDeviceTotalMem_v2(&bytes, gpu.device) == 0 ? (double)bytes : (double)NAN);
    nb_json_number(object, "l2_bytes", l2_bytes());
    add_attribute(object, "shared_bytes", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    cJSON_AddBoolToObject(object, "ecc", attribute(CU_DEVICE_ATTRIBUTE_ECC_ENABLED) == 1);
    add_known(object, "mig", ASKED(nvmlDeviceGetMigMode, &value, &pending), &value);
    nb_json_number(object, "power_limit_w",
                   ASKED(nvmlDeviceGetEnforcedPowerLimit, &value) ? 1e-3 * value : (double)NAN);
    add_known(object, "sm_mhz_most", ASKED(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_SM, &value), &value);
    nb_json_number(object, "gbytes_per_s", round(1e-9 * bandwidth()));
    state(cJSON_AddObjectToObject(object, "now"));
}

const struct nb_device_api nb_device_cuda = {
    .name = "cuda",
    .open = open_cuda,
    .alloc = alloc_cuda,
    .release = release_cuda,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .fill = fill,
    .synchronise = synchronise,
    .stream = stream,
    .record = record,
    .elapsed_s = elapsed_s,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .replay = replay,
    .release_graph = release_graph,
    .is_disturbed = is_disturbed,
    .throttled = throttled,
    .properties = properties,
    .state = state,
    .l2_bytes = l2_bytes,
    .last_error = last_error,
};
