"""The benchmark cases: a table from name to a function that prepares and yields a sampler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

# One sample: the values measured, by the name that stands before the unit's in the report.
Sampler = Callable[[], dict[str, float]]
Preparation = Callable[[], Iterator[Sampler]]


class NotHereError(Exception):
    """What the case needs is not on this machine."""


@dataclass(frozen=True)
class Case:
    """A benchmark: *prepare* sets up, yields a sampler, and cleans up when resumed."""

    name: str
    unit: str
    driver: str
    n: int
    prepare: Preparation


CASES: dict[str, Case] = {}


def case(unit: str, *, driver: str = "auto", n: int = 10) -> Callable[[Preparation], Preparation]:
    """Register a function of the same name as a case of *n* samples.

    Args:
        driver: what CUDADRV_DRIVER is in the case's process; "emulator" for the emulator's speed.
    """

    def register(prepare: Preparation) -> Preparation:
        name = prepare.__name__
        CASES[name] = Case(name, unit, driver, n, prepare)
        return prepare

    return register
