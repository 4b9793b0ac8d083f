/* raw.c: a user's kernel, as a process of its own: its only memory beside its own is the device's, at the very
 * addresses that a kernel is given. What goes wrong in it ends that process and becomes an error of the device. */
#define _GNU_SOURCE
#include "host.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

#define TRIES 8                        /* until the addresses of a device are free in a new process */
#define OWN_MEMORY ((uint64_t)2 << 30) /* of a process, beside the device's */

/* ---------------------------------------------------------------- one process */

static atomic_uint seconds = 600;

void
sim_set_kernel_seconds(unsigned limit)
{
    atomic_store(&seconds, limit);
}

/* What became of it is in l, behind what was asked: the rest of l stays what it is, whatever the process wrote. */
static sim_ending
run_process(const sim_program *program, int arena, sim_launch *l)
{
    char name[] = "kernel";
    char *const argv[] = {name, NULL}, *const environment[] = {NULL};
    const size_t answer = offsetof(sim_launch, state);
    sim_ending ending = {0};
    sim_filter start, run;
    sim_filter_start(&start, SIM_EXECUTABLE_FD, program->loads);
    sim_filter_run(&run);
    _Static_assert(sizeof(run.steps[0]) == sizeof(l->steps[0]), "a step is eight bytes");
    l->nsteps = run.nsteps <= SIM_LAUNCH_STEPS ? run.nsteps : 0;
    memcpy(l->steps, run.steps, l->nsteps * sizeof(l->steps[0]));
    int file = sim_memory_file(l, sizeof(*l)), nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* output and error stay; where there is no memory of a device, no file of the caller's takes its place */
    const int fds[] = {nothing, -1, -1, arena >= 0 ? arena : nothing, file};
    const sim_command command = {.executable = program->executable,
                                 .argv = argv,
                                 .environment = environment,
                                 .fds = fds,
                                 .nfds = 5,
                                 .memory = l->arena_bytes + OWN_MEMORY,
                                 .seconds = atomic_load(&seconds),
                                 .loads = program->loads,
                                 .filter = &start};
    if (file >= 0 && nothing >= 0) {
        ending = sim_process_run(&command);
        ending.started = ending.started && pread(file, (char *)l + answer, sizeof(*l) - answer, (off_t)answer) ==
                                               (ssize_t)(sizeof(*l) - answer);
        l->text[sizeof(l->text) - 1] = '\0';
        close(file);
    }
    if (nothing >= 0) {
        close(nothing);
    }
    return ending;
}

/* Whether an executable names a program that is to load its libraries. */
static bool
loads_libraries(const void *executable, size_t nbytes)
{
    const unsigned char *bytes = executable;
    Elf64_Ehdr header;
    Elf64_Phdr part;
    if (nbytes < sizeof(header)) {
        return true;
    }
    memcpy(&header, bytes, sizeof(header));
    for (size_t i = 0; i < header.e_phnum; i++) {
        size_t at = (size_t)header.e_phoff + i * header.e_phentsize;
        if (at > nbytes || nbytes - at < sizeof(part)) {
            return true;
        }
        memcpy(&part, bytes + at, sizeof(part));
        if (part.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

/* Its number is out of the way of those that the process knows. */
static int
open_executable(const void *data, size_t nbytes)
{
    int small = sim_memory_file(data, nbytes);
    int file = small >= 0 ? fcntl(small, F_DUPFD_CLOEXEC, 32) : -1;
    if (small >= 0) {
        close(small);
    }
    return file;
}

/* A program, and the answer of its first process in *l and *ending. */
static sim_program *
open_program(const char *kernel, const void *executable, size_t nbytes, sim_launch *l, sim_ending *ending)
{
    sim_program *program = dt_malloc(sizeof(*program));
    if (program == NULL) {
        return NULL;
    }
    *program = (sim_program){
        .refs = 1, .executable = open_executable(executable, nbytes), .loads = loads_libraries(executable, nbytes)};
    snprintf(program->kernel, sizeof(program->kernel), "%s", kernel);
    l->version = SIM_LAUNCH_VERSION;
    *ending = run_process(program, -1, l);
    program->param_bytes = l->kernel_param_bytes;
    program->shared_bytes = l->static_shared_bytes;
    return program;
}

CUresult
sim_program_new(const char *kernel, const void *executable, size_t nbytes, sim_program **out)
{
    sim_ending ending;
    sim_launch *l = dt_calloc(1, sizeof(*l));
    sim_program *program = l != NULL ? open_program(kernel, executable, nbytes, l, &ending) : NULL;
    if (program == NULL) {
        dt_free(l);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    bool fits = ending.started && l->state == SIM_LAUNCH_OVER && program->param_bytes <= SIM_LAUNCH_PARAMS &&
                program->shared_bytes <= SIM_SHARED_BYTES;
    dt_free(l);
    if (!fits) {
        sim_program_release(program);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *out = program;
    return CUDA_SUCCESS;
}

void
sim_program_release(sim_program *program)
{
    if (program != NULL && --program->refs == 0) {
        if (program->executable >= 0) {
            close(program->executable);
        }
        dt_free(program);
    }
}

/* ---------------------------------------------------------------- what went wrong, in words */

static void
add_place(sim_text *text, const sim_launch *l, const char *kernel)
{
    sim_text_print(text, "kernel %s, block (%u, %u, %u), thread (%u, %u, %u)", kernel, l->at_block[0], l->at_block[1],
                   l->at_block[2], l->at_thread[0], l->at_thread[1], l->at_thread[2]);
}

/* How far bytes [address, address + nbytes) stand out of an array. */
static uint64_t
distance(const sim_launch_array *a, uint64_t address, uint64_t nbytes)
{
    return address < a->address ? a->address - address : address + nbytes - (a->address + a->nbytes);
}

static void
add_access(sim_text *text, const sim_launch *l)
{
    const sim_launch_array *a = NULL;
    for (uint32_t i = 0; i < l->narrays; i++) {
        const sim_launch_array *other = &l->arrays[i];
        if (a == NULL || distance(other, l->address, l->nbytes) < distance(a, l->address, l->nbytes)) {
            a = other;
        }
    }
    const char *verb = l->nbytes == 0 ? "reached for" : l->writes ? "wrote" : "read";
    if (a == NULL || l->address - l->arena >= l->arena_bytes) {
        sim_text_print(text, " %s address 0x%llx, which is not memory of the device", verb,
                       (unsigned long long)l->address);
        return;
    }
    int64_t offset = (int64_t)(l->address - a->address), size = (int64_t)a->itemsize;
    int64_t element = offset >= 0 ? offset / size : -((size - 1 - offset) / size);
    sim_text_print(text, " %s %s[%lld], %llu bytes %s: it has %llu elements", verb, a->name, (long long)element,
                   (unsigned long long)distance(a, l->address, l->nbytes),
                   offset < 0 ? "before its start" : "past its end", (unsigned long long)(a->nbytes / a->itemsize));
}

static void
add_system_call(sim_text *text, uint64_t number)
{
    const char *name = sim_system_call(number);
    if (name != NULL) {
        sim_text_print(text, " called %s of the host's system, which a GPU does not have", name);
    } else {
        sim_text_print(text, " made system call %llu of the host, which a GPU does not have",
                       (unsigned long long)number);
    }
}

static CUresult
describe_launch(const sim_launch *l, const char *kernel, sim_text *text)
{
    add_place(text, l, kernel);
    switch ((sim_fault)l->fault) {
    case SIM_FAULT_OUTSIDE:
        add_access(text, l);
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case SIM_FAULT_CONST:
        for (uint32_t i = 0; i < l->narrays; i++) {
            if (l->address - l->arrays[i].address < l->arrays[i].nbytes) {
                sim_text_print(text, " wrote to %s, which the kernel declares const", l->arrays[i].name);
                break;
            }
        }
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case SIM_FAULT_MISALIGNED:
        sim_text_print(text, " %s %u bytes at an address that is not a multiple of %u", l->writes ? "wrote" : "read",
                       l->nbytes, l->nbytes);
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case SIM_FAULT_SHARED:
        sim_text_print(text, " %s past the %u bytes of dynamic shared memory", l->writes ? "wrote" : "read",
                       l->shared_bytes);
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case SIM_FAULT_STACK:
        sim_text_print(text, " has no more stack");
        return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case SIM_FAULT_DIVISION:
        sim_text_print(text, " divided an integer by zero, or the lowest one by -1, which has no result%s%s",
                       l->text[0] != '\0' ? ", at " : "", l->text);
        return CUDA_ERROR_LAUNCH_FAILED;
    case SIM_FAULT_RETURN:
        sim_text_print(text, " reached the end of a function that is to return a value, at %s", l->text);
        return CUDA_ERROR_LAUNCH_FAILED;
    case SIM_FAULT_SYSTEM:
        add_system_call(text, l->address);
        return CUDA_ERROR_LAUNCH_FAILED;
    case SIM_FAULT_ASSERT:
        sim_text_print(text, ": assertion failed at %s", l->text);
        return CUDA_ERROR_ASSERT;
    case SIM_FAULT_DEADLOCK:
        sim_text_print(text, " waits for lanes of its warp that wait at __syncthreads()");
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    case SIM_FAULT_MEMORY:
        sim_text_print(text, ": the host has no memory for the threads");
        return CUDA_ERROR_LAUNCH_FAILED;
    case SIM_FAULT_TRAP:
        break;
    }
    sim_text_print(text, " trapped");
    return CUDA_ERROR_LAUNCH_FAILED;
}

/* How a process ended that has not answered. */
static void
add_ending(sim_text *text, const sim_launch *l, const char *kernel, const sim_ending *ending)
{
    int number = ending->started && WIFSIGNALED(ending->status) ? WTERMSIG(ending->status) : 0;
    const char *when = l->state == SIM_LAUNCH_RUNNING ? "early" : "before the kernel began";
    if (!ending->started) {
        sim_text_print(text, "the process of kernel %s could not be started", kernel);
    } else if (ending->late) {
        sim_text_print(text,
                       "kernel %s ran for longer than %u seconds; DEVTENSOR_SIM_SECONDS in the environment allows more",
                       kernel, atomic_load(&seconds));
    } else if (number == SIGINT) {
        sim_text_print(text, "kernel %s was interrupted", kernel);
    } else if (number == SIGSYS) {
        sim_text_print(text, "the process of kernel %s made a system call that is not allowed, and ended %s", kernel,
                       when);
    } else if (number != 0) {
        sim_text_print(text, "the process of kernel %s ended %s, by signal %d", kernel, when, number);
    } else {
        sim_text_print(text, "the process of kernel %s ended %s", kernel, when);
    }
}

/* The answer of a launch; its words stay with the device. */
static CUresult
answer(sim_device *device, const sim_launch *l, const char *kernel, const sim_ending *ending)
{
    sim_text text = {0};
    CUresult result = CUDA_ERROR_LAUNCH_FAILED;
    bool whole = ending->started && !ending->late && WIFEXITED(ending->status);
    if (whole && l->state == SIM_LAUNCH_OVER) {
        return CUDA_SUCCESS;
    }
    if (whole && l->state == SIM_LAUNCH_FAULT) {
        result = describe_launch(l, kernel, &text);
    } else {
        bool stopped = ending->late || (WIFSIGNALED(ending->status) && WTERMSIG(ending->status) == SIGINT);
        result = stopped ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_ERROR_LAUNCH_FAILED;
        add_ending(&text, l, kernel, ending);
    }
    sim_set_fault_text(device, text.data != NULL ? text.data : "");
    dt_free(text.data);
    return result;
}

bool
sim_program_check(const char *kernel, const void *executable, size_t nbytes, sim_text *log)
{
    sim_ending ending;
    sim_launch *l = dt_calloc(1, sizeof(*l));
    sim_program *program = l != NULL ? open_program(kernel, executable, nbytes, l, &ending) : NULL;
    bool fine = false;
    if (program == NULL) {
        log->failed = true;
    } else if (!ending.started || l->state != SIM_LAUNCH_OVER) {
        add_ending(log, l, kernel, &ending);
        sim_text_print(log, "\n");
    } else if (program->shared_bytes > SIM_SHARED_BYTES) {
        sim_text_print(log, "entry function '%s' uses too much shared data (0x%x bytes, 0x%x max)\n", kernel,
                       program->shared_bytes, SIM_SHARED_BYTES);
    } else {
        fine = true;
    }
    sim_program_release(program);
    dt_free(l);
    return fine;
}

/* ---------------------------------------------------------------- launching */

static CUresult
resolve_arrays(sim_device *device, const sim_launch *l, const char *kernel)
{
    for (uint32_t i = 0; i < l->narrays; i++) {
        const sim_launch_array *a = &l->arrays[i];
        void *memory;
        CUresult status = sim_resolve(device, a->address, (size_t)a->nbytes, &memory);
        if (status != CUDA_SUCCESS) {
            char text[160];
            snprintf(text, sizeof(text), "kernel %s: %s is not memory of this device any more", kernel, a->name);
            sim_set_fault_text(device, text);
            return status;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult
run_program(sim_device *device, const sim_item *item)
{
    const sim_program *program = item->program;
    sim_launch *asked = item->held, *l = dt_malloc(sizeof(*l));
    CUresult result = l == NULL ? CUDA_ERROR_OUT_OF_MEMORY : resolve_arrays(device, asked, program->kernel);
    sim_ending ending = {0};
    if (result == CUDA_SUCCESS) {
        int tries = 0;
        do {
            memcpy(l, asked, sizeof(*l));
            ending = run_process(program, device->file, l);
        } while (ending.started && l->state == SIM_LAUNCH_OCCUPIED && ++tries < TRIES);
        result = answer(device, l, program->kernel, &ending);
    }
    dt_free(l);
    return result;
}

static CUresult
enqueue_program(sim_stream *stream, const sim_item *item)
{
    const sim_launch *l = item->held;
    sim_touch touches[SIM_LAUNCH_ARRAYS];
    for (uint32_t i = 0; i < l->narrays; i++) {
        touches[i] = (sim_touch){l->arrays[i].address, (size_t)l->arrays[i].nbytes, l->arrays[i].writable != 0};
    }
    const char *name = sim_races_on() ? sim_race_name(item->program->kernel) : "";
    return sim_enqueue_work(stream, item, name, touches, (int)l->narrays);
}

CUresult
sim_program_launch(sim_program *program, sim_stream *stream, const unsigned grid[3], const unsigned block[3],
                   unsigned shared_bytes, void **extra)
{
    if (extra == NULL || (uintptr_t)extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT ||
        (uintptr_t)extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT ||
        (uintptr_t)extra[4] != CU_LAUNCH_PARAM_END_AS_INT) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t param_bytes = *(const size_t *)extra[3];
    const cuda_extents *extents = extra[5];
    if (param_bytes != program->param_bytes || extents->n < 0 || extents->n > SIM_LAUNCH_ARRAYS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_device *device = stream->device;
    sim_launch *l = dt_calloc(1, sizeof(*l));
    if (l == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    l->version = SIM_LAUNCH_VERSION;
    l->arena = (uint64_t)(uintptr_t)device->closed;
    l->arena_bytes = device->arena;
    for (int i = 0; i < 3; i++) {
        l->grid[i] = grid[i];
        l->block[i] = block[i];
    }
    l->shared_bytes = shared_bytes;
    l->param_bytes = (uint32_t)param_bytes;
    memcpy(l->params, extra[1], param_bytes);
    for (int i = 0; i < extents->n; i++) {
        const cuda_extent *extent = &extents->extents[i];
        sim_launch_array *a = &l->arrays[i];
        *a = (sim_launch_array){.address = extent->address,
                                .nbytes = extent->nbytes,
                                .writable = extent->written,
                                .itemsize = extent->itemsize > 0 ? extent->itemsize : 1};
        snprintf(a->name, sizeof(a->name), "%s", extent->name);
    }
    l->narrays = (uint32_t)extents->n;
    sim_item item = {.run = run_program, .held = l, .program = program};
    program->refs++;
    CUresult status = enqueue_program(stream, &item);
    if (status != CUDA_SUCCESS) {
        program->refs--;
        dt_free(l);
        return status;
    }
    return sim_sent(stream);
}
