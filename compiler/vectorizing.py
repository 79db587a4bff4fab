"""vectorize and guvectorize: a function of numbers, or of small arrays, over whole arrays."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cudadrv import DeviceArray, device_array, to_device

from . import types
from .dispatch.jit import jit
from .errors import TypingError
from .frontend.program import Program
from .lang import indices
from .reduction import Reduce
from .signature import normalize
from .types import Type
from .typing.registry import REGISTRY

THREADS = 256
grid: Any = indices.grid


def _elementwise(function: Any) -> Any:
    """The kernel that calls *function* on each element."""

    def over_elements(out: Any, *inputs: Any) -> None:
        i = grid(1)
        if i < out.size:
            out[i] = function(*_items(inputs, i))

    return jit(over_elements)


def _items(inputs: Any, i: Any) -> Any:
    """An element of each array; numbers stay."""
    if len(inputs) == 0:
        return ()
    first = inputs[0]
    return (first[i] if isinstance(first, np.ndarray) else first, *_items(inputs[1:], i))


class Vectorized:
    """A function of numbers that takes arrays, broadcast against each other.

    Attributes:
        pyfunc: the function.
        signatures: the declared ones, in the order in which they are tried; empty: any types.
    """

    def __init__(self, pyfunc: Callable[..., Any], signatures: Sequence[Any]) -> None:
        self.pyfunc = pyfunc
        self.signatures = tuple(normalize(each) for each in signatures)
        self._kernel = _elementwise(pyfunc)
        functools.update_wrapper(self, pyfunc)

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0) -> Any:
        """The results: a device array if an argument is one, else a NumPy array or scalar.

        Args:
            out: a host or device array of the result's shape to write to.

        Raises:
            TypeError: no declared signature takes these arguments without loss.
            ValueError: the shapes do not fit together.
        """
        on_device = any(isinstance(arg, DeviceArray) for arg in args)
        arrays = [arg if isinstance(arg, DeviceArray) else np.asarray(arg) for arg in args]
        shape = np.broadcast_shapes(*(tuple(each.shape) for each in arrays))
        kinds, returns = self._types([np.dtype(each.dtype) for each in arrays])
        inputs = [_prepared(a, k, shape) for a, k in zip(arrays, kinds, strict=True)]
        result = device_array(int(np.prod(shape)), returns.dtype)
        if result.size:
            blocks = -(-result.size // THREADS)
            self._kernel[blocks, THREADS, stream](result, *inputs)
        return _given_back(result.reshape(shape), out, on_device)

    def _types(self, given: list[np.dtype[Any]]) -> tuple[list[Any], Any]:
        """The types to which the arguments are converted, and that of the result."""
        if not self.signatures:
            kinds: list[Any] = [types.from_dtype(each) for each in given]
            return kinds, self._returned(tuple(kinds))
        for signature in self.signatures:
            wanted: list[Any] = list(signature.args)
            pairs = zip(given, wanted, strict=False)
            if len(wanted) == len(given) and all(np.can_cast(g, w.dtype) for g, w in pairs):
                declared = signature.returns
                return wanted, declared or self._returned(signature.args)
        names = ", ".join(map(str, given))
        shown = "; ".join(map(str, self.signatures))
        raise TypeError(f"{self.pyfunc.__name__} is declared {shown}: no match for ({names})")

    def _returned(self, args: tuple[Type, ...]) -> Type:
        found = Program(REGISTRY).specialize(self.pyfunc, args).returns
        if not isinstance(found, types.Stored):
            raise TypingError(f"{self.pyfunc.__name__} returns {found}: it must be a number")
        return found

    def reduce(self, arr: Any, stream: Any = 0, init: Any = 0) -> Any:
        """The reduction of an array of one dimension by the function, see `compiler.Reduce`."""
        return Reduce(self.pyfunc)(arr, stream=stream, init=init)


def _prepared(array: Any, kind: Any, shape: tuple[int, ...]) -> Any:
    """An argument as the kernel takes it: a scalar, or all elements in one dimension."""
    dtype = kind.dtype
    if isinstance(array, DeviceArray):
        whole = tuple(array.shape) == shape and np.dtype(array.dtype) == dtype
        if whole and array.c_contiguous:
            return array.reshape(-1)
        array = array.copy_to_host()
    if array.ndim == 0:
        return dtype.type(array[()])
    return to_device(np.ascontiguousarray(np.broadcast_to(array, shape), dtype).reshape(-1))


def _given_back(result: Any, out: Any, on_device: bool) -> Any:
    if isinstance(out, np.ndarray):
        out[...] = result.copy_to_host()
        return out
    if out is not None:
        out.copy_to_device(result)
        return out
    if on_device:
        return result
    host = result.copy_to_host()
    return host if host.ndim else host[()]


def vectorize(ftylist_or_function: Any = (), target: str = "cuda") -> Any:
    """Make a function of numbers one of arrays: ``@vectorize(["float32(float32, float32)"])``.

    Without signatures the types of each call decide.
    """
    if target != "cuda":
        raise ValueError(f"target {target!r}: there is 'cuda' alone")
    if callable(ftylist_or_function):
        return Vectorized(ftylist_or_function, ())
    given = ftylist_or_function
    signatures = [given] if isinstance(given, str) else list(given)
    return lambda function: Vectorized(function, signatures)


# guvectorize


class GUVectorized:
    """A function of arrays with a fixed number of dimensions, over arrays with more of them.

    Attributes:
        layout: the names of the dimensions, such as "(m,n),(n)->(m)".
    """

    def __init__(self, pyfunc: Callable[..., Any], signatures: Sequence[Any], layout: str) -> None:
        self.pyfunc = pyfunc
        self.layout = layout
        self.inputs, self.outputs = _layout(layout)
        self.signatures = tuple(normalize(each) for each in signatures)
        count = len(self.inputs) + len(self.outputs)
        for signature in self.signatures:
            if len(signature.args) != count:
                raise TypeError(f"{signature} has other than the {count} arguments of {layout}")
        self._kernel = _over_loops(pyfunc)
        functools.update_wrapper(self, pyfunc)

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0) -> Any:
        """The results, new arrays unless the arguments or *out* bring them.

        Raises:
            ValueError: the shapes do not fit the layout.
            TypeError: there are too few or too many arguments.
        """
        count = len(self.inputs)
        if len(args) not in (count, count + len(self.outputs)):
            raise TypeError(f"{self.pyfunc.__name__} takes {count} arguments, {len(args)} given")
        given_out = list(args[count:])
        if out is not None:
            given_out = list(out) if isinstance(out, tuple) else [out]
        on_device = any(isinstance(arg, DeviceArray) for arg in args)
        arrays = [
            a.copy_to_host() if isinstance(a, DeviceArray) else np.asarray(a) for a in args[:count]
        ]
        loops, sizes = self._shapes(arrays)
        kinds = self._kinds(arrays, given_out)
        many = int(np.prod(loops))
        inputs = [
            to_device(_looped(array, core, loops, sizes, kind))
            for array, core, kind in zip(arrays, self.inputs, kinds, strict=False)
        ]
        results = [
            device_array((many, *(sizes[name] for name in core or ("",))), kind)
            for core, kind in zip(self.outputs, kinds[count:], strict=True)
        ]
        if many:
            self._kernel[-(-many // THREADS), THREADS, stream](many, *inputs, *results)
        shaped = [
            result.reshape((*loops, *(sizes[name] for name in core)))
            for result, core in zip(results, self.outputs, strict=True)
        ]
        places = given_out or [None] * len(shaped)
        back = [_given_back(r, p, on_device) for r, p in zip(shaped, places, strict=True)]
        return back[0] if len(back) == 1 else tuple(back)

    def _shapes(self, arrays: Sequence[Any]) -> tuple[tuple[int, ...], dict[str, int]]:
        """The shape of the loops, and the size of each named dimension."""
        sizes, loops = {"": 1}, []
        for array, core in zip(arrays, self.inputs, strict=True):
            split = array.ndim - len(core)
            if split < 0:
                raise ValueError(f"{self.layout}: an array of {array.ndim} dimensions is too small")
            loops.append(array.shape[:split])
            for name, size in zip(core, array.shape[split:], strict=True):
                if sizes.setdefault(name, size) != size:
                    raise ValueError(f"{self.layout}: {name} is {sizes[name]} and {size}")
        for core in self.outputs:
            unknown = set(core) - set(sizes)
            if unknown:
                raise ValueError(f"{self.layout}: no argument has the dimension {unknown.pop()}")
        return np.broadcast_shapes(*loops), sizes

    def _kinds(self, arrays: Sequence[Any], outputs: Sequence[Any]) -> list[np.dtype[Any]]:
        """The element types of arguments and results."""
        for signature in self.signatures:
            declared = [_element(ty) for ty in signature.args]
            if all(np.can_cast(a.dtype, d) for a, d in zip(arrays, declared, strict=False)):
                return declared
        if self.signatures:
            shown = "; ".join(map(str, self.signatures))
            raise TypeError(f"{self.pyfunc.__name__} is declared {shown}: no match")
        given = [np.dtype(array.dtype) for array in arrays]
        found = [np.dtype(each.dtype) for each in outputs]
        return given + (found or [np.result_type(*given)] * len(self.outputs))


def _on_host(array: Any) -> Any:
    return array.copy_to_host() if isinstance(array, DeviceArray) else np.asarray(array)


def _element(ty: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = ty.dtype.dtype if isinstance(ty, types.Array) else ty.dtype
    return dtype


def _looped(array: Any, core: Any, loops: Any, sizes: Any, kind: Any) -> Any:
    """An argument with one loop dimension before those that the function sees."""
    inner = tuple(sizes[name] for name in core)
    whole = np.broadcast_to(array, (*loops, *inner))
    return np.ascontiguousarray(whole, kind).reshape((int(np.prod(loops)), *inner))


def _over_loops(function: Any) -> Any:
    """The kernel that calls *function* on the parts of all arrays that one loop step sees."""

    def over_loops(count: Any, *arrays: Any) -> None:
        i = grid(1)
        if i < count:
            function(*_views(arrays, i))

    return jit(over_loops)


def _views(arrays: Any, i: Any) -> Any:
    if len(arrays) == 0:
        return ()
    return (arrays[0][i], *_views(arrays[1:], i))


def _layout(text: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The dimensions of each argument and result of a layout."""
    if not re.fullmatch(r"\s*\([\w\s,]*\)(\s*,\s*\([\w\s,]*\))*\s*->\s*\(.*\)\s*", text):
        raise ValueError(f"{text!r} is no layout: write one such as '(m,n),(n)->(m)'")
    before, after = text.split("->")

    def groups(part: str) -> list[tuple[str, ...]]:
        found = re.findall(r"\(([^)]*)\)", part)
        return [tuple(name.strip() for name in each.split(",") if name.strip()) for each in found]

    return groups(before), groups(after)


def guvectorize(ftylist: Any, signature: str, target: str = "cuda") -> Any:
    """Make a function of small arrays one of larger ones, looped over their first dimensions.

    ``@guvectorize(["void(float32[:], float32[:])"], "(n)->()")``: the function takes the results as
    its last arguments; one without dimensions is an array of one element.
    """
    if target != "cuda":
        raise ValueError(f"target {target!r}: there is 'cuda' alone")
    signatures = [ftylist] if isinstance(ftylist, str) else list(ftylist)
    return lambda function: GUVectorized(function, signatures, signature)
