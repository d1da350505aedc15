"""Notebooks from pages: ``python .ci/notebook.py`` writes each .ipynb, ``--run`` also runs it.

The text and the code stand in the page. The site runs the notebooks of docs/notebooks, and shows what they
print and draw below each cell.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
#: Pages with a notebook next to them.
PAGES = (DOCS / "tutorial.md", *sorted((DOCS / "notebooks").glob("*.md")))
LIMIT_S = 60
_PYTHON = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)


def notebook(text: str) -> str:
    """Return the notebook's text: a cell for each block of Python, and for the text between them."""
    text = _FRONT.sub("", text)
    cells: list[dict[str, Any]] = []
    last = 0
    for block in _PYTHON.finditer(text):
        cells += [_cell("markdown", text[last : block.start()]), _cell("code", block[1])]
        last = block.end()
    cells.append(_cell("markdown", text[last:]))
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {
        "cells": [cell for cell in cells if cell["source"]],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "metadata": {},
        "source": text.strip("\n").splitlines(keepends=True),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def executed(page: Path) -> list[list[dict[str, Any]]]:
    """Run a page's notebook in a folder with the examples, and return the outputs of each code cell."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # aucsched itself
    import nbformat  # noqa: PLC0415 - of the extra docs
    from nbclient import NotebookClient  # noqa: PLC0415

    document = nbformat.reads(notebook(page.read_text("utf-8")), as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "examples").symlink_to(ROOT / "examples")
        quiet = ["--IPKernelApp.log_level=40"]  # it warns of connections that stay on this machine
        where = {"metadata": {"path": folder}}
        NotebookClient(document, timeout=LIMIT_S, resources=where, extra_arguments=quiet).execute()
    return [cell["outputs"] for cell in document["cells"] if cell["cell_type"] == "code"]


def with_outputs(page: Path) -> tuple[str, dict[str, bytes]]:
    """Return a page's text with the outputs below each cell, and its pictures by their names."""
    outputs, pictures = iter(executed(page)), dict[str, bytes]()

    def shown(output: dict[str, Any]) -> str:
        if output["output_type"] == "stream":
            return "" if output["name"] == "stderr" else _block(output["text"])
        data = output["data"]
        if "image/png" in data:
            name = f"{page.stem}-{len(pictures) + 1}.png"
            pictures[name] = base64.b64decode(data["image/png"])
            return f"\n![The picture that the cell draws]({name})\n"
        html = data.get("text/html")
        return f'\n<div class="output">{html}</div>\n' if html else _block(data["text/plain"])

    def below(block: re.Match[str]) -> str:
        return block[0] + "".join(shown(output) for output in next(outputs))

    return _PYTHON.sub(below, page.read_text("utf-8")), pictures


def _block(text: str) -> str:
    return f"\n```text\n{text.rstrip()}\n```\n"


def main(*, run: bool) -> None:
    """Write each notebook, and run it if that is asked for."""
    for page in PAGES:
        page.with_suffix(".ipynb").write_text(notebook(page.read_text("utf-8")), "utf-8")
        if run:
            began = time.perf_counter()
            executed(page)
            took = time.perf_counter() - began
            sys.stdout.write(f"{page.relative_to(ROOT)}: {took:.1f} s\n")
            if took > LIMIT_S:
                sys.exit(f"{page.name} takes more than {LIMIT_S} s")


if __name__ == "__main__":
    main(run="--run" in sys.argv)
