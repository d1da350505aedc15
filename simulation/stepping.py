"""What a policy is, whatever the machine: the one protocol, and policies around others."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ..cluster.jobs import Job
from .log_columns import LogColumns

Seen = TypeVar("Seen")
Start = TypeVar("Start")

#: Sorts a queue of job numbers in place as of a time.
Resort = Callable[[float, list[int]], None]

#: Start time of a job that never started: times count from the first submission, none is below 0.
NEVER = -1
#: What is known of a job that still waits when nothing runs and nothing comes.
LEFT_WAITING = "the policy does not start it, though nothing runs and nothing else will come"
#: Arrivals between two reports of progress.
REPORT_EVERY = 4096


class MachinePolicy(Generic[Seen, Start]):
    """The one protocol of policies: a machine asks who starts after the events of each time stamp.

    What a policy sees, and how it says who starts, is the machine's:

    - one that counts processors shows ``Changes``, and is told numbers of jobs (``CountPolicy``);
    - one of nodes shows its queue, and is told who starts where (nodes/node_queue.py);
    - a user's own policy sees a ``MachineView`` on either, and starts jobs by it (own_policy.py).

    None of them sees a true run time. A policy may ask for more than a step at each event by the
    other members, which here ask for nothing.

    Attributes:
        job_at: over a log, the job of each number by which the policy knows them, its place in the
            queue's order; None: they are numbered by submission. Where the order of any two jobs
            never changes, a queue sorted by number is in order, and a policy needs to know one
            order only. The policy's requests are those that ``Requests.taken`` makes with it.
    """

    job_at: Sequence[int] | None = None

    def step(self, now: float, seen: Seen) -> Sequence[Start]:
        """Return the jobs to start now, in the order in which they were chosen."""
        raise NotImplementedError

    @property
    def alarm(self) -> float | None:
        """The next time at which it wants a step though nothing happens; None: it wants none.

        On nodes only while jobs wait, in the first pass from then on.
        """
        return None

    @property
    def stopped(self) -> Sequence[int] | None:
        """The jobs that the last step stopped before it started others; None: it stops none.

        They wait again, and run from the beginning when they start.
        """
        return None

    @property
    def refused(self) -> Sequence[str] | None:
        """The fixed-time requests that it has refused, as texts; None: it is asked for none."""
        return None

    @property
    def loop(self) -> str | None:
        """The compiled loop that plays a whole log (logs/counts.py); None: there is none."""
        return None

    def columns(self, log: LogColumns) -> Any:
        """Return what such a loop works on, of a log whose jobs are numbered as the policy's."""
        raise NotImplementedError

    @property
    def wants_more(self) -> bool:
        """Whether the last pass was cut short: another may start jobs though nothing changes."""
        return False

    @property
    def wakeup_s(self) -> float | None:
        """Seconds: while jobs wait it wants a step at multiples of them, too; None: it does not."""
        return None

    def refuses(self, job: Job) -> str:
        """Return why it can never start a job; empty: it can. On nodes such a job never waits."""
        del job
        return ""

    def blame(self, error: Exception, now: float, seen: Seen) -> tuple[Any, str] | None:
        """Return the job that made a step fail, and what to say of it; None: no single job did.

        That one is given up, and the others go on.
        """
        del error, now, seen
        return None


#: What a machine that counts processors shows: the jobs that ended now, whose processors are free,
#: and those submitted now, by rising number. Times are seconds after the first submission.
Changes: TypeAlias = tuple[Sequence[int], Sequence[int]]
CountPolicy: TypeAlias = MachinePolicy[Changes, int]


class StoppedRun(NamedTuple):
    """A run that the policy stopped; times in seconds."""

    job: int
    start: float
    end: float


class PolicyWrapper(CountPolicy):
    """A policy around another, which asks for what that one asks for."""

    def __init__(self, policy: CountPolicy) -> None:
        self._policy = policy
        self.job_at = policy.job_at

    @property
    def alarm(self) -> float | None:
        """The next time at which the policy wants a step though nothing happens."""
        return self._policy.alarm

    @property
    def refused(self) -> Sequence[str] | None:
        """The fixed-time requests that were refused."""
        return self._policy.refused

    @property
    def stopped(self) -> Sequence[int] | None:
        """The jobs that the last step stopped."""
        return self._policy.stopped
