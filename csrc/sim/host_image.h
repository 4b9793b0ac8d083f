/* host_image.h: what tools/package/kernel_image.py writes for the simulated GPU. */
#ifndef DT_SIM_HOST_IMAGE_H
#define DT_SIM_HOST_IMAGE_H

/* The text of launch.h and host/, and a hash of it; not there in programs without kernels. */
extern const char sim_host_source[] __attribute__((weak, visibility("hidden")));
extern const char sim_host_hash[] __attribute__((weak, visibility("hidden")));

#endif
