// SPDX-License-Identifier: Apache-2.0
/* Launches on an NVIDIA GPU through the driver's own interface, found at run time: the library needs nothing of CUDA to be loaded. The device
 * functions lie in it as fat binaries, one for each .cu file (modules.s, which the build writes), and are loaded into the context that is
 * current when the first of a file is launched. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/launch.h"

/* What is used of cuda.h. Types that the driver keeps to itself are pointers; a device is a number. */
typedef void *handle;
struct launch_attribute {
    int id, unused;
    union {
        uint32_t cluster[3];
        char bytes[64];
    };
};
struct launch_config {
    uint32_t grid[3], block[3], shared;
    handle stream;
    struct launch_attribute *attributes;
    uint32_t n_attributes;
};
enum {
    ATTRIBUTE_CLUSTER = 4,
    FUNCTION_SHARED_BYTES = 8, /* the most that a launch may ask for */
    DEVICE_MAJOR = 75,
    DEVICE_MINOR = 76,
    DEVICE_SHARED_BYTES = 97, /* of a block that asks for it */
    OLDEST_DRIVER = 13000,    /* the code is that of CUDA 13.0 */
};

static struct {
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*count)(int *count);
    int (*attribute)(int *value, int attribute, int device);
    int (*context)(handle *context);
    int (*device)(int *device);
    int (*load)(handle *module, const void *image);
    int (*function)(handle *function, handle module, const char *name);
    int (*set)(handle function, int attribute, int value);
    int (*launch)(const struct launch_config *config, handle function, void **args, void **extra);
    int (*copy)(unsigned long long to, unsigned long long from, size_t bytes, handle stream);
    int (*error)(int code, const char **name);
} driver;

static const char *const names[] = {"cuInit",
                                    "cuDriverGetVersion",
                                    "cuDeviceGetCount",
                                    "cuDeviceGetAttribute",
                                    "cuCtxGetCurrent",
                                    "cuCtxGetDevice",
                                    "cuModuleLoadData",
                                    "cuModuleGetFunction",
                                    "cuFuncSetAttribute",
                                    "cuLaunchKernelEx",
                                    "cuMemcpyDtoDAsync_v2",
                                    "cuGetErrorName"};
_Static_assert(sizeof driver == sizeof names, "a function for each name");

/* ---- why not ---------------------------------------------------------------------------------------------------------------- */

static char refusal[200];
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_driver(void) {
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int version = 0, count = 0, code;
    if (!library) {
        snprintf(refusal, sizeof refusal, "no NVIDIA driver: libcuda.so.1 is not found");
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *const symbol = dlsym(library, names[i]);
        if (!symbol) {
            snprintf(refusal, sizeof refusal,
                     "the NVIDIA driver is too old: it has no %s (driver 580 or later is needed)", names[i]);
            return;
        }
        memcpy((char *)&driver + i * sizeof symbol, &symbol, sizeof symbol);
    }
    if (driver.version(&version) || version < OLDEST_DRIVER) {
        snprintf(refusal, sizeof refusal,
                 "the NVIDIA driver is too old: it knows CUDA %d.%d, 13.0 is needed (driver 580 or later)",
                 version / 1000, version % 1000 / 10);
        return;
    }
    code = driver.init(0);
    if (code || driver.count(&count) || count == 0)
        snprintf(refusal, sizeof refusal, "the NVIDIA driver finds no device (error %d)", code);
}
const char *nb_launch_refused(void) {
    pthread_once(&opened, open_driver);
    return refusal[0] ? refusal : NULL;
}

/* ---- the device of the current context ---------------------------------------------------------------------------------------- */

const struct nb_device *nb_launch_device(void) {
    static __thread struct nb_device found;
    int device, major = 0, minor = 0, shared = 0;
    if (nb_launch_refused() || driver.device(&device)) return &found;
    driver.attribute(&major, DEVICE_MAJOR, device);
    driver.attribute(&minor, DEVICE_MINOR, device);
    driver.attribute(&shared, DEVICE_SHARED_BYTES, device);
    found.has_clusters =
        major == 9 || major == 10; /* those that the code has clusters for; others run that of compute_80 */
    found.shared_bytes = (size_t)shared;
    return &found;
}

/* ---- functions ------------------------------------------------------------------------------------------------------------------ */

/* Ends with a null name. A file's functions begin with its name. */
extern const struct embedded {
    const char *name;
    const void *image;
} nb_cuda_modules[];

enum { MODULES = 16, FUNCTIONS = 128 };
static struct {
    handle context, modules[MODULES], functions[FUNCTIONS];
    char text[FUNCTIONS][64];
    int n;
} loaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static int failed(const char *what, const char *name, int code) {
    const char *text = "?";
    driver.error(code, &text);
    fprintf(stderr, "cuda: %s %s: %s\n", what, name, text);
    return NB_LAUNCH_FAILED;
}
static int load_function(const char *name, handle *function) {
    const size_t length = strcspn(name, "_");
    int i = 0, code;
    while (nb_cuda_modules[i].name &&
           (strncmp(nb_cuda_modules[i].name, name, length) || nb_cuda_modules[i].name[length]))
        i++;
    if (!nb_cuda_modules[i].name || i == MODULES) return failed("no module of", name, 0);
    if (!loaded.modules[i] && (code = driver.load(&loaded.modules[i], nb_cuda_modules[i].image)))
        return failed("cannot load the module of", name, code);
    if ((code = driver.function(function, loaded.modules[i], name))) return failed("no function", name, code);
    return 0;
}
static int find_function(const char *name, handle *function) {
    handle context;
    int code = driver.context(&context);
    if (code || !context) return failed("no context for", name, code);
    if (context != loaded.context) { /* what was loaded went with the context before */
        memset(&loaded, 0, sizeof loaded);
        loaded.context = context;
    }
    for (int i = 0; i < loaded.n; i++)
        if (strcmp(loaded.text[i], name) == 0) {
            *function = loaded.functions[i];
            return 0;
        }
    code = load_function(name, function);
    if (!code && loaded.n < FUNCTIONS) {
        snprintf(loaded.text[loaded.n], sizeof loaded.text[0], "%s", name);
        loaded.functions[loaded.n++] = *function;
    }
    return code;
}

static __thread int last_error;
int nb_launch_error(void) {
    const int error = last_error;
    last_error = 0;
    return error;
}

int nb_launch(const struct nb_launch *l) {
    struct launch_attribute cluster = {.id = ATTRIBUTE_CLUSTER, .cluster = {l->cluster, 1, 1}};
    const struct launch_config config = {.grid = {l->grid, 1, 1},
                                         .block = {l->block, 1, 1},
                                         .shared = (uint32_t)l->shared,
                                         .stream = l->stream,
                                         .attributes = &cluster,
                                         .n_attributes = l->cluster > 1};
    void *args[1] = {(void *)l->args};
    handle function;
    if (nb_launch_refused()) return last_error = NB_LAUNCH_FAILED;
    pthread_mutex_lock(&loading);
    last_error = find_function(l->function, &function);
    pthread_mutex_unlock(&loading);
    if (last_error) return last_error;
    int code = l->shared > 48 << 10 ? driver.set(function, FUNCTION_SHARED_BYTES, (int)l->shared) : 0;
    if (!code) code = driver.launch(&config, function, args, NULL);
    return code ? last_error = failed("cannot launch", l->function, code) : 0;
}

int nb_launch_copy(void *to, const void *from, size_t bytes, void *stream) {
    if (nb_launch_refused()) return last_error = NB_LAUNCH_FAILED;
    const int code = driver.copy((uintptr_t)to, (uintptr_t)from, bytes, stream);
    return code ? last_error = failed("cannot copy", "", code) : 0;
}
