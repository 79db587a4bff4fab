"""Launch attributes: a keyword and its value become a CUlaunchAttribute.

The keywords are cuda.h's enumerators in lower case, without CU_LAUNCH_ATTRIBUTE_. One table serves
launches, kernel nodes of graphs and streams, which take the same attributes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cudadrv import checks, raw
from cudadrv.context import Resource
from cudadrv.process_local import MEMORY, only

LAUNCH, NODE, STREAM = "launch", "kernel node", "stream"
PREFIX = "CU_LAUNCH_ATTRIBUTE_"


class Attribute(NamedTuple):
    """One row of the table.

    Attributes:
        field: of the union CUlaunchAttributeValue.
        encode: turns what the user gave into what the field takes; raises TypeError, ValueError.
        places: what can have it: LAUNCH, NODE, STREAM.
    """

    field: str
    encode: Callable[[Any], Any]
    places: tuple[str, ...]


def flag(value: Any) -> int:
    """0 or 1."""
    if value not in (0, 1):
        raise ValueError("it is True or False")
    return int(value)


def integer(low: int, high: int) -> Callable[[Any], int]:
    """An encoder for integers from *low* to *high*."""

    def encode(value: Any) -> int:
        number = operator.index(value)
        if not low <= number <= high:
            raise ValueError(f"it is a number from {low} to {high}")
        return number

    return encode


def choice(enumeration: str, prefix: str) -> Callable[[Any], int]:
    """An encoder for an enumerator: its name after *prefix* in lower case, or its number."""

    def encode(value: Any) -> int:
        if not isinstance(value, str):
            return operator.index(value)
        members = getattr(raw, enumeration).__members__
        names = {name.removeprefix(prefix).lower(): int(number) for name, number in members.items()}
        if value not in names:
            raise ValueError(f"it is one of {', '.join(names)}")
        return names[value]

    return encode


def extent(value: Any) -> tuple[int, int, int]:
    """One to three positive numbers, as x, y, z."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(given) <= 3:
        raise ValueError("it has one to three dimensions")
    x, y, z = (operator.index(each) for each in (*given, *(1,) * (3 - len(given))))
    if min(x, y, z) < 1 or max(x, y, z) >= 1 << 31:
        raise ValueError("every dimension is at least 1")
    return x, y, z


def dimensions(record: str) -> Callable[[Any], Any]:
    """An encoder for one of the union's structs of x, y and z."""
    return lambda value: getattr(raw, f"CUlaunchAttributeValue_{record}")(*extent(value))


def members(value: Any, **defaults: Any) -> list[Any]:
    """The values of a mapping, or defaults where it has none; a default of ... must be given."""
    if not isinstance(value, Mapping):
        raise TypeError(f"it is a dict with {', '.join(defaults)}")
    unknown = sorted(set(value) - set(defaults))
    missing = [name for name in defaults if defaults[name] is ... and name not in value]
    if unknown or missing:
        wrong = f"there is no {unknown}" if unknown else f"{missing} is missing"
        raise ValueError(f"{wrong}; it is a dict with {', '.join(defaults)}")
    return [value.get(name, default) for name, default in defaults.items()]


def event_handle(event: Any) -> int:
    """The handle of an event that a launch may record."""
    if getattr(event, "timing", False):
        raise ValueError("the event must be made with timing=False")
    handle = getattr(only(event, "Event"), "handle", event)
    return checks.address(handle, "event")


def programmatic_event(value: Any) -> Any:
    """An event, or a dict with event, flags and trigger_at_block_start."""
    given = value if isinstance(value, Mapping) else {"event": value}
    event, flags, trigger = members(given, event=..., flags=0, trigger_at_block_start=False)
    make = raw.CUlaunchAttributeValue_programmaticEvent
    return make(event_handle(event), operator.index(flags), flag(trigger))


def completion_event(value: Any) -> Any:
    """An event, or a dict with event and flags."""
    given = value if isinstance(value, Mapping) else {"event": value}
    event, flags = members(given, event=..., flags=0)
    make = raw.CUlaunchAttributeValue_launchCompletionEvent
    return make(event_handle(event), operator.index(flags))


_access = choice("CUaccessProperty", "CU_ACCESS_PROPERTY_")


def window(value: Any) -> Any:
    """A dict with memory (or an address), nbytes, hit_ratio, hit and miss."""
    memory, nbytes, ratio, hit, miss = members(
        value, memory=..., nbytes=None, hit_ratio=1.0, hit="persisting", miss="streaming"
    )
    only(memory, *MEMORY)
    if nbytes is None:
        nbytes = getattr(memory, "nbytes", None)
        if nbytes is None:
            raise ValueError("an address needs nbytes")
    if not 0 <= ratio <= 1:
        raise ValueError("hit_ratio is from 0 to 1")
    address = checks.address(getattr(memory, "handle", memory))
    nbytes = integer(0, getattr(memory, "nbytes", 1 << 63))(nbytes)
    hits, misses = _access(hit), _access(miss)
    if misses == raw.CU_ACCESS_PROPERTY_PERSISTING:
        raise ValueError("miss is normal or streaming, not persisting")
    return raw.CUaccessPolicyWindow(address, nbytes, ratio, hits, misses)


def domain_map(value: Any) -> Any:
    """The two hardware domains that stand for the default and the remote one."""
    if not isinstance(value, Sequence):
        raise TypeError("it is two numbers")
    default, remote = value
    byte = integer(0, 255)
    return raw.CUlaunchMemSyncDomainMap(byte(default), byte(remote))


def updatable(value: Any) -> Any:
    """Whether device code may change the node; the driver fills in the node's device handle."""
    return raw.CUlaunchAttributeValue_deviceUpdatableKernelNode(flag(value), None)


EVERYWHERE, NO_STREAM = (LAUNCH, NODE, STREAM), (LAUNCH, NODE)
TABLE = {
    "access_policy_window": Attribute("accessPolicyWindow", window, EVERYWHERE),
    "cooperative": Attribute("cooperative", flag, NO_STREAM),
    "synchronization_policy": Attribute(
        "syncPolicy", choice("CUsynchronizationPolicy", "CU_SYNC_POLICY_"), (STREAM,)
    ),
    "cluster_dimension": Attribute("clusterDim", dimensions("clusterDim"), NO_STREAM),
    "cluster_scheduling_policy_preference": Attribute(
        "clusterSchedulingPolicyPreference",
        choice("CUclusterSchedulingPolicy", "CU_CLUSTER_SCHEDULING_POLICY_"),
        NO_STREAM,
    ),
    "programmatic_stream_serialization": Attribute(
        "programmaticStreamSerializationAllowed", flag, (LAUNCH,)
    ),
    "programmatic_event": Attribute("programmaticEvent", programmatic_event, (LAUNCH,)),
    "priority": Attribute("priority", integer(-(1 << 31), (1 << 31) - 1), EVERYWHERE),
    "mem_sync_domain_map": Attribute("memSyncDomainMap", domain_map, EVERYWHERE),
    "mem_sync_domain": Attribute(
        "memSyncDomain", choice("CUlaunchMemSyncDomain", "CU_LAUNCH_MEM_SYNC_DOMAIN_"), EVERYWHERE
    ),
    "preferred_cluster_dimension": Attribute(
        "preferredClusterDim", dimensions("preferredClusterDim"), NO_STREAM
    ),
    "launch_completion_event": Attribute("launchCompletionEvent", completion_event, (LAUNCH,)),
    "device_updatable_kernel_node": Attribute("deviceUpdatableKernelNode", updatable, NO_STREAM),
    "preferred_shared_memory_carveout": Attribute("sharedMemCarveout", integer(0, 100), (LAUNCH,)),
    "nvlink_util_centric_scheduling": Attribute("nvlinkUtilCentricScheduling", flag, EVERYWHERE),
    "portable_cluster_size_mode": Attribute(
        "portableClusterSizeMode",
        choice("CUlaunchAttributePortableClusterMode", "CU_LAUNCH_PORTABLE_CLUSTER_MODE_"),
        NO_STREAM,
    ),
    "shared_memory_mode": Attribute(
        "sharedMemoryMode", choice("CUsharedMemoryMode", "CU_SHARED_MEMORY_MODE_"), NO_STREAM
    ),
}


def fill(attribute: Any, name: str, value: Any, place: str) -> None:
    """Set a CUlaunchAttribute to the attribute *name*.

    Args:
        value: as the row of the table takes it.
        place: LAUNCH, NODE or STREAM.

    Raises:
        TypeError: there is no such attribute, or the value is of another type.
        ValueError: the value is out of range.
    """
    row = TABLE.get(name)
    if row is None or place not in row.places:
        known = ", ".join(each for each, row in TABLE.items() if place in row.places)
        raise TypeError(f"a {place} has no attribute {name!r}; it has: {known}")
    try:
        coded = row.encode(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}={value!r}: {error}") from None
    attribute.id = getattr(raw, PREFIX + name.upper())
    setattr(attribute.value, row.field, coded)


def resources(attributes: Mapping[str, Any]) -> list[Resource]:
    """What the attributes name that can be closed: events and memory."""
    given = [
        each
        for value in attributes.values()
        for each in (value.values() if isinstance(value, Mapping) else (value,))
    ]
    # An array is closed with its memory.
    owners = [getattr(each, "memory", each) for each in given]
    return [each for each in owners if isinstance(each, Resource)]
