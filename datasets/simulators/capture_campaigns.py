"""Attack campaigns of the capture simulator: when they happen, who attacks whom, and how fast.

>>> sorted(c.name for c in campaigns(("syn_flood", "beaconing"), 600.0, 0.0, seed=1, epoch=0))
['beaconing', 'syn_flood']
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from netclust.datasets.simulators.capture_plan import ConnectionPlan
from netclust.datasets.simulators.capture_world import BUILD, FILES, MAIL, Floats

OPEN_PORTS = {MAIL: (25, 80, 110, 143, 443), FILES: (21, 22, 445, 8443), BUILD: (22, 80, 8080)}
"""What the office's servers offer."""


@dataclass(frozen=True, slots=True)
class AttackCampaign:
    """One attack: when it starts, in seconds since the capture does."""

    name: str
    start: float


def campaigns(chosen: tuple[str, ...], seconds: float, per_hour: float, seed: int, epoch: int) -> list[AttackCampaign]:
    """When which attack starts: every type chosen at least once, the others at random, at any hour."""
    if not chosen:
        return []
    rng = np.random.default_rng(np.random.SeedSequence([seed, epoch, zlib.crc32(b"campaigns")]))
    more = max(0, int(rng.poisson(per_hour * seconds / 3600.0)) - len(chosen))
    names = [*chosen, *rng.choice(chosen, more).tolist()]
    # The last part of the capture is left for what has begun.
    starts = rng.uniform(0.02, 0.9, len(names)) * seconds
    return sorted(
        (AttackCampaign(name, float(start)) for name, start in zip(names, starts, strict=True)), key=lambda c: c.start
    )


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Log-uniform: as many campaigns between 1 and 10 as between 10 and 100."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def campaign_pace(plan: ConnectionPlan, start: float, n: int, per_second: float) -> Floats:
    """Return times of `n` events at about this rate: evenly, or in bursts, as tools differ."""
    rng = plan.rng
    shape = float(rng.choice([0.3, 1.0, 12.0]))
    return start + np.cumsum(rng.gamma(shape, 1.0 / (shape * per_second), n))


def campaign_attacker(plan: ConnectionPlan, inside: float) -> int:
    """Draw an infected inside host, with this probability, or some outside host."""
    rng, world = plan.rng, plan.world
    if rng.random() < inside:
        return int(rng.choice(world.people))
    if rng.random() < 0.5:
        return int(world.outside[int(rng.integers(len(world.outside)))])
    return int(world.strangers(world.anywhere(1, rng), rng)[0])


def campaign_server(plan: ConnectionPlan) -> int:
    """Draw one of the office's servers."""
    return int(plan.rng.choice([MAIL, FILES, BUILD]))
