/* device.c: names of devices, the current one and the default one. */
#include "devtensor.h"

#include <stdio.h>
#include <string.h>

static _Thread_local int current_index;
static _Atomic uint64_t default_device = (uint64_t)DT_CPU << 32;
static _Thread_local dt_device device_here; /* type 0: none */

/* Largest index that a device may have, as in the frameworks. */
#define MAX_INDEX 255

static dt_status
fail_text(const char *text, dt_error *err)
{
    return dt_fail(
        err, DT_EVALUE, "invalid-device", "device",
        "Invalid device string: '%.64s'. Valid are \"cpu\", \"cuda\" (the current CUDA device) and \"cuda:N\" "
        "with N from 0.",
        text);
}

dt_status
dt_device_make(const char *type, int64_t index, dt_device *device, dt_error *err)
{
    if (strcmp(type, "cpu") == 0) {
        if (index > 0) {
            return dt_fail(err, DT_ENODEVICE, "device-not-available", "device",
                           "Device cpu:%lld does not exist: there is one cpu, called \"cpu\".", (long long)index);
        }
        *device = (dt_device){DT_CPU, 0};
        return DT_OK;
    }
    if (strcmp(type, "cuda") != 0) {
        return fail_text(type, err);
    }
    if (index > MAX_INDEX) {
        return dt_fail(err, DT_ENODEVICE, "device-not-available", "device",
                       "Device cuda:%lld does not exist: indices go from 0 to %d.", (long long)index, MAX_INDEX);
    }
    *device = (dt_device){DT_CUDA, index < 0 ? current_index : (int32_t)index};
    return DT_OK;
}

dt_status
dt_device_parse(const char *text, dt_device *device, dt_error *err)
{
    if (text[0] == '\0') {
        return dt_fail(err, DT_EVALUE, "invalid-device", "device",
                       "Device string must not be empty. Valid are \"cpu\", \"cuda\" and \"cuda:N\" with N from 0.");
    }
    const char *colon = strchr(text, ':');
    if (colon == NULL) {
        return dt_device_make(text, -1, device, err);
    }
    size_t length = (size_t)(colon - text);
    bool cuda = length == 4 && memcmp(text, "cuda", 4) == 0, cpu = length == 3 && memcmp(text, "cpu", 3) == 0;
    const char *digits = colon + 1;
    size_t ndigits = strspn(digits, "0123456789");
    if ((!cuda && !cpu) || ndigits == 0 || digits[ndigits] != '\0' || (digits[0] == '0' && ndigits > 1)) {
        return fail_text(text, err);
    }
    int64_t index = 0;
    for (size_t i = 0; i < ndigits; i++) {
        index = index > MAX_INDEX ? index : index * 10 + (digits[i] - '0');
    }
    if (index > MAX_INDEX) {
        return dt_fail(err, DT_ENODEVICE, "device-not-available", "device",
                       "Device %.64s does not exist: indices go from 0 to %d.", text, MAX_INDEX);
    }
    return dt_device_make(cuda ? "cuda" : "cpu", index, device, err);
}

const char *
dt_device_text(dt_device device, char *text)
{
    if (device.type == DT_CPU) {
        snprintf(text, DT_DEVICE_TEXT, "cpu");
    } else {
        snprintf(text, DT_DEVICE_TEXT, "cuda:%d", device.index);
    }
    return text;
}

int
dt_current_device(void)
{
    return current_index;
}

dt_device
dt_current_accelerator(void)
{
    return (dt_device){DT_CUDA, current_index};
}

dt_status
dt_set_current_device(int index, dt_error *err)
{
    const dt_backend *backend;
    DT_TRY(dt_backend_for((dt_device){DT_CUDA, index}, &backend, err));
    current_index = index;
    return DT_OK;
}

dt_device
dt_default_device(void)
{
    if (device_here.type != 0) {
        return device_here;
    }
    uint64_t packed = default_device;
    return (dt_device){(int32_t)(packed >> 32), (int32_t)(packed & 0xffffffffu)};
}

dt_status
dt_set_default_device_here(dt_device device, dt_device *before, dt_error *err)
{
    const dt_backend *backend;
    if (device.type != 0) {
        DT_TRY(dt_backend_for(device, &backend, err));
    }
    *before = device_here;
    device_here = device;
    return DT_OK;
}

dt_status
dt_set_default_device(dt_device device, dt_error *err)
{
    const dt_backend *backend;
    DT_TRY(dt_backend_for(device, &backend, err));
    default_device = (uint64_t)device.type << 32 | (uint32_t)device.index;
    return DT_OK;
}
