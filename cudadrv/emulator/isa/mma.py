"""Products of matrices whose parts the lanes of a warp hold: mma, ldmatrix, stmatrix.

Of the matrices, lane l has rows and columns by l / 4 (below: the group) and l % 4. Register r of A
is of row group + 8 (r % 2), its numbers are part r / 2 of the inner dimension; register r of B is
of column group, part r; C and D have rows group and group + 8, two columns each (PTX ISA manual
9.0, "Matrix Fragments for mma").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import PtxError
from ..syntax import Operand, Vector
from ..types import TYPES
from .table import Op, instruction
from .warp import exchange, published

if TYPE_CHECKING:
    from ..translate import Translator

U32, F64 = TYPES["u32"], TYPES["f64"]
SHAPES = "m16n8k16 m16n8k8 m8n8k4 m16n8k32"


def registers(operand: Operand, line: int) -> tuple[Operand, ...]:
    """The registers of a fragment."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def split(frame: Translator, kind: str, word: str) -> list[str]:
    """The numbers of a register, as float, i32 or double."""
    if kind == "f64":
        return [frame.op(f"bitcast i64 {word} to double")]
    if kind == "tf32":
        return [frame.op(f"bitcast i32 {frame.op(f'and i32 {word}, -8192')} to float")]
    found = []
    width = 8 if kind in ("s8", "u8") else 16
    for n in range(32 // width):
        part = frame.op(f"lshr i32 {word}, {n * width}")
        part = frame.op(f"trunc i32 {part} to i{width}")
        if width == 8:
            found.append(frame.op(f"{'sext' if kind == 's8' else 'zext'} i8 {part} to i32"))
        elif kind == "bf16":
            wide = frame.op(f"shl i32 {frame.op(f'zext i16 {part} to i32')}, 16")
            found.append(frame.op(f"bitcast i32 {wide} to float"))
        else:
            half = frame.op(f"bitcast i16 {part} to half")
            found.append(frame.op(f"fpext half {half} to float"))
    return found


def fragment(frame: Translator, words: tuple[str, ...], wide: bool) -> str:
    """Show one or two registers to the other lanes; gives the thread record."""
    if wide:
        return exchange(frame, "-1", words[0])
    low, high = (frame.op(f"zext i32 {word} to i64") for word in (*words, "0")[:2])
    return exchange(frame, "-1", frame.op(f"or i64 {low}, {frame.op(f'shl i64 {high}, 32')}"))


def seen(frame: Translator, record: str, source: str, wide: bool) -> list[str]:
    """The registers that lane *source* shows."""
    lane = frame.op("and i32 %thread, 31")
    value = published(frame, record, lane, source)
    if wide:
        return [value]
    high = frame.op(f"lshr i64 {value}, 32")
    return [frame.op(f"trunc i64 {part} to i32") for part in (value, high)]


def _read(frame: Translator, operand: Operand, line: int, wide: bool) -> list[str]:
    kind = F64 if wide else U32
    values = [frame.read(item, kind) for item in registers(operand, line)]
    return [frame.op(f"bitcast double {v} to i64") for v in values] if wide else values


@instruction(
    "mma.sync",
    "x = x x x",
    "f16 bf16 f32 f64 s32 s8 u8",
    f"aligned row col tf32 {SHAPES}",
    warp=True,
)
def mma(frame: Translator, op: Op, dest: Operand, a: Operand, b: Operand, c: Operand) -> None:
    """D = A B + C, the sums in the order of the inner dimension."""
    total = op.types[0]
    kinds = ["tf32"] * 2 if op.has("tf32") else [t.name for t in op.types[1:3]]
    wide = total is F64
    line = op.raw.line
    a_words, b_words = _read(frame, a, line, wide), _read(frame, b, line, wide)
    parts = len(b_words)
    if len(a_words) != parts * (1 if wide else 2) or total.name not in ("f32", "f64", "s32"):
        raise PtxError(f"{op.raw.name!r}: this shape has no such fragments", line)
    sums = [frame.read(item, total) for item in registers(c, line)]
    lane = frame.op("and i32 %thread, 31")
    row = frame.op(f"and i32 {lane}, 28")
    column = frame.op(f"shl i32 {frame.op(f'and i32 {lane}, 3')}, 3")
    halves = 1 if wide else 2
    for part in range(parts):
        shown = tuple(a_words[halves * part : halves * (part + 1)])
        lefts = _gather(frame, fragment(frame, shown, wide), row, 0, wide, kinds[0])
        right = fragment(frame, (b_words[part],), wide)
        for n in range(2):
            rights = _gather(frame, right, column, 4 * n, wide, kinds[1])
            for half in range(halves):
                left = [number for words in lefts for number in words[half]]
                column_numbers = [number for words in rights for number in words[0]]
                place = 2 * half + n
                sums[place] = _dot(frame, total.llvm, sums[place], left, column_numbers)
    for item, value in zip(registers(dest, line), sums, strict=True):
        frame.write(item, total, value)


def _gather(
    frame: Translator, record: str, base: str, more: int, wide: bool, kind: str
) -> list[list[list[str]]]:
    """The numbers of four neighbouring lanes: by lane, by register."""
    found = []
    for t in range(4):
        words = seen(frame, record, frame.op(f"add i32 {base}, {more + t}"), wide)
        found.append([split(frame, kind, word) for word in words])
    return found


def _dot(frame: Translator, llvm: str, total: str, left: list[str], right: list[str]) -> str:
    times, plus = ("mul", "add") if llvm == "i32" else ("fmul", "fadd")
    for x, y in zip(left, right, strict=True):
        total = frame.op(f"{plus} {llvm} {total}, {frame.op(f'{times} {llvm} {x}, {y}')}")
    return total


_MATRIX = "aligned m8n8 x1 x2 x4 trans shared shared::cta b16"


def _rows(frame: Translator, address: Operand) -> tuple[str, str, str, str]:
    """The record that shows each lane's address, the lane, its group, and its place in that."""
    place = frame.op(f"ptrtoint ptr {frame.access('shared', address, 16)} to i64")
    record = exchange(frame, "-1", place)
    lane = frame.op("and i32 %thread, 31")
    return record, lane, frame.op(f"lshr i32 {lane}, 2"), frame.op(f"and i32 {lane}, 3")


def _element(frame: Translator, record: str, lane: str, matrix: int, row: str, offset: str) -> str:
    """The host pointer *offset* bytes into a row of a matrix."""
    start = published(frame, record, lane, frame.op(f"add i32 {row}, {8 * matrix}"))
    at = frame.op(f"add i64 {start}, {frame.op(f'zext i32 {offset} to i64')}")
    return frame.op(f"inttoptr i64 {at} to ptr")


def _places(frame: Translator, op: Op, found: tuple[str, str, str, str], matrix: int) -> list[str]:
    """Pointers to the two 16-bit elements of a matrix that are this lane's."""
    record, lane, group, within = found
    twice = frame.op(f"shl i32 {within}, 1")
    pairs = []
    for n in range(2):
        across = frame.op(f"add i32 {twice}, {n}")
        row, column = (across, group) if op.has("trans") else (group, across)
        offset = frame.op(f"shl i32 {column}, 1")
        pairs.append(_element(frame, record, lane, matrix, row, offset))
    return pairs


@instruction("ldmatrix.sync", "x = x", "", _MATRIX, warp=True)
def ldmatrix(frame: Translator, op: Op, dest: Operand, address: Operand) -> None:
    """Lane 8 j + i gives the address of row i of matrix j."""
    found = _rows(frame, address)
    for matrix, item in enumerate(registers(dest, op.raw.line)):
        low, high = (
            frame.op(f"zext i16 {frame.op(f'load i16, ptr {place}')} to i32")
            for place in _places(frame, op, found, matrix)
        )
        frame.write(item, U32, frame.op(f"or i32 {low}, {frame.op(f'shl i32 {high}, 16')}"))


@instruction("stmatrix.sync", "= x x", "", _MATRIX, warp=True)
def stmatrix(frame: Translator, op: Op, address: Operand, source: Operand) -> None:
    """As ldmatrix, the other way."""
    found = _rows(frame, address)
    for matrix, item in enumerate(registers(source, op.raw.line)):
        word = frame.read(item, U32)
        for n, place in enumerate(_places(frame, op, found, matrix)):
            part = frame.op(f"trunc i32 {frame.op(f'lshr i32 {word}, {16 * n}')} to i16")
            frame.do(f"store i16 {part}, ptr {place}")
