/* peer.c: which devices may reach the pool of another. Copies between devices go without; only what is asked is
 * checked. */
#include "sim.h"

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
