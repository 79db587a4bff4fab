"""cuGraphAdd...Node, cuGraph...Node..SetParams and the like: the parameters of nodes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from cudadrv.raw import table, types

from ..boundary import FUNCTIONS, exported
from ..graph import KINDS, Exec, Graph, Node, Params
from ..nodes import (
    AllocParams,
    ChildParams,
    CopyParams,
    FillParams,
    FreeParams,
    HostParams,
    KernelParams,
    OperationParams,
    RecordEventParams,
    WaitEventParams,
    read,
    record,
)
from ..state import Event, find
from ..status import require
from .graph import handles

# -- any kind


def _add(graph: int, after: int, data: int, count: int, make: Callable[[], Params]) -> Node:
    target = find(Graph, graph)
    order = handles(after, data, count, target)
    return Node(target, make(), order)


def _replace(node: Node, params: Params) -> None:
    require(node.params.kind == params.kind)
    require(not params.unique, "NOT_SUPPORTED")
    for inner in node.params.graphs():
        inner.discard()
    for inner in params.graphs():
        inner.parent = node.graph
    node.params = params


def _replace_launchable(made: int, node: int, params: Params) -> None:
    twin = find(Exec, made).find(find(Node, node))
    require(twin.params.kind == params.kind)
    require(not twin.params.difference(params))
    _replace(twin, params)


@exported()
def cuGraphAddNode_v2(graph: int, after: int, data: int, count: int, address: int) -> Node:
    return _add(graph, after, data, count, lambda: read(address))


@exported()
def cuGraphAddNode(graph: int, after: int, count: int, address: int) -> Node:
    return _add(graph, after, 0, count, lambda: read(address))


@exported()
def cuGraphNodeSetParams(node: int, address: int) -> None:
    _replace(find(Node, node), read(address))


@exported()
def cuGraphExecNodeSetParams(made: int, node: int, address: int) -> None:
    _replace_launchable(made, node, read(address))


@exported()
def cuGraphNodeSetEnabled(made: int, node: int, enabled: int) -> None:
    twin = find(Exec, made).find(find(Node, node))
    require(twin.params.kind in (KINDS["KERNEL"], KINDS["MEMSET"], KINDS["MEMCPY"]))
    twin.enabled = bool(enabled)


@exported()
def cuGraphNodeGetEnabled(made: int, node: int) -> int:
    twin = find(Exec, made).find(find(Node, node))
    require(twin.params.kind in (KINDS["KERNEL"], KINDS["MEMSET"], KINDS["MEMCPY"]))
    return int(twin.enabled)


# -- one kind each: what reads the argument of its functions


def _from(name: str, make: Callable[[Any], Params]) -> Callable[..., Params]:
    def reader(address: int, *context: Any) -> Params:
        require(address)
        return make(record(name, address))

    return reader


def _alloc(address: int) -> Params:
    require(address)
    return AllocParams(types.record("CUDA_MEM_ALLOC_NODE_PARAMS_v1").from_address(address))


def _kernel(record_name: str) -> Callable[..., Params]:
    return _from(record_name, KernelParams.read)


_READ: dict[str, Callable[..., Params]] = {
    "Memcpy": _from("CUDA_MEMCPY3D", CopyParams),
    "Memset": _from("CUDA_MEMSET_NODE_PARAMS", FillParams),
    "Host": _from("CUDA_HOST_NODE_PARAMS", HostParams),
    "ChildGraph": lambda graph: ChildParams(find(Graph, graph)),
    "Empty": Params,
    "EventRecord": RecordEventParams,
    "EventWait": WaitEventParams,
    "MemAlloc": _alloc,
    "MemFree": FreeParams,
    "BatchMemOp": _from("CUDA_BATCH_MEM_OP_NODE_PARAMS", OperationParams.read),
}
_VERSIONS = {"": "CUDA_KERNEL_NODE_PARAMS_v1", "_v2": "CUDA_KERNEL_NODE_PARAMS"}


def _functions(kind: str, suffix: str, reader: Callable[..., Params]) -> None:
    """Export what adds and changes nodes of one kind."""

    def add(graph: int, after: int, count: int, *given: Any) -> Any:
        return _add(graph, after, 0, count, lambda: reader(*given))

    def change(node: int, *given: Any) -> None:
        _replace(find(Node, node), reader(*given))

    def change_launchable(made: int, node: int, *given: Any) -> None:
        _replace_launchable(made, node, reader(*given))

    what = "Event" if kind.startswith("Event") else "Params"
    made: dict[str, Callable[..., Any]] = {f"cuGraphAdd{kind}Node": add}
    made[f"cuGraph{kind}NodeSet{what}"] = change
    made[f"cuGraphExec{kind}NodeSet{what}"] = change_launchable
    there = {name + suffix: each for name, each in made.items() if name + suffix in table.FUNCTIONS}
    FUNCTIONS.update(there)


for _kind, _reader in _READ.items():
    _functions(_kind, "", _reader)
for _suffix, _name in _VERSIONS.items():
    _functions("Kernel", _suffix, _kernel(_name))


def _params(node: int, kind: type[Params]) -> Any:
    found = find(Node, node).params
    require(isinstance(found, kind) and found.kind == kind.kind)
    return found


@exported("cuGraphKernelNodeGetParams")
def cuGraphKernelNodeGetParams_v2(node: int) -> Any:
    return _params(node, KernelParams).record()


@exported()
def cuGraphMemcpyNodeGetParams(node: int) -> Any:
    return _params(node, CopyParams).record()


@exported()
def cuGraphMemsetNodeGetParams(node: int) -> Any:
    made = record("CUDA_MEMSET_NODE_PARAMS")
    ctypes.memmove(ctypes.byref(made), ctypes.byref(_params(node, FillParams).record()), 40)
    return made


@exported()
def cuGraphHostNodeGetParams(node: int) -> Any:
    given = _params(node, HostParams).record()
    return types.record("CUDA_HOST_NODE_PARAMS_v1")(given.fn, given.userData)


@exported()
def cuGraphChildGraphNodeGetGraph(node: int) -> Graph:
    graph: Graph = _params(node, ChildParams).graph
    return graph


@exported()
def cuGraphEventRecordNodeGetEvent(node: int) -> Event:
    event: Event = _params(node, RecordEventParams).event
    return event


@exported()
def cuGraphEventWaitNodeGetEvent(node: int) -> Event:
    event: Event = _params(node, WaitEventParams).event
    return event


@exported()
def cuGraphMemAllocNodeGetParams(node: int) -> Any:
    return _params(node, AllocParams).record()


@exported()
def cuGraphMemFreeNodeGetParams(node: int) -> int:
    address: int = _params(node, FreeParams).address
    return address


@exported()
def cuGraphBatchMemOpNodeGetParams(node: int) -> Any:
    return _params(node, OperationParams).record()


# -- attributes of kernel nodes

_VALUE = types.record("CUlaunchAttributeValue")


@exported()
def cuGraphKernelNodeSetAttribute(node: int, attribute: int, address: int) -> None:
    require(address)
    given = _VALUE.from_buffer_copy(_VALUE.from_address(address))
    _params(node, KernelParams).attributes[attribute] = given


@exported()
def cuGraphKernelNodeGetAttribute(node: int, attribute: int) -> Any:
    return _params(node, KernelParams).attributes.get(attribute) or _VALUE()


@exported()
def cuGraphKernelNodeCopyAttributes(target: int, source: int) -> None:
    given = dict(_params(source, KernelParams).attributes)
    _params(target, KernelParams).attributes = given
