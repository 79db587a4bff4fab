// Kernels in CUDA C++, compiled ahead of time; examples/load_ptx.py runs them through cudadrv alone.
// The .ptx beside this file is made by
//     nvcc -ptx -arch=compute_75 -o examples/nvcc/vector_ops.ptx examples/nvcc/vector_ops.cu

__device__ float threshold = 0.5f;

extern "C" __global__ void saxpy(float *out, float a, const float *x, const float *y, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a * x[i] + y[i];
}

// Counts the values above `threshold`, which the host may change.
extern "C" __global__ void count_above(unsigned long long *count, const float *x, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int in_block = __syncthreads_count(i < n && x[i] > threshold);
    if (threadIdx.x == 0)
        atomicAdd(count, (unsigned long long)in_block);
}

// Adds the sum of x to *total; warps add up by shuffles, the block through shared memory.
extern "C" __global__ void sum(float *total, const float *x, unsigned n)
{
    __shared__ float warp_sums[32];
    float mine = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += x[i];
    for (int distance = 16; distance > 0; distance /= 2)
        mine += __shfl_down_sync(0xffffffffu, mine, distance);
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0)
        warp_sums[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        mine = lane < blockDim.x / 32 ? warp_sums[lane] : 0;
        for (int distance = 16; distance > 0; distance /= 2)
            mine += __shfl_down_sync(0xffffffffu, mine, distance);
        if (lane == 0)
            atomicAdd(total, mine);
    }
}
