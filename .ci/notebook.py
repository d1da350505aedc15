"""docs/tutorial.ipynb of docs/tutorial.md: ``python .ci/notebook.py > docs/tutorial.ipynb``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TUTORIAL = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"
_PYTHON = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def notebook(text: str) -> str:
    """Return the notebook's text: a cell for each block of Python, and for the text between them."""
    text = re.sub(r"\A---\n.*?\n---\n+", "", text, flags=re.DOTALL)
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


if __name__ == "__main__":
    sys.stdout.write(notebook(TUTORIAL.read_text("utf-8")))
