/* launch_log.h: what an error of earlier work may be of (launch_log.c). */
#ifndef DT_CUDA_LAUNCH_LOG_H
#define DT_CUDA_LAUNCH_LOG_H

#include "../device.h"

#define CUDA_SENT_CALL 0x80000000u /* and the symbol, for a call of a library */
#define CUDA_SENT_RAW 0x40000000u  /* and its number, for a user's kernel; else a kernel's number + 1 */

/* Before it is sent to this thread's stream. */
void cuda_note_sent(cuda_device *device, unsigned what);
/* This thread's stream has ended, without an error, what was sent to it before the mark. */
uint64_t cuda_sent_mark(const cuda_device *device);
void cuda_sent_over(const cuda_device *device, uint64_t mark);

#endif
