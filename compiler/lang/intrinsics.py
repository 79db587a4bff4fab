"""Instructions on numbers by name: bits, products, saturation, rounding modes, approximations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import types
from ..types import Float, Integer, Scalar
from .ptx import Form, declare
from .stub import Stub

I32, U32, I64, U64 = types.int32, types.uint32, types.int64, types.uint64
F16, F32, F64 = types.float16, types.float32, types.float64
SINGLES, INTEGERS = (I32, U32), (I32, U32, I64, U64)


def suffix(ty: Scalar) -> str:
    """The type as PTX writes it: s32, u64, f32."""
    kind = "f" if isinstance(ty, Float) else "s" if isinstance(ty, Integer) and ty.signed else "u"
    return f"{kind}{ty.bits}"


def family(
    name: str,
    doc: str,
    text: str,
    kinds: Sequence[Scalar],
    count: int,
    returns: Scalar | None = None,
    **more: Any,
) -> Stub:
    """Declare an instruction of *count* arguments of one type.

    Args:
        text: the PTX; %t is the type, %b its size in bits.
        returns: None: the type of the arguments.
    """
    forms = [
        Form(
            (ty,) * count,
            returns or ty,
            text.replace("%t", suffix(ty)).replace("%b", str(ty.bits)),
            **more,
        )
        for ty in kinds
    ]
    return declare(Stub(name, f"{name}{doc}"), forms)


# Bits: narrower integers are widened to 32 bits, as in C.

popc = family("popc", "(x): how many bits are 1.", "popc.b%b $0, $1;", INTEGERS, 1, I32)
clz = family("clz", "(x): how many zero bits lead.", "clz.b%b $0, $1;", INTEGERS, 1, I32)
brev = family("brev", "(x): the bits in reversed order.", "brev.b%b $0, $1;", INTEGERS, 1)
ffs = family(
    "ffs",
    "(x): the position of the lowest bit that is 1, counted from 1; 0 if there is none.",
    "{ .reg .b%b t; .reg .u32 n; brev.b%b t, $1; bfind.shiftamt.u%b n, t; add.u32 $0, n, 1; }",
    INTEGERS,
    1,
    I32,
)
byte_perm = family(
    "byte_perm",
    "(x, y, selector): the bytes of y:x that the four nibbles of the selector number.",
    "prmt.b32 $0, $1, $2, $3;",
    (U32,),
    3,
)
_SHIFTS = "(low, high, count): the {half} half of high:low shifted {way}, by count {limit}."
funnelshift_l, funnelshift_lc, funnelshift_r, funnelshift_rc = (
    family(
        f"funnelshift_{way}{'c' if mode == 'clamp' else ''}",
        _SHIFTS.format(
            half="high" if way == "l" else "low",
            way="left" if way == "l" else "right",
            limit="at most 32" if mode == "clamp" else "modulo 32",
        ),
        f"shf.{way}.{mode}.b32 $0, $1, $2, $3;",
        (U32,),
        3,
    )
    for way in "lr"
    for mode in ("wrap", "clamp")
)
bfe = declare(
    Stub("bfe", "bfe(x, start, length): a field of bits; of a signed x the sign goes on."),
    [Form((ty, U32, U32), ty, f"bfe.{suffix(ty)} $0, $1, $2, $3;") for ty in INTEGERS],
)
bfi = declare(
    Stub("bfi", "bfi(field, x, start, length): x with a field of bits replaced."),
    [Form((ty, ty, U32, U32), ty, f"bfi.b{ty.bits} $0, $1, $2, $3, $4;") for ty in INTEGERS],
)

# Integers

mulhi = family(
    "mulhi", "(x, y): the high half of the product.", "mul.hi.%t $0, $1, $2;", INTEGERS, 2
)
mul24 = family(
    "mul24", "(x, y): the product of the low 24 bits.", "mul24.lo.%t $0, $1, $2;", SINGLES, 2
)
sad = family("sad", "(x, y, z): abs(x - y) + z.", "sad.%t $0, $1, $2, $3;", INTEGERS, 3)
add_sat = family(
    "add_sat", "(x, y): x + y, the nearest int32.", "add.sat.s32 $0, $1, $2;", (I32,), 2
)
sub_sat = family(
    "sub_sat", "(x, y): x - y, the nearest int32.", "sub.sat.s32 $0, $1, $2;", (I32,), 2
)
dp4a = declare(
    Stub("dp4a", "dp4a(x, y, z): z plus the products of the four bytes of x and y."),
    [Form((ty, ty, ty), ty, f"dp4a.{suffix(ty)}.{suffix(ty)} $0, $1, $2, $3;") for ty in SINGLES],
)
dp2a_lo, dp2a_hi = (
    declare(
        Stub(
            f"dp2a_{half}", f"dp2a_{half}(x, y, z): z plus the 16-bit parts of x by two bytes of y."
        ),
        [
            Form((ty, ty, ty), ty, f"dp2a.{half}.{suffix(ty)}.{suffix(ty)} $0, $1, $2, $3;")
            for ty in SINGLES
        ],
    )
    for half in ("lo", "hi")
)

# Floats in each rounding mode: to nearest even, towards zero, up, down.

FLOATS = (F32, F64)
_ARITHMETIC = (
    ("add", 2, "x + y"), ("sub", 2, "x - y"), ("mul", 2, "x * y"), ("div", 2, "x / y"),
    ("fma", 3, "x * y + z"), ("rcp", 1, "1 / x"), ("sqrt", 1, "the square root of x"),
)  # fmt: skip


_ROUNDED = {"rn": "to nearest", "rz": "towards zero", "ru": "up", "rd": "down"}
_MODES = {"rn": "rn", "rz": "rz", "ru": "rp", "rd": "rm"}


def rounded(mode: str) -> Iterator[Stub]:
    """The arithmetic of one rounding mode: rn, rz, ru or rd."""
    for name, count, what in _ARITHMETIC:
        operands = ", ".join(f"${n}" for n in range(count + 1))
        yield family(
            f"{name}_{mode}",
            f"({', '.join('xyz'[:count])}): {what}, rounded {_ROUNDED[mode]}.",
            f"{name}.{_MODES[mode]}.%t {operands};",
            FLOATS,
            count,
        )


add_rn, sub_rn, mul_rn, div_rn, fma_rn, rcp_rn, sqrt_rn = rounded("rn")
add_rz, sub_rz, mul_rz, div_rz, fma_rz, rcp_rz, sqrt_rz = rounded("rz")
add_ru, sub_ru, mul_ru, div_ru, fma_ru, rcp_ru, sqrt_ru = rounded("ru")
add_rd, sub_rd, mul_rd, div_rd, fma_rd, rcp_rd, sqrt_rd = rounded("rd")
fma = family(
    "fma", "(x, y, z): x * y + z, rounded once.", "fma.rn.%t $0, $1, $2, $3;", (F16, F32, F64), 3
)
saturate = family("saturate", "(x): x between 0 and 1.", "cvt.sat.f32.f32 $0, $1;", (F32,), 1)

# Approximations of float32 (PTX ISA 9.0, "Floating Point Instructions").

_LOG2E, _LN2, _LOG2_10, _LOG10_2 = "0f3FB8AA3B", "0f3F317218", "0f40549A78", "0f3E9A209B"
_APPROXIMATE = {
    "sin": "sin.approx.f32 $0, $1;",
    "cos": "cos.approx.f32 $0, $1;",
    "tan": "{ .reg .f32 s, c; sin.approx.f32 s, $1; cos.approx.f32 c, $1; "
    "div.approx.f32 $0, s, c; }",
    "tanh": "tanh.approx.f32 $0, $1;",
    "exp": f"{{ .reg .f32 t; mul.f32 t, $1, {_LOG2E}; ex2.approx.f32 $0, t; }}",
    "exp2": "ex2.approx.f32 $0, $1;",
    "exp10": f"{{ .reg .f32 t; mul.f32 t, $1, {_LOG2_10}; ex2.approx.f32 $0, t; }}",
    "log": f"{{ .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 $0, t, {_LN2}; }}",
    "log2": "lg2.approx.f32 $0, $1;",
    "log10": f"{{ .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 $0, t, {_LOG10_2}; }}",
    "sqrt": "sqrt.approx.f32 $0, $1;",
    "rsqrt": "rsqrt.approx.f32 $0, $1;",
    "rcp": "rcp.approx.f32 $0, $1;",
}
(
    fast_sin, fast_cos, fast_tan, fast_tanh, fast_exp, fast_exp2, fast_exp10, fast_log, fast_log2,
    fast_log10, fast_sqrt, fast_rsqrt, fast_rcp,
) = (
    family(f"fast_{name}", f"(x): {name}, approximated.", text, (F32,), 1)
    for name, text in _APPROXIMATE.items()
)  # fmt: skip
fast_div = family(
    "fast_div", "(x, y): x / y, approximated.", "div.approx.f32 $0, $1, $2;", (F32,), 2
)
fast_pow = family(
    "fast_pow",
    "(x, y): x ** y for x > 0, approximated.",
    "{ .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 t, t, $2; ex2.approx.f32 $0, t; }",
    (F32,),
    2,
)

# Special registers

_REGISTERS = {
    "clock": (U32, "a counter of cycles, 32 bits"),
    "clock64": (U64, "a counter of cycles"),
    "globaltimer": (U64, "nanoseconds on a clock of the device"),
    "smid": (U32, "the number of the multiprocessor"),
    "nsmid": (U32, "one more than the highest smid"),
    "warpid": (U32, "the slot of the warp in its multiprocessor"),
    "nwarpid": (U32, "the number of such slots"),
    "gridid": (U64, "the number of the launch"),
}


def register(name: str) -> Stub:
    """Declare the reading of a special register."""
    ty, what = _REGISTERS[name]
    form = Form((), ty, f"mov.u{ty.bits} $0, %{name};", effects=True)
    return declare(Stub(name, f"{name}(): {what}."), [form])


clock, clock64, globaltimer, smid, nsmid, warpid, nwarpid, gridid = map(register, _REGISTERS)
nanosleep = declare(
    Stub("nanosleep", "nanosleep(ns): pause for about so many nanoseconds."),
    [Form((U32,), types.none, "nanosleep.u32 $0;", effects=True)],
)
selp = declare(
    Stub("selp", "selp(condition, x, y): x if the condition holds, else y; both are computed."),
    [
        Form(
            (types.boolean, ty, ty),
            ty,
            "{ .reg .pred p; setp.ne.u32 p, $1, 0; "
            f"selp.{'f' if isinstance(ty, Float) else 'b'}{ty.bits} $0, $2, $3, p; }}",
        )
        for ty in (*INTEGERS, F32, F64)
    ],
)
