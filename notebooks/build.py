"""Make the notebooks: every source NAME.py here, in percent format, is run and gives NAME.ipynb with its outputs.

In a source a line `# %%` begins a cell of code and `# %% [markdown]` one of text, whose lines are comments. Edit the
source, never the notebook. With BKBOPT_SMOKE=1 in the environment a notebook runs at a size of seconds; `--smoke` sets
it, and writes nothing.

    python notebooks/build.py [NAME ...] [--smoke]
"""

import argparse
import base64
import io
import os
import re
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image

HERE = Path(__file__).resolve().parent
#: Names of the notebooks.
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path != Path(__file__).resolve())
MARKER = re.compile(r"^# %%( \[markdown\])?$", re.MULTILINE)
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def cells_of(source: str) -> list[NotebookNode]:
    """The cells of a source, without outputs; what stands before the first marker belongs to no cell."""
    _, *parts = MARKER.split(source)
    cells = []
    for number, (kind, body) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        text = body.strip("\n")
        if kind:
            text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        cells.append((new_markdown_cell if kind else new_code_cell)(text, id=f"cell-{number}"))
    return cells


def executed(source: str, folder: Path) -> NotebookNode:
    """The notebook of a source with its outputs, run in `folder`; an error in a cell is raised."""
    notebook = new_notebook(cells=cells_of(source))
    client = NotebookClient(notebook, timeout=600, record_timing=False, resources={"metadata": {"path": str(folder)}})
    client.execute()
    notebook.metadata = METADATA  # the kernel's own tell the version of Python, and would change with it
    for data in (output.data for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output):
        if "image/png" in data:
            data["image/png"] = smaller(data["image/png"])
    return notebook


def smaller(png: str) -> str:
    """The picture, as base64, with a palette of few colours: it looks the same and takes a quarter of the room."""
    file = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the notebooks and write them with their outputs.")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}; default all")
    parser.add_argument("--smoke", action="store_true", help="run at a size of seconds, and write nothing")
    args = parser.parse_args()
    if unknown := sorted(set(args.names) - set(NAMES)):
        parser.error(f"expected names of {NAMES}, got {unknown}")
    os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found")  # tqdm, where there are no widgets
    os.environ["BKBOPT_SMOKE"] = "1" if args.smoke else "0"
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # times in pictures are those of one thread
    path = [str(HERE.parent), os.environ.get("PYTHONPATH", "")]  # the package beside it, not an installed one
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    for name in args.names:
        start = time.perf_counter()
        notebook = executed((HERE / f"{name}.py").read_text(encoding="utf-8"), HERE)
        if not args.smoke:
            nbformat.write(notebook, HERE / f"{name}.ipynb")
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
