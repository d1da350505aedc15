"""Checkpoints read back by a fresh process, before the journal that they replace is given up.

The process that wrote a checkpoint is a poor judge of it: it holds the very objects that it wrote. So another
one reads the file as a restart would. It is started at the first checkpoint and asked again at each further
one, which takes milliseconds; it ends with its parent, when its input ends.
"""

from __future__ import annotations

import json
import pickle
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from ...cluster.errors import AucschedError
from .framing import one_line
from .party_journal import checkpoint_in

#: The longest time that a checkpoint may take to be read back, in seconds.
_LIMIT_S = 60.0


class CheckpointReader:
    """A process that says of files whether a restart could continue from them.

    Args:
        codec: of the state (``party.Codec``).
        memory: makes what was noted beside the state (``party.WatchNotes``); None: nothing was.
    """

    def __init__(self, codec: Any, memory: Callable[[], Any] | None) -> None:
        self._reads = pickle.dumps((codec, memory))
        self._process: subprocess.Popen[bytes] | None = None

    def fault_in(self, path: Path) -> str:
        """Return why a restart could not continue from a journal's checkpoint, empty when it could."""
        try:
            if self._process is None:
                self._process = _started(self._reads)
            answer = _asked(self._process, path)
        except OSError as error:
            answer = None
            why = error.strerror or str(error)
        else:
            why = "the process that reads it back has given no answer"
        if answer is None:
            self.close()
            return why
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _started(reads: bytes) -> subprocess.Popen[bytes]:
    # -P: the folder that the party was started in is no place for modules.
    process = subprocess.Popen(  # noqa: S603 - this interpreter and this module
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    cast("IO[bytes]", process.stdin).write(reads)
    return process


def _asked(process: subprocess.Popen[bytes], path: Path) -> str | None:
    """Return what the process says of a file, None when it says nothing."""
    asks, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    asks.write(json.dumps(str(path)).encode() + b"\n")
    asks.flush()
    readable, _, _ = select.select([answers], [], [], _LIMIT_S)
    line = answers.readline() if readable else b""
    return str(json.loads(line)) if line.endswith(b"\n") else None


def fault_of(path: Path, codec: Any, memory: Callable[[], Any] | None) -> str:
    """Return why a journal's checkpoint does not lead to what it says, empty when it does."""
    try:
        checkpoint = checkpoint_in(path)
        state, noted = bytes(checkpoint.state), bytes(checkpoint.memory)
        if codec.write(codec.read(state)) != state:
            return "the state is another when it is read back"
        if memory is not None:
            made = memory()
            made.restore(noted)
            if made.saved() != noted:
                return "what was noted beside the state is other when it is read back"
    except (AucschedError, OSError) as error:
        return one_line(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, a restart would meet it too
        return one_line(f"{type(error).__name__}: {error}")
    return ""


def main() -> None:
    """Answer one path a line with what is wrong with it."""
    codec, memory = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(fault_of(Path(json.loads(line)), codec, memory)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
