/* peer.c: which devices may reach another and its pool, and whose memory an address is. Copies between devices go
 * without; only what is asked is checked. */
#include "sim.h"

CUresult
sim_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    sim_device *a, *b;
    CUresult status = sim_find_device(device, &a);
    if (status == CUDA_SUCCESS) {
        status = sim_find_device(peer, &b);
    }
    if (status == CUDA_SUCCESS && can == NULL) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        *can = device != peer;
    }
    return status;
}

CUresult
sim_cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    sim_device *device;
    CUresult status = sim_current(&device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_device *other = sim_handle_get(SIM_CONTEXT, peer);
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (other == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (other == device) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    if (device->peers >> other->ordinal & 1) {
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    }
    device->peers |= UINT64_C(1) << other->ordinal;
    return CUDA_SUCCESS;
}

CUresult
sim_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    CUresult status = sim_ready();
    sim_device *device = status == CUDA_SUCCESS ? sim_handle_get(SIM_POOL, pool) : NULL;
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (device == NULL || (access == NULL && count > 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        bool known = access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && access[i].location.id >= 0 &&
                     access[i].location.id < sim_ndevices;
        bool none = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
        if (!known || (!none && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ||
            (none && access[i].location.id == device->ordinal)) { /* its own device keeps it */
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return device->sticky;
}

/* Page-locked memory belongs to the device that is current; an address of nobody is refused. */
CUresult
sim_cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    CUresult status = sim_ready();
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_device *owner = sim_owner(pointer), *current;
    bool pinned = owner == NULL && sim_is_pinned((const void *)(uintptr_t)pointer, 1);
    if (value == NULL || (!pinned && (owner == NULL || !sim_is_mapped(owner, pointer)))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        *(unsigned *)value = pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    }
    if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = pinned ? sim_context(&current) : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS) {
        *(int *)value = pinned ? current->ordinal : owner->ordinal;
    }
    return status;
}
