"""A page of sections: text, styles, script and data in one file.

Its content security policy lets the browser refuse everything but what is in the page. Errors are
written into the page itself, for people and for tests.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from time import time
from typing import Any

import msgspec

from ..cluster.text import escaped, utc
from ..cluster.version import __version__
from ..formats.reading import READ

#: Names of the process that is the command line.
_PROGRAMS = {"aucsched", "__main__"}

Section = Mapping[str, Any]


def facts(title: str, items: Sequence[tuple[str, Any]]) -> Section:
    """Return a section of names and values."""
    return {"kind": "facts", "title": title, "items": [list(item) for item in items]}


def table(
    title: str, columns: Mapping[str, Sequence[Any]], note: str = "", times: Sequence[str] = ()
) -> Section:
    """Return a section with a table that sorts and filters; ``times``: seconds not named ``_s``."""
    shown = {name: list(one) for name, one in columns.items()}
    return {"kind": "table", "title": title, "columns": shown, "note": note, "times": times}


def lines(
    title: str, times: Sequence[float], series: Sequence[tuple[str, str, Sequence[float], float | None]]
) -> Section:
    """Return a section with curves over time, those of one label in one chart.

    A curve is its label, its name in the legend, its values and the most that they can be.
    """
    members = ("label", "name", "values", "most")
    curves = [dict(zip(members, one, strict=True)) for one in series]
    return {"kind": "lines", "title": title, "times": list(times), "series": curves}


def as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows of the same members as columns, nothing of no rows."""
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def page_of(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the page's text; page.js says what a section of each ``kind`` holds."""
    assets = files(__package__)
    template, styles, script = (
        assets.joinpath(f"page.{end}").read_text("utf-8") for end in ("html", "css", "js")
    )
    # "</script>" in a name would end the data, "<!--" hide what follows.
    data = msgspec.json.encode({"sections": list(sections)}).decode().replace("<", "\\u003c")
    return template.format(
        title=_text(title),
        subtitle=_text(subtitle),
        styles=styles,
        made=_made(),
        data=escaped(data),
        script=script,
    )


def _made() -> str:
    """Return when, by which version and command, and from which files the page was made."""
    when = utc(time())
    command, *arguments = sys.argv
    typed = shlex.join(["aucsched", *arguments]) if Path(command).stem in _PROGRAMS else "Python"
    inputs = (f"{_text(name)}: SHA-256 <code>{digest}</code>" for name, digest in READ.items())
    return "<br>".join([f"{when}, aucsched {__version__}", f"<code>{_text(typed)}</code>", *inputs])


def _text(text: str) -> str:
    return escape(escaped(text))
