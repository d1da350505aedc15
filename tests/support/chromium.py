"""Pages opened in headless Chromium, where Debian's is installed."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def opened(page: Path, script: str = "null") -> dict[str, Any]:
    """Open a page, run an expression in it, and return what it said.

    Returns:
        ``ready_ms`` until everything was drawn (None where it was not), ``error`` or None, ``value`` of the
        expression, ``requests``: what the page asked of anybody.
    """
    assert CHROMIUM is not None
    probe = page.with_name(f"probe-{page.name}")
    asked = "performance.getEntriesByType('resource').map((one) => one.name)"
    ending = (
        "<script>document.documentElement.dataset.value = "
        f"JSON.stringify({{value: {script}, requests: {asked}}});</script>"
    )
    probe.write_text(page.read_text().replace("</body>", f"{ending}</body>"))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"file://{probe}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    root = re.search(r"<html[^>]*>", done.stdout)
    assert root is not None, done.stderr[-2000:]
    found = {name: html.unescape(value) for name, value in re.findall(r'data-(\w+)="([^"]*)"', root[0])}
    said = json.loads(found.get("value", "{}"))
    return {
        "ready_ms": int(found["ready"]) if "ready" in found else None,
        "error": found.get("error"),
        "value": said.get("value"),
        "requests": said.get("requests"),
    }
