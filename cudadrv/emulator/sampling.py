"""How a texture is read, as functions of LLVM IR that a kernel's module gets when it uses one."""

from __future__ import annotations

import struct

from .builder import Builder, Module
from .layout import LEVEL, TEXTURE, Record

WRAP, CLAMP, MIRROR, BORDER = range(4)
# What a texel's integers become: themselves, fractions of 1, or those of sRGB made linear.
AS_IS, FRACTION, SRGB = range(3)
TEXEL = "<4 x i32>"
_COLOR = "<4 x float>"
# CUarray_format of a channel: (its bits, what it is).
_CHANNELS = {
    1: (8, "u"), 2: (16, "u"), 3: (32, "u"), 8: (8, "s"), 9: (16, "s"), 10: (32, "s"),
    16: (16, "f"), 32: (32, "u"),
}  # fmt: skip


class Helper(Builder):
    """A function being written, to be added to *module* under its name."""

    def field(self, record: Record, base: str, name: str) -> str:
        """The value of a field of a record."""
        address = self.op(record.address(base, name))
        return self.op(f"load {record.types[name]}, ptr {address}")

    def define(self, head: str) -> None:
        """Add the function: *head* is `i32 @name(i32 %x)`."""
        body = [f"define internal {head} {{", "entry:", *self.allocas, *self.lines, "}"]
        name = head.partition("@")[2].partition("(")[0]
        self.module.helper(name, "\n".join(body))

    def choose(self, value: str, cases: dict[int, str], default: str) -> None:
        """End the block by a switch over an i32."""
        text = " ".join(f"i32 {number}, label %{label}" for number, label in cases.items())
        self.end(f"switch i32 {value}, label %{default} [ {text} ]")

    def splat(self, value: str) -> str:
        """A float four times."""
        one = self.op(f"insertelement {_COLOR} poison, float {value}, i32 0")
        return self.op(f"shufflevector {_COLOR} {one}, {_COLOR} poison, {TEXEL} zeroinitializer")

    def blend(self, x: str, y: str, weight: str) -> str:
        """x + weight * (y - x) of two colours, the weight a float."""
        far = self.op(f"fmul {_COLOR} {y}, {self.splat(weight)}")
        rest = self.op(f"fsub float 1.0, {weight}")
        near = self.op(f"fmul {_COLOR} {x}, {self.splat(rest)}")
        return self.op(f"fadd {_COLOR} {near}, {far}")


def channel(module: Module) -> None:
    """`i32 @tex.channel(pointer, format, how)`: a channel of a texel as 32 bits."""
    b = Helper(module)
    labels = {number: b.fresh("format") for number in _CHANNELS}
    none = b.fresh("none")
    b.choose("%format", labels, none)
    for number, (bits, kind) in _CHANNELS.items():
        b.label(labels[number])
        value = b.op(f"load {'half' if kind == 'f' else f'i{bits}'}, ptr %p, align 1")
        if kind == "f":
            value = b.op(f"bitcast float {b.op(f'fpext half {value} to float')} to i32")
        else:
            value = b.resize(value, bits, 32, kind == "s")
        if bits < 32 and kind != "f":
            value = _fraction(b, value, bits, kind == "s")
        b.end(f"ret i32 {value}")
    b.label(none)
    b.end("ret i32 0")
    b.define("i32 @tex.channel(ptr %p, i32 %format, i32 %how)")


def constant(value: float) -> str:
    """The float nearest to *value*, as LLVM writes it."""
    (single,) = struct.unpack("f", struct.pack("f", value))
    return f"0x{struct.unpack('Q', struct.pack('d', single))[0]:016X}"


def _fraction(b: Helper, value: str, bits: int, signed: bool) -> str:
    """An integer as the fraction of 1 that it stands for, if the texture wants that."""
    whole = b.op(f"{'si' if signed else 'ui'}tofp i32 {value} to float")
    part = b.op(f"fdiv float {whole}, {float((1 << (bits - signed)) - 1)}")
    if signed:
        part = b.call("llvm.maxnum.f32", "float", f"float {part}", "float -1.0")
    elif bits == 8:
        raised = b.op(f"fadd float {part}, {constant(0.055)}")
        raised = b.op(f"fdiv float {raised}, {constant(1.055)}")
        power = b.call("llvm.pow.f32", "float", f"float {raised}", f"float {constant(2.4)}")
        low = b.op(f"fdiv float {part}, {constant(12.92)}")
        is_low = b.op(f"fcmp ole float {part}, {constant(0.04045)}")
        linear = b.select(is_low, "float", low, power)
        part = b.select(b.icmp("eq", "i32", "%how", str(SRGB)), "float", linear, part)
    bits_of = b.op(f"bitcast float {part} to i32")
    return b.select(b.icmp("eq", "i32", "%how", str(AS_IS)), "i32", value, bits_of)


def texel(module: Module) -> None:
    """`@tex.texel(texture, level, x, y, z)`: the texel there; of the border if one is negative."""
    b = Helper(module)
    lowest = b.op(f"or i64 {b.op('or i64 %x, %y')}, %z")
    outside, inside = b.fresh("outside"), b.fresh("inside")
    b.branch(b.icmp("slt", "i64", lowest, "0"), outside, inside)
    b.label(outside)
    border = b.op(TEXTURE.address("%t", "border"))
    b.end(f"ret {TEXEL} {b.op(f'load {TEXEL}, ptr {border}, align 4')}")
    b.label(inside)
    at = b.field(LEVEL, "%level", "data")
    size = b.resize(b.field(TEXTURE, "%t", "element"), 32, 64)
    for index, step in (
        ("%x", size),
        ("%y", b.field(LEVEL, "%level", "pitch")),
        ("%z", b.field(LEVEL, "%level", "plane")),
    ):
        at = b.op(f"add i64 {at}, {b.op(f'mul i64 {index}, {step}')}")
    kind, how = b.field(TEXTURE, "%t", "format"), b.field(TEXTURE, "%t", "how")
    count = b.field(TEXTURE, "%t", "channels")
    step = b.op(f"udiv i64 {size}, {b.resize(count, 32, 64)}")
    value = "zeroinitializer"
    for number in range(4):
        if number == 3:
            # Opacity is never sRGB.
            how = b.call("llvm.umin.i32", "i32", f"i32 {how}", f"i32 {FRACTION}")
        pointer = b.op(f"inttoptr i64 {at} to ptr")
        one = b.call("tex.channel", "i32", f"ptr {pointer}", f"i32 {kind}", f"i32 {how}")
        value = b.op(f"insertelement {TEXEL} {value}, i32 {one}, i32 {number}")
        at = b.op(f"add i64 {at}, {step}")
        done, more = b.fresh("done"), b.fresh("more")
        b.branch(b.icmp("eq", "i32", count, str(number + 1)), done, more)
        b.label(done)
        b.end(f"ret {TEXEL} {value}")
        b.label(more)
    b.end(f"ret {TEXEL} {value}")
    b.define(f"{TEXEL} @tex.texel(ptr %t, ptr %level, i64 %x, i64 %y, i64 %z)")


def index(module: Module) -> None:
    """`i64 @tex.index(i, n, mode)`: which of n texels index i means; -1 is the border."""
    b = Helper(module)
    labels = {mode: b.fresh("mode") for mode in (WRAP, MIRROR, BORDER)}
    clamp = b.fresh("clamp")
    b.choose("%mode", labels, clamp)
    for mode in (WRAP, MIRROR):
        b.label(labels[mode])
        period = b.op("shl i64 %n, 1") if mode == MIRROR else "%n"
        rest = b.op(f"srem i64 %i, {period}")
        rest = b.select(
            b.icmp("slt", "i64", rest, "0"), "i64", b.op(f"add i64 {rest}, {period}"), rest
        )
        if mode == MIRROR:
            back = b.op(f"sub i64 {b.op(f'sub i64 {period}, 1')}, {rest}")
            rest = b.select(b.icmp("slt", "i64", rest, "%n"), "i64", rest, back)
        b.end(f"ret i64 {rest}")
    b.label(labels[BORDER])
    b.end(f"ret i64 {b.select(b.icmp('ult', 'i64', '%i', '%n'), 'i64', '%i', '-1')}")
    b.label(clamp)
    last = b.op("sub i64 %n, 1")
    low = b.call("llvm.smin.i64", "i64", "i64 %i", f"i64 {last}")
    b.end(f"ret i64 {b.call('llvm.smax.i64', 'i64', f'i64 {low}', 'i64 0')}")
    b.define("i64 @tex.index(i64 %i, i64 %n, i32 %mode)")


_AXIS = "{ i64, i64, float }"


def axis(module: Module) -> None:
    """`@tex.axis(coordinate, n, mode, linear, normalized)`: (near texel, far texel, weight of far).

    Weights have 8 bits, and so have coordinates before they are split, as in the CUDA C++
    Programming Guide, "Texture Fetching".
    """
    b = Helper(module)
    number = b.op("fcmp ord float %c, 0.0")
    c = b.op(f"fpext float {b.select(number, 'float', '%c', '0.0')} to double")
    floor = b.call("llvm.floor.f64", "double", f"double {c}")
    half = b.call("llvm.floor.f64", "double", f"double {b.op(f'fmul double {c}, 0.5')}")
    turn = b.op(f"fsub double {c}, {floor}")
    mirror = b.op(f"fsub double {c}, {b.op(f'fmul double {half}, 2.0')}")
    reduced = b.select(b.icmp("eq", "i32", "%mode", str(WRAP)), "double", turn, c)
    reduced = b.select(b.icmp("eq", "i32", "%mode", str(MIRROR)), "double", mirror, reduced)
    scaled = b.op(f"fmul double {reduced}, {b.op('uitofp i64 %n to double')}")
    c = b.select(b.icmp("ne", "i32", "%normalized", "0"), "double", scaled, c)
    is_linear = b.icmp("ne", "i32", "%linear", "0")
    fine = b.op(f"fsub double {b.op(f'fmul double {c}, 256.0')}, 127.5")
    fine = b.select(is_linear, "double", fine, c)
    fine = b.call("llvm.floor.f64", "double", f"double {fine}")
    whole = b.call("llvm.fptosi.sat.i64.f64", "i64", f"double {fine}")
    near = b.select(is_linear, "i64", b.op(f"ashr i64 {whole}, 8"), whole)
    part = b.op(f"uitofp i64 {b.op(f'and i64 {whole}, 255')} to float")
    weight = b.select(is_linear, "float", b.op(f"fmul float {part}, 0.00390625"), "0.0")
    far = b.op(f"add i64 {near}, 1")
    result = "poison"
    for at, value in enumerate((near, far)):
        found = b.call("tex.index", "i64", f"i64 {value}", "i64 %n", "i32 %mode")
        result = b.op(f"insertvalue {_AXIS} {result}, i64 {found}, {at}")
    b.end(f"ret {_AXIS} {b.op(f'insertvalue {_AXIS} {result}, float {weight}, 2')}")
    b.define(f"{_AXIS} @tex.axis(float %c, i64 %n, i32 %mode, i32 %linear, i32 %normalized)")


def split(b: Helper, dimensions: int, linear: str) -> list[tuple[str, str, str]]:
    """(near, far, weight) of each coordinate of the function being written."""
    found = []
    normalized = b.field(TEXTURE, "%t", "normalized")
    for name, size in list(zip("xyz", ("width", "height", "depth"), strict=True))[:dimensions]:
        n, mode = b.field(LEVEL, "%level", size), b.field(TEXTURE, "%t", f"mode_{name}")
        given = (f"float %{name}", f"i64 {n}", f"i32 {mode}", f"i32 {linear}", f"i32 {normalized}")
        three = b.call("tex.axis", _AXIS, *given)
        near, far, weight = (b.op(f"extractvalue {_AXIS} {three}, {i}") for i in range(3))
        found.append((near, far, weight))
    return found


def layer(b: Helper) -> str:
    """The layer of the function being written, one that there is."""
    last = b.op(f"sub i64 {b.field(LEVEL, '%level', 'depth')}, 1")
    low = b.call("llvm.smin.i64", "i64", "i64 %layer", f"i64 {last}")
    return b.call("llvm.smax.i64", "i64", f"i64 {low}", "i64 0")


def level(module: Module, dimensions: int) -> None:
    """`@tex.level.N(texture, level, x, y, z, layer)`: one level read, filtered if it is to be."""
    b = Helper(module)
    linear = b.field(TEXTURE, "%t", "linear")
    axes = split(b, dimensions, linear)
    fixed = ["0"] * (2 - dimensions) + ([layer(b)] if dimensions < 3 else [])

    def corner(which: int) -> str:
        places = [pair[which >> i & 1] for i, pair in enumerate(axes)] + fixed
        return b.call("tex.texel", TEXEL, "ptr %t", "ptr %level", *(f"i64 {p}" for p in places))

    point, filtered = b.fresh("point"), b.fresh("filtered")
    b.branch(b.icmp("eq", "i32", linear, "0"), point, filtered)
    b.label(point)
    b.end(f"ret {TEXEL} {corner(0)}")
    b.label(filtered)
    colors = [b.op(f"bitcast {TEXEL} {corner(i)} to {_COLOR}") for i in range(1 << dimensions)]
    for _, _, weight in axes:
        pairs = zip(colors[::2], colors[1::2], strict=True)
        colors = [b.blend(near, far, weight) for near, far in pairs]
    b.end(f"ret {TEXEL} {b.op(f'bitcast {_COLOR} {colors[0]} to {TEXEL}')}")
    b.define(f"{TEXEL} @tex.level.{dimensions}({_LEVEL_PARAMETERS})")


_LEVEL_PARAMETERS = "ptr %t, ptr %level, float %x, float %y, float %z, i64 %layer"
_GIVEN = ("float %x", "float %y", "float %z", "i64 %layer")


def sample(module: Module, dimensions: int) -> None:
    """`@tex.sample.N(texture, x, y, z, layer, lod)`: the level or the two that *lod* means."""
    b = Helper(module)
    levels = b.field(TEXTURE, "%t", "levels")
    last = b.op(f"sub i32 {b.field(TEXTURE, '%t', 'count')}, 1")
    lod = b.op(f"fadd float %lod, {b.field(TEXTURE, '%t', 'bias')}")
    lod = b.call(
        "llvm.maxnum.f32", "float", f"float {lod}", f"float {b.field(TEXTURE, '%t', 'least')}"
    )
    lod = b.call(
        "llvm.minnum.f32", "float", f"float {lod}", f"float {b.field(TEXTURE, '%t', 'most')}"
    )
    linear = b.icmp("ne", "i32", b.field(TEXTURE, "%t", "mip_linear"), "0")
    # Half a level up in point mode, half of a step of 1/256 in linear mode, then cut.
    half = b.select(linear, "float", "0.001953125", "0.5")
    raised = b.call("llvm.maxnum.f32", "float", f"float {b.op(f'fadd float {lod}, {half}')}",
                    "float 0.0")  # fmt: skip
    fine = b.call("llvm.fptosi.sat.i32.f32", "i32", f"float {b.op(f'fmul float {raised}, 256.0')}")
    near = b.call("llvm.umin.i32", "i32", f"i32 {b.op(f'lshr i32 {fine}, 8')}", f"i32 {last}")
    far = b.call("llvm.umin.i32", "i32", f"i32 {b.op(f'add i32 {near}, 1')}", f"i32 {last}")

    def read(which: str) -> str:
        pointer = b.op(f"getelementptr %level, ptr {levels}, i32 {which}")
        return b.call(f"tex.level.{dimensions}", TEXEL, "ptr %t", f"ptr {pointer}", *_GIVEN)

    first = read(near)
    one, two = b.fresh("one"), b.fresh("two")
    b.branch(b.op(f"and i1 {linear}, {b.icmp('ne', 'i32', near, far)}"), two, one)
    b.label(one)
    b.end(f"ret {TEXEL} {first}")
    b.label(two)
    part = b.op(f"uitofp i32 {b.op(f'and i32 {fine}, 255')} to float")
    weight = b.op(f"fmul float {part}, 0.00390625")
    low, high = (b.op(f"bitcast {TEXEL} {value} to {_COLOR}") for value in (first, read(far)))
    mixed = b.blend(low, high, weight)
    b.end(f"ret {TEXEL} {b.op(f'bitcast {_COLOR} {mixed} to {TEXEL}')}")
    b.define(
        f"{TEXEL} @tex.sample.{dimensions}(ptr %t, float %x, float %y, float %z, "
        "i64 %layer, float %lod)"
    )
