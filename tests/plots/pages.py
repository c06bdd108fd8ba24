"""A reader of HTML that refuses pages that are not well-formed or load resources."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "input", "br", "hr", "link"}
#: What a page of ours is made of; text that became markup would bring something else.
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "h1", "p", "nav", "ul", "li", "a", "main", "section"),
    *("h2", "h3", "div", "dl", "dt", "dd", "figure", "img", "figcaption", "table", "caption", "thead", "tbody", "tr"),
    *("th", "td", "span", "footer", "script"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "name", "content", "href", "id", "class", "src", "alt", "width", "height"),
    *("scope", "tabindex", "role", "aria-label"),
}


@dataclass
class Node:
    """An element with its attributes and its own text."""

    name: str
    attributes: dict[str, str]
    text: str = ""
    children: list["Node"] = field(default_factory=list)

    def all(self, name: str) -> list["Node"]:
        """The elements of that name below this one."""
        below = [node for child in self.children for node in child.all(name)]
        return [child for child in self.children if child.name == name] + below

    @property
    def full_text(self) -> str:
        return self.text + "".join(child.full_text for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        assert tag in ELEMENTS, tag
        assert len(given) == len(attrs), f"an attribute twice in {attrs}"
        assert given.keys() <= ATTRIBUTES, given.keys() - ATTRIBUTES
        assert given.get("id") not in self.ids, given
        self.ids |= {given["id"]} if "id" in given else set()
        node = Node(tag, given)
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> where <{self.open[-1].name}> is open"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read(page: str) -> Node:
    """The elements of a page, each of which is allowed, closed in its turn, and loads nothing."""
    assert page.startswith("<!DOCTYPE html>\n")
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert [node.name for node in reader.open] == [""]
    (html,) = reader.root.children
    assert [node.name for node in html.children] == ["head", "body"]
    assert len(html.all("title")) == len(html.all("h1")) == len(html.all("style")) == len(html.all("script")) == 1
    for image in html.all("img"):
        assert image.attributes["src"].startswith("data:image/png;base64,")
        assert len(image.attributes["alt"]) > 20
        assert {"width", "height"} <= image.attributes.keys()
    for link in html.all("a"):
        assert link.attributes["href"][:1] == "#"
        assert link.attributes["href"][1:] in reader.ids
    for table in html.all("table"):
        width = len(table.all("th"))
        assert all(len(row.all("td")) == width for body in table.all("tbody") for row in body.all("tr"))
    return html
