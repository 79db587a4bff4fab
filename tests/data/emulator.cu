// Kernels whose PTX tests the emulator. Made with: nvcc -arch=sm_75 -ptx emulator.cu -o emulator_sm75.ptx
// and the same for sm_120, whose PTX comes from a newer compiler. Results are checked in test_emulator_nvcc.py.
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void

KERNEL saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL block_sums(int n, const float *x, float *out) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

KERNEL warp_sums(const int *x, int *out) {
  int v = x[threadIdx.x];
  for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
}

KERNEL tile_sums(const int *x, int *out) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int v = x[threadIdx.x];
  for (int o = 4; o; o >>= 1) v += tile.shfl_xor(v, o);
  out[threadIdx.x] = v;
}

KERNEL compact(const int *x, int *count, int *out) {
  int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  if (v % 3 == 0) {
    auto active = cg::coalesced_threads();
    int base = 0;
    if (active.thread_rank() == 0) base = atomicAdd(count, active.size());
    out[active.shfl(base, 0) + active.thread_rank()] = v;
  }
}

KERNEL grid_phases(int *x, int n) {
  auto grid = cg::this_grid();
  int i = grid.thread_rank();
  for (int step = 0; step < 3; step++) {
    int v = x[(i + 1) % n];
    grid.sync();
    x[i] = v + 1;
    grid.sync();
  }
}

KERNEL matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float ta[8][8], tb[8][8];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 8 + y, col = blockIdx.x * 8 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 8) {
    ta[y][x] = a[row * n + k + x];
    tb[y][x] = b[(k + y) * n + col];
    __syncthreads();
    for (int j = 0; j < 8; j++) sum += ta[y][j] * tb[j][x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

__device__ double atomic_max(double *at, double v) {
  unsigned long long *p = (unsigned long long *)at, old = *p, seen;
  do {
    seen = old;
    old = atomicCAS(p, seen, __double_as_longlong(fmax(v, __longlong_as_double(seen))));
  } while (seen != old);
  return v;
}

KERNEL maximum(const double *x, double *out) { atomic_max(out, x[blockIdx.x * blockDim.x + threadIdx.x]); }

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
KERNEL recursion(int *x) { x[threadIdx.x] = fib(threadIdx.x); }

struct Shape { __device__ virtual int area(int x) const = 0; };
struct Square : Shape { __device__ int area(int x) const override { return x * x; } };
struct Strip : Shape { int h; __device__ Strip(int h) : h(h) {} __device__ int area(int x) const override { return x * h; } };
KERNEL virtual_calls(int *x) {
  Square square; Strip strip(7);
  const Shape *shape = x[threadIdx.x] & 1 ? (const Shape *)&square : &strip;
  x[threadIdx.x] = shape->area(x[threadIdx.x]);
}

__device__ __noinline__ int reversed(int *s, int v) {
  s[threadIdx.x] = v;
  __syncthreads();
  v = s[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  return v;
}
KERNEL barrier_in_call(int *x) {
  extern __shared__ int s[];
  int v = x[threadIdx.x];
  for (int i = 0; i < 3; i++) v = reversed(s, v) + 1;
  x[threadIdx.x] = v;
}

__constant__ float weights[4] = {1.5f, 2.5f, -3.f, 4.f};
__device__ int counter = 7;
KERNEL globals(float *x) { x[threadIdx.x] = weights[threadIdx.x % 4] + counter; }

KERNEL local_array(const int *x, int *out) {
  int a[16];
  for (int i = 0; i < 16; i++) a[i] = x[(threadIdx.x + i) % blockDim.x];
  for (int i = 1; i < 16; i++)
    for (int j = i; j > 0 && a[j - 1] > a[j]; j--) { int t = a[j]; a[j] = a[j - 1]; a[j - 1] = t; }
  out[threadIdx.x] = a[7];
}

struct Parameters { char kind; short s; double scale[2]; int3 v; };
KERNEL structure(Parameters p, double *out, int i) { out[0] = p.scale[i] * p.v.z + p.s + p.kind; }

KERNEL vectors(float4 *x, uchar4 *c) {
  float4 v = x[threadIdx.x];
  x[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
  uchar4 q = c[threadIdx.x];
  c[threadIdx.x] = make_uchar4(q.y, q.x, q.w, q.z);
}

KERNEL functions(const double *x, double *out, int n) {
  int i = threadIdx.x;
  double v = x[i];
  float f = (float)v;
  double r[] = {exp(v), log(fabs(v) + 1), cbrt(v), sqrt(fabs(v)) / 3, expf(f), powf(fabsf(f), 0.3f), atan2f(f, 2.f),
                tanhf(f), rsqrtf(f * f + 1), __expf(f), __sinf(f)};
  for (int k = 0; k < 11; k++) out[k * n + i] = r[k];
}

KERNEL integers(const long long *x, long long *out, int n) {
  int i = threadIdx.x;
  long long v = x[i], w = x[(i + 1) % n];
  unsigned long long u = v;
  out[i] = v / w;
  out[n + i] = v % w;
  out[2 * n + i] = __mul64hi(v, w);
  out[3 * n + i] = __popcll(u) + __clzll(v) * 100 + __ffsll(v) * 10000;
  out[4 * n + i] = (long long)((u >> 7) / 1000003u);
  out[5 * n + i] = (int)v / ((int)w | 1);
}

KERNEL halves(const __half *x, const __half2 *y, float *out) {
  int i = threadIdx.x;
  __half h = __hadd(__hmul(x[i], __float2half(1.5f)), x[0]);
  __half2 p = __hfma2(y[i], y[i], y[0]);
  out[i] = __half2float(h) + (__hgt(x[i], x[1]) ? 100.f : 0.f) + __low2float(p) + 1000.f * __high2float(p);
}

KERNEL print(int *x) {
  if (threadIdx.x == 1) printf("thread %d of %u: %5.2f %s %c %lld %#x %%\n", threadIdx.x, blockDim.x, 2.5, "text", 'c', -5ll, 255);
}
