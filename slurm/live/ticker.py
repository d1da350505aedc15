"""How a loop's process runs: alone on its host, at a steady pace, until it is asked to stop."""

import fcntl
import gc
import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from ...cluster.errors import InputError
from ..answers.answer_text import answered
from ..answers.live import CONFIG, Ask
from ..answers.policy import config_of

#: By which settings slurmctld tells its cluster from others, whatever file led to it.
_CLUSTER = ("ClusterName", "SlurmctldHost[0]", "SlurmctldPort")
#: Not TMPDIR, which is another in each login: the loop's unit may write here.
_FOLDER = Path("/tmp")  # noqa: S108 - the lock follows no link, and its name has the user's number


def default_lock(ask: Ask, licence: str) -> Path:
    """Return the lock's file: one for each gate of the cluster that slurmctld says it leads.

    Raises:
        InputError: slurmctld does not answer.
    """
    settings = config_of(answered(ask(CONFIG)))
    words = [*map(settings.text, _CLUSTER), licence]
    name = hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]
    return _FOLDER / f"aucsched-{os.getuid()}-{name}.lock"


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold the lock.

    Raises:
        InputError: another process holds it, or the file cannot be made.
    """
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"cannot be locked: {error.strerror}", file=str(path)) from error
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError("another slurm run of this host holds the lock", file=str(path)) from error
        yield
    finally:
        os.close(number)


#: What service managers and terminals send to make a process stop.
_STOPPING = (signal.SIGTERM, signal.SIGINT)
#: A signal is heard after so long at most.
_SLICE_S = 0.2


class Stopping(threading.Event):
    """Whether to stop; a wait sleeps in slices, as an event's own wait hangs on a scaled clock."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, or for so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = _SLICE_S if end is None else end - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(_SLICE_S, left))
        return self.is_set()


@dataclass(slots=True, kw_only=True)
class Ticker:
    """When passes begin.

    Attributes:
        interval_s: from the beginning of one pass to the next's; after a longer pass, at once.
        passes: how many; None: without end.
        clock: seconds, of whatever origin.
        stopping: set when the process is to stop after the pass that it is in.
    """

    interval_s: float
    passes: int | None = None
    clock: Callable[[], float] = time.monotonic
    stopping: threading.Event = field(default_factory=Stopping)

    def stop_on_signals(self) -> None:
        """Let SIGTERM and SIGINT end the passes after the one at work; a second signal kills."""

        def stop(number: int, frame: FrameType | None) -> None:
            del frame
            self.stopping.set()
            signal.signal(number, signal.SIG_DFL)

        for number in _STOPPING:
            signal.signal(number, stop)

    def __iter__(self) -> Iterator[int]:
        """Yield the number of each pass, from 1, when it is to begin."""
        done = 0
        while not self.stopping.is_set():
            began = self.clock()
            done += 1
            yield done
            if done == self.passes:
                return
            if done == 1:
                # What is loaded stays: no later pass looks through it for garbage.
                gc.freeze()
            self.stopping.wait(max(0.0, began + self.interval_s - self.clock()))
