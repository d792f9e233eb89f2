"""The online engine's inner loop: link every record of a batch, in order, to its best earlier referent or to the root.

Referents are the pinned reference set and a sliding window of earlier records. The window lies in a buffer of more than
its length: records are appended, and the caller moves the live part to the front before the end is reached.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inner, kernel
from netclust.kernels.score import best_two, score_referents

# A member's side: not (yet) to be linked to, normal, not normal.
WITHHELD, NORMAL_SIDE, OTHER_SIDE = 0, 1, 2

# Verdicts and what they came from.
NORMAL, KNOWN_ATTACK, NOVEL = 0, 1, 2
VIA_REFERENCE, VIA_WINDOW, VIA_ROOT, VIA_DESCENDANT = 0, 1, 2, 3

NOVEL_LABEL = -2  # the predicted label of what hangs on the root

# Referent handles: the root, nothing, reference k as -2-k, a record by its arrival number.
ROOT = -1
NOTHING = np.iinfo(np.int64).min

# Slots of the cursor array.
START, END, PUSHED, REVEALED, MATURED, TRUSTED, NEXT_CLUSTER, HAND, FORGOTTEN, UNSUMMED, MATURED_TOTAL = range(11)
CURSORS = 11


class References(NamedTuple):
    """The pinned reference set."""

    num: NDArray[np.float32]  # [F, M + LANES]
    code: NDArray[np.uint16]  # [S, M + LANES]
    unary: NDArray[np.float32]  # [M + LANES]
    label: NDArray[np.int32]
    side: NDArray[np.uint8]
    cluster: NDArray[np.int64]
    event: NDArray[np.int64]
    origin: NDArray[np.int64]


class Window(NamedTuple):
    """The referent window: a buffer of members, live from START to END."""

    num: NDArray[np.float32]  # [F, capacity + LANES]
    code: NDArray[np.uint16]  # [S, capacity + LANES]
    unary: NDArray[np.float32]  # [capacity + LANES]: what the member's own values add to any score
    label: NDArray[np.int32]  # the label in force: predicted, until a true one counts
    truth: NDArray[np.int32]  # the true label, not to be used before its delay; -1 if none
    side: NDArray[np.uint8]
    trusted: NDArray[np.uint8]  # matured
    event: NDArray[np.int64]  # the feedback event that its label comes from, -1 if none
    origin: NDArray[np.int64]  # the handle of the member that the event was about: itself, or what it linked to
    cluster: NDArray[np.int64]
    slot: NDArray[np.int64]  # where its cluster's summary is, if it still is
    tick: NDArray[np.int64]  # arrival number
    time: NDArray[np.int64]
    source: NDArray[np.uint16]
    seq: NDArray[np.uint64]


class Clusters(NamedTuple):
    """Summaries of clusters: the first slots belong to the reference classes, the others are reused."""

    ident: NDArray[np.int64]  # -1: free
    label: NDArray[np.int32]
    event: NDArray[np.int64]  # the feedback event that the label comes from, -1 if none
    records: NDArray[np.int64]
    anomalous: NDArray[np.int64]
    alarm: NDArray[np.int32]  # the label of the last anomalous record
    alarm_tick: NDArray[np.int64]  # and its arrival number
    first_tick: NDArray[np.int64]
    last_tick: NDArray[np.int64]
    first_time: NDArray[np.int64]
    last_time: NDArray[np.int64]
    top_score: NDArray[np.float32]
    used: NDArray[np.uint8]


class Settings(NamedTuple):
    """What does not change while the engine runs."""

    referent_window: int
    gap: int
    whole: bool  # no window members before a full window lies beyond the gap
    delay: int  # records until a true label of the stream counts; -1: never
    mature_after: int  # nanoseconds; -1: predicted labels count at once
    mature_cap: int
    classes: int  # reference classes
    partitions: int
    partition: int


class Records(NamedTuple):
    """A batch as the kernel sees it."""

    num: NDArray[np.float32]
    code: NDArray[np.uint16]
    root: NDArray[np.float32]
    label: NDArray[np.int32]
    time: NDArray[np.int64]
    source: NDArray[np.uint16]
    seq: NDArray[np.uint64]


class Links(NamedTuple):
    """What is decided about every record."""

    verdict: NDArray[np.uint8]
    via: NDArray[np.uint8]
    label: NDArray[np.int32]
    cluster: NDArray[np.int64]
    score: NDArray[np.float32]
    link: NDArray[np.float32]
    normal: NDArray[np.float32]
    other: NDArray[np.float32]
    parent: NDArray[np.int64]
    normal_at: NDArray[np.int64]
    other_at: NDArray[np.int64]
    normal_label: NDArray[np.int32]
    other_label: NDArray[np.int32]
    parent_source: NDArray[np.uint16]
    parent_seq: NDArray[np.uint64]


@inner
def side_of(label: Any, is_normal: Any) -> Any:
    """The side of a label; what hangs on the root is not normal."""
    return NORMAL_SIDE if label >= 0 and is_normal[label] else OTHER_SIDE


@inner
def reveal(win: Any, cursor: Any, conf: Any, is_normal: Any) -> None:
    """True labels that have waited for their delay come into force (visible to record j if j - i > delay)."""
    cursor[REVEALED] = max(cursor[REVEALED], cursor[PUSHED] - (cursor[END] - cursor[START]))
    while cursor[REVEALED] < cursor[PUSHED] - conf.delay:
        at = cursor[END] - (cursor[PUSHED] - cursor[REVEALED])
        cursor[REVEALED] += 1
        if win.truth[at] < 0:
            continue
        win.label[at] = win.truth[at]
        win.side[at] = side_of(win.truth[at], is_normal)
        win.event[at] = -1
        if win.trusted[at]:
            win.trusted[at] = 0
            cursor[TRUSTED] -= 1


@inner
def mature(win: Any, clusters: Any, cursor: Any, conf: Any, is_normal: Any, now: Any) -> None:
    """Members that drew no alarm for a stretch of traffic time become trusted normal, up to a share of the window.

    In order of arrival: one that is too young holds up those behind it; one without a time is passed over.
    """
    cursor[MATURED] = max(cursor[MATURED], cursor[PUSHED] - (cursor[END] - cursor[START]))
    while cursor[MATURED] < cursor[PUSHED]:
        at = cursor[END] - (cursor[PUSHED] - cursor[MATURED])
        if win.side[at] == WITHHELD and win.time[at] >= 0:
            slot = win.slot[at]
            known = clusters.ident[slot] == win.cluster[at]
            if known and side_of(clusters.label[slot], is_normal) == NORMAL_SIDE:
                if now - win.time[at] < conf.mature_after or cursor[TRUSTED] >= conf.mature_cap:
                    break
                win.side[at] = NORMAL_SIDE
                win.trusted[at] = 1
                cursor[TRUSTED] += 1
                cursor[MATURED_TOTAL] += 1
        cursor[MATURED] += 1


@inner
def open_cluster(clusters: Any, cursor: Any, conf: Any) -> Any:
    """(id, slot) of a new cluster. A slot is taken from one that nothing joined since the hand last passed."""
    ident = conf.classes + cursor[NEXT_CLUSTER] * conf.partitions + conf.partition
    cursor[NEXT_CLUSTER] += 1
    slots = len(clusters.ident)
    hand = cursor[HAND]
    while clusters.used[hand]:
        clusters.used[hand] = 0
        hand = hand + 1 if hand + 1 < slots else conf.classes
    cursor[HAND] = hand + 1 if hand + 1 < slots else conf.classes
    if clusters.ident[hand] >= 0:
        cursor[FORGOTTEN] += 1
    clusters.ident[hand] = ident
    clusters.label[hand] = NOVEL_LABEL
    clusters.event[hand] = -1
    clusters.records[hand] = 0
    clusters.anomalous[hand] = 0
    clusters.alarm[hand] = NOVEL_LABEL
    clusters.alarm_tick[hand] = -1
    clusters.top_score[hand] = -np.inf
    return ident, hand


@inner
def summarise(
    clusters: Any, cursor: Any, ident: Any, slot: Any, tick: Any, time: Any, score: Any, label: Any, bad: bool
) -> None:
    """Count a record in its cluster's summary, unless the summary was given up."""
    if clusters.ident[slot] != ident:
        cursor[UNSUMMED] += 1
        return
    if clusters.records[slot] == 0:
        clusters.first_tick[slot] = tick
        clusters.first_time[slot] = time
    else:
        clusters.used[slot] = 1
    clusters.records[slot] += 1
    if bad:
        clusters.anomalous[slot] += 1
        clusters.alarm[slot] = label
        clusters.alarm_tick[slot] = tick
    clusters.last_tick[slot] = tick
    clusters.last_time[slot] = time
    clusters.top_score[slot] = max(clusters.top_score[slot], score)


@inner
def best_members(
    x: Any, codes: Any, start: Any, matches: Any, scorer: Any, members: Any, lo: Any, hi: Any, acc: Any
) -> Any:
    """The best normal and the best non-normal of the members lo..hi for one record: (score, position) of each."""
    score_referents(
        x, codes, start, matches, scorer.slope, scorer.far, members.num, members.code, members.unary, lo, hi, acc
    )
    return best_two(acc, members.side, lo, hi - lo)


@inner
def own_parts(codes: Any, scorer: Any, matches: Any) -> Any:
    """(start, unary) of a record's values, and what it adds that a referent has the same ones, into `matches`."""
    start = scorer.base
    unary = scorer.base - scorer.base  # a float32 zero
    for s in range(len(matches)):
        value = scorer.offset[s] + codes[s]
        start += scorer.own[value]
        unary += scorer.other[value]
        matches[s] = scorer.match[value]
    return start, unary


@inner
def best_sides(
    x: Any,
    codes: Any,
    start: Any,
    matches: Any,
    scorer: Any,
    refs: Any,
    win: Any,
    cursor: Any,
    conf: Any,
    acc: Any,
) -> Any:
    """The best normal and the best other referent, (score, position) of each: references first, then the window."""
    M = len(refs.label)
    none: Any = np.int64(0)
    normal, normal_at, other, other_at = best_members(x, codes, start, matches, scorer, refs, none, M, acc)
    hi = cursor[END] - conf.gap
    lo = max(hi - conf.referent_window, cursor[START])
    if hi > lo and (not conf.whole or cursor[PUSHED] >= conf.referent_window + conf.gap):
        n_best, n_at, o_best, o_at = best_members(x, codes, start, matches, scorer, win, lo, hi, acc)
        if n_best > normal:  # references are older and win ties
            normal, normal_at = n_best, M + n_at
        if o_best > other:
            other, other_at = o_best, M + o_at
    return normal, normal_at, other, other_at


@inner
def best_arc(normal: Any, normal_at: Any, other: Any, other_at: Any, root: Any) -> Any:
    """(score, position) of the winner, -1 for the root: root first, then oldest to newest."""
    best, at = other, other_at
    if normal > other or (normal == other and normal_at >= 0 and (other_at < 0 or normal_at < other_at)):
        best, at = normal, normal_at
    if at < 0 or root >= best:
        best, at = root, np.int64(-1)
    return best, at


@inner
def named(at: Any, refs: Any, win: Any) -> Any:
    """(handle, label in force) of the referent at a position."""
    M = len(refs.label)
    if at < 0:
        return np.int64(NOTHING), np.int32(-1)
    if at < M:
        return np.int64(-2 - at), refs.label[at]
    return win.tick[at - M], win.label[at - M]


@inner
def tell(
    i: Any,
    best: Any,
    at: Any,
    cluster: Any,
    normal: Any,
    normal_at: Any,
    other: Any,
    other_at: Any,
    root: Any,
    refs: Any,
    win: Any,
    is_normal: Any,
    out: Any,
) -> Any:
    """Write what was decided about record i; (label, its side, verdict, score)."""
    M = len(refs.label)
    label: Any = np.int64(NOVEL_LABEL)
    via = VIA_ROOT
    out.parent[i] = ROOT
    if at >= 0:
        out.parent[i], own = named(at, refs, win)
        label = np.int64(own)
        via = VIA_REFERENCE
    if at >= M:
        via = VIA_DESCENDANT if label == NOVEL_LABEL else VIA_WINDOW
        out.parent_source[i] = win.source[at - M]
        out.parent_seq[i] = win.seq[at - M]
    own_side = side_of(label, is_normal)
    verdict = NORMAL
    if own_side != NORMAL_SIDE:
        verdict = NOVEL if label == NOVEL_LABEL else KNOWN_ATTACK
    score = np.float32(np.inf)
    if normal_at >= 0:
        score = max(other, root) - normal
    out.verdict[i] = verdict
    out.via[i] = via
    out.label[i] = label
    out.cluster[i] = cluster
    out.score[i] = score
    out.link[i] = best
    out.normal[i] = normal
    out.other[i] = other
    out.normal_at[i], out.normal_label[i] = named(normal_at, refs, win)
    out.other_at[i], out.other_label[i] = named(other_at, refs, win)
    return label, own_side, verdict, score


@kernel
def link_records(
    index: Any,
    first_tick: Any,
    records: Any,
    scorer: Any,
    refs: Any,
    win: Any,
    clusters: Any,
    cursor: Any,
    conf: Any,
    is_normal: Any,
    acc: Any,
    matches: Any,
    out: Any,
) -> None:
    """Link the records `index` of a batch, in order, and append them to the window; a record sees the earlier ones.

    The window's buffer must have room for them.
    """
    M = len(refs.label)
    kept = conf.referent_window + conf.gap
    for i in index:
        tick = first_tick + i
        x = records.num[i]
        time = records.time[i]
        if conf.delay >= 0:
            reveal(win, cursor, conf, is_normal)
        if conf.mature_after >= 0 and time >= 0:
            mature(win, clusters, cursor, conf, is_normal, time)
        codes = records.code[i]
        start, unary = own_parts(codes, scorer, matches)
        normal, normal_at, other, other_at = best_sides(x, codes, start, matches, scorer, refs, win, cursor, conf, acc)
        root = records.root[i]
        best, at = best_arc(normal, normal_at, other, other_at, root)
        event, origin = np.int64(-1), np.int64(ROOT)
        if at < 0:
            cluster, slot = open_cluster(clusters, cursor, conf)
        elif at < M:
            cluster = slot = refs.cluster[at]
            event, origin = refs.event[at], refs.origin[at]
        else:
            cluster, slot = win.cluster[at - M], win.slot[at - M]
            event, origin = win.event[at - M], win.origin[at - M]
        label, own_side, verdict, score = tell(
            i, best, at, cluster, normal, normal_at, other, other_at, root, refs, win, is_normal, out
        )
        summarise(clusters, cursor, cluster, slot, tick, time, score, label, verdict != NORMAL)

        if kept == 0:
            cursor[PUSHED] += 1
            continue
        end = cursor[END]
        for f in range(len(win.num)):
            win.num[f, end] = x[f]
        for s in range(len(win.code)):
            win.code[s, end] = codes[s]
        win.unary[end] = unary
        win.label[end] = label
        win.truth[end] = records.label[i]
        win.side[end] = WITHHELD if conf.mature_after >= 0 and own_side == NORMAL_SIDE else own_side
        win.trusted[end] = 0
        win.event[end] = event
        win.origin[end] = origin
        win.cluster[end] = cluster
        win.slot[end] = slot
        win.tick[end] = tick
        win.time[end] = time
        win.source[end] = records.source[i]
        win.seq[end] = records.seq[i]
        cursor[END] = end + 1
        cursor[PUSHED] += 1
        if cursor[END] - cursor[START] > kept:
            if win.trusted[cursor[START]]:
                cursor[TRUSTED] -= 1
            cursor[START] += 1


@kernel
def judge_records(
    records: Any,
    scorer: Any,
    refs: Any,
    win: Any,
    cursor: Any,
    conf: Any,
    is_normal: Any,
    acc: Any,
    matches: Any,
    out: Any,
) -> None:
    """What each record of a batch would be linked to now, by itself: nothing is remembered, no cluster is opened."""
    M = len(refs.label)
    for i in range(len(records.num)):
        x, codes, root = records.num[i], records.code[i], records.root[i]
        start, _ = own_parts(codes, scorer, matches)
        normal, normal_at, other, other_at = best_sides(x, codes, start, matches, scorer, refs, win, cursor, conf, acc)
        best, at = best_arc(normal, normal_at, other, other_at, root)
        cluster = np.int64(-1)
        if at >= 0:
            cluster = refs.cluster[at] if at < M else win.cluster[at - M]
        tell(i, best, at, cluster, normal, normal_at, other, other_at, root, refs, win, is_normal, out)
