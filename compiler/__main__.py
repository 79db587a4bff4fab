"""python -m compiler: build kernels ahead of time, and look at what they become."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cudadrv.linker import LinkError
from cudadrv.toolkit import LibraryNotFound

from .codegen import CodegenError
from .dispatch.ahead import code, compile_function
from .dispatch.annotate import annotate
from .dispatch.build import FORMATS, Item, build, kernels_of, target_of
from .dispatch.options import settings_of
from .errors import CompileError

STAGES = ("source", "llvm", "ptx")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m compiler", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("file", metavar="FILE.py[:kernel]", help="all its kernels, or one")
    shared.add_argument("--signature", help='such as "void(float32[::1], int32)"')
    making = commands.add_parser("build", parents=[shared], help="compile to a file")
    making.add_argument("--arch", default="sm_75", help="such as sm_80, or sm_80,sm_90")
    making.add_argument("--format", choices=FORMATS, default="ptx")
    making.add_argument("--ptx", metavar="VERSION", help="the newest PTX to write, such as 8.0")
    making.add_argument("-o", "--output", type=Path, required=True)
    looking = commands.add_parser("inspect", parents=[shared], help="print the stages")
    looking.add_argument("--arch", default="sm_75")
    looking.add_argument("--stage", choices=STAGES, action="append")
    return top


def inspect(item: Item, arch: str, stages: list[str]) -> None:
    """Print the stages of one kernel."""
    target = target_of(arch)
    made = compile_function(item.pyfunc, item.signature, target, settings_of(item.options))
    for stage in stages:
        if stage == "source":
            text = annotate(made.typed) if made.typed else made.annotated
        else:
            text = code(made, target, stage)
        print(f"-- {made.name}: {stage}\n{text.rstrip()}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 1 with a message on stderr if it fails."""
    given = parser().parse_args(arguments)
    try:
        items = kernels_of(given.file, given.signature)
        if given.command == "inspect":
            for item in items:
                inspect(item, given.arch, given.stage or list(STAGES))
            return 0
        archs = given.arch.split(",")
        for path in build(items, archs, given.format, given.output, given.ptx):
            print(path)
    except (CompileError, CodegenError, LinkError, LibraryNotFound) as error:
        print(error, file=sys.stderr)
        return 1
    except (ValueError, TypeError, OSError) as error:
        print(f"{parser().prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
