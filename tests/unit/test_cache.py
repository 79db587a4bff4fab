"""The store of compiled code: what is put is got, whatever happens to files and folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compiler import cache, config
from compiler.errors import CompileWarning

NAME = cache.key("a name")


@pytest.fixture
def store(tmp_path) -> cache.Store:
    return cache.Store(tmp_path / "folder", 2**20)


def entries(store: cache.Store) -> list[Path]:
    return sorted(store.folder.iterdir())


def test_what_is_put_is_got(store):
    """All parts come back, empty ones too; another key has nothing."""
    assert store.get(NAME) is None
    store.put(NAME, b"code", b"", b"\0more")
    assert store.get(NAME) == [b"code", b"", b"\0more"]
    assert store.get(cache.key("another")) is None
    store.drop(NAME)
    assert store.get(NAME) is None
    store.drop(NAME)


def test_keys_tell_parts_apart():
    """A key depends on every part and on where one ends."""
    keys = {cache.key(*parts) for parts in (["ab", "c"], ["a", "bc"], ["abc"], ["c", "ab"], [])}
    assert len(keys) == 5
    assert cache.key("é") == cache.key("é".encode())


@pytest.mark.parametrize("length", [0, 1, 31, 32, 60, 100, -1])
def test_truncated_entry_is_no_entry(store, length):
    """An entry that was cut anywhere is not used, and deleted."""
    store.put(NAME, b"code" * 40)
    [file] = entries(store)
    file.write_bytes(file.read_bytes()[:length])
    assert store.get(NAME) is None
    assert entries(store) == []


@pytest.mark.parametrize("place", [0, 40, 70, -1])
def test_changed_byte_is_noticed(store, place):
    """One wrong byte anywhere makes the entry void."""
    store.put(NAME, b"code" * 40)
    [file] = entries(store)
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    assert store.get(NAME) is None


def test_entry_under_another_name_is_void(store):
    """An entry that was renamed is not taken for that of its new name."""
    store.put(NAME, b"code")
    [file] = entries(store)
    other = cache.key("another")
    file.rename(file.with_name(file.name.replace(NAME, other)))
    assert store.get(other) is None


def test_least_recently_used_goes_first(tmp_path):
    """Above the limit entries are dropped from the one that was not used for longest."""
    store = cache.Store(tmp_path, 5000)
    names = [cache.key(str(n)) for n in range(5)]
    for age, name in enumerate(names[:4]):
        store.put(name, bytes(1000))
        used = time.time() - 1000 + age
        os.utime(next(tmp_path.glob(f"{name}*")), (used, used))
    assert store.get(names[0]) is not None
    store.put(names[4], bytes(1000))
    assert [store.get(name) is not None for name in names] == [True, False, True, True, True]


def test_other_processes_count(tmp_path):
    """What others put in the folder counts against the limit."""
    for n in range(4):
        cache.Store(tmp_path, 2500).put(cache.key(str(n)), bytes(1000))
    assert len(list(tmp_path.iterdir())) == 2


def test_leftovers_of_killed_processes_go(store):
    """A temporary file that is an hour old is deleted, a fresh one is somebody's."""
    store.folder.mkdir()
    for name, age in (("old.tmp", 4000), ("new.tmp", 10)):
        file = store.folder / name
        file.write_bytes(b"half")
        os.utime(file, (time.time() - age,) * 2)
    store.put(NAME, b"code")
    assert [file.suffix for file in entries(store)] == [".entry", ".tmp"]
    assert (store.folder / "new.tmp").exists()


def test_unusable_folder_is_one_warning(tmp_path):
    """Where nothing can be kept one CompileWarning names the folder and the way out."""
    (tmp_path / "file").write_text("in the way")
    store = cache.Store(tmp_path / "file" / "folder", 2**20)
    with pytest.warns(CompileWarning, match="COMPILER_CACHE_DIR") as caught:
        store.put(NAME, b"code")
    assert str(store.folder) in str(caught[0].message)
    store.put(NAME, b"code")
    assert store.get(NAME) is None


def test_full_disk_is_one_warning(store, monkeypatch):
    """A write that fails half-way leaves no file behind, and a warning."""

    def full(path, data):
        with path.open("wb") as file:
            file.write(data[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(CompileWarning, match="No space left on device"):
        store.put(NAME, b"code")
    assert entries(store) == []


WORK = """
import sys
from pathlib import Path
from compiler import cache
store = cache.Store(Path(sys.argv[1]), 6000)
for turn in range(60):
    name = cache.key(str(turn % 8))
    expected = bytes([turn % 8]) * 1000
    found = store.get(name)
    assert found in (None, [expected]), found
    store.put(name, expected)
"""


def test_processes_share_a_folder(tmp_path):
    """Processes that write, read and drop the same entries at once never see a wrong one."""
    command = [sys.executable, "-W", "error", "-c", WORK, str(tmp_path)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(process.communicate()[1], process.returncode) for process in running] == [("", 0)] * 3
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    ("variable", "wanted", "kept"),
    [("", True, True), ("", False, False), ("1", False, True), ("0", True, False)],
)
def test_variable_has_the_last_word(monkeypatch, variable, wanted, kept):
    """COMPILER_CACHE switches the cache on or off for all; without it each kernel decides."""
    monkeypatch.setenv("COMPILER_CACHE", variable)
    assert (cache.store(wanted) is not None) == kept


def test_folder_and_limit_by_variables(monkeypatch, tmp_path):
    """Folder and limit can be set; a limit that is no number is refused by its name."""
    monkeypatch.setenv("COMPILER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("COMPILER_CACHE_SIZE", "1.5")
    found = cache.store(True)
    assert found is not None
    assert (found.folder, found.limit) == (tmp_path, 3 * 2**19)
    monkeypatch.setenv("COMPILER_CACHE_SIZE", "much")
    with pytest.raises(ValueError, match="COMPILER_CACHE_SIZE='much'"):
        cache.store(True)
    monkeypatch.delenv("COMPILER_CACHE_DIR")
    assert config.cache_folder().name == "cudadrv-compiler"
