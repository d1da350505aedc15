"""What mkdocs needs beyond docs/: pages at the root, the benchmarks' tables, outputs of notebooks."""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from importlib.resources import files as package_files
from pathlib import Path
from runpy import run_path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: Files outside docs/ that pages link to; they stand in the site under the same names.
OUTSIDE = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
_LINK = re.compile(r"\]\((?:\.\./)++(?!decisions|images|notebooks)([^)#]+)(#[^)]*)?\)")
#: The pages of the notebooks with their outputs, by their place in docs/.
_EXECUTED: dict[str, str] = {}
_MERMAID = "assets/mermaid.js"
#: Where the gallery shows what the notebooks draw.
_PICTURES = "<!-- what the notebooks draw -->"


def on_config(config: Any) -> Any:
    """State the version below each page; link the repository if AUCSCHED_REPOSITORY has its address."""
    config.repo_url = os.environ.get("AUCSCHED_REPOSITORY")
    config.repo_name = config.repo_url and config.repo_url.rstrip("/").rpartition("/")[2]
    config.copyright = f"aucsched {version('aucsched')}, Apache-2.0"
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the files outside docs/, and run the notebooks for their outputs."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - only mkdocs runs this

    results = (path.relative_to(ROOT).as_posix() for path in (ROOT / "benchmarks").rglob("RESULTS*.md"))
    notes = (path.relative_to(ROOT).as_posix() for path in (ROOT / "benchmarks" / "notes").glob("*.md"))
    for name in (*OUTSIDE, *results, *notes, "benchmarks/instances/README.md"):
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, name, content=_plain(text)))
    for path in (ROOT / "benchmarks" / "figures").glob("*.png"):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    mermaid = package_files("mmdc").joinpath("assets/mermaid.js").read_text("utf-8")
    files.append(File.generated(config, _MERMAID, content=mermaid))
    for name, picture in _run_notebooks().items():
        files.append(File.generated(config, name, content=picture))
    return files


def _run_notebooks() -> dict[str, bytes]:
    """Run each notebook of docs/notebooks; return the pictures by their place in docs/."""
    with_outputs = run_path(str(ROOT / ".ci" / "notebook.py"))["with_outputs"]
    pictures: dict[str, bytes] = {}
    for page in sorted((ROOT / "docs" / "notebooks").glob("*.md")):
        text, drawn = with_outputs(page)
        _EXECUTED[f"notebooks/{page.name}"] = re.sub(r"\A---\n.*?\n---\n+", "", text, flags=re.DOTALL)
        pictures |= {f"notebooks/{name}": picture for name, picture in drawn.items()}
    return pictures


def _drawn() -> str:
    """Return a figure for each notebook: its first picture, below it its title."""
    figures = []
    for place, text in _EXECUTED.items():
        picture = re.findall(r"!\[The picture that the cell draws\]\((.+?)\)", text)[0]
        title = re.findall(r"^# (.+)", text, re.MULTILINE)[0]
        link = f"[![{title}](notebooks/{picture})]({place})"
        caption = f"<figcaption markdown>[{title}]({place})</figcaption>"
        figures.append(f"<figure markdown>\n{link}\n{caption}\n</figure>")
    return "\n".join(figures)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001 - mkdocs' call
    """Point links that lead out of docs/ to where the files stand in the site, or leave their text alone."""
    up = "../" * page.file.src_uri.count("/")
    if page.file.src_uri.startswith(("decisions/0", "benchmarks/")):
        page.meta["search"] = {"boost": 0.2}  # a reader looks for the manual first
    known = {file.src_uri for file in files}
    markdown = _EXECUTED.get(page.file.src_uri, markdown).replace(_PICTURES, _drawn())

    def pointed(found: re.Match[str]) -> str:
        name, anchor = found[1], found[2] or ""
        return f"]({up}{name}{anchor})" if name in known else "](#)"

    if "```mermaid" in markdown:
        markdown += f'\n<script src="{up}../{_MERMAID}"></script>\n'
    return _LINK.sub(pointed, _introduced(markdown, page.meta))


def _introduced(markdown: str, meta: dict[str, Any]) -> str:
    """Return a page with a line below its title: its kind, its reader and what the reader has at the end."""
    if "kind" not in meta or meta["kind"] == "index":
        return markdown
    line = f"*{meta['kind'].capitalize()}, for {meta['for']}. Afterwards: {meta['after']}.*"
    title = re.compile(r"^# .+\n", re.MULTILINE)
    return title.sub(lambda found: f"{found[0]}\n{line}\n", markdown, count=1)


def _plain(text: str) -> str:
    """Return a page of the root with its links into docs/ as the site has them."""
    return re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1", text)
