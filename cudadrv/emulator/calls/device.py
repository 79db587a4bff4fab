"""cuInit, cuGet..., cuDevice..."""

from __future__ import annotations

import ctypes
import os
import sys

from cudadrv import raw
from cudadrv.occupancy_model import Multiprocessor
from cudadrv.raw import table

from .. import arrays, state
from ..boundary import emulator, exported
from ..state import device
from ..status import CODES, Status, require

NAME = "cudadrv PTX emulator"
UUID = b"cudadrv-emulator"
PCI_BUS_ID = "0000:00:00.0"
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
SHARED_BYTES = 48 << 10
SHARED_BYTES_OPTIN = 227 << 10
MULTIPROCESSOR = Multiprocessor(2048, 32, 228 << 10, SHARED_BYTES_OPTIN)

# What virtual memory needs of the system: files that are memory.
VIRTUAL_MEMORY = sys.platform == "linux" and hasattr(os, "memfd_create")


def _attributes() -> dict[int, int]:
    """Of every CUdevice_attribute that is not 0."""
    major, minor = device.capability
    values = {
        "MAX_THREADS_PER_BLOCK": MAX_THREADS, "WARP_SIZE": 32,
        "MAX_BLOCK_DIM_X": MAX_BLOCK[0], "MAX_BLOCK_DIM_Y": MAX_BLOCK[1],
        "MAX_BLOCK_DIM_Z": MAX_BLOCK[2], "MAX_GRID_DIM_X": MAX_GRID[0],
        "MAX_GRID_DIM_Y": MAX_GRID[1], "MAX_GRID_DIM_Z": MAX_GRID[2],
        "MAX_SHARED_MEMORY_PER_BLOCK": SHARED_BYTES,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": SHARED_BYTES_OPTIN,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": MULTIPROCESSOR.shared,
        "TOTAL_CONSTANT_MEMORY": 65536, "MAX_PITCH": 2**31 - 1,
        "MAX_REGISTERS_PER_BLOCK": MULTIPROCESSOR.registers,
        "MAX_REGISTERS_PER_MULTIPROCESSOR": MULTIPROCESSOR.registers,
        "CLOCK_RATE": 1_000_000, "MEMORY_CLOCK_RATE": 1_000_000, "GLOBAL_MEMORY_BUS_WIDTH": 64,
        "L2_CACHE_SIZE": 1 << 20, "TEXTURE_ALIGNMENT": 512, "TEXTURE_PITCH_ALIGNMENT": 32,
        "MULTIPROCESSOR_COUNT": device.cores, "INTEGRATED": 1, "CAN_MAP_HOST_MEMORY": 1,
        "CONCURRENT_KERNELS": 0, "ASYNC_ENGINE_COUNT": 1, "UNIFIED_ADDRESSING": 1,
        "COMPUTE_CAPABILITY_MAJOR": major, "COMPUTE_CAPABILITY_MINOR": minor,
        "MAX_THREADS_PER_MULTIPROCESSOR": MULTIPROCESSOR.threads,
        "MAX_BLOCKS_PER_MULTIPROCESSOR": MULTIPROCESSOR.blocks,
        "STREAM_PRIORITIES_SUPPORTED": 1, "GLOBAL_L1_CACHE_SUPPORTED": 1,
        "LOCAL_L1_CACHE_SUPPORTED": 1, "MANAGED_MEMORY": 1, "HOST_NATIVE_ATOMIC_SUPPORTED": 1,
        "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": 2,
        "CONCURRENT_MANAGED_ACCESS": 1, "COMPUTE_PREEMPTION_SUPPORTED": 1,
        "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM": 1, "COOPERATIVE_LAUNCH": 1,
        "HOST_REGISTER_SUPPORTED": 1, "READ_ONLY_HOST_REGISTER_SUPPORTED": 1,
        "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST": 1, "MEMORY_POOLS_SUPPORTED": 1,
        "RESERVED_SHARED_MEMORY_PER_BLOCK": MULTIPROCESSOR.reserved,
        "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED": int(VIRTUAL_MEMORY),
        "HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED": int(VIRTUAL_MEMORY),
        "CLUSTER_LAUNCH": int(major >= 9),
        "MEM_SYNC_DOMAIN_COUNT": 4 if major >= 9 else 1, **arrays.attributes(),
        "TENSOR_MAP_ACCESS_SUPPORTED": int(major >= 9),
    }  # fmt: skip
    known = table.ENUMS[raw.types.resolve("CUdevice_attribute")]
    return {known[f"CU_DEVICE_ATTRIBUTE_{name}"]: value for name, value in values.items()}


_ATTRIBUTES = _attributes()
_ATTRIBUTE_COUNT = table.ENUMS[raw.types.resolve("CUdevice_attribute")]["CU_DEVICE_ATTRIBUTE_MAX"]


@exported(before_init=True)
def cuInit(flags: int) -> None:
    require(flags == 0)
    device.initialized = True


@exported(before_init=True)
def cuDriverGetVersion() -> int:
    return state.DRIVER_VERSION


def _find(name: str, version: int, flags: int) -> tuple[int, int]:
    """(address, CUdriverProcAddressQueryResult) of a function."""
    if flags & 2 and f"{name}_ptsz" in table.FUNCTIONS:
        name = f"{name}_ptsz"
        return emulator.address(name, version), 0
    found = emulator.find(name, version)
    if found:
        return found, 0
    return 0, 2 if emulator.find(name, state.DRIVER_VERSION) else 1


@exported(before_init=True)
def cuGetProcAddress_v2(name: str, version: int, flags: int) -> tuple[int, int]:
    return _find(name, version, flags)


@exported(before_init=True)
def cuGetProcAddress(name: str, version: int, flags: int) -> int:
    found, _ = _find(name, version, flags)
    require(found, "NOT_FOUND")
    return found


@exported(before_init=True)
def cuGetErrorName(code: int) -> str:
    names = [name for name, value in CODES.items() if value == code]
    require(names)
    return names[0]


@exported(before_init=True)
def cuGetErrorString(code: int) -> str:
    if code == 0:
        return "no error"
    name: str = cuGetErrorName(code)
    return name.replace("CUDA_ERROR_", "").replace("_", " ").lower()


@exported()
def cuDeviceGet(ordinal: int) -> int:
    require(ordinal == 0, "INVALID_DEVICE")
    return ordinal


@exported()
def cuDeviceGetCount() -> int:
    return 1


def _store_text(text: str, address: int, size: int) -> None:
    require(address and size > 0)
    data = text.encode()[: size - 1] + b"\0"
    ctypes.memmove(address, data, len(data))


@exported()
def cuDeviceGetName(address: int, size: int, dev: int) -> None:
    _store_text(NAME, address, size)


@exported("cuDeviceGetUuid")
def cuDeviceGetUuid_v2(dev: int) -> ctypes.Structure:
    uuid: ctypes.Structure = raw.types.record("CUuuid")()
    ctypes.memmove(ctypes.byref(uuid), UUID, 16)
    return uuid


@exported()
def cuDeviceTotalMem_v2(dev: int) -> int:
    return device.total_memory


@exported()
def cuDeviceGetAttribute(attribute: int, dev: int) -> int:
    require(0 < attribute < _ATTRIBUTE_COUNT)
    return _ATTRIBUTES.get(attribute, 0)


@exported()
def cuDeviceComputeCapability(dev: int) -> tuple[int, int]:
    return device.capability


@exported()
def cuDeviceGetPCIBusId(address: int, size: int, dev: int) -> None:
    _store_text(PCI_BUS_ID, address, size)


@exported()
def cuDeviceGetByPCIBusId(name: str) -> int:
    require(name == PCI_BUS_ID)
    return 0


@exported()
def cuDeviceGetLuid(address: int, dev: int) -> int:
    raise Status("NOT_SUPPORTED")


@exported()
def cuDeviceGetExecAffinitySupport(kind: int, dev: int) -> int:
    require(kind == 0)
    return 0


@exported()
def cuDeviceGetTexture1DLinearMaxWidth(array_format: int, channels: int, dev: int) -> int:
    require(channels in (1, 2, 4))
    return 1 << 28


@exported()
def cuDeviceGetP2PAttribute(attribute: int, dev: int, peer: int) -> int:
    # As of a GPU and itself: there is one device.
    raise Status("INVALID_DEVICE")


@exported()
def cuDeviceGetHostAtomicCapabilities(found: int, asked: int, count: int, dev: int) -> None:
    require(found and asked and count)
    known = set(table.ENUMS[raw.types.resolve("CUatomicOperation")].values())
    require(all(each in known for each in (ctypes.c_int * count).from_address(asked)))
    # Signed, unsigned and without a result, of 32 and 64 bits.
    (ctypes.c_uint * count).from_address(found)[:] = [0b11111] * count


@exported()
def cuDeviceGetP2PAtomicCapabilities(
    found: int, asked: int, count: int, dev: int, peer: int
) -> None:
    raise Status("INVALID_DEVICE")


@exported()
def cuDeviceCanAccessPeer(dev: int, peer: int) -> int:
    return 0
