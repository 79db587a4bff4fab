"""The command ``python -m cudadrv``: what driver and devices this machine has."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import cudadrv
from cudadrv import library
from cudadrv.memory import amount

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


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if there is no driver."""
    parser = argparse.ArgumentParser(prog="python -m cudadrv", description=(__doc__ or "").strip())
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="the driver and its devices")
    info.add_argument("--json", action="store_true", help="print it as JSON")
    options = parser.parse_args(arguments)
    try:
        found = information()
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print_table(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
