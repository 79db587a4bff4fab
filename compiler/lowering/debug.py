"""Debug information: the line of every instruction, and with all of it the variables."""

from __future__ import annotations

import os
from typing import Any

from llvmlite import ir

from ..errors import Span

PRODUCER = "compiler"


class Debug:
    """The debug information of one module.

    Args:
        module: gets it.
        variables: describe variables too, for code that is not optimised.
    """

    def __init__(self, module: ir.Module, variables: bool) -> None:
        self.module = module
        self.variables = variables
        self._files: dict[str, ir.DIValue] = {}
        self._locations: dict[tuple[int, int, int], ir.DIValue] = {}
        self._unit: ir.DIValue | None = None

    def subprogram(self, function: ir.Function, name: str, span: Span) -> ir.DIValue:
        """Describe *function*, which the user calls *name*; gives the scope of its lines."""
        file = self.file(span.file)
        described = self.add(
            "DISubprogram",
            distinct=True,
            name=name,
            linkageName=function.name,
            scope=file,
            file=file,
            line=span.line,
            type=self.add("DISubroutineType", types=self._empty()),
            isLocal=False,
            isDefinition=True,
            scopeLine=span.line,
            isOptimized=not self.variables,
            unit=self._unit_of(file),
            retainedNodes=self._empty(),
        )
        function.set_metadata("dbg", described)
        return described

    def location(self, span: Span, scope: ir.DIValue) -> ir.DIValue:
        """The place of *span* in the function *scope*."""
        key = (id(scope), span.line, span.col)
        found = self._locations.get(key)
        if found is None:
            found = self.add("DILocation", line=span.line, column=span.col + 1, scope=scope)
            self._locations[key] = found
        return found

    def file(self, path: str) -> ir.DIValue:
        """The file *path*; a name such as "<stdin>" stays as it is."""
        found = self._files.get(path)
        if found is None:
            place = path if path.startswith("<") else os.path.abspath(path)  # noqa: PTH100
            folder, name = os.path.split(place)
            found = self.add("DIFile", filename=name, directory=folder)
            self._files[path] = found
        return found

    def add(self, kind: str, distinct: bool = False, **fields: Any) -> ir.DIValue:
        """A node of metadata."""
        return self.module.add_debug_info(kind, fields, is_distinct=distinct)

    def _empty(self) -> ir.MDValue:
        return self.module.add_metadata([])

    def _unit_of(self, file: ir.DIValue) -> ir.DIValue:
        """The unit of the module, that of its first function's file."""
        if self._unit is None:
            kind = "FullDebug" if self.variables else "DebugDirectivesOnly"
            self._unit = self.add(
                "DICompileUnit",
                distinct=True,
                # Debuggers of the device know how to show its values.
                language=ir.DIToken("DW_LANG_C_plus_plus"),
                file=file,
                producer=PRODUCER,
                isOptimized=not self.variables,
                runtimeVersion=0,
                emissionKind=ir.DIToken(kind),
                enums=self._empty(),
            )
            self.module.add_named_metadata("llvm.dbg.cu", self._unit)
            number = ir.IntType(32)
            # 1, an error if it differs, is what NVRTC gives: the linker wants the same of all.
            flag = [number(1), "Debug Info Version", number(3)]
            self.module.add_named_metadata("llvm.module.flags", self.module.add_metadata(flag))
        return self._unit
