// SPDX-License-Identifier: Apache-2.0
/* Launches on an NVIDIA GPU through the driver's own interface, found at run time: the library needs nothing of CUDA to be loaded. The device
 * functions lie in it as fat binaries, one for each .cu file (modules.s, which the build writes), and are loaded into the context that is
 * current when the first of a file is launched. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
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
    FUNCTION_PTX_VERSION = 5,  /* of what it was compiled from: 90 is that of sm_90 */
    FUNCTION_SHARED_BYTES = 8, /* the most that a launch may ask for */
    FUNCTION_CARVEOUT = 9,     /* percent of a processor's L1 that is to be shared memory */
    DEVICE_SHARED_BYTES = 97,  /* of a block that asks for it */
    /* CUDA_MAJOR: of the compiler. Its code runs on the drivers of every release with that number. */
    OLDEST_DRIVER = 1000 * CUDA_MAJOR,
    OLDEST_BRANCH = CUDA_MAJOR > 12 ? 580 : 525,
};

static struct {
    int (*version)(int *version);
    int (*attribute)(int *value, int attribute, int device);
    int (*context)(handle *context);
    int (*device)(int *device);
    int (*load)(handle *module, const void *image);
    int (*function)(handle *function, handle module, const char *name);
    int (*function_attribute)(int *value, int attribute, handle function);
    int (*set)(handle function, int attribute, int value);
    int (*launch)(const struct launch_config *config, handle function, void **args, void **extra);
    int (*clusters)(int *at_once, handle function, const struct launch_config *config);
    int (*copy)(unsigned long long to, unsigned long long from, size_t bytes, handle stream);
    int (*error)(int code, const char **name);
} driver;

static const char *const names[] = {
    "cuDriverGetVersion", "cuDeviceGetAttribute",         "cuCtxGetCurrent",      "cuCtxGetDevice",
    "cuModuleLoadData",   "cuModuleGetFunction",          "cuFuncGetAttribute",   "cuFuncSetAttribute",
    "cuLaunchKernelEx",   "cuOccupancyMaxActiveClusters", "cuMemcpyDtoDAsync_v2", "cuGetErrorName"};
_Static_assert(sizeof driver == sizeof names, "a function for each name");

/* ---- why not ---------------------------------------------------------------------------------------------------------------- */

static char refusal[200];
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static const char *error_name(int code) {
    const char *text = NULL;
    driver.error(code, &text);
    return text ? text : "an error without a name";
}
static void __attribute__((format(printf, 1, 2))) refuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(refusal, sizeof refusal, format, args);
    va_end(args);
}

/* cuInit() is for whose context it is to call: it is slow, and no process may be forked off behind it. */
static void open_driver(void) {
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL;
    int version = 0;
    if (!library) {
        refuse("there is no NVIDIA driver: libcuda.so.1 is not found");
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *const symbol = dlsym(library, names[i]);
        if (!symbol && !missing) missing = names[i];
        memcpy((char *)&driver + i * sizeof symbol, &symbol, sizeof symbol);
    }
    if (driver.version && driver.version(&version) == 0 && version < OLDEST_DRIVER)
        refuse(
            "the NVIDIA driver is too old for these kernels: it serves CUDA %d.%d, and they were compiled for %d.0 (driver "
            "%d or later)",
            version / 1000, version % 1000 / 10, CUDA_MAJOR, OLDEST_BRANCH);
    else if (missing)
        refuse("the NVIDIA driver's libcuda.so.1 has no function %s", missing);
}
const char *nb_launch_refused(void) {
    pthread_once(&opened, open_driver);
    return refusal[0] ? refusal : NULL;
}

/* ---- functions ------------------------------------------------------------------------------------------------------------------ */

/* Ends with a null name. A file's functions begin with its name. */
extern const struct embedded {
    const char *name;
    const void *image;
} nb_cuda_modules[];

enum { MODULES = 16, FUNCTIONS = 128, SHARES = 64 };
static struct {
    handle context, modules[MODULES], functions[FUNCTIONS];
    char text[FUNCTIONS][64];
    int n, n_shares;
    struct share {
        handle function;
        uint32_t cluster;
        int at_once;
    } shares[SHARES];
    struct nb_device device;
} loaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/* code: of the driver, or 0. */
static int failed(const char *what, const char *name, int code) {
    fprintf(stderr, "cuda: %s %s%s%s\n", what, name, code ? ": " : "", code ? error_name(code) : "");
    return NB_LAUNCH_FAILED;
}
static int load_function(const char *name, handle *function) {
    const size_t length = strcspn(name, "_");
    int i = 0, code;
    while (nb_cuda_modules[i].name &&
           (strncmp(nb_cuda_modules[i].name, name, length) || nb_cuda_modules[i].name[length]))
        i++;
    if (!nb_cuda_modules[i].name || i == MODULES) return failed("no module has the function", name, 0);
    if (!loaded.modules[i] && (code = driver.load(&loaded.modules[i], nb_cuda_modules[i].image)))
        return failed("the driver does not load the module of", name, code);
    if ((code = driver.function(function, loaded.modules[i], name)))
        return failed("the driver does not find the function", name, code);
    return 0;
}
static int find_function(const char *name, handle *function) {
    handle context;
    int code = driver.context(&context);
    if (code || !context) return failed("no context is current to launch", name, code);
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

/* Code that was compiled from PTX older than sm_90's has no clusters, wherever it runs: CUDA_TARGETS without sm_90, CUDA_FORCE_PTX_JIT, a
 * device newer than the compiler. All files are compiled for the same devices. */
const struct nb_device *nb_launch_device(void) {
    static __thread struct nb_device found;
    handle any;
    int device, ptx = 0, shared = 0;
    if (nb_launch_refused()) return &found;
    pthread_mutex_lock(&loading);
    if (find_function("copies_null", &any) == 0 && !loaded.device.shared_bytes && driver.device(&device) == 0) {
        driver.function_attribute(&ptx, FUNCTION_PTX_VERSION, any);
        driver.attribute(&shared, DEVICE_SHARED_BYTES, device);
        loaded.device = (struct nb_device){.has_clusters = ptx >= 90, .shared_bytes = (size_t)shared};
    }
    found = loaded.device;
    pthread_mutex_unlock(&loading);
    return &found;
}

static __thread int last_error;
int nb_launch_error(void) {
    const int error = last_error;
    last_error = 0;
    return error;
}

/* How many clusters run at once, else those of two blocks a processor of an H100: asked once for each function and size. Under the lock. */
static int clusters_at_once(handle function, const struct nb_launch *l, const struct launch_config *config) {
    int at_once = 0;
    for (int i = 0; i < loaded.n_shares; i++)
        if (loaded.shares[i].function == function && loaded.shares[i].cluster == l->cluster)
            return loaded.shares[i].at_once;
    if (driver.clusters(&at_once, function, config) != 0 || at_once <= 0) at_once = GRID / (int)l->cluster;
    if (loaded.n_shares < SHARES) loaded.shares[loaded.n_shares++] = (struct share){function, l->cluster, at_once};
    return at_once;
}
static uint32_t grid_of_shares(const struct nb_launch *l, int at_once) {
    const uint32_t rows = l->grid / l->cluster;
    const uint32_t each = (rows + (uint32_t)at_once - 1) / (uint32_t)at_once;
    return (rows + each - 1) / each * l->cluster;
}

static int launch_on_device(const struct nb_launch *l) {
    struct launch_attribute cluster = {.id = ATTRIBUTE_CLUSTER, .cluster = {l->cluster, 1, 1}};
    struct launch_config config = {.grid = {l->grid, 1, 1},
                                   .block = {l->block, 1, 1},
                                   .shared = (uint32_t)l->shared,
                                   .stream = l->stream,
                                   .attributes = &cluster,
                                   .n_attributes = l->cluster > 1 || l->goes_on};
    void *args[1] = {(void *)l->args};
    handle function;
    if (nb_launch_refused()) return NB_LAUNCH_FAILED;
    pthread_mutex_lock(&loading);
    int code = find_function(l->function, &function);
    pthread_mutex_unlock(&loading);
    if (code) return code;
    /* The same for all launches of a function, since one in a graph is launched again later; before it is asked how many run at once. */
    if (l->shared > 48 << 10) code = driver.set(function, FUNCTION_SHARED_BYTES, (int)nb_launch_device()->shared_bytes);
    if (!code && l->shared > 48 << 10) code = driver.set(function, FUNCTION_CARVEOUT, 100);
    if (!code && l->goes_on) {
        pthread_mutex_lock(&loading);
        config.grid[0] = grid_of_shares(l, clusters_at_once(function, l, &config));
        pthread_mutex_unlock(&loading);
    }
    if (!code) code = driver.launch(&config, function, args, NULL);
    return code ? failed("the driver does not launch", l->function, code) : 0;
}
int nb_launch(const struct nb_launch *launch) {
    const int code = launch_on_device(launch);
    if (code) last_error = code;
    return code;
}

int nb_launch_copy(void *to, const void *from, size_t bytes, void *stream) {
    if (nb_launch_refused()) return last_error = NB_LAUNCH_FAILED;
    const int code = driver.copy((uintptr_t)to, (uintptr_t)from, bytes, stream);
    return code ? last_error = failed("the driver does not", "copy", code) : 0;
}
