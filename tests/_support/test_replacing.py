"""Atomic writes of files: the next writer removes the leftovers of a killed one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bkbopt._support.replacing import replace_atomically

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
