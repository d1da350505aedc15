"""``aucsched winners``: winner determination over a file of bids."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import OptionError, errors_in
from ..cluster.option_table import WINNERS, read_by
from ..cluster.text import plural
from .built_options import INPUT, TEXT_OUTPUT, click_option, in_order
from .outputs import Output, note, output_options

if TYPE_CHECKING:
    from rich.console import Console

    from ..formats.auction_file import AuctionFile
    from ..models.winners.determine import Winners

#: Rows of the tables of winners and of prices.
_MOST_ROWS = 40


@click.command()
@click.argument("file", metavar="FILE", type=INPUT)
@in_order(click_option(option, WINNERS) for option in read_by(WINNERS))
@click.option(
    "--export", type=TEXT_OUTPUT, help="Write the integer program over all bids to a file: .mps or .lp."
)
@output_options
@click.pass_obj
def winners(began: float | None, /, file: str, export: str | None, out: Output, **options: Any) -> None:
    """Determine the winning bids of a file, with a bound and prices of items.

    FILE is JSON or in CATS's format, plain or gzip; - is standard input. The winners maximise the
    sum of values within capacities and groups. Status optimal: that is proved. Status feasible: the
    bound says how much more the sum could be. A time limit includes reading FILE, not standard
    input. Formats: docs/winners.md.
    """
    entered = perf_counter()
    from ..formats.auction_file import exact_number, load_auction
    from ..models.search.search_parameters import parameters_of
    from ..models.solve.solver import EXPORTS
    from ..models.winners.determine import adds_floats, check_options, winners_of
    from ..models.winners.instance import export_instance, read_instance

    if export and not export.endswith(EXPORTS):
        raise OptionError(f"export: {export!r} ends in neither {' nor '.join(EXPORTS)}")
    rounded = options.pop("round")
    check_options(**options)
    options["parameters"] = parameters_of(options.pop("search_parameters"), "search_parameters")
    # How long another program writes is not the command's time.
    began = None if file == "-" else entered if began is None else began
    auction = load_auction(file, rounded=rounded)
    if auction.rounded and rounded is None:
        note(f"rounded to integers: {plural(auction.rounded, 'value')}; --no-round keeps them")
    with errors_in(file):
        in_floats = adds_floats(options["strategy"], options["work_limit"])
        instance = read_instance(auction.bids, auction.capacities, auction.groups, in_floats=in_floats)
        _note_slow_reading(began, options)
        found = winners_of(instance, second=auction.second or None, began=began, **options)
    if export:
        export_instance(instance, tuple(f"bid{number}" for number in auction.numbers), export)

    def document() -> dict[str, Any]:
        exact = {"value": exact_number(found.value), "bound": exact_number(found.bound)}
        return found.to_dict() | exact | {"chosen": [auction.numbers[place] for place in found.chosen]}

    out.write(document, lambda console: _render(auction, found, console))


def _note_slow_reading(began: float | None, options: dict[str, Any]) -> None:
    """Say if the file alone took the time limit: a quick search follows, to have an award."""
    from ..models.winners.determine import time_limit_of

    limit_s = time_limit_of(options["time_limit_s"], options["work_limit"])
    took = 0.0 if began is None else perf_counter() - began
    if took > limit_s:
        note(f"reading took {took:.1f} s of the time limit of {limit_s:g} s: the search hardly began")


def _render(auction: AuctionFile, found: Winners, console: Console) -> None:
    from ..formats.auction_file import decimal_text
    from ..reports.console_tables import Column, and_more, table_of

    def items(place: int) -> str:
        amounts = auction.bids[place][2].items()
        return " ".join(name if amount == 1 else f"{decimal_text(amount)} {name}" for name, amount in amounts)

    columns = [
        Column("bid", lambda place: auction.numbers[place], is_right=True),
        Column("bidder", lambda place: auction.bids[place][0]),
        Column("value", lambda place: decimal_text(auction.bids[place][1]), is_right=True),
        Column("items", items, is_text=True),
    ]
    chosen, more = found.chosen[:_MOST_ROWS], and_more("items", len(found.chosen) - _MOST_ROWS)
    title = plural(len(found.chosen), "winning bid")
    console.print(table_of(title, columns, chosen, console, more))
    costly = sorted((item for item in found.prices.items() if item[1] > 0), key=lambda item: -item[1])
    columns = [
        Column("item", lambda item: item[0], is_text=True),
        Column("price", lambda item: f"{item[1]:.6g}", is_right=True),
    ]
    more = and_more("price", len(costly) - _MOST_ROWS)
    title = f"{plural(len(costly), 'item')} with a price"
    console.print(table_of(title, columns, costly[:_MOST_ROWS], console, more))
    console.print(
        f"{found.status.value}: value {decimal_text(found.value)}, bound {decimal_text(found.bound)}, "
        f"gap {found.gap:.2%}; {plural(len(auction.bids), 'bid')} "
        f"on {plural(len(auction.capacities), 'item')}; {found.seconds:.2f} s"
    )
