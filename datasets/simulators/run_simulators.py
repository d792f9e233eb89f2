"""`netclust simulate records` and `netclust simulate capture`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, NOTICE, simulate
from netclust.options.output import check_outputs, output_note


def run_capture_simulator(output: str, labels: str | None, **options: Any) -> None:
    """Simulate packets, write them and their labels, and tell what was made."""
    from netclust.datasets.simulators.capture_simulator import expected_capture_bytes, simulate_capture

    check_outputs(Path(output), None if labels is None else Path(labels))
    size = expected_capture_bytes(options["hours"], options["hosts"], options["scale"], options["snaplen"])
    packed = ", before packing" if output.endswith((".gz", ".xz")) else ""
    output_note(f"{output}: {options['hours']:g} h of {options['hosts']} hosts, about {_megabytes(size)}{packed}")
    made = simulate_capture(output, labels, **options)
    hostile = made.connections - made.labels.get("normal", 0)
    output_note(
        f"{made.packets:,} packets, {made.bytes:,} bytes, {made.connections:,} connections in {made.seconds:.1f} s"
    )
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(made.kinds.items(), key=lambda item: -item[1]))
    output_note(f"benign: {kinds or 'none'}")
    attacks = ", ".join(f"{name} {count:,}" for name, count in made.labels.items() if name != "normal")
    output_note(f"attacks: {hostile:,} connections ({attacks or 'none'})")
    output_note(NOTICE)


def _megabytes(size: int) -> str:
    """Round a size for people.

    >>> _megabytes(14_000_000), _megabytes(300), _megabytes(1_344_000_000)
    ('14 MB', '1 MB', '1.3 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(round(size / 1e6), 1)} MB"


def run_record_simulator(output: str, count: int, seed: int, day: int, attacks: str, attack_share: float) -> None:
    """Simulate and write, or print."""
    groups = {"known": KNOWN, "all": (*KNOWN, *HELD_BACK), "none": ()}
    chosen = groups.get(attacks) if attacks in groups else tuple(a.strip() for a in attacks.split(",") if a.strip())
    stream = simulate(count, seed=seed, day=day, attacks=chosen or (), attack_share=attack_share)
    if output == "-":
        for line in stream.lines():
            sys.stdout.write(line + "\n")
    else:
        stream.write(output)
    hostile = int((stream.label != "normal").sum())
    output_note(f"{len(stream):,} records, {hostile:,} of them attacks, seed {seed}, day {day}. {NOTICE}")
