"""Paths as users write them."""

from pathlib import Path

import pytest

from bkbopt._support.paths import at_home


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
