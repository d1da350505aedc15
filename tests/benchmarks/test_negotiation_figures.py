"""Figures 7.1 to 7.3 again: bars are named for what runs, and the runs that are kept are whole."""

from __future__ import annotations

import json
from pathlib import Path

import negotiation_figures
from command_options import command_options

from aucsched.cluster.jobs import JobKind
from aucsched.commands.negotiate_options import THESIS, batch_settings, runtime_settings
from aucsched.simulation.negotiated.esp import Mix
from aucsched.simulation.negotiated.plays import esp_play

ROWS = Path(__file__).parents[2] / "benchmarks" / "results" / "figures-7.jsonl"


def test_the_preset_s_bars_have_all_of_the_preset() -> None:
    batch, runtime = negotiation_figures.settings_of("thesis")
    assert (batch.mapper, batch.decision, batch.third_of) == (
        THESIS["mapper"],
        THESIS["decision"],
        THESIS["third_of"],
    )
    assert batch.max_attempts == THESIS["attempts"]
    assert runtime.last_backfill is not THESIS["no_last_backfill"]
    for name in ("dependencies", "equipartition", "reject_idle", "shrink"):
        assert getattr(runtime, name) == THESIS[name]
    accounted = negotiation_figures.settings_of("accounted")[1]
    assert (accounted.start_at_minimum, accounted.transaction_s) == (True, 1.5)


def test_what_ships_is_the_command_s_default() -> None:
    options = command_options("negotiate", ["esp"])
    batch, runtime = negotiation_figures.settings_of("shipped")
    assert batch == batch_settings(esp_play(16, Mix()), options)
    assert runtime == runtime_settings(options)


def test_the_runs_kept_are_whole_and_a_run_is_made_again_as_it_was() -> None:
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    orders = {row["order"] for row in rows}
    kept = {(row["which"], row["kind"], row["share"], row["order"]) for row in rows}
    assert len(kept) == len(rows)
    assert kept >= {
        (which, kind.value, share, order)
        for which, kind, share, order in negotiation_figures.wanted(max(orders))
    }
    first = next(row for row in rows if (row["which"], row["share"]) == ("accounted", 100))
    assert negotiation_figures.made("accounted", JobKind(first["kind"]), 100, first["order"]) == first
    text = negotiation_figures.table([row for row in rows if row["order"] < max(orders)])
    assert text.count("\n") == 1 + len(negotiation_figures.SHARES) + len(negotiation_figures.MOLDABLE)
