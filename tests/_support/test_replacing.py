"""Atomic writes of files: the next writer removes the leftovers of a killed one."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bkbopt._support.files import load
from bkbopt._support.replacing import as_path, replace_atomically
from bkbopt.errors import ArgumentError, ArgumentTypeError

WRITER = """
import sys, time
from bkbopt._support.replacing import replace_atomically

def write(file):
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60.0)

replace_atomically(sys.argv[1], write)
"""


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.skipif(os.name != "posix", reason="only POSIX systems tell whether a process is alive without harm")
def test_files_of_a_killed_writer_are_removed_by_the_next_one_and_those_of_a_live_one_kept(tmp_path: Path) -> None:
    target, other = tmp_path / "a", tmp_path / "b"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        for path in (target, target, other)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
        assert len(names(tmp_path)) == 3
        for writer in (writers[0], writers[2]):
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        replace_atomically(target, lambda file: file.write(b"whole"))
        # One file is being written, and one was left beside another file, whose next writer removes it.
        assert len(names(tmp_path) - {"a"}) == 2
        replace_atomically(other, lambda file: file.write(b"whole"))
        assert len(names(tmp_path) - {"a", "b"}) == 1
        assert target.read_bytes() == other.read_bytes() == b"whole"
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    replace_atomically(target, lambda file: file.write(b"again"))
    assert names(tmp_path) == {"a", "b"}


@pytest.mark.parametrize("path", [b"run", 1, True, None, io.BytesIO()], ids=lambda path: type(path).__name__)
def test_what_is_no_path_is_refused_by_readers_and_writers(path: object) -> None:
    for call in (as_path, lambda it: replace_atomically(it, print), lambda it: load(it, kind="learner")):
        with pytest.raises(ArgumentTypeError, match=r"^path: expected the path of a file, got .* of type"):
            call(path)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_a_path_that_no_file_can_have_is_refused(path: str) -> None:
    with pytest.raises(ArgumentError, match=r"^path: expected the path of a file, got .*; give the name of a file"):
        as_path(path)


@pytest.mark.parametrize("end", ["/", "/.", "/.."])
def test_a_path_that_ends_as_that_of_a_folder_is_no_path_of_the_file_before_the_end(end: str, tmp_path: Path) -> None:
    for is_there in (False, True):
        with pytest.raises(ArgumentError, match=r"^path: expected a regular file or a new name, got the folder .*/"):
            replace_atomically(f"{tmp_path}/a{end}", lambda file: file.write(b"new"))
        assert names(tmp_path) == ({"a"} if is_there else set())
        (tmp_path / "a").write_bytes(b"old")
    assert (tmp_path / "a").read_bytes() == b"old"


def test_paths_as_text_and_as_objects_are_the_same() -> None:
    assert as_path("a/b") == as_path(Path("a/b")) == "a/b"
