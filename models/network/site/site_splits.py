"""Questions that are asked of a detector: what it learns from, what it is judged on, and what is true.

| split | learned from | judged on |
|---|---|---|
| T | benign records of another host | all judged records of this host |
| L | benign records of all other hosts (three hosts or more) | all judged records of this host |
| S | benign records of the first half of a host's log | the judged records of the rest |
| I, other host | benign records of another host | benign records, and malware begun inside |
| I, own half | benign records of the first half | the rest, and malware begun inside |

Malware comes from captures: its connections are moved to the host and the clock of a log, and their attributes that
count neighbours are counted among the host's other traffic. The benign records keep the attributes that they have in
the log: an ordinary connection that looks odd because malware runs beside it is no false alarm. Malware is never judged
together with attacks from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.network.site.site_records import (
    LEFT_OUT_LABELS,
    NORMAL_LABELS,
    Site,
    answered,
    busiest_host,
    join_tables,
    load_connections,
    merge_connections,
    move_connections,
)
from netclust.records.table import Table
from netclust.stream.packets.capture_labels import LabelRules
from netclust.stream.sources.conn_records import Conn, LogConnections

__all__ = ["Malware", "Question", "host_questions", "infected", "load_malware", "poisoned_questions", "time_questions"]

_MOVED = "moved-"
MOST = 300
"""Connections of one malware capture that are judged, evenly taken; all of them are in the traffic."""


@dataclass(frozen=True, eq=False)
class Malware:
    """Connections that an infected host began; `kind` is their label."""

    name: str
    kind: str
    inside: str
    conns: list[Conn]


@dataclass(frozen=True, eq=False)
class Question:
    """One split: records to learn from, records to judge, and the truth about these."""

    split: str
    name: str
    train: Table
    test: Table
    truth: NDArray[np.bool_]
    kind: NDArray[np.object_]
    inside: frozenset[str]
    """Addresses of the site, for the rule `begun outside`."""
    share: float = 0.0
    """Share of attacks among the records to learn from."""

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which of the judged connections were answered."""
        return answered(self.test)


def load_malware(path: str | Path, rules: LabelRules | None, label_column: str = "label") -> list[Malware]:
    """Return the attacks of a capture or log that a host inside began, one for each label and host.

    The host inside is the source of a row of the label file. Without labels, it is the busiest host, and every
    connection that it began is an attack.
    """
    conns = load_connections(path, label_column, rules)
    own = None if rules is None else rules.for_file(path)
    hosts: dict[str, list[str]] = {}
    for rule in own.rules if own is not None else ():
        if rule.source is not None and rule.source.num_addresses == 1:
            hosts.setdefault(own.names[rule.label], []).append(str(rule.source.network_address))  # type: ignore[union-attr]
    if not hosts:
        host = busiest_host(conns)
        hosts = {conn.label or Path(path).stem: [host] for conn in conns}
    found = []
    for kind, addresses in hosts.items():
        if kind.lower() in NORMAL_LABELS | LEFT_OUT_LABELS:
            continue
        for inside in sorted(set(addresses)):
            of_kind = [c for c in conns if c.source == inside and (c.label or Path(path).stem) == kind]
            if of_kind:
                found.append(Malware(Path(path).name, kind, inside, of_kind))
    return found


def infected(site: Site, malware: Sequence[Malware], begin: int, end: int, most: int | None = MOST) -> Site:
    """Return the site with malware at its host between two times; outside attacks stay, and are not judged.

    Each piece of malware is counted among the site's traffic alone, as if it were the only one: all of them at once
    would make each easier to find.
    """
    moved = [
        [
            conn._replace(uid=f"{_MOVED}{i}")
            for conn in move_connections(each.conns, each.inside, site.host, begin, end - begin, each.kind)
        ]
        for i, each in enumerate(malware)
    ]
    merged = merge_connections(site.conns, [conn for part in moved for conn in part])
    piece = np.array([int(c.uid[len(_MOVED) :]) if c.uid.startswith(_MOVED) else -1 for c in merged], np.int64)
    tables, place = [site.table], np.zeros(len(merged), np.int64)
    place[piece < 0] = np.arange(len(site))
    for i, part in enumerate(moved):
        alone = merge_connections(site.conns, part)
        own = np.array([conn.uid == f"{_MOVED}{i}" for conn in alone], np.bool_)
        table = LogConnections(site.table.schema.name).table(alone)[own]
        place[piece == i] = sum(map(len, tables)) + np.arange(len(table))
        tables.append(table)
    own = piece < 0
    kind = np.full(len(merged), "", object)
    judged, inside = np.zeros(len(merged), np.bool_), np.ones(len(merged), np.bool_)
    kind[own], inside[own], judged[own] = site.kind, site.begun_inside, site.benign
    for i, each in enumerate(malware):
        rows = np.flatnonzero(piece == i)
        kind[rows] = each.kind
        judged[rows if most is None else _evenly(rows, most)] = True
    return Site(site.name, site.host, merged, join_tables(tables)[place], kind, judged, inside)


def _evenly(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def host_questions(sites: Sequence[Site], malware: Sequence[Malware]) -> Iterator[Question]:
    """T for each pair of hosts, L for each host where there are three or more, and I at another host."""
    if len(sites) < 2:
        raise InputError("split host needs the logs of two hosts or more: give another --benign file")
    for learned in sites:
        train = learned.table[learned.benign]
        for site in sites:
            if site is not learned:
                name = f"{learned.name} -> {site.name}"
                yield _question("T", name, train, site, site.judged, {learned.host})
                if malware:
                    ill = infected(site, malware, *_span(site))
                    yield _question("I, other host", name, train, ill, ill.judged, {learned.host})
    if len(sites) > 2:
        for site in sites:
            others = [other for other in sites if other is not site]
            train = join_tables([other.table[other.benign] for other in others])
            yield _question("L", f"all others -> {site.name}", train, site, site.judged, {o.host for o in others})


def time_questions(sites: Sequence[Site], malware: Sequence[Malware]) -> Iterator[Question]:
    """S for each host, and I after a benign half of the host's own log."""
    for site in sites:
        half = len(site) // 2
        early = np.arange(len(site)) < half
        train = site.table[site.benign & early]
        yield _question("S", site.name, train, site, site.judged & ~early, set())
        if malware:
            ill = infected(site, malware, *_span(site))
            yield _question("I, own half", site.name, train, ill, ill.judged & _behind(ill, half), set())


def poisoned_questions(
    site: Site, malware: Sequence[Malware], shares: Sequence[float], seed: int = 0
) -> Iterator[Question]:
    """Questions S and I (own half) with a share of attacks among the records of the warm-up.

    Poison from outside are attacks of the first half. Poison from inside is the malware that is looked for later,
    which is the worst case. Where there are too few attacks, all of them are taken; `share` is what came of it.
    """
    half = len(site) // 2
    early = np.arange(len(site)) < half
    benign = site.benign & early
    rng = np.random.default_rng(seed)
    for share in shares:
        count = round(share / (1 - share) * int(benign.sum()))
        attacks = np.flatnonzero(site.attack & early)
        chosen = benign.copy()
        chosen[rng.choice(attacks, min(count, len(attacks)), replace=False)] = True
        got = float((chosen & site.attack).sum() / chosen.sum())
        yield _question(
            "poison from outside", site.name, site.table[chosen], site, site.judged & ~early, set(), round(got, 4)
        )
    conns = [(each, conn) for each in malware for conn in each.conns]
    first, middle = int(site.start.min()), _span(site)[0]
    for share in shares if malware else ():
        count = min(round(share / (1 - share) * int(benign.sum())), len(conns))
        picked = sorted(rng.choice(len(conns), count, replace=False).tolist())
        poison = [
            Malware(each.name, "poison", each.inside, [conns[i][1] for i in picked if conns[i][0] is each])
            for each in malware
        ]
        early_ill = infected(site, poison, first, middle, None)
        learned = early_ill.judged & (np.cumsum(early_ill.kind != "poison") <= half)
        ill = infected(site, malware, *_span(site))
        train = early_ill.table[learned]
        got = float((early_ill.kind[learned] == "poison").mean())
        rows = ill.judged & _behind(ill, half)
        yield _question("poison from inside", site.name, train, ill, rows, set(), round(got, 4))


def _question(
    split: str, name: str, train: Table, site: Site, rows: NDArray[np.bool_], others: set[str], share: float = 0.0
) -> Question:
    sources = site.table.context["source"]
    own = {str(address) for address in sources[site.begun_inside].tolist()}
    kind = site.kind[rows]
    return Question(
        split, name, train, site.table[rows], kind != "", kind, frozenset(own | others | {site.host}), share
    )


def _span(site: Site) -> tuple[int, int]:
    """The time from the middle record of a log to its last one."""
    latest = np.maximum.accumulate(site.start)
    return int(latest[len(latest) // 2]), int(latest[-1])


def _behind(site: Site, half: int) -> NDArray[np.bool_]:
    """Records after the first half of the log's own ones, and all malware."""
    moved = np.array([conn.uid.startswith(_MOVED) for conn in site.conns], np.bool_)
    return np.asarray(moved | (np.cumsum(~moved) > half))
