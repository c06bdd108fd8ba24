"""Check the links of the built pages: files and anchors that are not there. `python docs/check_links.py out/docs`.

Addresses on the network are not looked up.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["broken_links"]


class _Page(HTMLParser):
    """The anchors of a page, and what it links to or shows."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.images_without_text = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect names and links of a tag."""
        given = dict(attrs)
        self.anchors |= {str(given[name]) for name in ("id", "name") if given.get(name)}
        self.links += [str(given[name]) for name in ("href", "src") if given.get(name)]
        self.images_without_text += tag == "img" and not given.get("alt")


def broken_links(folder: Path) -> list[str]:
    """A line for each link of the pages below `folder` that leads nowhere, and for each picture without a text."""
    pages = {path.resolve(): _Page(path) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        if page.images_without_text:
            found.append(f"{name}: {page.images_without_text} pictures without alt text")
        for link in sorted(set(page.links)):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages.get(target)
            missing = not target.exists() or target.is_dir()
            # "#" is the top of the page; a text fragment names no anchor.
            if missing or (known and parts.fragment and unquote(parts.fragment) not in known.anchors):
                found.append(f"{name}: {link}")
    return found


def main() -> int:
    """Print what is broken; 1 if anything is."""
    found = broken_links(Path(sys.argv[1]))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
