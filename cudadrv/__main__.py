"""The command ``python -m cudadrv``: what the driver, its devices and a file of code have."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import cudadrv
from cudadrv import library, raw
from cudadrv.memory import amount
from cudadrv.raw import table

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


def describe(device: cudadrv.Device) -> dict[str, Any]:
    """What is known about one device, for a table or JSON."""
    return {
        "ordinal": device.ordinal,
        "name": device.name,
        "uuid": device.uuid,
        "pci_bus_id": device.pci_bus_id,
        "arch": device.arch,
        "total_memory": device.total_memory,
        "attributes": {name: device.attributes[name] for name in ATTRIBUTES},
    }


def information() -> dict[str, Any]:
    """What is known about the driver and its devices.

    Raises:
        DriverNotFound: there is no driver.
    """
    cudadrv.init()
    driver = library.current()
    newest = cudadrv.newest_ptx()
    return {
        "driver": getattr(driver, "path", type(driver).__name__),
        "emulator": cudadrv.is_emulator(),
        "cuda_version": "{}.{}".format(*cudadrv.driver_version()),
        "newest_ptx": "{}.{}".format(*newest) if newest else None,
        "devices": [describe(device) for device in cudadrv.devices()],
    }


def print_table(found: dict[str, Any]) -> None:
    """Print the information for people."""
    kind = "the PTX emulator" if found["emulator"] else found["driver"]
    print(f"driver     {kind}, CUDA {found['cuda_version']}")
    print(f"PTX        {'up to ' + found['newest_ptx'] if found['newest_ptx'] else 'any version'}")
    for device in found["devices"]:
        print(f"\ndevice {device['ordinal']}   {device['name']}, {device['arch']}")
        print(f"memory     {amount(device['total_memory'])}")
        print(f"identity   {device['uuid']} at {device['pci_bus_id']}")
        for name, value in device["attributes"].items():
            words = name.replace("_", " ").lower()
            print(f"  {words:36}{'unknown' if value is None else format(value, ',')}")


def print_attributes() -> None:
    """Print every attribute of every device."""
    for device in cudadrv.devices():
        print(f"device {device.ordinal}   {device.name}")
        for name, value in device.attributes.items():
            print(f"  {name:56}{'unknown' if value is None else format(value, ',')}")


def print_symbols(missing: bool) -> None:
    """Print the functions of cuda.h, with the version that each came with and what is missing."""
    for name in sorted(table.FUNCTIONS):
        there = raw.available(name)
        if not (missing and there):
            version = "{}.{}".format(*raw.introduced(name))
            print(f"{version:>6}  {name}{'' if there else '  (missing)'}")


def print_kernels(path: str) -> None:
    """Load a file and print its kernels, with what each needs."""
    loaded = cudadrv.load(Path(path))
    for name in loaded.kernels():
        kernel = loaded[name]
        needs = kernel.attributes
        sizes = "unknown" if kernel.sizes is None else ", ".join(map(str, kernel.sizes)) or "none"
        print(name)
        print(f"  parameters   {sizes} bytes" if kernel.sizes else f"  parameters   {sizes}")
        print(f"  registers    {needs['NUM_REGS']}")
        print(f"  shared       {needs['SHARED_SIZE_BYTES']:,} bytes")
        print(f"  local        {needs['LOCAL_SIZE_BYTES']:,} bytes")
        print(f"  block        up to {kernel.max_threads:,} threads")
    if loaded.log:
        print(f"\nlog of the driver's compiler\n{loaded.log}")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m cudadrv", description=(__doc__ or "").strip())
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="the driver and its devices")
    info.add_argument("--json", action="store_true", help="print it as JSON")
    commands.add_parser("attributes", help="every attribute of every device")
    symbols = commands.add_parser("symbols", help="the functions of cuda.h, and which are missing")
    symbols.add_argument("--missing", action="store_true", help="only those that are missing")
    kernels = commands.add_parser("kernels", help="load PTX, a cubin or a fatbin; list its kernels")
    kernels.add_argument("file")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if it failed."""
    options = parse(arguments)
    try:
        cudadrv.init()
        if options.command == "attributes":
            print_attributes()
        elif options.command == "symbols":
            print_symbols(options.missing)
        elif options.command == "kernels":
            print_kernels(options.file)
        elif options.json:
            print(json.dumps(information(), indent=2))
        else:
            print_table(information())
    except (RuntimeError, ValueError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
