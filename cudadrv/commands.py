"""What each command of ``python -m cudadrv`` finds out, as dicts for JSON, and as text."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cudadrv import chart, driver, library, module, nvjitlink, nvrtc, nvvm, occupancy_model, raw
from cudadrv.device import Device, devices
from cudadrv.errors import DriverNotFound
from cudadrv.memory import amount
from cudadrv.raw import table
from cudadrv.toolkit import LibraryNotFound

ATTRIBUTES = (
    "MULTIPROCESSOR_COUNT",
    "MAX_THREADS_PER_BLOCK",
    "MAX_THREADS_PER_MULTIPROCESSOR",
    "MAX_SHARED_MEMORY_PER_BLOCK",
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "MAX_REGISTERS_PER_BLOCK",
    "WARP_SIZE",
    "CLOCK_RATE",
    "L2_CACHE_SIZE",
    "CONCURRENT_MANAGED_ACCESS",
    "COOPERATIVE_LAUNCH",
)


class Report(NamedTuple):
    """What a command says.

    Attributes:
        data: for JSON.
        text: for people.
        ok: whether the exit code is 0.
    """

    data: Any
    text: str
    ok: bool = True


# -- info, attributes


def describe(device: Device) -> dict[str, Any]:
    """What is known about one device."""
    return {
        "ordinal": device.ordinal,
        "name": device.name,
        "uuid": device.uuid,
        "pci_bus_id": device.pci_bus_id,
        "arch": device.arch,
        "total_memory": device.total_memory,
        "attributes": {name: device.attributes[name] for name in ATTRIBUTES},
    }


def info() -> Report:
    """The driver and its devices.

    Raises:
        DriverNotFound: there is no driver.
    """
    driver.init()
    opened = library.current()
    newest = module.newest_ptx()
    found: dict[str, Any] = {
        "driver": getattr(opened, "path", type(opened).__name__),
        "emulator": driver.is_emulator(),
        "cuda_version": "{}.{}".format(*driver.driver_version()),
        "newest_ptx": "{}.{}".format(*newest) if newest else None,
        "devices": [describe(device) for device in devices()],
    }
    kind = "the PTX emulator" if found["emulator"] else found["driver"]
    lines = [
        f"driver     {kind}, CUDA {found['cuda_version']}",
        f"PTX        {'up to ' + found['newest_ptx'] if newest else 'any version'}",
    ]
    for device in found["devices"]:
        lines += [
            f"\ndevice {device['ordinal']}   {device['name']}, {device['arch']}",
            f"memory     {amount(device['total_memory'])}",
            f"identity   {device['uuid']} at {device['pci_bus_id']}",
        ]
        lines += [
            f"  {name.replace('_', ' ').lower():36}{number(value)}"
            for name, value in device["attributes"].items()
        ]
    return Report(found, "\n".join(lines))


def number(value: int | None) -> str:
    """An attribute for people."""
    return "unknown" if value is None else format(value, ",")


def attributes() -> Report:
    """Every attribute of every device."""
    found, lines = [], []
    for device in devices():
        known = dict(device.attributes)
        found.append({"ordinal": device.ordinal, "name": device.name, "attributes": known})
        lines.append(f"device {device.ordinal}   {device.name}")
        lines += [f"  {name:56}{number(value)}" for name, value in known.items()]
    return Report(found, "\n".join(lines))


# -- symbols, find


def symbols(missing: bool) -> Report:
    """The functions of cuda.h, with the version that each came with and what is missing."""
    driver.init()
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "introduced": "{}.{}".format(*raw.introduced(name)),
            "available": raw.available(name),
        }
        for name in sorted(table.FUNCTIONS)
    ]
    shown = [each for each in found if not (missing and each["available"])]
    lines = [
        f"{each['introduced']:>6}  {each['name']}{'' if each['available'] else '  (missing)'}"
        for each in shown
    ]
    return Report(shown, "\n".join(lines))


def find() -> Report:
    """Where the driver and each optional library are, their versions, and what was tried.

    Only without any driver, not even the emulator, it is a failure.
    """
    found = [_driver(), *(_optional(*each) for each in OPTIONAL), *map(_wheel, WHEELS)]
    lines = []
    for each in found:
        place = each["path"] or "not found"
        version = f", version {each['version']}" if each["version"] else ""
        lines.append(f"{each['name']:11}{place}{version}")
        if not each["path"]:
            lines += [f"{'':11}  tried {place}" for place in each["tried"]]
    return Report(found, "\n".join(lines), found[0]["path"] is not None)


def _found(name: str, path: str | None, version: str | None, tried: list[str]) -> dict[str, Any]:
    return {"name": name, "path": path, "version": version, "tried": tried}


def _driver() -> dict[str, Any]:
    try:
        opened = library.current()
    except DriverNotFound as error:
        return _found("driver", None, None, list(error.tried))
    version = raw.driver_version()
    path = getattr(opened, "path", "the PTX emulator")
    return _found("driver", path, "{}.{}".format(*version) if version else None, [])


def _libdevice() -> Any:
    return nvvm.libdevice()


OPTIONAL: tuple[tuple[str, Callable[[], Any], Callable[[list[str]], Any]], ...] = (
    ("libNVVM", nvvm.find, nvvm.candidates),
    ("libdevice", _libdevice, lambda tried: tried.extend(map(str, nvvm.libdevice_places()))),
    ("nvJitLink", nvjitlink.find, nvjitlink.candidates),
    ("NVRTC", nvrtc.find, nvrtc.candidates),
)
WHEELS = ("llvmlite", "numpy")


def _optional(
    name: str, look: Callable[[], Any], places: Callable[[list[str]], Any]
) -> dict[str, Any]:
    tried: list[str] = []
    places_there = places(tried) or []
    try:
        there = look()
    except LibraryNotFound as error:
        return _found(name, None, None, error.tried)
    known = getattr(there, "version", None)
    version = ".".join(map(str, known)) if known else None
    path = library.full_path(getattr(there, "path", str(there)))
    return _found(name, path, version, [*map(str, places_there), *tried])


def _wheel(name: str) -> dict[str, Any]:
    try:
        wheel = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return _found(name, None, None, ["Python's packages"])
    return _found(name, str(wheel.locate_file(name)), wheel.version, [])


# -- kernels, occupancy


def kernels(path: str) -> Report:
    """Load a file; its kernels, with what each needs."""
    loaded = module.load(Path(path))
    found, lines = [], []
    for name in loaded.kernels():
        kernel = loaded[name]
        needs = kernel.attributes
        sizes = kernel.sizes
        found.append(
            {
                "name": name,
                "parameters": sizes,
                "registers": needs["NUM_REGS"],
                "shared_bytes": needs["SHARED_SIZE_BYTES"],
                "local_bytes": needs["LOCAL_SIZE_BYTES"],
                "max_threads": kernel.max_threads,
            }
        )
        shown = ", ".join(map(str, sizes)) + " bytes" if sizes else "none"
        lines += [
            name,
            f"  parameters   {'unknown' if sizes is None else shown}",
            f"  registers    {needs['NUM_REGS']}",
            f"  shared       {needs['SHARED_SIZE_BYTES']:,} bytes",
            f"  local        {needs['LOCAL_SIZE_BYTES']:,} bytes",
            f"  block        up to {kernel.max_threads:,} threads",
        ]
    if loaded.log:
        lines.append(f"\nlog of the driver's compiler\n{loaded.log}")
    return Report({"file": path, "kernels": found, "log": loaded.log}, "\n".join(lines))


def occupancy(
    file: str | None,
    kernel: str | None,
    block: int,
    registers: int | None,
    shared: int | None,
    arch: str | None,
) -> Report:
    """How occupancy depends on block, registers and shared memory, of a kernel or of numbers.

    Raises:
        ValueError: a number is out of range, or the architecture is unknown.
    """
    limit = occupancy_model.MAX_BLOCK
    if file is not None:
        loaded = module.load(Path(file))[kernel or ""]
        needs = loaded.attributes
        registers = needs["NUM_REGS"] if registers is None else registers
        shared = needs["SHARED_SIZE_BYTES"] + (shared or 0)
        limit = loaded.max_threads
    registers, shared = 32 if registers is None else registers, shared or 0
    block = min(block, limit) if file else block
    for name, value, most in (("block", block, limit), ("registers", registers, 255)):
        if not 1 <= value <= most:
            raise ValueError(f"--{name} {value}: it is a number from 1 to {most}")
    if arch is None:
        device = Device(0)
        arch, has = device.arch, occupancy_model.of_device(device.attributes)
    else:
        has = occupancy_model.of_arch(arch)
    if not 0 <= shared <= has.shared_block:
        raise ValueError(f"--shared {shared}: a block of {arch} has up to {has.shared_block} bytes")
    found = _occupancies(has, block, registers, shared, limit)
    named = {"arch": arch, "kernel": kernel, "multiprocessor": has._asdict()}
    return Report(named | found, _charts(has, arch, found))


def _occupancies(
    has: occupancy_model.Multiprocessor, block: int, registers: int, shared: int, limit: int
) -> dict[str, Any]:
    blocks = list(range(32, limit + 1, 32)) or [limit]
    step = max(has.shared_block // 64, 1)
    amounts = list(range(0, has.shared_block + 1, step))
    by_block = [(each, has.run(each, registers, shared).occupancy) for each in blocks]
    most = max(value for _, value in by_block)
    return {
        "block": block,
        "registers": registers,
        "shared_bytes": shared,
        "result": has.run(block, registers, shared)._asdict(),
        "best_blocks": [each for each, value in by_block if value == most],
        "by_block": by_block,
        "by_registers": [(n, has.run(block, n, shared).occupancy) for n in range(1, 256)],
        "by_shared": [(n, has.run(block, registers, n).occupancy) for n in amounts],
    }


def _charts(has: occupancy_model.Multiprocessor, arch: str, found: dict[str, Any]) -> str:
    result = found["result"]
    rows = {
        "multiprocessor": f"{arch}: {has.threads // occupancy_model.WARP} warps, {has.blocks} "
        f"blocks, {has.registers:,} registers, {amount(has.shared)} shared",
        "kernel": f"{found['block']} threads a block, {found['registers']} registers a thread, "
        f"{found['shared_bytes']:,} bytes shared a block",
        "occupancy": f"{result['occupancy']:.0%}: {result['blocks']} blocks, {result['warps']} "
        f"warps; limited by {result['limit']}",
        "best blocks": ", ".join(map(str, found["best_blocks"])),
    }
    lines = [f"{name:16}{text}" for name, text in rows.items()]
    plain = chart.is_plain()
    for title, key, marked in (
        ("threads of a block", "by_block", "block"),
        ("registers of a thread", "by_registers", "registers"),
        ("bytes of shared memory of a block", "by_shared", "shared_bytes"),
    ):
        places, values = zip(*found[key], strict=True)
        drawn = chart.draw(f"occupancy against {title}", places, values, found[marked], plain)
        lines += ["", drawn]
    return "\n".join(lines)
