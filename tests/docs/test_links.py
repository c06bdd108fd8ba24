"""Links of the built pages, which `make docs` checks, and of the Markdown files outside of them."""

import re
from pathlib import Path

import pytest

from docs.check_links import broken_links

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    *ROOT.glob("*.md"),
    *(ROOT / "examples").glob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
    *(ROOT / "notebooks").glob("*.md"),
]
LINK = re.compile(r"\]\(([^)\s:]*)\)")


def page(folder: Path, name: str, body: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(f"<html><body>{body}</body></html>")


def test_links_that_lead_somewhere_are_not_reported(tmp_path: Path) -> None:
    page(
        tmp_path, "index.html", '<a href="sub/a%20b.html#one">a</a><a href="#">top</a><a href="https://x.org/y">far</a>'
    )
    page(tmp_path, "sub/a b.html", '<h1 id="one">a</h1><a href="../index.html">i</a><img src="p.png" alt="a picture">')
    (tmp_path / "sub" / "p.png").touch()
    assert broken_links(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<a href="b.html">b</a>', "index.html: b.html"),
        ('<a href="#two">2</a>', "index.html: #two"),
        ('<a href="a.html#two">2</a>', "index.html: a.html#two"),
        ('<img src="q.png" alt="q">', "index.html: q.png"),
        ('<img src="index.html">', "index.html: 1 pictures without alt text"),
    ],
)
def test_links_that_lead_nowhere_are_reported(body: str, expected: str, tmp_path: Path) -> None:
    page(tmp_path, "index.html", body)
    page(tmp_path, "a.html", '<p id="one">1</p>')
    assert broken_links(tmp_path) == [expected]


def anchors(path: Path) -> set[str]:
    """The anchors of a Markdown file's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_markdown_files_lead_to_files_and_headings(path: Path) -> None:
    def leads(link: str) -> bool:
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        return target.exists() and (not anchor or anchor in anchors(target))

    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [link for link in LINK.findall(text) if not leads(link)] == []
