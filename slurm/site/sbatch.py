"""sbatch's command line taken apart: which options there are, and which of them take a value."""

import re
from collections.abc import Mapping, Sequence

from ...cluster.errors import InputError


def _named(names: str) -> frozenset[str]:
    return frozenset(names.split())


#: What decides where and when a job runs, and is read (slurm/site/scheduler_log.py).
READ = _named(
    "account consolidate-segments constraint contiguous cpus-per-task exclude exclusive gid gpus "
    "gpus-per-node gres hold job-name licenses mem mem-per-cpu mincpus nodelist nodes ntasks "
    "ntasks-per-node partition qos segment spread-segments switches time uid"
)
#: What a job may be started without: noted.
PREFERENCES = _named(
    "acctg-freq cluster-constraint cpu-bind cpu-freq deadline delay-boot distribution gpu-bind "
    "gpu-freq hint mem-bind nice oversubscribe overcommit prefer priority spread-job time-min "
    "tres-bind use-min-nodes"
)
#: What has no bearing on where and when it runs.
HARMLESS = _named(
    "chdir comment container container-id error export export-file get-user-env ignore-pbs input "
    "kill-on-invalid-dep mail-type mail-user no-requeue oom-kill-step open-mode output parsable profile "
    "propagate quiet requeue signal stepmgr verbose wait wckey wrap"
)
#: What no native member expresses: the job is kept and never starts on a weaker request.
_UNSUPPORTED = _named(
    "array batch bb bbf begin clusters core-spec cores-per-socket cpus-per-gpu dependency "
    "extra-node-info gpus-per-socket gpus-per-task gres-flags mem-per-gpu network no-kill nodefile "
    "ntasks-per-core ntasks-per-gpu ntasks-per-socket power reboot reservation resources sockets-per-node "
    "thread-spec threads-per-core tmp tres-per-task"
)
_KNOWN = READ | PREFERENCES | HARMLESS | _UNSUPPORTED
_FLAGS = _named(
    "consolidate-segments contiguous hold ignore-pbs no-requeue overcommit oversubscribe parsable quiet "
    "reboot spread-job spread-segments stepmgr use-min-nodes verbose wait"
)
#: Their value stands behind ``=`` or not at all.
_OPTIONAL = _named("exclusive get-user-env nice no-kill oom-kill-step propagate requeue")
_SHORT: Mapping[str, str] = {
    "a": "array",
    "A": "account",
    "b": "begin",
    "B": "extra-node-info",
    "c": "cpus-per-task",
    "C": "constraint",
    "d": "dependency",
    "D": "chdir",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "m": "distribution",
    "M": "clusters",
    "n": "ntasks",
    "N": "nodes",
    "o": "output",
    "O": "overcommit",
    "p": "partition",
    "q": "qos",
    "Q": "quiet",
    "s": "oversubscribe",
    "S": "core-spec",
    "t": "time",
    "v": "verbose",
    "w": "nodelist",
    "W": "wait",
    "x": "exclude",
}
_SAME = {"share": "oversubscribe", "workdir": "chdir", "tasks-per-node": "ntasks-per-node"}
_QUOTING = re.compile(r"[\"'\\]")
#: Pieces of a shell's words. The standard library's shlex takes time by the square of a long word.
_PIECE = re.compile(
    r"""(?P<blank>[ \t\r\n]++)|(?P<plain>[^ \t\r\n"'\\]++)|\\(?P<escaped>.)"""
    r"""|'(?P<single>[^']*+)'|"(?P<double>(?:[^"\\]++|\\.)*+)["]""",
    re.DOTALL,
)
#: Within double quotes a backslash stands for itself before any other character.
_ESCAPED = re.compile(r"\\([\"\\])")


def words_of(text: str, path: str) -> list[str]:
    """Return a command line's words, quotes resolved as a shell does."""
    if not _QUOTING.search(text):
        return text.split()
    words: list[str] = []
    parts: list[str] = []
    place, within = 0, False
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None:
            missing = "escaped character" if text[place] == "\\" else "closing quotation"
            raise InputError(f"{text.strip()[:60]!r}: No {missing}", path=path)
        place = piece.end()
        if piece.lastgroup == "double":
            parts.append(_ESCAPED.sub(r"\1", piece["double"]))
            within = True
        elif piece.lastgroup != "blank":
            parts.append(piece[piece.lastgroup or 0])
            within = True
        elif within:
            words.append("".join(parts))
            parts.clear()
            within = False
    return [*words, "".join(parts)] if within else words


def parse_sbatch(words: Sequence[str], path: str) -> dict[str, str]:
    """Return an sbatch command line's options by their long names; of one given twice, the last.

    Flags have an empty value. The first word that is no option is the script; the rest is its own.

    Raises:
        InputError: an option is none of sbatch's, or lacks its value.
    """
    options: dict[str, str] = {}
    left = list(reversed(words))
    while left and left[-1].startswith("-") and left[-1] != "--":
        name, value = _option(left.pop(), path)
        if value is None and name in _FLAGS | _OPTIONAL:
            value = ""
        elif value is None:
            if not left:
                raise InputError(f"the value of --{name} is missing", path=path)
            value = left.pop()
        options[name] = value
    return options


def _option(word: str, path: str) -> tuple[str, str | None]:
    """Return an option's long name, and its value where it stands in the same word."""
    if word.startswith("--"):
        name, equals, rest = word[2:].partition("=")
        value: str | None = rest if equals else None
    else:
        name = _SHORT.get(word[1:2], "")
        value = word[2:] or None
    name = _SAME.get(name, name)
    # Several flags in one word are not written by sbatch's users, nor read here.
    if name not in _KNOWN or (name in _FLAGS and value is not None):
        raise InputError(f"{word[:60]!r} is not an option of sbatch that is known here", path=path)
    return name, value
