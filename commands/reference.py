"""The reference of commands, reasons and files, made from the code: pages of the site, and man pages.

``python -m aucsched.commands.reference docs/reference`` writes the pages, ``aucsched man FOLDER`` man pages.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import click

_BY = "by `python -m aucsched.commands.reference docs/reference`"
#: The first lines of a page: its kind, its reader, and what the reader has at the end.
_FRONT = "---\nkind: reference\nfor: {}\nafter: {}\n---\n\n"
#: A page's width where help is laid out (characters).
_WIDTH = 78


def walked(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[click.Context]:
    """Yield a context for a command and each below it."""
    name = path.rsplit(" ", 1)[-1]
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=_WIDTH, **command.context_settings
    )
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from walked(below, f"{path} {name}", context)


def command_pages(root: click.Command) -> dict[str, str]:
    """Return the list of commands and a page for each, with those below it, by file name."""
    whole, *contexts = walked(root, "aucsched")
    rows: list[str] = []
    helps: dict[str, list[str]] = {}
    for context in contexts:
        name = context.command_path.split()[1]
        if name not in helps:
            short = context.command.get_short_help_str(200)
            rows.append(f"| [`{name}`](commands/{name}.md) | {short} |\n")
        helps.setdefault(name, []).append(_help(context))
    front = _FRONT.format("everyone", "the command for a task, and its page")
    head = f"{front}# Commands\n\nMade from the commands {_BY}.\n\n| command | what it does |\n|---|---|\n"
    made = {"commands.md": f"{head}{''.join(rows)}{_help(whole)}"}
    for name, texts in helps.items():
        front = _FRONT.format("everyone", f"each option of aucsched {name}")
        made[f"commands/{name}.md"] = f"{front}# aucsched {name}\n\nMade {_BY}.\n{''.join(texts)}"
    return made


def _help(context: click.Context) -> str:
    return f"\n## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"


def reasons_page() -> str:
    """Return the page of the reasons why a job waits."""
    from ..cluster.schedule import MEANINGS, STATUS_MEANINGS

    rows = "".join(f"| `{reason.value}` | {text} |\n" for reason, text in MEANINGS.items())
    about = (
        "Every job of a snapshot that does not start is listed in `pending`, with a reason and a sentence."
    )
    front = _FRONT.format("everyone", "the meaning of each reason and each status")
    head = f"{front}# Reasons\n\nMade from cluster/schedule.py {_BY}.\n{about}\n\n"
    words = "".join(f"| `{status.value}` | {text} |\n" for status, text in STATUS_MEANINGS.items())
    solved = f"\n## Status of an award\n\n| status | meaning |\n|---|---|\n{words}"
    return f"{head}| reason | meaning |\n|---|---|\n{rows}{solved}"


def files_page() -> str:
    """Return the page of the files' members."""
    from ..formats.native.json_schema import SCHEMAS

    about = "`aucsched schema NAME` prints the whole JSON Schema."
    front = _FRONT.format("everyone", "the members of each file")
    parts = [f"{front}# Files\n\nMade from formats/native/ {_BY}. {about}\n"]
    for name, make in SCHEMAS.items():
        body = _resolved(make())
        needed = body.get("required", ())
        rows = "".join(
            f"| `{member}` | {'yes' if member in needed else ''} | {_kind(entry)} |\n"
            for member, entry in body.get("properties", {}).items()
        )
        parts.append(f"\n## {name}\n\n| member | required | what |\n|---|---|---|\n{rows}")
    return "".join(parts)


#: An equation as docstrings name it: (5.2), (3.6).
_EQUATION = re.compile(r"\(\d\.\d+\)")


def equations_page() -> str:
    """Return the page that maps the papers' equations to the methods that state them."""
    rooms = ("models", "bidgen/families", "simulation", "simulation/nodes", "cluster")
    rows = []
    for room in rooms:
        folder = files("aucsched").joinpath(*room.split("/"))
        for source in sorted(
            (one for one in folder.iterdir() if one.name.endswith(".py")), key=lambda one: one.name
        ):
            for name, text in _documented(ast.parse(source.read_text("utf-8"))):
                numbers = ", ".join(dict.fromkeys(_EQUATION.findall(text)))
                if numbers:
                    rows.append(f"| {numbers} | `{room}/{source.name}` | `{name}` | {_cell(text)} |\n")
    about = "Numbers are Soner's (2016); this page lists each docstring that cites one."
    front = _FRONT.format("researchers", "the method that states each equation")
    head = f"{front}# Equations\n\nMade from the docstrings {_BY}. {about}\n\n"
    return f"{head}| equations | file | name | what |\n|---|---|---|---|\n{''.join(rows)}"


def _documented(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names and docstrings of a module's classes, functions and methods."""
    for node in module.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name, ast.get_docstring(node) or ""
            for below in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(below, ast.FunctionDef):
                    yield f"{node.name}.{below.name}", ast.get_docstring(below) or ""


def _cell(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split()).replace("|", "\\|")


def _resolved(schema: dict[str, object]) -> dict[str, dict[str, object]]:
    reference = schema.get("$ref")
    definitions = schema.get("$defs", {})
    if isinstance(reference, str) and isinstance(definitions, dict):
        found: dict[str, dict[str, object]] = definitions[reference.rsplit("/", 1)[-1]]
        return found
    return schema  # type: ignore[return-value]


def _kind(entry: object) -> str:
    if not isinstance(entry, dict):
        return ""
    if "$ref" in entry:
        return f"object {str(entry['$ref']).rsplit('/', 1)[-1]}"
    if "anyOf" in entry:
        return " or ".join(_kind(one) for one in entry["anyOf"])
    if "const" in entry or "enum" in entry:
        return ", ".join(f"`{one}`" for one in entry.get("enum", [entry.get("const")]))
    if entry.get("type") == "array":
        return f"list of {_kind(entry.get('items', {})) or 'anything'}"
    return str(entry.get("description") or entry.get("type") or "anything")


def man_pages(root: click.Command) -> dict[str, str]:
    """Return a man page (section 1, roff) of each command, by file name."""
    return {
        f"{context.command_path.replace(' ', '-')}.1": _man_page(context)
        for context in walked(root, "aucsched")
    }


def _man_page(context: click.Context) -> str:
    command, name = context.command, context.command_path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{name.upper()}" "1" "" "aucsched" "aucsched"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(command.get_short_help_str(200))}",
        ".SH SYNOPSIS",
        f"\\fB{_roff(context.command_path)}\\fR {_roff(usage)}",
        ".SH DESCRIPTION",
        *(_roff(line.strip()) or ".PP" for line in (command.help or "").replace("\b", "").splitlines()),
    ]
    records = [one.get_help_record(context) for one in command.get_params(context)]
    if any(records):
        lines.append(".SH OPTIONS")
    for record in records:
        if record is not None:
            lines += [".TP", f"\\fB{_roff(record[0])}\\fR", _roff(record[1])]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for below in command.list_commands(context):
            lines += [".TP", f"\\fB{_roff(name)}\\-{_roff(below)}\\fR(1)"]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Return a text as roff reads it: no command, no escape, minus signs that can be copied."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe


def pages(root: click.Command) -> dict[str, str]:
    """Return the pages of docs/reference by file name."""
    others = {"reasons.md": reasons_page(), "files.md": files_page(), "equations.md": equations_page()}
    return command_pages(root) | others


def write_pages(root: click.Command, folder: Path) -> None:
    """Write docs/reference."""
    for name, text in pages(root).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


if __name__ == "__main__":
    from importlib import import_module

    # The command line is above this room: it is looked up, not imported.
    write_pages(import_module("aucsched.cli").cli, Path(sys.argv[1]))
