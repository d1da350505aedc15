"""An explanation of one job, and the prices of an auction, as a person reads them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ..auction.explain.explanation import KEPT, BidLack, BidView, Explanation
from ..auction.explain.job_changes import Change
from ..auction.explain.overview import Overview, PriceGroup
from ..auction.explain.unit_prices import Quote
from ..auction.explain.words import dealt, figure, moment, number, percent, request_words, shortened
from ..auction.forecast import ShadowStart
from ..auction.options import MODELS_BY_NAME
from ..bidgen.families.registry import title_of
from ..cluster.schedule import Reason
from ..cluster.text import listed, plural
from ..formats.hostlist import join
from ..models.model import OBJECTIVES
from .console_tables import Column, Wrapped, and_more, plain_text, table_of

#: How many bids and how many changes are listed; the other bids are counted.
_BIDS, _CHANGES = 12, 3
#: A gain up to this share of the worth is none: prices are rounded.
_EVEN = 0.005


def render_explanation(found: Explanation, console: Console) -> None:
    """Print an explanation."""
    console.print(_labelled(facts_of(found, found.now)))
    if found.bids:
        console.print(Text(), _bid_table(found.bids, console), sep="\n")
    elif not MODELS_BY_NAME[found.model].has_bids:
        console.print(Text(f"\nThere are no bids: {found.model} places jobs node by node."))
    if found.groups:
        table = table_of("The nodes, as the job sees them", _GROUP_COLUMNS, found.groups, console)
        console.print(Text(), table, sep="\n")


def facts_text(found: Explanation) -> str:
    """Return the facts that ``render_explanation`` prints first, as text."""
    return plain_text(lambda console: console.print(_labelled(facts_of(found, found.now)))).rstrip("\n")


def _labelled(rows: Iterable[tuple[str, str]]) -> Table:
    """Return names with what is said of each."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for label, text in rows:
        table.add_row(label, Wrapped(text))
    return table


def facts_of(found: Explanation, now: float | None) -> Iterator[tuple[str, str]]:
    """Yield what is known of a job, by name; times are also told from ``now`` on."""
    rank = f"priority {number(found.job.priority)}, place {found.place} of {found.queued} in the queue"
    yield f"job {found.job.id}", rank
    yield "asks for", ", ".join(request_words(found.job))
    yield _outcome(found)
    if found.quote is not None:
        yield _price(found, found.quote)
    if found.award is None:
        yield from _changes(found.changes)
        yield from _starts(found, now)
    if found.job.expected_start_time is not None:
        yield "Slurm's plan", f"starts {moment(found.job.expected_start_time, now)}"


def _outcome(found: Explanation) -> tuple[str, str]:
    if found.award is None:
        refusal = found.refusal
        return "waits", "" if refusal is None else f"{refusal.reason.value}: {refusal.detail}"
    award, bid = found.award, found.award.bid
    cores = sum(use.cores for use in award.nodes.values())
    where = f"{join(award.nodes)} ({plural(len(award.nodes), 'node')}, {plural(cores, 'core')})"
    level = "" if bid.level is None else f", level {bid.level}"
    preference = "" if bid.preference is None else f", preference {bid.preference:.4g}"
    return "starts", f"on {where} by a bid of class {bid.bid_class.value}{level}{preference}"


def _price(found: Explanation, quote: Quote) -> tuple[str, str]:
    """Return what the job pays, or its best bid would have cost, against what it is worth."""
    cost, worth, gap = figure(quote.price), figure(quote.worth), figure(abs(quote.gain))
    is_even = abs(quote.gain) <= _EVEN * quote.worth
    if found.award is not None:
        gain = "all it is worth" if is_even else f"{'gains' if quote.gain > 0 else 'loses'} {gap}"
        return "pays", f"about {cost} at the nodes' prices, of its {worth}: {gain}"
    where = f"its best bid, on {shortened(quote.nodes)}, would cost about {cost}"
    if is_even:
        return "price", f"{where}: what it is worth, {worth}"
    if quote.gain < 0:
        return "price", f"{where}: {gap} more than its {worth}"
    return "price", f"{where}, {gap} less than its {worth}: prices are an estimate, as bids are whole"


def _changes(changes: Sequence[Change] | None) -> Iterator[tuple[str, str]]:
    """Yield the smallest changes that would let the job start too."""
    if changes is None:
        return
    label = "would start"
    if not changes:
        yield (
            label,
            (
                "by no change of one or two parts of its request that keeps half of what it asks for: too "
                "little is left free by the jobs that start"
            ),
        )
    for change in changes[:_CHANGES]:
        where = f"on {shortened(change.nodes)}, left free by the jobs that start"
        if change.words:
            part = f" ({percent(change.given_up)} given up)" if change.given_up else ""
            yield label, f"with {' and '.join(change.words)}{part}, {where}"
        else:
            yield label, f"as it is, {where}: the window, the caps or the time limit kept it out"
        label = ""


def _starts(found: Explanation, now: float | None) -> Iterator[tuple[str, str]]:
    """Yield when nodes would be free for the job, if running jobs end by their limits."""
    never = found.never
    reason, detail = (found.refusal.reason, found.refusal.detail) if found.refusal else (None, "")
    if never or reason is Reason.INELIGIBLE:
        yield "could start", f"never: {never if never not in {'', detail} else 'see why it waits'}"
        return
    released = "it is released and " if reason in {Reason.HELD, Reason.NOT_ELIGIBLE} else ""
    reserved = {name for group in found.groups if group.what == KEPT for name in group.nodes}
    is_kept_off = (
        found.alone is not None and found.alone.at_once and not reserved.isdisjoint(found.alone.nodes)
    )
    kept = "no nodes were kept for others" if is_kept_off or reason is Reason.RESERVATION else ""
    first = f"{released}{kept and f'{kept} and '}nothing else starts before it"
    yield "could start", f"{_start(found.alone, now)}{kept and ', only'} if {first}"
    if found.after_award != found.alone:
        after = "after the jobs that start now, each for its time limit"
        yield "", f"{_start(found.after_award, now)} {after}{kept and f', if {kept}'}"
    if found.reserved is not None:
        yield "reserved", f"{_start(found.reserved, now)}, which no bid may delay"


def _start(start: ShadowStart | None, now: float | None) -> str:
    if start is None:
        return "not to be foreseen: no estimated end of a running job frees enough,"
    when = "now" if start.at_once else moment(start.time, now)
    if not start.at_once and start.time == (now or 0.0):
        when = "as soon as jobs past their limit have ended"
    return f"{when} on {shortened(start.nodes)}"


_GROUP_COLUMNS = (
    Column("what", lambda group: group.what, is_text=True),
    Column("nodes", lambda group: len(group.nodes), is_right=True),
    Column("which", lambda group: shortened(group.nodes), is_text=True),
    Column("held by", lambda group: listed(group.held_by), is_text=True),
)


def _bid_table(bids: Sequence[BidView], console: Console) -> Group:
    shown = [*bids[:_BIDS], *(bid for bid in bids[_BIDS:] if bid.won)]
    places = Counter((bid.bid_class, bid.nodes, bid.cores) for bid in shown)

    def cores(bid: BidView) -> str:
        # Bids on the same nodes differ in the cores that they take on each.
        is_only = places[bid.bid_class, bid.nodes, bid.cores] == 1
        return str(bid.cores) if is_only else f"{bid.cores} as {dealt(bid.cores_by_node)}"

    # Why a bid that lacks nothing did not win: another of the job did, or none was worth it.
    otherwise = "nothing: not worth it under these weights, or not found in time"
    if any(bid.won for bid in bids):
        otherwise = "nothing: the bid that won is worth no less"

    def lacks(bid: BidView) -> str:
        return "it won" if bid.won else "; ".join(map(_lack, bid.lacks)) or otherwise

    columns = (
        Column("class", lambda bid: bid.bid_class.value),
        Column("nodes", lambda bid: len(bid.nodes), is_right=True, leaves=2),
        Column("cores", cores, is_right=True, leaves=3),
        Column("gres", lambda bid: " ".join(f"{n} {name}" for name, n in sorted(bid.gres.items())), leaves=4),
        Column("level", lambda bid: bid.level, is_right=True, leaves=5),
        Column("preference", lambda bid: f"{bid.preference:.4g}", is_right=True, leaves=1),
        Column("price", lambda bid: figure(bid.price), is_right=True),
        Column("where", lambda bid: shortened(bid.nodes), is_text=True),
        Column("what it lacks (held by)", lacks, is_text=True),
    )
    title = f"{plural(len(bids), 'bid')}, in the order they were made"
    return table_of(title, columns, shown, console, and_more("where", len(bids) - len(shown)))


def _lack(lack: BidLack) -> str:
    where = f" on {shortened(lack.nodes)}" if lack.nodes else ""
    return f"{lack.what}{where} ({listed(lack.held_by) or 'held by others'})"


#: More groups and jobs than these are counted, not listed.
_ROWS = 30
_NOT_SHORT = "A job without a shortage waits although its price is low enough: none of its whole bids fits."


def render_overview(found: Overview, console: Console) -> None:
    """Print the prices of an auction."""
    console.print(_labelled(price_facts(found)))
    if found.groups:
        title = "What one of each costs on the nodes that are bid for"
        console.print(Text(), _price_table(title, found.groups, console), sep="\n")
    for job, groups in found.rooms.items():
        if not any(any(group.prices.values()) for group in groups):
            continue
        title = f"Added where job {job} has a reservation, for jobs that would run past its start"
        console.print(Text(), _price_table(title, groups, console), sep="\n")
    waiting = [one for one in found.jobs if not one.starts and one.quote is not None]
    if waiting:
        title = "Jobs that wait with a bid, and what the best of them would have cost"
        more = and_more("nodes of that bid", len(waiting) - _ROWS)
        console.print(Text(), table_of(title, _JOB_COLUMNS, waiting[:_ROWS], console, more), sep="\n")
    if any(one.quote is not None and one.quote.gain >= 0 for one in waiting):
        console.print(Text(f"\n{_NOT_SHORT}"))


def price_facts(found: Overview) -> Iterator[tuple[str, str]]:
    """Yield what is known of an auction's prices, by name."""
    unit = OBJECTIVES[found.objective].words if found.objective in OBJECTIVES else "worth in a balanced mix"
    yield "prices", f"in units of {unit}; an estimate: bids are whole, prices are not"
    award = plural(found.started, "job", "starts")
    yield "award", f"{award}, worth {figure(found.worth)}; what they hold costs {figure(found.pay)}"
    more = f" ({100 * (found.bound / found.worth - 1):.2g} % more)" if found.worth else ""
    yield "bound", f"no award over these bids is worth more than {figure(found.bound)}{more}"
    for resource, price in found.pools.items():
        yield title_of(resource), f"{figure(price)} for one of {resource.name}"
    without = sum(one.quote is None for one in found.jobs)
    if without:
        yield "no bid", f"{plural(without, 'job')} of the window"
    if found.unwanted:
        yield "not wanted", f"{plural(len(found.unwanted), 'node')}: {shortened(found.unwanted)}"


def _price_table(title: str, groups: Sequence[PriceGroup], console: Console) -> Group:
    names = {"cores": "a core", "memory_gib": "a GiB"}

    def price(kind: str) -> Column:
        return Column(names.get(kind, f"a {kind}"), lambda group: figure(group.prices[kind]), is_right=True)

    def whole(group: PriceGroup) -> str:
        return " to ".join(dict.fromkeys((figure(group.least), figure(group.most))))

    columns = [
        *map(price, groups[0].prices),
        Column("all that is free", whole, is_right=True),
        Column("nodes", lambda group: len(group.nodes), is_right=True),
        Column("which", lambda group: shortened(group.nodes), is_text=True),
    ]
    more = {}
    if rest := groups[_ROWS:]:
        count = sum(len(group.nodes) for group in rest)
        more = {"nodes": str(count), "which": f"at {len(rest)} lower prices"}
    return table_of(title, columns, groups[:_ROWS], console, more)


_JOB_COLUMNS = (
    Column("job", lambda one: one.job.id, is_right=True),
    Column("priority", lambda one: number(one.job.priority), is_right=True),
    Column("price", lambda one: figure(one.quote.price), is_right=True),
    Column("short by", lambda one: figure(-one.quote.gain) if one.quote.gain < 0 else None, is_right=True),
    Column("nodes of that bid", lambda one: shortened(one.quote.nodes), is_text=True),
)
