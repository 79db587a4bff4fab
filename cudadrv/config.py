"""The environment variables of cudadrv, each read when it is asked for."""

from __future__ import annotations

import os


def driver() -> str:
    """Which driver: "auto", "emulator" or the path of a libcuda."""
    return os.environ.get("CUDADRV_DRIVER", "").strip() or "auto"


def emulator_cc() -> str:
    """Compute capability that the emulator shows, as "9.0" or "90"."""
    return os.environ.get("CUDADRV_EMULATOR_CC", "").strip() or "9.0"


def emulator_check() -> bool:
    """Whether the emulator checks every memory access of a kernel."""
    return os.environ.get("CUDADRV_EMULATOR_CHECK", "0").strip().lower() not in ("", "0", "off")


def nvvm() -> str | None:
    """The path of a libNVVM to use instead of looking for one."""
    return os.environ.get("CUDADRV_NVVM") or None


def libdevice() -> str | None:
    """The path of a libdevice.10.bc to use instead of looking for one."""
    return os.environ.get("CUDADRV_LIBDEVICE") or None


def nvjitlink() -> str | None:
    """The path of a libnvJitLink to use instead of looking for one."""
    return os.environ.get("CUDADRV_NVJITLINK") or None


def nvrtc() -> str | None:
    """The path of a libnvrtc to use instead of looking for one."""
    return os.environ.get("CUDADRV_NVRTC") or None


def cai_sync() -> bool:
    """Whether to wait for the stream that a foreign device array says its data is ordered on."""
    return os.environ.get("CUDADRV_CAI_SYNC", "1").strip().lower() not in ("", "0", "off")


def memory_manager() -> str | None:
    """Who allocates device memory, as "module:attribute", instead of the driver."""
    return os.environ.get("CUDADRV_MEMORY_MANAGER", "").strip() or None
