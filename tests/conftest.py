"""Says which device the tests run on, and what each folder of tests needs."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

# Asked in a process of its own: unit tests must find the package untouched.
_PROBE = """
import json, cudadrv
device = cudadrv.devices()[0]
print(json.dumps({"emulator": cudadrv.is_emulator(), "name": device.name, "arch": device.arch}))
"""


def pytest_configure(config: pytest.Config) -> None:
    """Fix the driver once for all workers: a GPU if this machine has one, else the emulator."""
    if "CUDADRV_DRIVER" in os.environ:
        config.stash[_SOURCE] = f"CUDADRV_DRIVER={os.environ['CUDADRV_DRIVER']}"
    else:
        found = _probe("auto")
        os.environ["CUDADRV_DRIVER"] = "emulator" if found.get("emulator", True) else "auto"
        config.stash[_SOURCE] = "CUDADRV_DRIVER not set"
    if "CUDADRV_TEST_CALLS" in os.environ:
        config.stash[_CALLS] = record_calls()


def pytest_sessionfinish() -> None:
    """Release what is garbage now, that tools that look for leaks see only what is none."""
    gc.collect()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave a note of the driver functions that this process called, if that was asked for."""
    calls = config.stash.get(_CALLS, {})
    if calls:
        import cudadrv

        note = {
            "device": cudadrv.Device(0).name,
            "driver": "{}.{}".format(*cudadrv.driver_version()),
            "succeeded": sorted(name for name, well in calls.items() if well),
            "refused": sorted(name for name, well in calls.items() if not well),
        }
        folder = Path(os.environ["CUDADRV_TEST_CALLS"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{os.getpid()}.json").write_text(json.dumps(note))


def record_calls() -> dict[str, bool]:
    """From now on, note of every driver function that is called whether a call succeeded."""
    from cudadrv.raw import binding

    calls: dict[str, bool] = {}
    find = binding.address

    def address(name: str) -> int:
        # Whoever asks for it calls it from machine code.
        calls[binding.symbol(name)] = True
        return find(name)

    def function(name: str) -> Callable[..., int]:
        exact = binding.symbol(name)
        bound = binding.prototype(name)(find(name))

        def call(*arguments: Any) -> int:
            code = bound(*arguments)
            calls[exact] = calls.get(exact, False) or code == 0
            return code

        return call

    binding.function = binding.API["function"] = function
    binding.address = binding.API["address"] = address
    return calls


_SOURCE = pytest.StashKey[str]()
_CALLS = pytest.StashKey[dict[str, bool]]()


def pytest_report_header(config: pytest.Config) -> str:
    """Name the device in the first lines of the report."""
    found = _probe(os.environ["CUDADRV_DRIVER"])
    device = f"{found['name']} ({found['arch']})" if "name" in found else found["error"]
    return f"device: {device}; {config.stash[_SOURCE]}"


def _probe(driver: str) -> dict[str, Any]:
    """Name, architecture and kind of device 0 under *driver*, or the error that stands there."""
    answer = subprocess.run(
        [sys.executable, "-c", _PROBE],
        env={**os.environ, "CUDADRV_DRIVER": driver},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        return {"error": (answer.stderr.strip().splitlines() or ["no device"])[-1]}
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with what its folder needs."""
    for item in items:
        folder = item.path.relative_to(ROOT / "tests").parts[0]
        if folder in ("device", "gpu"):
            item.add_marker(getattr(pytest.mark, folder))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what only a real GPU can answer when this run is on the emulator."""
    if item.get_closest_marker("gpu"):
        import cudadrv

        if cudadrv.is_emulator():
            pytest.skip("needs a real GPU; this run is on the emulator")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """At most four workers with ``-n auto``: they share one device and its memory."""
    return min(4, os.cpu_count() or 1)


@pytest.fixture
def edited_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write no bytecode: it would outlive an edit within the same second."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture
def alone() -> None:
    """Skip what measures the memory of a device that the other workers use too."""
    import cudadrv

    if "PYTEST_XDIST_WORKER" in os.environ and not cudadrv.is_emulator():
        pytest.skip("measures the device's memory: run it without -n")


@pytest.fixture
def context() -> Iterator[Any]:
    """The current context; errors of work still in flight surface at the end of the test."""
    import cudadrv

    current = cudadrv.current_context()
    yield current
    current.synchronize()


@pytest.fixture
def run_python() -> Callable[..., str]:
    """Run code in a fresh interpreter that sees this tree; returns what it prints."""

    def run(code: str, **environment: str) -> str:
        answer = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    return run
