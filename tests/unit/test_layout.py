"""The rules of the tree that a machine can check: layers, imports, sizes, docstrings."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# The import order. A module imports only modules of earlier rows; an entry that is a package stands
# for all its modules, unless a longer entry names one of them. `__main__` may import everything.
LAYERS = [
    "cudadrv.config",
    "cudadrv.errors",
    "cudadrv.library",
    "cudadrv.process_local",
    "cudadrv.raw",
    "cudadrv.checked",
    "cudadrv.driver",
    "cudadrv.toolkit",
    "cudadrv.nvvm",
    "cudadrv.nvrtc",
    "cudadrv.nvjitlink",
    "cudadrv.occupancy_model",
    "cudadrv.chart",
    "cudadrv.emulator",
    "cudadrv.checks",
    "cudadrv.attributes",
    "cudadrv.context_state",
    "cudadrv.device",
    "cudadrv.cleanup",
    "cudadrv.context",
    "cudadrv.launch_attributes",
    "cudadrv.callback",
    "cudadrv.event",
    "cudadrv.keeper",
    "cudadrv.reachable",
    "cudadrv.attribute_map",
    "cudadrv.node",
    "cudadrv.execution",
    "cudadrv.graph",
    "cudadrv.capture",
    "cudadrv.stream",
    "cudadrv.layout",
    "cudadrv.buffers",
    "cudadrv.interface",
    "cudadrv.manager",
    "cudadrv.older",
    "cudadrv.memory",
    "cudadrv.host_memory",
    "cudadrv.location",
    "cudadrv.managed",
    "cudadrv.shareable",
    "cudadrv.pool",
    "cudadrv.copies",
    "cudadrv.fills",
    "cudadrv.pointers",
    "cudadrv.ipc",
    "cudadrv.virtual",
    "cudadrv.view",
    "cudadrv.dlpack",
    "cudadrv.strided",
    "cudadrv.boxes",
    "cudadrv.pitched",
    "cudadrv.array",
    "cudadrv.creation",
    "cudadrv.hostarray",
    "cudadrv.array_layout",
    "cudadrv.array_copy",
    "cudadrv.array_memory",
    "cudadrv.cuda_array",
    "cudadrv.green",
    "cudadrv.launch_config",
    "cudadrv.texture",
    "cudadrv.external",
    "cudadrv.profiler",
    "cudadrv.tensor_rules",
    "cudadrv.tensormap",
    "cudadrv.launch",
    "cudadrv.occupancy",
    "cudadrv.jit_options",
    "cudadrv.manifest",
    "cudadrv.fatbin",
    "cudadrv.kernel",
    "cudadrv.module",
    "cudadrv.ptxlink",
    "cudadrv.cubin",
    "cudadrv.linker",
    "cudadrv.graph_nodes",
    "cudadrv.memory_nodes",
    "cudadrv.commands",
    "cudadrv.ptx_check",
    "cudadrv",
    "compiler.config",
    "compiler.errors",
    "compiler.cache",
    "compiler.brain",
    "compiler.literals",
    "compiler.types",
    "compiler.elements",
    "compiler.signature",
    "compiler.typing",
    "compiler.frontend",
    "compiler.lowering",
    "compiler.lang",
    "compiler.codegen",
    "compiler.dispatch",
    "compiler.cg",
    "compiler.random",
    "compiler.reduction",
    "compiler.vectorizing",
    "compiler.extending",
    "compiler.devices",
    "compiler",
]
MAX_FUNCTION = 50
MAX_FILE = 500
MAX_NESTING = 3
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.AsyncFor, ast.AsyncWith)
# Decorators with arguments that do not enter a function into a table.
PLAIN_CALLS = {"lru_cache", "functools.lru_cache", "wraps", "functools.wraps"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Source:
    """One Python file of the tree: its module name, text and syntax tree."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        parts = path.relative_to(ROOT).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.module = ".".join(parts[:-1] if self.is_package else parts)
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, self.name)
        self.generated = self.text.startswith("# GENERATED")


def sources(*folders: str) -> list[Source]:
    """The files below *folders*, in order."""
    return [Source(path) for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


PACKAGES = sources("cudadrv", "compiler")
MODULES = {source.module for source in PACKAGES}
HAND_WRITTEN = [
    source for source in PACKAGES + sources("tools", "tests", "examples") if not source.generated
]


def layer_of(module: str) -> int | None:
    """The row of LAYERS that holds *module*: that of the longest entry it lies in."""
    inside = [entry for entry in LAYERS if module == entry or module.startswith(entry + ".")]
    # The two bare package names stand for their __init__ alone, else new files would go unnoticed.
    inside = [entry for entry in inside if "." in entry or entry == module]
    return LAYERS.index(max(inside, key=len)) if inside else None


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and absolute name of each import that runs, local ones too; not those for types only."""
    for node in running_nodes(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = absolute(source, node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield node.lineno, inner if inner in MODULES else base


def running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below *node*, without the bodies of ``if TYPE_CHECKING``."""
    yield node
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    for child in ast.iter_child_nodes(node):
        yield from running_nodes(child)


def absolute(source: Source, node: ast.ImportFrom) -> str:
    """The module that a ``from`` import names, relative ones resolved."""
    if not node.level:
        return node.module or ""
    parts = source.module.split(".")
    drop = node.level - 1 if source.is_package else node.level
    base = parts[: len(parts) - drop]
    return ".".join([*base, node.module] if node.module else base)


def report(problems: list[str]) -> None:
    """Fail with one line for each problem."""
    if problems:
        pytest.fail("\n".join(["", *problems]), pytrace=False)


def test_every_module_has_a_layer() -> None:
    """A new module must be placed in LAYERS, which says what it may import."""
    report(
        [
            f"{source.name}:1: add {source.module} to LAYERS in tests/unit/test_layout.py"
            for source in PACKAGES
            if layer_of(source.module) is None and not source.module.endswith("__main__")
        ]
    )


def test_layers_name_what_exists() -> None:
    """LAYERS lists no module that is gone."""
    packages = {module.rpartition(".")[0] for module in MODULES}
    gone = [entry for entry in LAYERS if entry not in MODULES | packages]
    report([f"LAYERS: there is no {entry}" for entry in gone])


def test_every_folder_is_a_package() -> None:
    """A folder without __init__.py would be missing from the wheel."""
    folders = {source.path.parent for source in PACKAGES}
    report(
        [
            f"{folder.relative_to(ROOT).as_posix()}/__init__.py:1: there is no such file"
            for folder in sorted(folders)
            if not (folder / "__init__.py").exists()
        ]
    )


def test_modules_import_earlier_layers_only() -> None:
    """No module imports a later one, at the top or inside a function."""
    problems = []
    for source in PACKAGES:
        own = layer_of(source.module)
        for line, name in imports(source):
            other = layer_of(name)
            if own is not None and other is not None and other > own:
                problems.append(
                    f"{source.name}:{line}: {source.module} imports {name}, a later layer"
                )
    report(problems)


def test_imports_have_no_cycle() -> None:
    """No module reaches itself by imports, not even by those inside functions."""
    edges = {source.module: {name: line for line, name in imports(source)} for source in PACKAGES}
    files = {source.module: source.name for source in PACKAGES}
    problems = []
    for module in sorted(MODULES):
        for name, line in edges[module].items():
            if name != module and module in reachable(name, edges):
                problems.append(f"{files[module]}:{line}: {module} and {name} import each other")
    report(problems)


def reachable(start: str, edges: dict[str, dict[str, int]]) -> set[str]:
    """Every module that *start* imports, directly or through others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in edges.get(waiting.pop(), {}):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def test_cudadrv_needs_no_compiler() -> None:
    """Cudadrv never imports compiler, and llvmlite only inside its emulator."""
    report(
        [
            f"{source.name}:{line}: imports {name}"
            for source in PACKAGES
            for line, name in imports(source)
            if source.module.split(".")[0] == "cudadrv"
            and (
                name.split(".")[0] == "compiler"
                or (
                    name.split(".")[0] == "llvmlite"
                    and not source.module.startswith("cudadrv.emulator")
                )
            )
        ]
    )


def test_packages_need_numpy_and_llvmlite_alone() -> None:
    """Both packages import nothing else that is not in Python's standard library."""
    known = {"cudadrv", "compiler", "numpy", "llvmlite", *sys.stdlib_module_names}
    report(
        [
            f"{source.name}:{line}: imports {name}, which is no dependency"
            for source in PACKAGES
            for line, name in imports(source)
            if name.split(".")[0] not in known
        ]
    )


def test_nothing_imports_numba() -> None:
    """No file of the tree imports numba; only a benchmark may, to compare with it."""
    report(
        [
            f"{source.name}:{line}: imports {name}"
            for source in HAND_WRITTEN
            for line, name in imports(source)
            if name.split(".")[0] in ("numba", "numba_cuda")
            and not source.name.startswith("tools/benchmarks/")
        ]
    )


def test_importing_cudadrv_loads_neither_numpy_nor_llvmlite(run_python) -> None:
    """The bare import is light: no numpy, no llvmlite, no emulator, no compiler."""
    code = "import sys, cudadrv; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(run_python(code).split())
    assert "cudadrv" in loaded
    assert not loaded & {"numpy", "llvmlite", "compiler"}


def test_importing_cudadrv_opens_no_library(run_python) -> None:
    """The bare import opens no shared library but Python's own extension modules."""
    code = (
        "import ctypes, sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda e, a: opened.append(a[0]) if e == 'ctypes.dlopen' else None)\n"
        "import cudadrv\n"
        "print([name for name in opened if name])"
    )
    assert run_python(code).strip() == "[]"


def test_environment_is_read_in_one_file_a_package() -> None:
    """Only config.py reads the environment, Windows' SYSTEMROOT and the like excepted."""
    report(
        [
            f"{source.name}:{number}: our environment variables are read in config.py"
            for source in PACKAGES
            for number, line in enumerate(source.text.splitlines(), 1)
            if re.search(r"environ.*(CUDADRV|COMPILER)_", line)
            and not source.module.endswith(".config")
        ]
    )


def test_readme_lists_the_environment() -> None:
    """Every environment variable is explained in the README, and none that is gone."""
    here = {
        name
        for source in PACKAGES
        if source.module.endswith(".config")
        for name in re.findall('"((?:CUDADRV|COMPILER)_[A-Z_]+)"', source.text)
    }
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert here == set(re.findall("`((?:CUDADRV|COMPILER)_[A-Z_]+)`", readme))


def test_files_are_short() -> None:
    """No hand-written file has more than MAX_FILE lines."""
    report(
        [
            f"{source.name}:{MAX_FILE + 1}: {count} lines; {MAX_FILE} at most"
            for source in HAND_WRITTEN
            if (count := len(source.text.splitlines())) > MAX_FILE
        ]
    )


def functions(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of *source*, methods and inner functions too."""
    return (node for node in ast.walk(source.tree) if isinstance(node, DEFINITIONS))


def test_functions_are_short() -> None:
    """No hand-written function has more than MAX_FUNCTION lines, its docstring included."""
    report(
        [
            f"{source.name}:{node.lineno}: {node.name} has {count} lines; {MAX_FUNCTION} at most"
            for source in HAND_WRITTEN
            for node in functions(source)
            if (count := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION
        ]
    )


def nesting(node: ast.AST) -> int:
    """How deep blocks lie in each other below *node*; an elif is no deeper than its if."""
    deepest = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*DEFINITIONS, ast.ClassDef)):
            continue
        is_elif = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        deepest = max(deepest, nesting(child) + (isinstance(child, BLOCKS) and not is_elif))
    return deepest


def test_functions_are_flat() -> None:
    """No function nests blocks deeper than MAX_NESTING."""
    report(
        [
            f"{source.name}:{node.lineno}: {node.name} nests {depth} blocks; {MAX_NESTING} at most"
            for source in HAND_WRITTEN
            for node in functions(source)
            if (depth := nesting(node)) > MAX_NESTING
        ]
    )


def public(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Public classes and functions of *source*, and the public methods of public classes."""
    waiting: list[ast.Module | ast.ClassDef] = [source.tree]
    while waiting:
        for node in waiting.pop().body:
            if not isinstance(node, (*DEFINITIONS, ast.ClassDef)) or node.name.startswith("_"):
                continue
            yield node
            if isinstance(node, ast.ClassDef):
                waiting.append(node)


def needs_no_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether something else says what *node* does.

    A visitor and a lowering have a line of grammar or IR above them; an entry of a table
    (``@row(...)``, ``@instruction(...)``) is described by its row; an overload or a setter by the
    function that it belongs to.
    """
    if isinstance(node, ast.ClassDef):
        return False
    if node.name.startswith(("visit_", "lower_")):
        return True
    registered = {
        ast.unparse(call.func) for call in node.decorator_list if isinstance(call, ast.Call)
    }
    plain = {ast.unparse(name).split(".")[-1] for name in node.decorator_list}
    return bool(registered - PLAIN_CALLS or plain & {"overload", "setter", "deleter", "override"})


def test_public_names_have_docstrings() -> None:
    """Modules, public classes and public functions of both packages say what they do."""
    problems = [
        f"{source.name}:1: the module has no docstring"
        for source in PACKAGES
        if ast.get_docstring(source.tree) is None
    ]
    for source in PACKAGES:
        for node in public(source):
            if ast.get_docstring(node) is None and not needs_no_docstring(node):
                problems.append(f"{source.name}:{node.lineno}: {node.name} has no docstring")
    report(problems)
