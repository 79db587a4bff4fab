"""The command ``python -m cudadrv``: what the driver, its devices and a file of code have."""

from __future__ import annotations

import argparse
import json
import os
import sys

from cudadrv import commands, ptx_check

EXIT_CODES = """\
exit codes: 0  done, and nothing is wrong
            1  it failed, or `check` found a problem, or `find` found no driver
            2  the command line is wrong
Every command takes --json. CUDADRV_DRIVER chooses the driver: auto, emulator or a path."""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m cudadrv",
        description=(__doc__ or "").strip(),
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print it as JSON")
    listed = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return listed.add_parser(name, help=text, description=text, parents=[common])

    add("info", "the driver and its devices")
    add("attributes", "every attribute of every device")
    add("find", "where the driver and each optional library are, and what was tried")
    symbols = add("symbols", "the functions of cuda.h, and which are missing")
    symbols.add_argument("--missing", action="store_true", help="only those that are missing")
    check = add("check", "whether the driver reads a file of code, and what is in it")
    check.add_argument("file", help="PTX, a cubin or a fatbin")
    check.add_argument("--arch", help="the architecture it is for; default: the device's")
    kernels = add("kernels", "load PTX, a cubin or a fatbin; list its kernels")
    kernels.add_argument("file", help="PTX, a cubin or a fatbin")
    occupancy = add("occupancy", "how occupancy depends on block, registers and shared memory")
    occupancy.add_argument("file", nargs="?", help="PTX, a cubin or a fatbin")
    occupancy.add_argument("kernel", nargs="?", help="the kernel in it")
    occupancy.add_argument("--block", type=int, default=256, help="threads of a block (256)")
    occupancy.add_argument("--registers", type=int, help="of a thread (the kernel's, or 32)")
    occupancy.add_argument("--shared", type=int, help="bytes a block, on top of the kernel's own")
    occupancy.add_argument("--arch", help="such as sm_90; default: the device's")
    options = parser.parse_args(arguments)
    if options.command == "occupancy" and (options.file is None) != (options.kernel is None):
        occupancy.error("a file needs the name of a kernel in it; `kernels FILE` lists them")
    return options


def run(options: argparse.Namespace) -> commands.Report:
    """What the command says."""
    if options.command == "symbols":
        return commands.symbols(options.missing)
    if options.command == "check":
        return ptx_check.check(options.file, options.arch)
    if options.command == "kernels":
        return commands.kernels(options.file)
    if options.command == "occupancy":
        return commands.occupancy(
            options.file,
            options.kernel,
            options.block,
            options.registers,
            options.shared,
            options.arch,
        )
    plain = {"info": commands.info, "attributes": commands.attributes, "find": commands.find}
    return plain[options.command]()


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if it failed."""
    options = parse(arguments)
    try:
        report = run(options)
        print(json.dumps(report.data, indent=2) if options.json else report.text, flush=True)
    except BrokenPipeError:
        # The reader has seen enough; what else would be written at exit goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (RuntimeError, ValueError, LookupError, ImportError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
