"""The CUDA driver from Python: devices, memory, streams, and loading and launching kernels.

Importing it opens no library and loads no NumPy; the driver is opened at the first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the name is what counts; importing typing would cost most of the time
if TYPE_CHECKING:
    from cudadrv import (  # noqa: F401
        config,
        driver,
        errors,
        library,
        nvjitlink,
        nvrtc,
        nvvm,
        profiler,
        raw,
    )
    from cudadrv.array import (
        DeviceArray,
        as_cuda_array,
        from_cuda_array_interface,
        is_cuda_array,
    )
    from cudadrv.capture import CaptureInfo, capture_mode
    from cudadrv.cleanup import defer_cleanup, pending
    from cudadrv.context import CudaWarning, Resource, current_context
    from cudadrv.copies import memcpy, memcpy_batch, memcpy_peer
    from cudadrv.creation import device_array, device_array_like, from_dlpack, to_device
    from cudadrv.cuda_array import CudaArray, MipmappedArray
    from cudadrv.device import Context, Device, devices
    from cudadrv.driver import driver_version, init, is_available, is_emulator
    from cudadrv.errors import (
        ClosedError,
        CudaError,
        DriverNotFound,
        ForkError,
        InvalidContext,
        JitError,
        LaunchError,
        NameNotFound,
        NotSupported,
        NotSupportedByDriver,
        OutOfMemory,
    )
    from cudadrv.event import Event
    from cudadrv.execution import GraphExec, GraphUpdateError
    from cudadrv.external import ExternalMemory, ExternalSemaphore
    from cudadrv.fills import memset, memset_2d
    from cudadrv.graph import Graph, GraphMemory
    from cudadrv.graph_nodes import (
        ChildNode,
        ConditionalNode,
        EmptyNode,
        HostNode,
        KernelNode,
        RecordNode,
        SemaphoreWaitNode,
        SignalNode,
        WaitNode,
    )
    from cudadrv.green import GreenContext, SmResource
    from cudadrv.host_memory import HostMemory, PinnedMemory, RegisteredMemory, host_register
    from cudadrv.hostarray import (
        MappedArray,
        managed_array,
        mapped,
        mapped_array,
        mapped_array_like,
        pinned,
        pinned_array,
        pinned_array_like,
    )
    from cudadrv.ipc import IpcMemory, ipc_open
    from cudadrv.kernel import Kernel
    from cudadrv.library import use_driver
    from cudadrv.linker import Linker, LinkError
    from cudadrv.managed import ManagedMemory, managed_alloc, mem_discard, mem_prefetch
    from cudadrv.manager import (
        MemoryManager,
        current_memory_manager,
        memory_manager,
        set_memory_manager,
    )
    from cudadrv.memory import DeviceMemory, mem_alloc
    from cudadrv.memory_nodes import AllocNode, FreeNode, MemcpyNode, MemoryOperations, MemsetNode
    from cudadrv.module import Library, load, loading_mode, newest_ptx
    from cudadrv.node import Edge, Node, NodeParams
    from cudadrv.pitched import PitchedMemory, mem_alloc_pitch, memcpy_2d, memcpy_3d
    from cudadrv.pointers import address_range, dma_buf, pointer_attributes, pointer_kind
    from cudadrv.pool import MemoryPool, StreamMemory, mem_alloc_async
    from cudadrv.stream import Stream
    from cudadrv.tensormap import TensorMap
    from cudadrv.texture import ResourceView, SurfaceObject, TextureObject
    from cudadrv.virtual import PhysicalMemory, VirtualMemory, granularity, virtual_alloc

# Where each name is defined; it is imported when it is first used.
HOME = {
    "array": "DeviceArray as_cuda_array from_cuda_array_interface is_cuda_array",
    "cleanup": "defer_cleanup pending",
    "context": "CudaWarning Resource current_context",
    "cuda_array": "CudaArray MipmappedArray",
    "copies": "memcpy memcpy_batch memcpy_peer",
    "creation": "device_array device_array_like from_dlpack to_device",
    "device": "Context Device devices",
    "driver": "driver_version init is_available is_emulator",
    "errors": "ClosedError CudaError DriverNotFound ForkError InvalidContext JitError LaunchError "
    "NameNotFound NotSupported NotSupportedByDriver OutOfMemory",
    "event": "Event",
    "fills": "memset memset_2d",
    "green": "GreenContext SmResource",
    "hostarray": "MappedArray managed_array mapped mapped_array mapped_array_like pinned "
    "pinned_array pinned_array_like",
    "host_memory": "HostMemory PinnedMemory RegisteredMemory host_register",
    "external": "ExternalMemory ExternalSemaphore",
    "ipc": "IpcMemory ipc_open",
    "kernel": "Kernel",
    "library": "use_driver",
    "linker": "LinkError Linker",
    "manager": "MemoryManager current_memory_manager memory_manager set_memory_manager",
    "managed": "ManagedMemory managed_alloc mem_discard mem_prefetch",
    "memory": "DeviceMemory mem_alloc",
    "pitched": "PitchedMemory mem_alloc_pitch memcpy_2d memcpy_3d",
    "module": "Library load loading_mode newest_ptx",
    "pointers": "address_range dma_buf pointer_attributes pointer_kind",
    "pool": "MemoryPool StreamMemory mem_alloc_async",
    "stream": "Stream",
    "virtual": "PhysicalMemory VirtualMemory granularity virtual_alloc",
    "tensormap": "TensorMap",
    "capture": "CaptureInfo capture_mode",
    "execution": "GraphExec GraphUpdateError",
    "graph": "Graph GraphMemory",
    "graph_nodes": "ChildNode ConditionalNode EmptyNode HostNode KernelNode RecordNode "
    "SemaphoreWaitNode SignalNode WaitNode",
    "memory_nodes": "AllocNode FreeNode MemcpyNode MemoryOperations MemsetNode",
    "node": "Edge Node NodeParams",
    "texture": "ResourceView SurfaceObject TextureObject",
}
MODULES = (
    "config",
    "driver",
    "emulator",
    "errors",
    "library",
    "nvjitlink",
    "nvrtc",
    "nvvm",
    "profiler",
    "raw",
)
__all__ = [
    "AllocNode",
    "CaptureInfo",
    "ChildNode",
    "ClosedError",
    "ConditionalNode",
    "Context",
    "CudaArray",
    "CudaError",
    "CudaWarning",
    "Device",
    "DeviceArray",
    "DeviceMemory",
    "DriverNotFound",
    "Edge",
    "EmptyNode",
    "Event",
    "ExternalMemory",
    "ExternalSemaphore",
    "ForkError",
    "FreeNode",
    "Graph",
    "GraphExec",
    "GraphMemory",
    "GraphUpdateError",
    "GreenContext",
    "HostMemory",
    "HostNode",
    "InvalidContext",
    "IpcMemory",
    "JitError",
    "Kernel",
    "KernelNode",
    "LaunchError",
    "Library",
    "LinkError",
    "Linker",
    "ManagedMemory",
    "MappedArray",
    "MemcpyNode",
    "MemoryManager",
    "MemoryOperations",
    "MemoryPool",
    "MemsetNode",
    "MipmappedArray",
    "NameNotFound",
    "Node",
    "NodeParams",
    "NotSupported",
    "NotSupportedByDriver",
    "OutOfMemory",
    "PhysicalMemory",
    "PinnedMemory",
    "PitchedMemory",
    "RecordNode",
    "RegisteredMemory",
    "Resource",
    "ResourceView",
    "SemaphoreWaitNode",
    "SignalNode",
    "SmResource",
    "Stream",
    "StreamMemory",
    "SurfaceObject",
    "TensorMap",
    "TextureObject",
    "VirtualMemory",
    "WaitNode",
    "address_range",
    "as_cuda_array",
    "capture_mode",
    "current_context",
    "current_memory_manager",
    "defer_cleanup",
    "device_array",
    "device_array_like",
    "devices",
    "dma_buf",
    "driver_version",
    "from_cuda_array_interface",
    "from_dlpack",
    "granularity",
    "host_register",
    "init",
    "ipc_open",
    "is_available",
    "is_cuda_array",
    "is_emulator",
    "load",
    "loading_mode",
    "managed_alloc",
    "managed_array",
    "mapped",
    "mapped_array",
    "mapped_array_like",
    "mem_alloc",
    "mem_alloc_async",
    "mem_alloc_pitch",
    "mem_discard",
    "mem_prefetch",
    "memcpy",
    "memcpy_2d",
    "memcpy_3d",
    "memcpy_batch",
    "memcpy_peer",
    "memory_manager",
    "memset",
    "memset_2d",
    "newest_ptx",
    "pending",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "pointer_attributes",
    "pointer_kind",
    "set_memory_manager",
    "to_device",
    "use_driver",
    "virtual_alloc",
]


def __getattr__(name: str) -> object:
    """Import *name* from the module that defines it."""
    import importlib

    if name in MODULES:
        return importlib.import_module(f"cudadrv.{name}")
    for module, names in HOME.items():
        if name in names.split():
            found = getattr(importlib.import_module(f"cudadrv.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'cudadrv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *MODULES})
