"""Paths as users write them."""

from pathlib import Path

import pytest

from bkbopt._support.paths import at_home, names_folder


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
