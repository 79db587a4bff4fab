// Compiled by: nvcc -arch=compute_75 -ptx textures.cu -o textures_sm75.ptx
// Programs that read textures and write surfaces, as nvcc translates them.

__device__ __noinline__ float4 at(cudaTextureObject_t image, float x, float y)
{
    return tex2D<float4>(image, x, y);
}

// A blurred image, by half a texel between its neighbours.
extern "C" __global__ void blur(cudaTextureObject_t image, cudaSurfaceObject_t out, int width,
                                int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float4 sum = at(image, x, y), more = at(image, x + 1, y + 1);
    sum.x = (sum.x + more.x) / 2; sum.y = (sum.y + more.y) / 2;
    sum.z = (sum.z + more.z) / 2; sum.w = (sum.w + more.w) / 2;
    surf2Dwrite(sum, out, x * (int)sizeof(float4), y);
}

// The image turned by a quarter, through shared memory.
extern "C" __global__ void turn(cudaTextureObject_t image, cudaSurfaceObject_t out)
{
    __shared__ unsigned char tile[16][17];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = tex2D<unsigned char>(image, x + 0.5f, y + 0.5f);
    __syncthreads();
    surf2Dwrite(tile[x][y], out, x, y);
}

// Sums over the levels of a mipmapped array, the layers of an array, and linear memory.
extern "C" __global__ void sums(cudaTextureObject_t levels, cudaTextureObject_t layers,
                                cudaTextureObject_t line, int count, float *out)
{
    float sum = 0;
    for (int i = 0; i < count; i++) sum += tex2DLod<float>(levels, 0.5f, 0.5f, i);
    out[0] = sum;
    sum = 0;
    for (int i = 0; i < count; i++) sum += tex2DLayered<float>(layers, 1.5f, 0.5f, i);
    out[1] = sum;
    sum = 0;
    for (int i = 0; i < count; i++) sum += tex1Dfetch<float2>(line, i).y;
    out[2] = sum;
}

// Counts of the bytes of an image, in a surface.
extern "C" __global__ void histogram(cudaTextureObject_t image, cudaSurfaceObject_t counts)
{
    unsigned char value = tex1Dfetch<unsigned char>(image, blockIdx.x * blockDim.x + threadIdx.x);
    asm volatile("sured.b.add.1d.u32.trap [%0, {%1}], %2;" ::"l"(counts), "r"(value * 4), "r"(1));
}
