"""The reference that the code makes: pages of commands, reasons, files, equations and options of an auction.

``python .ci/reference.py`` writes docs/reference/ and docs/options.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from aucsched.auction.options import PRESETS
from aucsched.cli import cli
from aucsched.cluster.option_fields import Option
from aucsched.cluster.option_table import (
    NEGOTIATE,
    OPTIONS,
    PAPERS,
    SCHEDULE,
    SIMULATE,
    STEP,
    SWEEP,
    WINNERS,
)
from aucsched.cluster.schedule import Reason, Status
from aucsched.commands.shell import walked
from aucsched.formats.native.json_schema import SCHEMAS, schema_of

DOCS = Path(__file__).parents[1] / "docs"
_BY = "by `python .ci/reference.py`"
#: The first lines of a page: its kind, its reader, and what the reader has at the end.
_FRONT = "---\nkind: reference\nfor: {}\nafter: {}\n---\n\n"


_SAVED = "--jobs examples/source/squeue.json.gz --nodes examples/source/sinfo.json.gz"
_FULL = "examples/emulated-1408-full.json"
_HISTORY = "--sacct examples/history.txt.gz --nodes examples/history-nodes.txt"
#: Examples of each command, which CI runs (readme_commands.py); those of _ELSEWHERE need your files or hosts.
_EXAMPLES = {
    "board": ("aucsched board examples/days.swf",),
    "check": (f"aucsched check {_FULL}",),
    "compare": (f"aucsched compare {_FULL} --top 5",),
    "completion": ('eval "$(aucsched completion bash)"',),
    "examples": ("aucsched examples", "aucsched examples --instance tsubame --seed 0 -o tsubame.json"),
    "explain": (f"aucsched explain {_FULL} 64", f"aucsched explain {_FULL} --promise none --reserve 0"),
    "forecast": (f"aucsched forecast {_FULL} 97 --by +5min",),
    "gain": (f"aucsched gain {_HISTORY} --objective response --promise 15m",),
    "man": ("aucsched man man-pages",),
    "negotiate": ("aucsched negotiate esp --malleable 50 --mapper greedy",),
    "plan": (f"aucsched plan {_FULL} --jobs 20",),
    "schedule": (
        f"aucsched schedule {_FULL} --top 5 --html auction.html",
        f"aucsched schedule {_FULL} --objective priority_cores --format json -o award.json",
    ),
    "schema": ("aucsched schema workload",),
    "simulate": ("aucsched simulate examples/days.swf --policy fcfs,easy,conservative --html days.html",),
    "slurm": ("aucsched slurm report examples/shadow.jsonl.gz", "aucsched slurm config > slurm.toml"),
    "snapshot": (f"aucsched snapshot slurm {_SAVED} -o now.json",),
    "sweep": ("aucsched sweep examples/days.swf --policy fcfs,easy --order fcfs,sjf -o orders.csv",),
    "topology": ("aucsched topology torus:16x8x8", "aucsched topology examples/source/topology.conf"),
    "workload": (
        "aucsched workload describe examples/days.swf",
        "aucsched workload esp --seed 1 -o esp.json",
    ),
}
_ELSEWHERE = {
    "dynsched": ("aucsched dynsched now.json --listen unix:socket --secret-file secret --journal journals",),
    "evolve": ("aucsched evolve now.json --requests requests.json --fairness target:3600",),
    "ibsched": ("aucsched ibsched esp --malleable 50 --connect unix:bargain --journal journals",),
    "irtsched": ("aucsched irtsched esp --malleable 50 --listen unix:bargain --journal journals",),
    "winners": ("aucsched winners auction.json --work-limit 100 --format json -o winners.json",),
}


def _examples(name: str) -> str:
    """Return a command's examples as a block of code; a command without one is a KeyError here."""
    language, lines = ("sh", _EXAMPLES[name]) if name in _EXAMPLES else ("text", _ELSEWHERE[name])
    return f"\n```{language}\n{chr(10).join(lines)}\n```\n"


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
    about = f"Made from the commands {_BY}.\n\n*Each command in one line.*"
    head = f"{front}# Commands\n\n{about}\n\n| command | what it does |\n|---|---|\n"
    made = {"commands.md": f"{head}{''.join(rows)}{_help(whole)}"}
    for name, texts in helps.items():
        front = _FRONT.format("everyone", f"each option of aucsched {name}")
        made[f"commands/{name}.md"] = (
            f"{front}# aucsched {name}\n\nMade {_BY}.\n{_examples(name)}{''.join(texts)}"
        )
    return made


def _help(context: click.Context) -> str:
    return f"\n## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"


#: What each reason means.
MEANINGS = {
    Reason.OUTBID: "jobs that start hold what it needs; the sentence names them, or says that jobs ahead "
    "of it start first. By default it often made no bid: only jobs that backfilling would start bid",
    Reason.NO_FIT: "no set of free nodes that it may use provides what it asks for",
    Reason.INELIGIBLE: "no node could ever run it: features, partition, size, memory, gres or licences. "
    "It waits forever; a job that is `not_eligible` waits for a time or an event",
    Reason.BID_CAP: "the caps on bids left none for it (--max-bids, --max-bids-per-job)",
    Reason.WINDOW: "jobs of higher priority fill the window (--window)",
    Reason.NOT_EXPRESSIBLE: "the model cannot express its request, or the source left a part of it out",
    Reason.HELD: "a user, an administrator or Slurm holds it: priority 0, JobHeldUser, JobHeldAdmin, "
    "JobHoldMaxRequeue, RequeueHold, ResvDelHold or SpecialExit",
    Reason.NOT_ELIGIBLE: "it may not start yet, and is not held; the sentence is Slurm's word (BeginTime, "
    "Dependency, JobArrayTaskLimit, PartitionConfig, ...), or says that Slurm itself starts the job",
    Reason.RESERVATION: "it would delay a job that has a reservation (--reserve), or overlap an advance "
    "reservation",
    Reason.SET_ASIDE: "it made the pass fail; the other jobs were decided without it",
    Reason.LIMIT: "a limit over a set of jobs is used up; the sentence names it",
    Reason.SHARE: "jobs of its class already hold their share of the machine (--balance)",
}


#: What each status says. Proofs are over the bids of the window.
STATUS_MEANINGS = {
    Status.OPTIMAL: "proved: no award over the bids has more priority, nor as much and a better preference; "
    "where counts choose the jobs, only these bid",
    Status.FEASIBLE: "not all is proved: a limit of work or time came first, or more jobs start with "
    "another award than the proved one; the gap is the largest possible loss of priority, as a share; a gap "
    "of 0 proves the priority, but not the preference",
    Status.NO_SOLUTION: "a limit came before a proof, and nothing starts (--on-timeout discard)",
}


def reasons_page() -> str:
    """Return the page of the reasons why a job waits."""
    rows = "".join(f"| `{reason.value}` | {text} |\n" for reason, text in MEANINGS.items())
    about = (
        "Every job of a snapshot that does not start is listed in `pending`, with a reason and a sentence."
    )
    front = _FRONT.format("everyone", "the meaning of each reason and each status")
    head = f"{front}# Reasons\n\n{about}\n\n"
    words = "".join(f"| `{status.value}` | {text} |\n" for status, text in STATUS_MEANINGS.items())
    record = "Benchmark files say `feasible_at_limit` for `feasible`: a limit came before the proof."
    title = f"\n## Status of an award\n\n{record}\n\n*How far an award is proved.*\n\n"
    solved = f"{title}| status | meaning |\n|---|---|\n{words}"
    caption = "*Why a job waits, by the word in the member `reason`.*\n\n"
    return f"{head}{caption}| reason | meaning |\n|---|---|\n{rows}{solved}"


def files_page() -> str:
    """Return the page of the files' members."""
    about = "`aucsched schema NAME` prints the whole JSON Schema."
    front = _FRONT.format("everyone", "the members of each file")
    parts = [f"{front}# Files\n\n{about}\n"]
    for name in SCHEMAS:
        body = _resolved(schema_of(name))
        needed = body.get("required", ())
        rows = "".join(
            f"| `{member}` | {'yes' if member in needed else ''} | {_kind(entry)} |\n"
            for member, entry in body.get("properties", {}).items()
        )
        title = f"\n## {name}\n\n*The members of `aucsched-{name}/1`.*\n\n"
        parts.append(f"{title}| member | required | what |\n|---|---|---|\n{rows}")
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
    caption = "*Where each equation is stated.*\n\n"
    return f"{head}{caption}| equations | file | name | what |\n|---|---|---|---|\n{''.join(rows)}"


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


_OPTIONS_HEAD = """\
---
kind: reference
for: everyone
after: each option of an auction, its values and its default
---

# Options of an auction

Three options matter most: `--objective` says what counts, `--promise` bounds waits, and `--reserve`
protects the first blocked jobs. The loop's own options, such as `--gate-for` and `--pin-for`, are with
[`slurm run`](reference/commands/slurm.md#aucsched-slurm-run).

An option means the same in every command that has it. In Python it is the argument of
`aucsched.schedule` with underscores, and in `aucsched sweep` a list of values. In the column
*read by*, *queue* means `schedule`, `explain`, `compare`, `slurm run` and `slurm shadow`. The column
*default* names each exception, with its reason in brackets. `gain` reads `--objective` and `--promise`.

By default the work limit ends a pass, so that answers repeat; 3 seconds are a ceiling for busy machines.

"""
#: Groups of the page: the title, what its options decide, an example, and the options by name.
_GROUPS = (
    (
        "What the auction maximises",
        "These options say what a started job is worth.",
        "aucsched schedule examples/emulated-1408-full.json --objective priority_cores",
        ("objective", "keep_whole", "balance"),
    ),
    (
        "What waiting jobs are promised",
        "These options bound waits ([promises](promises.md)).",
        "aucsched simulate examples/overtaken.json --policy aucsched3 --promise 12h",
        ("promise", "reserve"),
    ),
    (
        "Which jobs bid, and how often",
        "These options bound the size of the auction.",
        "aucsched schedule examples/emulated-1408-full.json --window 50 --max-bids 2000",
        ("window", "window_from", "max_bids", "max_bids_per_job"),
    ),
    (
        "How long the search may take",
        "These options choose the way to the award, and end it.",
        "aucsched schedule examples/emulated-1408-full.json --strategy exact --time-limit 10",
        ("strategy", "work_limit", "time_limit", "on_timeout", "seed", "search_parameters"),
    ),
    (
        "Large clusters and several processes",
        "These options divide the search.",
        "aucsched schedule examples/emulated-1408-full.json --part-nodes 700 --workers 2",
        ("part_nodes", "workers", "dask"),
    ),
    (
        "Given bids",
        "`aucsched winners` has one option more.",
        "aucsched winners auction.txt --no-round",
        ("round",),
    ),
    (
        "To reproduce the papers",
        "In operation you need none of these options.",
        "aucsched schedule examples/emulated-1408-full.json --preset paper",
        PAPERS,
    ),
)
_TABLE_HEAD = (
    "*Values, default and commands of each option.*\n\n"
    "| option | values | default | read by |\n|---|---|---|---|\n"
)


_PRESETS_HEAD = (
    "\n## Presets\n\nSimulations ignore a preset's `--time-limit`, and use `--on-timeout incumbent`. "
    "There is no preset `plugin` for aucsched2.\n\n"
    "*The values of `--preset`, by model.*\n\n| preset | model | values |\n|---|---|---|\n"
)


def options_page() -> str:
    """Return docs/options.md: each option in its group; a new one without a group is a KeyError here."""
    by_name = {option.flag.removeprefix("--").replace("-", "_"): option for option in OPTIONS}
    anchors = [title.lower().replace(" ", "-").replace(",", "") for title, *_ in _GROUPS]
    links = [f"[{title}](#{anchor})" for (title, *_), anchor in zip(_GROUPS, anchors, strict=True)]
    parts = [_OPTIONS_HEAD, "Groups: ", "; ".join(links), ".\n"]
    for title, about, example, names in _GROUPS:
        cells = ((name.replace("_", "-"), row_of(by_name.pop(name))[2:]) for name in names)
        rows = "".join(f'| <a id="{anchor}"></a>{row}' for anchor, row in cells)
        parts.append(f"\n## {title}\n\n{about}\n\n```text\n{example}\n```\n\n{_TABLE_HEAD}{rows}")
    parts.append(_PRESETS_HEAD + "".join(_preset_rows()))

    if by_name:
        raise KeyError(f"options without a group in .ci/reference.py: {', '.join(by_name)}")
    return "".join(parts)


def _preset_rows() -> Iterator[str]:
    for preset, models in PRESETS.items():
        for model, values in models.items():
            flags = (f"--{name.removesuffix('_s').replace('_', '-')}" for name in values)
            given = (f"`{flag} {value}`" for flag, value in zip(flags, values.values(), strict=True))
            yield f"| `{preset}` | `{model}` | {' '.join(given)} |\n"


def row_of(option: Option[Any]) -> str:
    """Return an option as a row of the page."""
    cells = [
        f"`{option.flag}` {_cell_text(option.help)}",
        _values(option),
        _defaults(option),
        _readers(option),
    ]
    return f"| {' | '.join(cells)} |\n"


def _values(option: Option[Any]) -> str:
    if option.choices:
        return ", ".join(f"`{choice}`" for choice in option.choices)
    if option.is_switch:
        return f"`{option.flag}`, `--no-{option.flag.removeprefix('--')}`"
    if option.check_text is not None:
        return ", ".join(f"`{word}`" for word in option.unit.split("|"))
    if not option.is_number:
        return f"{'an' if option.unit[0] in 'AEIO' else 'a'} {option.unit.lower()}"
    if not option.is_whole:
        return f"{option.unit.lower()} above {option.low:g}"
    return f"{option.low:g} to {option.high:.0f}" if option.high else f"from {option.low:g}"


def _defaults(option: Option[Any]) -> str:
    plain = "" if option.default is None else f"{option.default}"
    others = [f"{reader}: {value}" for reader, value in option.other_defaults.items()]
    return _cell_text("; ".join([plain, *others])) or "none"


def _readers(option: Option[Any]) -> str:
    readers = (SCHEDULE, STEP, SIMULATE, SWEEP, NEGOTIATE, WINNERS)
    names = ["queue" if reader == STEP else reader for reader in readers if reader in option.readers]
    without = (
        " (not ipsched)"
        if option.policies and "ipsched" not in option.policies and SIMULATE in option.readers
        else ""
    )
    return ", ".join(names) + without


def _cell_text(text: str) -> str:
    return text.replace("|", "\\|")


def pages(root: click.Command) -> dict[str, str]:
    """Return the pages of docs/reference by file name."""
    others = {"reasons.md": reasons_page(), "files.md": files_page(), "equations.md": equations_page()}
    return command_pages(root) | others


if __name__ == "__main__":
    for name, text in pages(cli).items():
        (DOCS / "reference" / name).parent.mkdir(exist_ok=True)
        (DOCS / "reference" / name).write_text(text)
    (DOCS / "options.md").write_text(options_page())
