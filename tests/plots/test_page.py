"""A page is one file without external resources, with all text escaped."""

import base64
import hashlib
import io

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.figure import Figure
from PIL import Image

from bkbopt.plots.page import Html, Section, element, page, picture, pill, table
from tests.plots.pages import read


def test_text_is_escaped_in_content_and_attributes_and_markup_is_not_twice() -> None:
    inner = element("b", "a < b & c")
    assert inner == "<b>a &lt; b &amp; c</b>"
    assert element("p", inner, "<i>", title='"x"') == f'<p title="&quot;x&quot;">{inner}&lt;i&gt;</p>'
    assert element("p", class_="big", aria_label="a", id_=None) == '<p class="big" aria-label="a"></p>'


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x85", "\ud800", "\uffff"])
def test_characters_that_html_forbids_are_replaced(character: str) -> None:
    assert element("p", f"a{character}b\tc") == "<p>a\ufffdb\tc</p>"


def test_markup_that_has_become_plain_text_is_escaped() -> None:
    assert element("p", pill("a") + "") == "<p>&lt;span class=&quot;pill&quot;&gt;a&lt;/span&gt;</p>"


def test_a_page_allows_its_own_style_and_script_and_nothing_else() -> None:
    html = read(page("A & B", "lead", [Section("One part", ["text"]), Section("Two", [Html("")])], "foot"))
    assert html.all("title")[0].text == html.all("h1")[0].text == "A & B"
    assert [link.attributes["href"] for link in html.all("a")] == ["#one-part", "#two"]
    policy = next(m.attributes["content"] for m in html.all("meta") if "http-equiv" in m.attributes)
    assert policy.startswith("default-src 'none'; img-src data:;")
    for name in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(html.all(name)[0].text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
        assert "http" not in html.all(name)[0].text


def test_a_picture_has_the_pixels_of_its_figure_in_few_colours() -> None:
    figure = Figure(figsize=(3.0, 2.0))
    figure.add_subplot().plot([0, 1], color="red")
    html = picture(figure, 'a "line"', "caption")
    _, _, rest = html.partition("base64,")
    data, _, rest = rest.partition('"')
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert image.size == (600, 400)
    assert image.mode == "P"
    assert 'alt="a &quot;line&quot;" width="600" height="400"' in rest
    assert rest.endswith("<figcaption>caption</figcaption></figure>")


def test_only_a_table_with_an_id_can_be_sorted() -> None:
    assert 'class="sortable"' in table("A", ["x"], [[1]], id_="t")
    assert "sortable" not in table("A", ["x"], [[1]])
