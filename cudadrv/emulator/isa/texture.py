"""Textures and surfaces, named by their 64-bit handles: tex, tld4, txq, suld, sust, sured, suq."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import fetching, sampling
from ..errors import PtxError, unsupported
from ..layout import LEVEL, SURFACE_KIND, TEXTURE, TEXTURE_KIND
from ..sampling import TEXEL
from ..syntax import Address, Operand, Vector
from ..types import TYPES as ALL_TYPES
from .atomics import read_modify_write
from .table import Op, instruction

if TYPE_CHECKING:
    from ..frame import Frame

GEOMETRIES = "1d 2d 3d a1d a2d cube acube"
B32, F32, S32 = (ALL_TYPES[name] for name in ("b32", "f32", "s32"))
MISALIGNED, NOT_AN_OBJECT = "716", "719"


def bind(frame: Frame, address: Operand, kind: int) -> str:
    """The record of the texture or surface that an address names; ends the thread if it is none."""
    if not isinstance(address, Address):
        raise PtxError("expected [object, {coordinates}]", frame.line)
    handle = frame.read(address.base, ALL_TYPES["u64"])
    pointer = frame.op(f"inttoptr i64 {handle} to ptr")
    found = frame.op(f"load i64, ptr {frame.op(TEXTURE.address(pointer, 'kind'))}")
    stop_unless(frame, frame.icmp("eq", "i64", found, str(kind)), NOT_AN_OBJECT)
    return pointer


def stop_unless(frame: Frame, condition: str, code: str) -> None:
    """End the launch with an error unless the i1 *condition* holds."""
    good, bad = frame.fresh("good"), frame.fresh("bad")
    frame.branch(condition, good, bad)
    frame.label(bad)
    frame.fail(code)
    frame.label(good)


def coordinates(frame: Frame, address: Operand) -> list[Operand]:
    """The coordinates in `[object, {x, y}]`."""
    more = address.more if isinstance(address, Address) else ()
    if len(more) != 1:
        raise PtxError("expected [object, {coordinates}]", frame.line)
    return list(more[0].items) if isinstance(more[0], Vector) else list(more)


def geometry(op: Op) -> tuple[int, bool, bool]:
    """(dimensions, whether there are layers, whether it is a cube) of an instruction."""
    name = op.one_of(GEOMETRIES)
    if not name:
        raise PtxError(f"{op.raw.name!r} needs one of {GEOMETRIES}", op.raw.line)
    cube = name.endswith("cube")
    return 3 if cube else int(name[-2]), name[0] == "a", cube


def layer_of(frame: Frame, places: list[Operand], layered: bool) -> str:
    """The layer, taken off the front of the coordinates, as i64."""
    return frame.resize(frame.read(places.pop(0), B32), 32, 64) if layered else "0"


def add_helpers(frame: Frame) -> None:
    """Give the kernel's module the functions that read textures, once."""
    module = frame.module
    if "tex.channel" in module.helpers:
        return
    sampling.channel(module)
    sampling.texel(module)
    sampling.index(module)
    sampling.axis(module)
    for dimensions in (1, 2, 3):
        sampling.level(module, dimensions)
        sampling.sample(module, dimensions)
        fetching.fetch(module, dimensions)
    fetching.gather(module)
    fetching.cube(module)


def give(frame: Frame, dest: Operand, value: str) -> None:
    """Put the channels of a texel into the destination's registers."""
    items = dest.items if isinstance(dest, Vector) else (dest,)
    for number, item in enumerate(items):
        frame.write(item, B32, frame.op(f"extractelement {TEXEL} {value}, i32 {number}"))


@instruction(
    "tex tex.base tex.level tex.grad", "x = x x? x?", "f32 s32 u32", f"{GEOMETRIES} v4", exits=True
)
def tex(frame: Frame, op: Op, dest: Operand, address: Operand, *more: Operand) -> None:
    dimensions, layered, cube = geometry(op)
    if not isinstance(dest, Vector):
        raise unsupported(f"destination of {op.raw.name!r} that is no vector", op.raw.line)
    add_helpers(frame)
    texture, places = bind(frame, address, TEXTURE_KIND), coordinates(frame, address)
    layer = layer_of(frame, places, layered)
    kind = S32 if op.type.name == "s32" else F32
    zero = "0" if kind is S32 else "0.0"
    given = [frame.read(place, kind) for place in places[:dimensions]]
    given = [f"{kind.llvm} {value}" for value in [*given, *[zero] * (3 - dimensions)]]
    lod = zero
    if op.row.name == "tex.level":
        lod = frame.read(more[0], kind)
    elif op.row.name == "tex.grad":
        lod = gradient_level(frame, texture, dimensions, more)
    how = "cube" if cube else f"{'fetch' if kind is S32 else 'sample'}.{dimensions}"
    rest = (f"i64 {layer}", f"{kind.llvm} {lod}")
    give(frame, dest, frame.call(f"tex.{how}", TEXEL, f"ptr {texture}", *given, *rest))


def gradient_level(
    frame: Frame, texture: str, dimensions: int, gradients: tuple[Operand, ...]
) -> str:
    """The level whose texels are as large as a step by the longer gradient."""
    levels = frame.op(f"load ptr, ptr {frame.op(TEXTURE.address(texture, 'levels'))}")
    sizes = []
    for name in ("width", "height", "depth")[:dimensions]:
        size = frame.op(f"load i64, ptr {frame.op(LEVEL.address(levels, name))}")
        sizes.append(frame.op(f"uitofp i64 {size} to float"))
    lengths = []
    for gradient in gradients:
        total = "0.0"
        items = gradient.items if isinstance(gradient, Vector) else (gradient,)
        for item, size in zip(items, sizes, strict=False):
            step = frame.op(f"fmul float {frame.read(item, F32)}, {size}")
            total = frame.op(f"fadd float {total}, {frame.op(f'fmul float {step}, {step}')}")
        lengths.append(f"float {total}")
    longest = frame.call("llvm.maxnum.f32", "float", *lengths)
    level = frame.call("llvm.log2.f32", "float", f"float {longest}")
    return frame.op(f"fmul float {level}, 0.5")


@instruction("tld4", "x = x", "f32 s32 u32", "r g b a 2d a2d v4", needs="2d a2d", exits=True)
def tld4(frame: Frame, op: Op, dest: Operand, address: Operand) -> None:
    add_helpers(frame)
    texture, places = bind(frame, address, TEXTURE_KIND), coordinates(frame, address)
    layer = layer_of(frame, places, op.has("a2d"))
    given = [f"float {frame.read(place, F32)}" for place in places[:2]]
    which = "rgba".index(op.one_of("r g b a", "r"))
    rest = (f"i64 {layer}", f"i32 {which}")
    give(frame, dest, frame.call("tex.gather", TEXEL, f"ptr {texture}", *given, *rest))


QUESTIONS = {"width": "width", "height": "height", "depth": "depth", "array_size": "depth"}
MORE_QUESTIONS = {"num_mipmap_levels": "count", "normalized_coords": "normalized"}


@instruction(
    "txq txq.level", "t = x u32?", "b32", " ".join((*QUESTIONS, *MORE_QUESTIONS)), exits=True
)
def txq(frame: Frame, op: Op, address: Operand, level: str = "0") -> str:
    texture = bind(frame, address, TEXTURE_KIND)
    return answer(frame, op, texture, level)


@instruction("suq", "t = x", "b32", " ".join(QUESTIONS), exits=True)
def suq(frame: Frame, op: Op, address: Operand) -> str:
    return answer(frame, op, bind(frame, address, SURFACE_KIND), "0")


def answer(frame: Frame, op: Op, record: str, level: str) -> str:
    """The field that a query asks for, as i32."""
    name = op.one_of(" ".join(MORE_QUESTIONS))
    if name:
        field = MORE_QUESTIONS[name]
        return frame.op(f"load i32, ptr {frame.op(TEXTURE.address(record, field))}")
    name = op.one_of(" ".join(QUESTIONS))
    if not name:
        raise PtxError(f"{op.raw.name!r} asks for nothing", op.raw.line)
    levels = frame.op(f"load ptr, ptr {frame.op(TEXTURE.address(record, 'levels'))}")
    at = frame.op(f"getelementptr %level, ptr {levels}, i32 {level}")
    field = frame.op(f"load i64, ptr {frame.op(LEVEL.address(at, QUESTIONS[name]))}")
    return frame.op(f"trunc i64 {field} to i32")


# -- surfaces

OUTSIDE = "trap clamp zero"
SURFACE_TYPES = "b8 b16 b32 b64"


def surface_element(frame: Frame, op: Op, address: Operand, size: int) -> str:
    """The pointer to the element that an instruction accesses; to a dummy where there is none."""
    if "surf.element" not in frame.module.helpers:
        fetching.element(frame.module)
    surface, places = bind(frame, address, SURFACE_KIND), coordinates(frame, address)
    name = op.one_of("1d 2d 3d a1d a2d")
    given = dict.fromkeys("xyz", "0")
    if name[0] == "a":
        given["z"] = frame.read(places.pop(0), S32)
    for axis, place in zip("xyz"[: int(name[-2])], places, strict=False):
        given[axis] = frame.read(place, S32)
    outside = op.one_of(OUTSIDE, "trap")
    rest = (f"i64 {size}", f"i32 {OUTSIDE.split().index(outside)}")
    where = [f"i32 {value}" for value in given.values()]
    at = frame.call("surf.element", "i64", f"ptr {surface}", *where, *rest)
    inside = frame.icmp("ne", "i64", at, "0")
    aligned = frame.icmp("eq", "i64", frame.op(f"and i64 {at}, {size - 1}"), "0")
    stop_unless(frame, aligned, MISALIGNED)
    if outside == "trap":
        stop_unless(frame, inside, NOT_AN_OBJECT)
        return frame.op(f"inttoptr i64 {at} to ptr")
    dummy = frame.alloca("[16 x i8]", 16)
    frame.do(f"store [16 x i8] zeroinitializer, ptr {dummy}")
    return frame.select(inside, "ptr", frame.op(f"inttoptr i64 {at} to ptr"), dummy)


SURFACES = f"1d 2d 3d a1d a2d {OUTSIDE}"


@instruction(
    "suld.b", "x = x", SURFACE_TYPES, f"{SURFACES} v2 v4 ca cg cs cv",
    needs="1d 2d 3d a1d a2d", exits=True,
)  # fmt: skip
def suld(frame: Frame, op: Op, dest: Operand, address: Operand) -> None:
    items = dest.items if isinstance(dest, Vector) else (dest,)
    kind = op.type
    pointer = surface_element(frame, op, address, kind.bytes * len(items))
    for number, item in enumerate(items):
        at = frame.op(f"getelementptr i8, ptr {pointer}, i64 {number * kind.bytes}")
        frame.write(item, kind, frame.op(f"load {kind.llvm}, ptr {at}"))


@instruction(
    "sust.b", "= x x", SURFACE_TYPES, f"{SURFACES} v2 v4 wb cg cs wt",
    needs="1d 2d 3d a1d a2d", exits=True,
)  # fmt: skip
def sust(frame: Frame, op: Op, address: Operand, source: Operand) -> None:
    items = source.items if isinstance(source, Vector) else (source,)
    kind = op.type
    pointer = surface_element(frame, op, address, kind.bytes * len(items))
    for number, item in enumerate(items):
        at = frame.op(f"getelementptr i8, ptr {pointer}, i64 {number * kind.bytes}")
        frame.do(f"store {kind.llvm} {frame.read(item, kind)}, ptr {at}")


@instruction(
    "sured.b", "= x x", "b32 b64 u32 s32 u64 s64", f"{SURFACES} add min max and or",
    needs="add min max and or", exits=True,
)  # fmt: skip
def sured(frame: Frame, op: Op, address: Operand, source: Operand) -> None:
    items = source.items if isinstance(source, Vector) else (source,)
    pointer = surface_element(frame, op, address, op.type.bytes)
    read_modify_write(frame, op, pointer, frame.read(items[0], op.type))
