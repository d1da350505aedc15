"""What mkdocs needs beyond docs/: the pages at the root and the benchmarks' tables that pages link to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: Files outside docs/ that pages link to; they stand in the site under the same names.
OUTSIDE = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
_LINK = re.compile(r"\]\((?:\.\./)++(?!decisions|images)([^)#]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the files outside docs/."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - only mkdocs runs this

    results = (path.relative_to(ROOT).as_posix() for path in (ROOT / "benchmarks").rglob("RESULTS*.md"))
    notes = (path.relative_to(ROOT).as_posix() for path in (ROOT / "benchmarks" / "notes").glob("*.md"))
    for name in (*OUTSIDE, *results, *notes, "benchmarks/instances/README.md"):
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, name, content=_plain(text)))
    for path in (ROOT / "benchmarks" / "figures").glob("*.png"):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001 - mkdocs' call
    """Point links that lead out of docs/ to where the files stand in the site, or leave their text alone."""
    up = "../" * page.file.src_uri.count("/")
    known = {file.src_uri for file in files}

    def pointed(found: re.Match[str]) -> str:
        name, anchor = found[1], found[2] or ""
        return f"]({up}{name}{anchor})" if name in known else "](#)"

    return _LINK.sub(pointed, _introduced(markdown, page.meta))


def _introduced(markdown: str, meta: dict[str, Any]) -> str:
    """Return a page with a line below its title: its kind, its reader and what the reader has at the end."""
    if "kind" not in meta:
        return markdown
    line = f"*{meta['kind'].capitalize()}, for {meta['for']}. Afterwards: {meta['after']}.*"
    title = re.compile(r"^# .+\n", re.MULTILINE)
    return title.sub(lambda found: f"{found[0]}\n{line}\n", markdown, count=1)


def _plain(text: str) -> str:
    """Return a page of the root with its links into docs/ as the site has them."""
    return re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1", text)
