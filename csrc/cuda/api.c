/* api.c: the table of calls: counted, able to fail on demand, filled from the libraries or by the simulated GPU. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../core/environment.h"
#include "device.h"
#include "load.h"

#define DEFAULT_SIM_MEMORY ((size_t)4 << 30)
#define DEFAULT_SIM_SECONDS 600
#define MAX_SIM_DEVICES 64

static cuda_api real;
atomic_int_fast64_t cuda_api_calls[DT_NAPI];

const char *const cuda_api_names[DT_NAPI] = {
#define DT_API(library, symbol, ret, params, names) #symbol,
#include "api.def"
#undef DT_API
};

const uint8_t cuda_api_libraries[DT_NAPI] = {
#define DT_API(library, symbol, ret, params, names) DT_LIBRARY_##library,
#include "api.def"
#undef DT_API
};

int
cuda_api_count(void)
{
    return DT_NAPI;
}

const char *
cuda_api_name(int symbol)
{
    return cuda_api_names[symbol];
}

int64_t
cuda_api_called(int symbol)
{
    return atomic_load(&cuda_api_calls[symbol]);
}

/* ---------------------------------------------------------------- faults on demand */

static struct {
    atomic_bool armed, lost; /* lost: what went wrong late has been noticed */
    atomic_int symbol, status, mode;
    atomic_int_fast64_t left, times;
} fault;

#define MOST_SITES 4096

/* Where calls have come from since cuda_api_fail with CUDA_FAULT_NONE. */
static struct {
    atomic_int n;
    cuda_call_site at[MOST_SITES];
} sites;

static const char *const returns[DT_NAPI] = {
#define DT_API(library, symbol, ret, params, names) #ret,
#include "api.def"
#undef DT_API
};

static bool
returns_status(int symbol)
{
    const char *type = returns[symbol];
    return strcmp(type, "void") != 0 && strcmp(type, "size_t") != 0 && strcmp(type, "const char *") != 0;
}

void
cuda_api_fail(int symbol, int64_t nth, int64_t times, int status, cuda_fault_mode mode)
{
    atomic_store(&fault.armed, false);
    atomic_store(&fault.lost, false);
    atomic_store(&fault.symbol, symbol);
    atomic_store(&fault.status, status);
    atomic_store(&fault.mode, mode);
    atomic_store(&fault.left, nth);
    atomic_store(&fault.times, times);
    atomic_store(&sites.n, mode == CUDA_FAULT_NONE ? 0 : atomic_load(&sites.n));
    atomic_store(&fault.armed, nth >= 0);
}

static bool
waits(int symbol)
{
    return symbol == DT_API_cuStreamSynchronize || symbol == DT_API_cuStreamQuery ||
           symbol == DT_API_cuEventSynchronize || symbol == DT_API_cuEventQuery || symbol == DT_API_cuCtxSynchronize;
}

/* What a call answers on a lost context; 0: it does not touch it. */
static int
lost_status(int symbol, int status)
{
    static const char *const outside[] = {"cuInit", "cuDriver", "cuGetError", "cuDevice", "cuCtxGet", "cuCtxSet"};
    if (cuda_api_libraries[symbol] != DT_LIBRARY_CUDA) {
        return symbol == DT_API_cublasLtMatmul        ? CUBLAS_STATUS_EXECUTION_FAILED
               : symbol == DT_API_cudnnBackendExecute ? CUDNN_STATUS_EXECUTION_FAILED
                                                      : 0;
    }
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        if (strncmp(cuda_api_names[symbol], outside[i], strlen(outside[i])) == 0) {
            return 0;
        }
    }
    return status;
}

int
cuda_api_sites(const cuda_call_site **out)
{
    const int n = atomic_load(&sites.n);
    *out = sites.at;
    return n < MOST_SITES ? n : MOST_SITES;
}

static void
note_site(int symbol, const void *site)
{
    const int i = atomic_fetch_add(&sites.n, 1);
    if (i < MOST_SITES) {
        sites.at[i] = (cuda_call_site){symbol, (int64_t)((intptr_t)site - (intptr_t)cuda_api_fail)};
    }
}

/* True: the call, from site, is not made and answers *answer. */
static bool
planned_fault(int symbol, const void *site, int *answer)
{
    int wanted = atomic_load(&fault.symbol), mode = atomic_load(&fault.mode), status = atomic_load(&fault.status);
    *answer = status;
    if (mode == CUDA_FAULT_NONE) {
        note_site(symbol, site);
        return false;
    }
    if (mode == CUDA_FAULT_SLOW) {
        if (wanted < 0 || wanted == symbol) {
            (void)nanosleep(&(struct timespec){.tv_nsec = (long)status * 1000}, NULL);
        }
        return false;
    }
    if (mode == CUDA_FAULT_LATE && atomic_load(&fault.left) < 0 && (atomic_load(&fault.lost) || waits(symbol))) {
        atomic_store(&fault.lost, true);
        *answer = lost_status(symbol, status);
        return *answer != 0;
    }
    if ((wanted >= 0 && wanted != symbol) || !returns_status(symbol)) {
        return false;
    }
    int64_t left = atomic_fetch_sub(&fault.left, 1);
    if (left == 0 && (mode == CUDA_FAULT_LATE || mode == CUDA_FAULT_DROPPED)) {
        *answer = 0;
        return true;
    }
    return left <= 0 && -left < atomic_load(&fault.times);
}

/* Counts the call. True: it is not made and answers *answer. */
static inline bool
enter_call(int symbol, const void *site, int *answer)
{
    atomic_fetch_add_explicit(&cuda_api_calls[symbol], 1, memory_order_relaxed);
    return DT_UNLIKELY(atomic_load_explicit(&fault.armed, memory_order_relaxed)) && planned_fault(symbol, site, answer);
}

#define DT_API(library, symbol, ret, params, names)                                                                    \
    static ret call_##symbol params                                                                                    \
    {                                                                                                                  \
        int answer;                                                                                                    \
        if (DT_UNLIKELY(enter_call(DT_API_##symbol, __builtin_return_address(0), &answer))) {                          \
            return (ret)(intptr_t)answer;                                                                              \
        }                                                                                                              \
        return real.symbol names;                                                                                      \
    }
#include "api.def"
#undef DT_API

cuda_api cu = {
#define DT_API(library, symbol, ret, params, names) .symbol = call_##symbol,
#include "api.def"
#undef DT_API
};

/* ---------------------------------------------------------------- opening */

typedef enum { MODE_AUTO, MODE_OFF, MODE_SIM } cuda_mode;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool opened, simulated, forked;
static atomic_bool loaded[DT_NLIBRARIES];
static void (*find_place)(char *text, size_t size);
static void (*warn_user)(const char *text);
static char first_use[512];
static int requested_devices; /* 0: no simulation was asked for by the program */
static size_t requested_memory;
static int opened_devices; /* as they are */
static size_t opened_memory;
static int requested_races = -1; /* a sim_race_mode; -1: as the environment says */

static void
after_fork_in_child(void)
{
    if (atomic_load(&opened)) {
        atomic_store(&forked, true);
    }
}

void
cuda_set_place(void (*place)(char *text, size_t size))
{
    find_place = place;
}

void
cuda_set_warn(void (*warn)(const char *text))
{
    warn_user = warn;
}

bool
cuda_api_alive(void)
{
    return atomic_load_explicit(&opened, memory_order_acquire) && !atomic_load_explicit(&forked, memory_order_relaxed);
}

bool
cuda_is_simulated(void)
{
    return atomic_load(&simulated);
}

static atomic_bool lends_simulated;

void
cuda_lend_simulated(bool lend)
{
    atomic_store(&lends_simulated, lend);
}

bool
cuda_can_lend(void)
{
    dt_error ignored; /* is told by whatever needs a device next */
    return cuda_api_open(&ignored) != DT_OK || !cuda_is_simulated() || atomic_load(&lends_simulated);
}

dt_status
cuda_request_simulated(int devices, size_t memory, int races, dt_error *err)
{
    if (devices < 1 || devices > MAX_SIM_DEVICES) {
        return dt_fail(err, DT_EVALUE, "invalid-argument", NULL,
                       "the number of simulated devices must be 1 to %d, got %d", MAX_SIM_DEVICES, devices);
    }
    pthread_mutex_lock(&lock);
    bool late = atomic_load(&opened);
    bool same = late && atomic_load(&simulated) && opened_devices == devices &&
                (memory == 0 ? requested_memory == 0 : opened_memory == memory);
    if (!late) {
        requested_devices = devices;
        requested_memory = memory;
        requested_races = races;
    } else if (same && races >= 0) {
        cuda_set_races((sim_race_mode)races);
    }
    pthread_mutex_unlock(&lock);
    if (late && !same) {
        return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                       "Simulated CUDA must be asked for before CUDA is first used in the process.");
    }
    return DT_OK;
}

dt_status
cuda_reset_simulated(dt_error *err)
{
    if (!atomic_load(&simulated)) {
        return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                       "reset_simulated(): no simulated device is in use; a real one that is lost stays so until the "
                       "process ends");
    }
    sim_reset();
    cuda_devices_found();
    return DT_OK;
}

/* What DEVTENSOR_CUDA asks for. */
static dt_status
read_mode(cuda_mode *mode, int *devices, dt_error *err)
{
    const char *text = getenv("DEVTENSOR_CUDA");
    *mode = MODE_AUTO;
    *devices = 1;
    if (text == NULL || text[0] == '\0' || strcmp(text, "auto") == 0) {
        return DT_OK;
    }
    if (strcmp(text, "off") == 0) {
        *mode = MODE_OFF;
        return DT_OK;
    }
    if (strncmp(text, "sim", 3) == 0) {
        *mode = MODE_SIM;
        if (text[3] == '\0') {
            return DT_OK;
        }
        size_t ndigits = text[3] == ':' ? strspn(text + 4, "0123456789") : 0;
        if (ndigits > 0 && ndigits < 4 && text[4 + ndigits] == '\0') {
            *devices = (int)strtol(text + 4, NULL, 10);
            if (*devices >= 1 && *devices <= MAX_SIM_DEVICES) {
                return DT_OK;
            }
        }
    }
    return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                   "DEVTENSOR_CUDA=%.64s is not understood: valid are auto, off, sim and sim:N with N from 1 to %d.",
                   text, MAX_SIM_DEVICES);
}

static dt_status
open_simulated(int devices, size_t memory, dt_error *err)
{
    size_t usual = (size_t)dt_environment_number(DT_ENV_SIM_MEMORY, DEFAULT_SIM_MEMORY);
    opened_devices = devices;
    opened_memory = memory != 0 ? memory : usual;
    DT_TRY(sim_open(devices, opened_memory, &real, err));
    cuda_set_races(requested_races >= 0 ? (sim_race_mode)requested_races
                                        : (sim_race_mode)dt_environment_word(DT_ENV_SIM_RACES, SIM_RACES_OFF));
    sim_set_order(dt_environment_number(DT_ENV_SIM_ORDER, 0));
    sim_set_fill(dt_environment_word(DT_ENV_SIM_FILL, 0) == 1);
    sim_set_kernel_seconds((unsigned)dt_environment_number(DT_ENV_SIM_SECONDS, DEFAULT_SIM_SECONDS));
    for (int i = 0; i < DT_NLIBRARIES; i++) {
        atomic_store(&loaded[i], true);
    }
    atomic_store(&simulated, true);
    return DT_OK;
}

static void *
slot_of(int symbol)
{
    static const size_t offsets[DT_NAPI] = {
#define DT_API(library, symbol, ret, params, names) offsetof(cuda_api, symbol),
#include "api.def"
#undef DT_API
    };
    return (char *)&real + offsets[symbol];
}

/* How to say the least version that will do. */
static const char *const least_versions[DT_NLIBRARIES] = {
    [DT_LIBRARY_CUDA] = "one for CUDA 13.0, such as 580",
    [DT_LIBRARY_CUBLASLT] = "13.0",
    [DT_LIBRARY_CUDNN] = "9.12",
    [DT_LIBRARY_NVRTC] = "13.0",
};

static int
version_of(dt_library library)
{
    int major = 0, minor = 0;
    switch (library) {
    case DT_LIBRARY_CUDA:
        return cu.cuDriverGetVersion(&major) == 0 ? major : 0;
    case DT_LIBRARY_CUBLASLT:
        return (int)cu.cublasLtGetVersion();
    case DT_LIBRARY_CUDNN:
        return (int)cu.cudnnGetVersion();
    default:
        return cu.nvrtcVersion(&major, &minor) == 0 ? major * 1000 + minor * 10 : 0;
    }
}

/* 0: the library does not say, as the driver's stub for linking; cuInit then has the better text. */
static dt_status
check_version(dt_library library, dt_error *err)
{
    int version = version_of(library);
    if (version == 0 || version >= cuda_load_least(library)) {
        return DT_OK;
    }
    char path[256];
    cuda_load_path(library, path, sizeof(path));
    return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                   "%s is not available: %s (%s) is of version %d; devtensor needs %s or newer.",
                   library == DT_LIBRARY_CUDA ? "CUDA" : cuda_load_purpose(library), cuda_load_soname(library), path,
                   version, least_versions[library]);
}

/* Loads one library and fills its part of the table; the lock is held. */
static dt_status
load_library(dt_library library, dt_error *err)
{
    void *handle = cuda_load_library(library);
    if (handle == NULL) {
        return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL, "%s is not available: %s could not be loaded.",
                       library == DT_LIBRARY_CUDA ? "CUDA" : cuda_load_purpose(library), cuda_load_soname(library));
    }
    for (int symbol = 0; symbol < DT_NAPI; symbol++) {
        if (cuda_api_libraries[symbol] != library) {
            continue;
        }
        void *address = cuda_load_symbol(handle, library, cuda_api_names[symbol]);
        if (address == NULL) {
            char path[256];
            cuda_load_path(library, path, sizeof(path));
            return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                           "%s is not available: %s (%s) is too old for devtensor, it has no symbol %s.",
                           library == DT_LIBRARY_CUDA ? "CUDA" : cuda_load_purpose(library), cuda_load_soname(library),
                           path, cuda_api_names[symbol]);
        }
        memcpy(slot_of(symbol), &address, sizeof(address));
    }
    DT_TRY(check_version(library, err));
    atomic_store_explicit(&loaded[library], true, memory_order_release);
    return DT_OK;
}

static dt_status
fail_init(int status, dt_error *err)
{
    switch (status) {
    case CUDA_ERROR_NO_DEVICE:
        return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                       "CUDA is not available: the driver is installed but finds no CUDA device.");
    case CUDA_ERROR_STUB_LIBRARY:
        return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                       "CUDA is not available: the libcuda.so.1 that was found is the stub for linking, not a driver.");
    case 35: /* CUDA_ERROR_INSUFFICIENT_DRIVER */
        return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                       "CUDA is not available: the NVIDIA driver is too old for CUDA 13.");
    default:
        return cuda_fail(NULL, DT_API_cuInit, status, err);
    }
}

bool
cuda_is_open(void)
{
    return atomic_load(&opened);
}

static dt_status
open_locked(dt_error *err)
{
    static bool watching;
    cuda_mode mode;
    int devices;
    if (atomic_load(&opened)) {
        return DT_OK;
    }
    if (!watching && pthread_atfork(NULL, NULL, after_fork_in_child) != 0) {
        return dt_fail_nomem(err, 0);
    }
    watching = true;
    if (requested_devices > 0) {
        DT_TRY(open_simulated(requested_devices, requested_memory, err));
    } else {
        DT_TRY(read_mode(&mode, &devices, err));
        if (mode == MODE_OFF) {
            return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                           "CUDA is switched off by DEVTENSOR_CUDA=off.");
        }
        DT_TRY(mode == MODE_SIM ? open_simulated(devices, 0, err) : load_library(DT_LIBRARY_CUDA, err));
    }
    int status = cu.cuInit(0);
    if (status != 0) {
        return fail_init(status, err);
    }
    atomic_store_explicit(&opened, true, memory_order_release);
    return DT_OK;
}

static dt_status
fail_forked(dt_error *err)
{
    return dt_fail(err, DT_ENODEVICE, "forked", NULL,
                   "CUDA was used%s%s before this process was forked, and cannot be used in the child. Start the "
                   "process with the \"spawn\" method, or use CUDA only in the child.",
                   first_use[0] ? ", first at " : "", first_use);
}

dt_status
cuda_api_open(dt_error *err)
{
    if (atomic_load_explicit(&opened, memory_order_acquire)) {
        return atomic_load_explicit(&forked, memory_order_relaxed) ? fail_forked(err) : DT_OK;
    }
    char here[sizeof(first_use)] = "";
    pthread_mutex_lock(&lock);
    dt_status rc = open_locked(err);
    pthread_mutex_unlock(&lock);
    if (rc == DT_OK && find_place != NULL) {
        find_place(here, sizeof(here)); /* with no lock held: it takes those of its own language */
        pthread_mutex_lock(&lock);
        if (first_use[0] == '\0') {
            memcpy(first_use, here, sizeof(here));
        }
        pthread_mutex_unlock(&lock);
    }
    return rc;
}

int
cuda_api_version(dt_library library)
{
    return atomic_load_explicit(&loaded[library], memory_order_acquire) ? version_of(library) : 0;
}

bool
cuda_cublas_hazard(int major)
{
    int version = cuda_api_version(DT_LIBRARY_CUBLASLT);
    return version >= 120800 && version < 130200 && (major == 10 || major == 11);
}

/* Once, when cuBLAS has been loaded. */
static void
warn_of_hazard(void)
{
    int count = 0, major = 0;
    if (warn_user == NULL || !cuda_api_alive() || cu.cuDeviceGetCount(&count) != 0) {
        return;
    }
    for (int i = 0; i < count; i++) {
        if (cu.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, i) == 0 &&
            cuda_cublas_hazard(major)) {
            warn_user("cuBLAS 12.8 to 13.1 can corrupt data on devices of compute capability 10.0 to 11.x; "
                      "pip install --upgrade 'nvidia-cublas>=13.2'");
            return;
        }
    }
}

static dt_status
need_library(dt_library library, dt_error *err)
{
    pthread_mutex_lock(&lock);
    dt_status rc = DT_OK;
    if (!atomic_load(&loaded[library])) {
        if (library == DT_LIBRARY_CUDNN) { /* it looks for these two among the libraries that are loaded already */
            (void)cuda_load_library(DT_LIBRARY_CUBLASLT);
            (void)cuda_load_library(DT_LIBRARY_NVRTC);
        }
        rc = load_library(library, err);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

dt_status
cuda_api_need(dt_library library, dt_error *err)
{
    if (atomic_load_explicit(&loaded[library], memory_order_acquire)) {
        return DT_OK;
    }
    DT_TRY(need_library(library, err));
    if (library == DT_LIBRARY_CUBLASLT) {
        warn_of_hazard();
    }
    return DT_OK;
}

dt_status
cuda_api_probe(dt_library library, dt_error *err)
{
    cuda_mode mode;
    int devices;
    if (library == DT_LIBRARY_CUDA || atomic_load(&forked)) {
        return cuda_api_open(err);
    }
    DT_TRY(read_mode(&mode, &devices, err));
    if (mode == MODE_AUTO && requested_devices == 0) {
        return need_library(library, err);
    }
    return cuda_api_open(err); /* switched off, or simulated with all its libraries */
}
