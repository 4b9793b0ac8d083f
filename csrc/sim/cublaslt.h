/* cublaslt.h: what stands behind cuBLASLt's descriptors. */
#ifndef DT_SIM_CUBLASLT_H
#define DT_SIM_CUBLASLT_H

#include "sim.h"

typedef struct {
    cublasComputeType_t compute;
    cudaDataType scale, bias_type; /* bias_type < 0: that of D */
    int transa, transb;
    unsigned epilogue;
    const void *bias;
} sim_lt_desc;

typedef struct {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t ld, stride;
    int batch;
} sim_lt_layout;

typedef struct {
    size_t workspace;
    unsigned alignment[4], reductions;
} sim_lt_preference;

#endif
