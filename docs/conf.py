"""Sphinx's settings, and what makes docstrings in the project's plain style readable to it."""

import re
from typing import Any

import bkbopt
from docs.public_names import MISSING, PUBLIC

project = "bkbopt"
author = "the bkbopt developers"
copyright = author
release = version = bkbopt.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser"]
html_theme = "furo"
html_title = f"bkbopt {release}"
# Of its default for dark pages, names of modules look like links.
pygments_dark_style = "monokai"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_copy_source = html_show_sourcelink = html_show_copyright = False

# `name` in a docstring is code, and a link where that name has an entry.
default_role = "py:obj"
# Where several classes have a member of that name, it is a link to one of them.
suppress_warnings = ["ref.python"]
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
autodoc_default_options = {"members": True, "special-members": "__call__"}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

ROW = re.compile(r"\s*\|.*\|\s*$")
RULE = re.compile(r"[\s|:-]+$")
#: Code between backticks, or a character that means something to reStructuredText and nothing to us.
MARK = re.compile(r"`[^`]*`|[|_]|^-$")


def _escaped(line: str) -> str:
    return MARK.sub(lambda found: found[0] if found[0][0] == "`" else "\\" + found[0], line)


def _table(rows: list[str]) -> list[str]:
    """A table of Markdown as one of reStructuredText."""
    width = rows[0].count("|") - 2  # bars within a cell have no space on one of their sides
    lined = [row.strip().strip("|").split(" | ", width) for row in rows if not RULE.match(row)]
    lines = [f"   {' ' if j else '*'} - {_escaped(cell.strip())}" for row in lined for j, cell in enumerate(row)]
    return ["", ".. list-table::", "   :header-rows: 1", "   :widths: auto", "", *lines, ""]


def _as_restructured(_app: Any, what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place: tables, bars and underscores, and formulas indented in a module's."""
    # Words before a colon in the first line of a property or a constant would be taken for its type: an empty comment.
    out = ["..", ""] if what in ("attribute", "data", "property") else []
    rows: list[str] = []
    for line in [*lines, ""]:
        if ROW.match(line):
            rows.append(line)
            continue
        out += _table(rows) if rows else []
        rows = []
        shown = what == "module" and line.startswith("    ")
        if shown and not out[-1]:
            out += ["::", ""]
        out.append(line if shown or ">>>" in line else _escaped(line))
    lines[:] = out


def _append_missing(_app: Any, page: str, source: list[str]) -> None:
    """Append entries for the public names that no page of the reference mentions."""
    if page != "reference/parts" or not MISSING:
        return
    kinds = ((name, PUBLIC[name]) for name in MISSING)
    entries = [
        f".. auto{'class' if isinstance(value, type) else 'function' if callable(value) else 'data'}:: {name}\n"
        for name, value in kinds
    ]
    source[0] += "\n".join(["", "## Others", "", "```{eval-rst}", *entries, "```", ""])


def setup(app: Any) -> None:
    """Change docstrings before the reader of Google's style (priority 500) sees them."""
    app.connect("source-read", _append_missing)
    app.connect("autodoc-process-docstring", _as_restructured, priority=400)
