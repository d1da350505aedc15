"""The loop behind the gate: look, decide, change little, look again; Slurm holds all that it knows.

Each pass moves the gate's end on first. A pass that cannot (another leader's gate is up, the log is
not writable, Slurm is silent) changes nothing: the gate ends, and Slurm starts the jobs itself.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from ...auction.options import StepOptions
from ...cluster.errors import AucschedError, InputError
from ...cluster.snapshot import Snapshot
from ...cluster.text import one_line
from ...formats.hostlist import names_in
from ..answers.answer_record import Known
from ..answers.live import Ask
from ..answers.node_records import asleep_cores
from ..answers.reservation_records import read_reservations
from ..answers.slurm_files import SlurmFiles
from ..answers.states import JobPhase
from .actions import (
    Action,
    ActionKind,
    CommandRunner,
    create_words,
    drop_words,
    extend_words,
    gate_name,
    gates,
    licence_count,
    line,
)
from .live_queue import Carrier, LiveJob, read_queue
from .loop_metrics import Metrics
from .loop_options import Settings
from .loop_snapshot import LivePromises, changed_marks, is_pinned, with_claims, with_promises
from .pass_plan import (
    NeverFits,
    came_true,
    decided,
    idle_now,
    jobs_now,
    overdue,
    still_true,
    unused,
    was_requeued,
    within,
)
from .passes import LivePass, Look, cores_in_use, take_look, take_pass
from .preempting import SlurmPreemption, by_stopping, read_preemption

_MINUTE_S = 60

#: Keeps lines before anything else is done.
Journal = Callable[[Iterable[Mapping[str, object]]], None]


@dataclass(slots=True, kw_only=True)
class PassReport:
    """What became of a pass.

    Attributes:
        at: when it began, seconds since the epoch.
        outcome: ``done``, ``standby`` (another leader's gate is up) or why it failed.
        leader: whose gate is up.
        waiting: jobs behind the gate; claimed: pinned, not yet started; running: all that run.
        cores, used: cores of nodes that take jobs, and those in use.
        unread: rules of the site that are not looked at.
        pinned, put_back, handed_over: jobs; promised: marks that got a start or another.
        started: pinned jobs first seen to run; misplaced: those of them on other nodes.
        dropped: actions no longer true; refused: those Slurm did not carry out; why: its text.
        deferred: actions left for the next pass by the limits on changes.
        changes: commands that were sent, the gate's not counted.
        read_s, decide_s, check_s, place_s, verify_s: seconds by phase; total_s of all.
        gap: the auction's, None where it is not known.
        gate_end: seconds since the epoch; 0 where nothing was learnt of it.
    """

    at: float
    number: int
    outcome: str = "done"
    leader: str = ""
    waiting: int = 0
    claimed: int = 0
    running: int = 0
    cores: int = 0
    used: int = 0
    unread: int = 0
    pinned: int = 0
    put_back: int = 0
    promised: int = 0
    handed_over: int = 0
    started: int = 0
    misplaced: int = 0
    dropped: int = 0
    refused: int = 0
    deferred: int = 0
    changes: int = 0
    read_s: float = 0.0
    decide_s: float = 0.0
    check_s: float = 0.0
    place_s: float = 0.0
    verify_s: float = 0.0
    total_s: float = 0.0
    why: str = ""
    gap: float | None = None
    gate_end: float = 0.0


class Loop:
    """Passes over one cluster.

    Args:
        journal: keeps a line for each action, before and after it; raises AucschedError where it
            cannot: then nothing is changed either.
        clock: seconds that only go on.
    """

    def __init__(
        self,
        settings: Settings,
        options: StepOptions,
        *,
        ask: Ask,
        runner: CommandRunner,
        journal: Journal,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self._options = options
        self._ask = ask
        self._runner = runner
        self._journal = journal
        self._clock = clock
        self._now = now
        #: Pinned jobs that were seen to run, and when each was pinned.
        self._seen: dict[str, float] = {}
        self._spent: deque[tuple[float, int]] = deque()
        self._refused: Counter[str] = Counter()
        self._passes = 0
        self._last: LivePass | None = None
        self._known = Known()
        self._preemption: SlurmPreemption | None = None
        #: What an administrator is to read, once each.
        self.remarks: list[str] = []
        self._promises = LivePromises(settings.promise)
        self._never = NeverFits()
        self._is_denied = False
        #: What the last pass saw; None before any did.
        self.looked: Look | None = None

    def one_pass(self) -> PassReport:
        """Run a pass; what goes wrong with Slurm or the log is its outcome, never an error."""
        self._passes += 1
        report = PassReport(at=self._now(), number=self._passes)
        began = self._clock()
        try:
            self._pass(report)
        except AucschedError as error:
            report.outcome = one_line(str(error))
        report.total_s = self._clock() - began
        self._tell(report)
        return report

    def _tell(self, report: PassReport) -> None:
        """Log the pass itself; a log that takes nothing has been the outcome already."""
        rounded = {name: round(v, 4) if isinstance(v, float) else v for name, v in asdict(report).items()}
        try:
            self._journal([{"event": "pass", **rounded}])
        except AucschedError as error:
            report.outcome = one_line(str(error))

    def _pass(self, report: PassReport) -> None:
        # Whoever cannot log must not keep the gate up either.
        self._journal([{"event": "begin", "at": report.at, "number": report.number}])
        if not self._keep_gate(report):
            return
        settings, began = self.settings, self._clock()
        look = take_look(
            SlurmFiles(topology=settings.topology),
            gate=settings.licence,
            ask=self._ask,
            known=self._known,
            at_once=settings.at_once,
            clock=self._clock,
            now=self._now,
        )
        self.looked = look
        queue = read_queue(
            look.sources.jobs.content, look.sources.jobs.name, self._known, Carrier(settings.mark)
        )
        held = look.sources.reservations
        reserved = () if held is None else read_reservations(held.content)
        back = overdue(look, queue, settings, self._seen)
        requeued = {action.job for action in back if was_requeued(queue[action.job], self._seen)}
        kept = {name: job for name, job in queue.items() if name not in requeued}
        snapshot = with_claims(look.snapshot, kept, settings.licence, reserved)
        report.read_s = self._clock() - began
        self._count(look.snapshot, queue, report)
        self._verify_starts(queue, report)
        deciding = self._clock()
        made = self._promises.made(snapshot, queue)
        seen = replace(look, snapshot=with_promises(snapshot, made))
        taken = take_pass(seen, self._options, self._clock, last=self._last)
        self._last = taken
        schedule = taken.step.schedule
        report.decide_s, report.gap = self._clock() - deciding, schedule.objective.gap
        started = {award.job for award in schedule.started}
        waiting = (job for job in snapshot.jobs if job.id not in started)
        left = self._left_to_slurm(taken, queue) | self._never.why(waiting, taken.step.state)
        actions = [
            *back,
            *unused(reserved, queue),
            *decided(taken, queue, settings, self._now(), self._refused, left),
        ]
        # A job that Slurm places may take the node of a pin that comes after it.
        actions.sort(key=lambda action: action.kind is ActionKind.HAND_OVER)
        touched = {action.job for action in actions} | started
        actions += changed_marks(made, queue, touched)
        self._carry_out(actions, queue, began, report)

    def _left_to_slurm(self, taken: LivePass, queue: Mapping[str, LiveJob]) -> dict[str, str]:
        """Return the jobs that Slurm would start by stopping others or waking nodes, and why.

        Rules of preemption that cannot be asked stay as they were.
        """
        look = taken.look
        if look.sources.config is not None:
            try:
                self._preemption = read_preemption(look.config, look.sources.partitions, self._ask)
            except InputError as error:
                text = one_line(str(error))
                self._journal([{"event": "said", "number": self._passes, "text": text}])
        asleep = asleep_cores(self._known.document(look.sources.nodes.content, "nodes"))
        if self._preemption is None and not asleep:
            return {}
        why = "Slurm may stop running jobs for it, the auction stops none"
        if asleep:
            why = "Slurm may wake nodes or stop running jobs for it, the auction does neither"
        preemption, licence = self._preemption or SlurmPreemption(), self.settings.licence
        schedule = taken.step.schedule
        found = by_stopping(look.snapshot, schedule, queue, licence, preemption, asleep)
        return {job.id: why for job in found}

    def _count(self, snapshot: Snapshot, queue: Mapping[str, LiveJob], report: PassReport) -> None:
        """Keep what the look says of the cluster as a whole."""
        licence = self.settings.licence
        report.waiting = sum(job.is_waiting and job.needs(licence) for job in queue.values())
        report.claimed = sum(is_pinned(job, licence) for job in queue.values())
        report.running = sum(job.phase is JobPhase.HOLDING for job in queue.values())
        report.cores, report.used = cores_in_use(snapshot)
        report.unread = len(snapshot.unread)

    def _keep_gate(self, report: PassReport) -> bool:
        """Put the gate up, or move its end on; False where another leader's is up."""
        settings, licence = self.settings, self.settings.licence
        name = gate_name(licence, settings.host, settings.user)
        by_hand = gate_name(licence, settings.host)
        report.leader = name
        up = {one.name: one for one in gates(self._ask, licence)}
        others = [one for one in up.values() if one.name not in {name, by_hand} and one.is_up(report.at)]
        if others and not settings.dry_run:
            report.outcome, report.leader, report.gate_end = "standby", others[0].name, others[0].end
            return False
        said: tuple[str, ...] = ()
        is_mine = name in up and up[name].is_up(report.at)
        if is_mine:
            said = self._runner((extend_words(name, settings.gate_for),))
        if not is_mine or said:
            self._make_gate(name, said, replaced=[one for one in (name, by_hand) if one in up])
        report.gate_end = report.at + settings.gate_for
        return True

    def _make_gate(self, name: str, said: Sequence[str], *, replaced: Iterable[str]) -> None:
        """Put the gate up, in the place of one that has ended or whose end Slurm does not move.

        Slurm takes no end before the start of a gate that a clock set back has put into the future.
        Nor does it take a second gate of the same licences: the old one goes in the same call in
        which the new one comes, so that what waits has milliseconds to slip through, not a pass.
        """
        settings, licence = self.settings, self.settings.licence
        held = licence_count(self._ask, licence)
        create = create_words(name, licence, held, settings.gate_for, settings.user)
        refused = self._runner((*map(drop_words, replaced), create))
        # The old one may have been gone already.
        if refused and not any(
            one.name == name and one.is_up(self._now()) for one in gates(self._ask, licence)
        ):
            raise InputError(refused[-1], file=f"scontrol {line(create)}")
        if said:
            text = f"the gate {name} was made anew, as Slurm did not move its end: {one_line(said[0])}"
            self._journal([{"event": "said", "number": self._passes, "text": text}])
            self.remarks.append(text)

    def _carry_out(
        self, actions: Sequence[Action], queue: Mapping[str, LiveJob], began: float, report: PassReport
    ) -> None:
        """Carry out what is still true, within the limits; log before, look after."""
        check = self._clock()
        while self._spent and check - self._spent[0][0] >= _MINUTE_S:
            self._spent.popleft()
        spent = sum(count for _, count in self._spent)
        limit = min(self.settings.changes, self.settings.changes_a_minute)
        most = max(0, min(limit, self.settings.changes_a_minute - spent))
        actions, report.deferred = within(actions, most, limit)
        if not actions:
            return
        judged = list(still_true(actions, queue, jobs_now(self._ask), idle_now(self._ask)))
        age = self._clock() - began
        if age > self.settings.plan_age:
            judged = [(action, why or f"the plan is {age:.0f} s old") for action, why in judged]
        kept = [action for action, why in judged if not why]
        report.dropped = len(judged) - len(kept)
        report.check_s = self._clock() - check
        self._journal(
            [{"event": "drop", **_line(action, report), "changed": why} for action, why in judged if why]
            + [{"event": "intend", **_line(action, report)} for action in kept]
        )
        place = self._clock()
        commands = [words for action in kept for words in action.commands]
        # The clock of limits counts what may have been done, so before it is.
        self._spent.append((place, len(commands)))
        said = self._runner(commands) if commands else ()
        report.place_s, report.changes = self._clock() - place, len(commands)
        if not self.settings.dry_run:
            self._verify(kept, said, report)
            report.verify_s = self._clock() - place - report.place_s

    def _verify(self, actions: Sequence[Action], said: Sequence[str], report: PassReport) -> None:
        """Look at each job again, and log what came of it."""
        if not actions:
            return
        jobs, licence = jobs_now(self._ask), self.settings.licence
        lines, done = [], Counter[ActionKind]()
        for action in actions:
            is_true = came_true(action, jobs.get(action.job), licence)
            lines.append({"event": "done" if is_true else "refused", **_line(action, report)})
            report.refused += not is_true
            done[action.kind] += is_true
            if is_true:
                self._refused.pop(action.job, None)
            elif action.kind is ActionKind.PIN:
                self._refused[action.job] += 1
        report.pinned, report.put_back = done[ActionKind.PIN], done[ActionKind.UNPIN]
        report.handed_over, report.promised = done[ActionKind.HAND_OVER], done[ActionKind.PROMISE]
        self._journal(
            [*lines, *({"event": "said", "number": report.number, "text": one_line(text)} for text in said)]
        )
        report.why = one_line(said[0]).partition(" for job ")[0] if said and report.refused else ""
        if "denied" in report.why and not self._is_denied:
            self._is_denied = True
            is_comment = Carrier(self.settings.mark) is Carrier.COMMENT
            hint = "the user lacks rights" if is_comment else "an operator needs --mark comment"
            self.remarks.append(f"{report.why}: {hint}; run slurm doctor")

    def _verify_starts(self, queue: Mapping[str, LiveJob], report: PassReport) -> None:
        """Log pinned jobs that run by now, once each, and whether they run on their nodes."""
        lines = []
        running = {name: job for name, job in queue.items() if job.phase is JobPhase.HOLDING}
        for name, job in running.items():
            if job.mark is None or not job.mark.since or self._seen.get(name) == job.mark.since:
                continue
            # While it ends, Slurm leaves out the nodes that are done.
            is_right = set(names_in(job.nodes)) <= set(names_in(job.required))
            lines.append(
                {"event": "runs" if is_right else "misplaced", "job": name, "nodes": job.nodes}
                | ({} if is_right else {"required": job.required})
            )
            report.started += 1
            report.misplaced += not is_right
        self._journal(lines)
        # A requeued job is known as one until it is back behind the gate.
        kept = (job for job in queue.values() if was_requeued(job, self._seen))
        marked = (*running.values(), *kept)
        self._seen = {job.id: job.mark.since for job in marked if job.mark is not None}


def _line(action: Action, report: PassReport) -> dict[str, object]:
    return {
        "number": report.number,
        "kind": action.kind.value,
        "job": action.job,
        "nodes": list(action.nodes),
        "why": action.why,
        "commands": [line(words) for words in action.commands],
    }


def tell(figures: Metrics, report: PassReport) -> None:
    """Keep the figures of a pass."""
    figures.add("aucsched_passes" if report.outcome in {"done", "standby"} else "aucsched_failures")
    figures.spend(
        read=report.read_s,
        decide=report.decide_s,
        place=report.place_s,
        verify=report.verify_s + report.check_s,
    )
    if report.gate_end:
        figures.run("aucsched_gate_left_seconds", report.gate_end, down=True)
    if report.gate_end and report.outcome != "standby":
        figures.run("aucsched_gate_age_seconds", report.at)
    if report.outcome != "done":
        return
    figures.set("aucsched_pass_timestamp_seconds", report.at)
    figures.set("aucsched_gap_ratio", report.gap)
    figures.set("aucsched_awards", report.pinned)
    figures.of_states("aucsched_jobs", gated=report.waiting, pinned=report.claimed, running=report.running)
    figures.of_states("aucsched_cores", all=report.cores, used=report.used)
    figures.set("aucsched_unread_rules", report.unread)
    figures.add("aucsched_starts", report.started, by="auction")
    figures.add("aucsched_put_back", report.put_back)
    figures.add("aucsched_changes", report.changes)
