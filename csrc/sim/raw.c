/* raw.c: a user's kernel, as a process of its own: its only memory beside its own is the device's, at the very
 * addresses that a kernel is given. What goes wrong in it ends that process and becomes an error of the device. */
#define _GNU_SOURCE
#include "host.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 8 /* until the addresses of a device are free in a new process */

/* ---------------------------------------------------------------- one process */

/* What became of it is in l, but for a process that was ended by a signal: status as waitpid gives it. */
static bool
run_process(const sim_program *program, int arena, sim_launch *l, int *status)
{
    char path[40], name[] = "kernel";
    char *const argv[] = {name, NULL}, *const environment[] = {NULL};
    int file = sim_memory_file(l, sizeof(*l));
    if (file < 0) {
        return false;
    }
    const int fds[] = {-1, -1, -1, arena, file};
    snprintf(path, sizeof(path), "/proc/self/fd/%d", program->executable);
    *status = sim_process_run(path, argv, environment, fds, 5);
    bool ran = *status != -1 && pread(file, l, sizeof(*l), 0) == (ssize_t)sizeof(*l);
    l->text[sizeof(l->text) - 1] = '\0';
    close(file);
    return ran;
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

CUresult
sim_program_new(const char *kernel, const void *executable, size_t nbytes, sim_program **out)
{
    int status;
    sim_launch *l = dt_calloc(1, sizeof(*l));
    sim_program *program = l != NULL ? dt_malloc(sizeof(*program)) : NULL;
    if (program == NULL) {
        dt_free(l);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *program = (sim_program){.refs = 1, .executable = open_executable(executable, nbytes)};
    snprintf(program->kernel, sizeof(program->kernel), "%s", kernel);
    l->version = SIM_LAUNCH_VERSION;
    bool fits = run_process(program, -1, l, &status) && l->state == SIM_LAUNCH_OVER;
    program->param_bytes = l->param_bytes;
    program->shared_bytes = l->static_shared_bytes;
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
        sim_text_print(text, " %s address 0x%llx, which is no memory of the device", verb,
                       (unsigned long long)l->address);
        return;
    }
    int64_t offset = (int64_t)(l->address - a->address), size = (int64_t)a->itemsize;
    int64_t element = offset >= 0 ? offset / size : -((size - 1 - offset) / size);
    sim_text_print(text, " %s %s[%lld], %llu bytes %s: it has %llu elements", verb, a->name, (long long)element,
                   (unsigned long long)distance(a, l->address, l->nbytes),
                   offset < 0 ? "before its start" : "past its end", (unsigned long long)(a->nbytes / a->itemsize));
}

static CUresult
describe(const sim_launch *l, const char *kernel, sim_text *text)
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
        sim_text_print(text, " %s %u bytes at an address that is no multiple of %u", l->writes ? "wrote" : "read",
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
        sim_text_print(text, " divided an integer by zero, or the lowest one by -1, which has no result");
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

/* The answer of a launch; its words stay with the device. */
static CUresult
answer(sim_device *device, const sim_launch *l, const char *kernel, bool ran, int status)
{
    sim_text text = {0};
    CUresult result = CUDA_ERROR_LAUNCH_FAILED;
    if (ran && l->state == SIM_LAUNCH_OVER) {
        return CUDA_SUCCESS;
    }
    if (ran && l->state == SIM_LAUNCH_FAULT) {
        result = describe(l, kernel, &text);
    } else if (ran && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) {
        sim_text_print(&text, "kernel %s was interrupted", kernel);
        result = CUDA_ERROR_LAUNCH_TIMEOUT;
    } else if (ran && l->state == SIM_LAUNCH_RUNNING) {
        sim_text_print(&text, "the process of kernel %s ended early", kernel);
    } else {
        sim_text_print(&text, "the process of kernel %s could not be started", kernel);
    }
    sim_set_fault_text(device, text.data != NULL ? text.data : "");
    dt_free(text.data);
    return result;
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
            snprintf(text, sizeof(text), "kernel %s: %s is no memory of this device any more", kernel, a->name);
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
    bool ran = true;
    int status = 0;
    if (result == CUDA_SUCCESS) {
        int tries = 0;
        do {
            memcpy(l, asked, sizeof(*l));
            ran = run_process(program, device->file, l, &status);
        } while (ran && l->state == SIM_LAUNCH_OCCUPIED && ++tries < TRIES);
        result = answer(device, l, program->kernel, ran, status);
    }
    dt_free(l);
    return result;
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
    CUresult status = sim_enqueue(stream, &item);
    if (status != CUDA_SUCCESS) {
        program->refs--;
        dt_free(l);
        return status;
    }
    return sim_sent(stream);
}
