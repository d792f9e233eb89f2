"""`netclust simulate records`."""

from __future__ import annotations

import sys

from netclust.cli.output import note
from netclust.datasets.simulate import HELD_BACK, KNOWN, NOTICE, simulate


def records(output: str, count: int, seed: int, day: int, attacks: str, attack_share: float) -> None:
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
    note(f"{len(stream):,} records, {hostile:,} of them attacks, seed {seed}, day {day}. {NOTICE}")
