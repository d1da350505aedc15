"""Pictures out: which files a chart may be, and how equal charts become equal bytes.

matplotlib comes with the extra ``plot``; nothing here imports it before a picture is drawn.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from ..cluster.errors import OptionError
from ..cluster.text import escaped
from .writing import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Suffix -> what savefig takes so that equal charts are equal bytes.
_METADATA: dict[str, dict[str, None]] = {
    ".png": {},
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
}


def check_drawing(option: str, path: Path | None, *, is_asked: bool = False) -> None:
    """Refuse a picture that could not be drawn, before time is spent on what it would show.

    Raises:
        OptionError: matplotlib is not installed, or the file's suffix is none it is drawn for.
    """
    if path is None and not is_asked:
        return
    if path is not None and path.suffix.lower() not in _METADATA:
        raise OptionError(f"{option} {path}: the name ends in none of {', '.join(_METADATA)}")
    if find_spec("matplotlib") is None:
        raise OptionError(f"{option} needs matplotlib: pip install 'aucsched[plot]'")


def literal(text: str) -> str:
    """Return a name as matplotlib draws it letter for letter: a pair of dollars would be a formula."""
    return escaped(text).replace("$", r"\$")


def save_figure(figure: Figure, path: Path | None) -> None:
    """Write a figure whole or not at all, in the form its name's suffix says; None: nowhere.

    Raises:
        InputError: the file cannot be written.
    """
    if path is None:
        return
    content = BytesIO()
    suffix = path.suffix.lower()
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")
        figure.savefig(content, format=suffix[1:], metadata=_METADATA[suffix])
    write_bytes(path, content.getvalue())
