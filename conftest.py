"""What cannot be collected here, and what a run left out."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec

import pytest

# Files that import a library that `make test` does not install; all their tests belong to other tiers.
_NEED = {
    "bytewax": (
        "netclust/stream/sharding/shard_warnings.py",
        "netclust/stream/sharding/dataflow.py",
        "netclust/stream/sharding/partitions.py",
        "netclust/stream/sharding/shard_metrics.py",
        "tests/stream/sharding/test_shard_warnings.py",
    ),
    "scapy": (
        "tests/helpers/streams/composed_packets.py",
        "tests/helpers/streams/scapy_fields.py",
        "tests/stream/packets/test_decode.py",
    ),
    "schemathesis": ("tests/stream/daemon/test_http_openapi.py",),
}
_MISSING = [library for library in _NEED if find_spec(library) is None]

collect_ignore = [path for library in _MISSING for path in _NEED[library]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was left out for want of which tool, counted by reason, and how to get it."""
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    if not reasons and not _MISSING:
        return
    terminalreporter.section("left out", sep="-")
    for reason, count in sorted(reasons.items(), key=lambda found: (-found[1], found[0])):
        terminalreporter.write_line(f"{count:5} {'test' if count == 1 else 'tests'}: {reason}")
    for library in _MISSING:
        terminalreporter.write_line(
            f"      {len(_NEED[library])} of the files of other tiers: {library} is not installed"
        )
