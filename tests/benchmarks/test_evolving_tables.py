"""The evolving benchmark's tables: what they print follows from the rows."""

from __future__ import annotations

from pathlib import Path

from evolving import AUCTIONS, CONFIGS, Row, Rows, played, report, table_of


def test_rows_are_kept_and_tables_are_means(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = Rows(path)
    static, served = CONFIGS[:2]
    rows.make([static, served], range(2))
    again = Rows(path)
    assert again.of(served, range(2)) == rows.of(served, range(2))
    assert again.of(served, range(2))[1] == played(served, 1)
    before = path.read_bytes()
    again.make([static, served], range(2))
    assert path.read_bytes() == before
    text = table_of(again, [static, served], range(2))
    assert text.count("| 2 |") == 2
    gain = [
        100 * (1 - again.of(served, range(2))[n].minutes / again.of(static, range(2))[n].minutes)
        for n in range(2)
    ]
    assert f"{sum(gain) / 2:.2f} ±" in text


def test_the_auction_is_compared_order_by_order(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "none")
    for config, minutes in ((CONFIGS[0], 240.0), (CONFIGS[1], 220.0), (AUCTIONS[0], 219.0)):
        rows.known[config.table, config.name] = {
            seed: Row(minutes + seed, 30.0, 80.0, 60.0) for seed in range(3)
        }
    assert "over 3: -1.00 ± 0.00 min, 0.00 ± 0.00 satisfied" in report(rows, range(3))
