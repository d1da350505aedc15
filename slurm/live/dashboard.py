"""A Grafana dashboard of the figures of the loops beside Slurm, as Grafana imports it."""

from __future__ import annotations

from typing import Any

import msgspec

#: Title, unit of Grafana's, and for each line its query and legend.
_PANELS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Passes a minute",
        "short",
        (
            ("60 * rate(aucsched_passes_total[5m])", "{{loop}}"),
            ("60 * rate(aucsched_failures_total[5m])", "{{loop}} failed"),
        ),
    ),
    (
        "Seconds since the last pass",
        "s",
        (("time() - aucsched_pass_timestamp_seconds", "{{loop}}"),),
    ),
    ("Seconds of the last pass by phase", "s", (("aucsched_last_phase_seconds", "{{loop}} {{phase}}"),)),
    ("Gap of the award", "percentunit", (("aucsched_gap_ratio", "{{loop}}"),)),
    (
        "Jobs",
        "short",
        (("aucsched_jobs", "{{loop}} {{state}}"), ("aucsched_awards", "{{loop}} would start")),
    ),
    ("Cores", "short", (("aucsched_cores", "{{loop}} {{state}}"),)),
    (
        "Starts and jobs put back, a minute",
        "short",
        (
            ("60 * rate(aucsched_starts_total[5m])", "started by {{by}}"),
            ("60 * rate(aucsched_put_back_total[5m])", "put back"),
            ("60 * rate(aucsched_changes_total[5m])", "changes"),
        ),
    ),
    (
        "The gate",
        "s",
        (("aucsched_gate_age_seconds", "age"), ("aucsched_gate_left_seconds", "ends in")),
    ),
    ("Rules of the site that are not looked at", "short", (("aucsched_unread_rules", "{{loop}}"),)),
)
_WIDTH, _HEIGHT = 12, 8


def dashboard() -> str:
    """Return the dashboard's JSON; Grafana asks for the Prometheus data source when it is imported."""
    source = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
    asked = {"name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource", "pluginId": "prometheus"}
    document = {
        "__inputs": [{**asked, "description": "", "pluginName": "Prometheus"}],
        "title": "aucsched beside Slurm",
        "uid": "aucsched-slurm",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "tags": ["slurm"],
        "panels": [_panel(number, *one, source) for number, one in enumerate(_PANELS)],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _panel(
    number: int, title: str, unit: str, lines: tuple[tuple[str, str], ...], source: dict[str, str]
) -> dict[str, Any]:
    row, column = divmod(number, 2)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": source,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": source, "expr": query, "legendFormat": legend}
            for place, (query, legend) in enumerate(lines)
        ],
    }
