"""Lint the prose: ``python .ci/prose.py``. proselint's checks and the words of docs/style-words.txt.

It reads the pages, README and CHANGELOG, the help of each command, the docstrings of public names, and the
messages of errors. Code is left out. Exit code 1: something was found.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
WORDS = DOCS / "style-words.txt"
#: proselint's checks that do not fit: straight quotes and three dots are what people type in a shell, the
#: restricted lists name ordinary words, and Slurm has advance reservations.
OFF = {"redundancy.misc.after_the_deadline": False, "typography": False, "restricted": False}
#: Pages that list changes or rules for contributors: their entries are not counted.
LISTS = {"CHANGELOG.md", "CONTRIBUTING.md"}
#: Words of a sentence at most.
MOST_WORDS = 30
#: Folders without messages to users.
NO_SOURCE = {"benchmarks", "docs", "examples", "packaging", "src", "tests"}
#: Errors whose message people read.
ERRORS = {"AwardError", "InputError", "OptionError", "PolicyError", "SolverError"}


def avoided_words() -> dict[str, str]:
    """Return the list: a pattern, and what to write instead."""
    lines = (line.split("\t") for line in WORDS.read_text("utf-8").splitlines() if line[0] != "#")
    return {one[0]: one[1] for one in lines}


def prose(markdown: str) -> str:
    """Return a page's text on the same lines, without front matter, code, addresses and tags."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    text = re.sub(r"\A---\n.*?\n---\n", blank, markdown, flags=re.DOTALL)
    text = re.sub(r"^( *)```.*?^\1```$", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`", lambda found: f"CODE{blank(found)}", text)
    return re.sub(r"\]\([^)]*\)|<[^>]*>", blank, text)


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page and its prose; decisions are an archive."""
    found = [page for page in DOCS.rglob("*.md") if page.parent.name not in {"decisions", "commands"}]
    for page in (*sorted(found), ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"):
        text = page.read_text("utf-8")
        if page.name == "CONTRIBUTING.md":
            text = text[: text.index("| before | after |")]
        yield str(page.relative_to(ROOT)), prose(text)


def helps() -> Iterator[tuple[str, str]]:
    """Yield the help of each command."""
    from aucsched.cli import cli  # noqa: PLC0415 - a second, for who asks for --help
    from aucsched.commands.shell import walked  # noqa: PLC0415

    for context in walked(cli, "aucsched"):
        command = context.command
        texts = (command.help, command.epilog, *(getattr(one, "help", "") for one in command.params))
        yield f"{context.command_path} --help", "\n\n".join(text for text in texts if text)


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstrings of public names and of their public members."""
    import aucsched  # noqa: PLC0415

    for name in aucsched.__all__:
        item = getattr(aucsched, name)
        members = {f"{name}.{own}": one for own, one in vars(item).items()} if inspect.isclass(item) else {}
        for place, one in ({name: item} | members).items():
            if "._" not in place and not isinstance(one, str) and (text := inspect.getdoc(one)):
                code = re.compile(r"``[^`]*``|^ *>>> .*$", re.MULTILINE)
                yield f"help(aucsched.{place})", code.sub("CODE", text)


def messages() -> Iterator[tuple[str, str]]:
    """Yield the messages of errors that the source raises."""
    rooms = sorted(room.parent for room in ROOT.glob("*/__init__.py") if room.parent.name not in NO_SOURCE)
    for file in (file for room in rooms for file in sorted(room.rglob("*.py"))):
        relative = file.relative_to(ROOT)
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS and node.args:
                parts = (part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant))
                yield f"{relative}:{node.lineno}", " X ".join(part for part in parts if isinstance(part, str))


def avoided(text: str) -> list[str]:
    """Return the words of the list in a text, each with its neighbours and what to write."""
    text = " ".join(text.split())
    return [
        f"{text[max(0, found.start() - 30) : found.end() + 30]!r}: write {better}"
        for pattern, better in avoided_words().items()
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]


def linted(place: str, text: str, enabled: dict[str, bool]) -> Iterator[tuple[int, str]]:
    """Yield the line and the message of what proselint finds; a number or a heading may be repeated."""
    from proselint.tools import LintFile  # noqa: PLC0415 - the tests read texts without it

    for found in LintFile(place, text or " ").lint({"max_errors": 1000, "checks": enabled}):
        check, message, (start, end), _ = found.check_result
        words = text[start - 1 : end - 1]
        if check != "lexical_illusions" or not re.search(r"\d|\n\s*\n|CODE|X", words):
            yield found.pos[0] - 1, f"{message} [{check}]"


def long_sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the beginning of each sentence of a page with too many words.

    Tables, indented code and formulas are left out; a colon and a semicolon end a sentence here.
    """
    begins = re.compile(r"\s*([-*>]|\d+\.) |\s*$|#|\|| {4}|.*\\\(")
    blocks: list[tuple[int, str]] = [(0, "")]
    for number, line in enumerate(text.splitlines(), 1):
        if begins.match(line):
            blocks.append((number, "" if line[:1] in {"|", "#"} or line[:4] == " " * 4 else line))
        else:
            first, begun = blocks[-1]
            blocks[-1] = (first if begun else number, f"{begun} {line.strip()}")
    for number, block in blocks:
        for sentence in re.split(r"(?<=[;:])\s+|(?<=[.!?*])\s+(?=[A-Z`*\[(\"]|aucsched|python)", block):
            if len(sentence.split()) > MOST_WORDS and "\\(" not in sentence:
                yield number, f"{sentence[:60]}…"


def main() -> int:
    """Print what is found, by place."""
    from proselint.checks import __register__  # noqa: PLC0415
    from proselint.registry import CheckRegistry  # noqa: PLC0415
    from proselint.registry.checks import Check, types  # noqa: PLC0415

    registry = CheckRegistry()
    own = (
        Check(types.ExistenceSimple(pattern), path="aucsched.words", message=f"'{{}}': write {better}")
        for pattern, better in avoided_words().items()
    )
    registry.register_many((*__register__, *own))
    roots = {check.path.split(".")[0]: True for check in registry.checks}
    count = places = 0
    for source in (pages, helps, docstrings, messages):
        for place, text in source():
            places += 1
            for line, sentence in long_sentences(text) if source is pages and place not in LISTS else ():
                count += 1
                sys.stdout.write(f"{place}:{line}: more than {MOST_WORDS} words: {sentence}\n")
            for line, message in linted(place, text, OFF | (roots | OFF)):
                count += 1
                sys.stdout.write(f"{place}:{line}: {message}\n")
    sys.stdout.write(f"{count} found in {places} texts\n")
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main())
