"""Texels by their numbers, four at a time, and on the faces of a cube; the elements of surfaces."""

from __future__ import annotations

from .builder import Module
from .layout import LEVEL, TEXTURE
from .sampling import TEXEL, Helper, layer, split

TRAP, CLAMP, ZERO = range(3)


def fetch(module: Module, dimensions: int) -> None:
    """`@tex.fetch.N(texture, x, y, z, layer, lod)`: one texel; outside are zeros."""
    b = Helper(module)
    last = b.op(f"sub i32 {b.field(TEXTURE, '%t', 'count')}, 1")
    number = b.call("llvm.umin.i32", "i32", "i32 %lod", f"i32 {last}")
    levels = b.field(TEXTURE, "%t", "levels")
    b.lines.append(f"  %level = getelementptr %level, ptr {levels}, i32 {number}")
    inside = "true"
    places = []
    for name, size in list(zip("xyz", ("width", "height", "depth"), strict=True))[:dimensions]:
        wide = b.resize(f"%{name}", 32, 64, signed=True)
        here = b.icmp("ult", "i64", wide, b.field(LEVEL, "%level", size))
        inside = b.op(f"and i1 {inside}, {here}")
        places.append(wide)
    places += ["0"] * (2 - dimensions) + ([layer(b)] if dimensions < 3 else [])
    yes, no = b.fresh("yes"), b.fresh("no")
    b.branch(inside, yes, no)
    b.label(yes)
    value = b.call("tex.texel", TEXEL, "ptr %t", "ptr %level", *(f"i64 {p}" for p in places))
    b.end(f"ret {TEXEL} {value}")
    b.label(no)
    b.end(f"ret {TEXEL} zeroinitializer")
    b.define(
        f"{TEXEL} @tex.fetch.{dimensions}(ptr %t, i32 %x, i32 %y, i32 %z, i64 %layer, i32 %lod)"
    )


def gather(module: Module) -> None:
    """`@tex.gather(texture, x, y, layer, component)`: one channel of the four texels around.

    They come as hardware gives them: lower left, lower right, upper right, upper left.
    """
    b = Helper(module)
    b.lines.append(f"  %level = load ptr, ptr {b.op(TEXTURE.address('%t', 'levels'))}")
    (left, right, _), (top, bottom, _) = split(b, 2, "1")
    z = layer(b)
    result = "poison"
    for number, (x, y) in enumerate(((left, bottom), (right, bottom), (right, top), (left, top))):
        value = b.call(
            "tex.texel", TEXEL, "ptr %t", "ptr %level", f"i64 {x}", f"i64 {y}", f"i64 {z}"
        )
        one = b.op(f"extractelement {TEXEL} {value}, i32 %component")
        result = b.op(f"insertelement {TEXEL} {result}, i32 {one}, i32 {number}")
    b.end(f"ret {TEXEL} {result}")
    b.define(f"{TEXEL} @tex.gather(ptr %t, float %x, float %y, i64 %layer, i32 %component)")


# Of each face: the axis that points to it, whether backwards, and what runs right and down on it.
_FACES = (
    ("x", "-z", "-y"), ("x", "z", "-y"), ("y", "x", "z"), ("y", "x", "-z"), ("z", "x", "-y"),
    ("z", "-x", "-y"),
)  # fmt: skip


def cube(module: Module) -> None:
    """`@tex.cube(texture, x, y, z, layer, lod)`: the texel in a direction, of six faces a layer."""
    b = Helper(module)
    sizes = {n: b.call("llvm.fabs.f32", "float", f"float %{n}") for n in "xyz"}
    x_y = b.op(f"fcmp oge float {sizes['x']}, {sizes['y']}")
    x_z = b.op(f"fcmp oge float {sizes['x']}, {sizes['z']}")
    is_x = b.op(f"and i1 {x_y}, {x_z}")
    is_y = b.op(f"fcmp oge float {sizes['y']}, {sizes['z']}")
    chosen: dict[str, list[str]] = {}
    for axis in "xyz":
        back = b.op(f"fcmp olt float %{axis}, 0.0")
        faces = [i for i, face in enumerate(_FACES) if face[0] == axis]
        face = b.select(back, "i64", str(faces[1]), str(faces[0]))
        parts = [_on_face(b, sizes[axis], back, faces, place) for place in (1, 2)]
        chosen[axis] = [face, *parts]
    picked = []
    for kind, x, y, z in zip(("i64", "float", "float"), *chosen.values(), strict=True):
        picked.append(b.select(is_x, kind, x, b.select(is_y, kind, y, z)))
    face, right, down = picked
    index = b.op(f"add i64 {b.op('mul i64 %layer, 6')}, {face}")
    given = (f"float {right}", f"float {down}", "float 0.0", f"i64 {index}", "float %lod")
    b.end(f"ret {TEXEL} {b.call('tex.sample.2', TEXEL, 'ptr %t', *given)}")
    b.define(f"{TEXEL} @tex.cube(ptr %t, float %x, float %y, float %z, i64 %layer, float %lod)")


def _on_face(b: Helper, size: str, back: str, faces: list[int], place: int) -> str:
    """One coordinate on a face, from 0 to 1."""
    ways = []
    for face in faces:
        name = _FACES[face][place]
        value = f"%{name[-1]}"
        ways.append(b.op(f"fneg float {value}") if name[0] == "-" else value)
    value = b.select(back, "float", ways[1], ways[0])
    value = b.op(f"fdiv float {value}, {size}")
    return b.op(f"fmul float {b.op(f'fadd float {value}, 1.0')}, 0.5")


def element(module: Module) -> None:
    """`i64 @surf.element(surface, x, y, z, size, outside)`: the address of an element of a surface.

    *x* is in bytes. 0 stands for an element outside, unless *outside* is CLAMP.
    """
    b = Helper(module)
    b.lines.append(f"  %level = load ptr, ptr {b.op(TEXTURE.address('%t', 'levels'))}")
    texel = b.resize(b.field(TEXTURE, "%t", "element"), 32, 64)
    row = b.op(f"mul i64 {b.field(LEVEL, '%level', 'width')}, {texel}")
    ends = [b.op(f"sub i64 {row}, %size")]
    ends += [b.op(f"sub i64 {b.field(LEVEL, '%level', n)}, 1") for n in ("height", "depth")]
    clamped = b.icmp("eq", "i32", "%outside", str(CLAMP))
    at, inside = b.field(LEVEL, "%level", "data"), "true"
    steps = ["1", b.field(LEVEL, "%level", "pitch"), b.field(LEVEL, "%level", "plane")]
    for name, end, step in zip("xyz", ends, steps, strict=True):
        wide = b.resize(f"%{name}", 32, 64, signed=True)
        low = b.call("llvm.smin.i64", "i64", f"i64 {wide}", f"i64 {end}")
        near = b.call("llvm.smax.i64", "i64", f"i64 {low}", "i64 0")
        inside = b.op(f"and i1 {inside}, {b.icmp('eq', 'i64', near, wide)}")
        at = b.op(f"add i64 {at}, {b.op(f'mul i64 {near}, {step}')}")
    allowed = b.op(f"or i1 {inside}, {clamped}")
    b.end(f"ret i64 {b.select(allowed, 'i64', at, '0')}")
    b.define("i64 @surf.element(ptr %t, i32 %x, i32 %y, i32 %z, i64 %size, i32 %outside)")
