"""Paths as users write them."""

from pathlib import Path

import pytest

from bkbopt._support.file_paths import at_home, is_of_log, names_folder


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("~/a.db", "/of/user/a.db"),
        (Path("~/a.db"), "/of/user/a.db"),
        ("~", "/of/user"),
        ("./~/a.db", "./~/a.db"),
        ("a~.db", "a~.db"),
        ("a/", "a/"),
    ],
    ids=str,
)
def test_a_leading_tilde_is_the_home_folder(path: str | Path, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, "/of/user")
    assert at_home(path) == expected


def test_a_path_is_that_of_a_folder_by_its_end() -> None:
    assert all(map(names_folder, ["a/", "a//", "a/.", "a/..", ".", "..", "/"]))
    assert not any(map(names_folder, ["a", "a/b", "./a", "a.", "a..", "..a", "..."]))


def test_files_beside_a_log_belong_to_it(tmp_path: Path) -> None:
    (tmp_path / "log.db").touch()
    (tmp_path / "link.db").symlink_to("log.db")
    (tmp_path / "hard.db").hardlink_to(tmp_path / "log.db")
    for log in ("log.db", "link.db"):
        for name in ("log.db", "link.db", "hard.db", "log.db-journal", "log.db.lock", "log.db.run.lock"):
            assert is_of_log(str(tmp_path / name), str(tmp_path / log))
        for name in ("log.csv", "other.db", "log.db-journal2", "log.db.csv"):
            assert not is_of_log(str(tmp_path / name), str(tmp_path / log))
