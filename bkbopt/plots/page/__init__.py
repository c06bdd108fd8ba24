"""One HTML page in one file: escaped text, pictures, tables, and a script that sorts them.

Content that is not `Html` is escaped when it enters an element, so text of a log cannot become markup. The page loads
nothing: pictures are embedded, and its security policy allows no address, and only its own style and script.
"""

import base64
import hashlib
import html
import io
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Html", "Section", "element", "page", "picture", "pill", "table"]

#: Pixels of a picture per inch: two for each pixel of a screen on which the page is 1000 pixels wide.
DPI = 200
#: Colours of a picture: a palette takes a third of the bytes, without a visible difference.
COLOURS = 128
#: Characters that HTML forbids even as references: control characters and surrogates.
FORBIDDEN = dict.fromkeys(
    [*range(0x00, 0x09), 0x0B, *range(0x0E, 0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF], "\ufffd"
)


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        name: its heading; in lower case with hyphens its address within the page.
        content: markup or text.
    """

    name: str
    content: Sequence[object]


def element(name: str, *content: object, **attributes: object) -> Html:
    """An element; content that is not `Html` is escaped. `class_` stands for `class`; None leaves an attribute out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(part if isinstance(part, Html) else _escaped(part) for part in content)
    return Html(f"<{name}{given}>{inner}</{name}>")


def _escaped(value: object) -> str:
    return html.escape(str(value).translate(FORBIDDEN))


def pill(word: str) -> Html:
    """A highlighted word."""
    return element("span", word, class_="pill")


def table(caption: str, head: Sequence[object], rows: Iterable[Sequence[object]], *, id_: str | None = None) -> Html:
    """A table; one with an id can be sorted, searched and paged if scripts run."""
    columns = element("tr", *(element("th", name, scope="col") for name in head))
    body = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", columns),
            element("tbody", *body),
            id=id_,
            class_=None if id_ is None else "sortable",
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def picture(figure: "Figure", alt: str, caption: object) -> Html:
    """A figure embedded in the page, with its alternative text."""
    width, height = (round(float(side) * DPI) for side in figure.get_size_inches())
    address = "data:image/png;base64," + base64.b64encode(_png(figure)).decode()
    image = f'<img src="{address}" alt="{_escaped(alt)}" width="{width}" height="{height}">'
    return element("figure", Html(image), element("figcaption", caption))


def _png(figure: "Figure") -> bytes:
    """The picture with a palette."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(DPI)
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        # The font may lack letters of names: they are boxes in the picture, and correct in the text of the page.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        canvas.draw()  # type: ignore[no-untyped-call]
    pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    image = Image.fromarray(pixels).convert("RGB")
    file = io.BytesIO()
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return file.getvalue()


def page(title: str, lead: object, sections: Sequence[Section], foot: object) -> Html:
    """The whole page."""
    style, script = (_own(name) for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    head = element(
        "head",
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        element("style", Html(style)),
    )
    links = (element("li", element("a", section.name, href=f"#{_address(section)}")) for section in sections)
    body = element(
        "body",
        element("header", element("h1", title), element("p", lead, class_="lead")),
        element("nav", element("ul", *links), aria_label="Sections"),
        element("main", *map(_section, sections)),
        element("footer", element("p", foot)),
        element("script", Html(script)),
    )
    return Html(f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n")


def _section(section: Section) -> Html:
    return element("section", element("h2", section.name), *section.content, id=_address(section))


def _address(section: Section) -> str:
    return section.name.lower().replace(" ", "-")


def _own(name: str) -> str:
    """The text of a file beside this one."""
    return "\n" + resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
