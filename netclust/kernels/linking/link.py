"""The online engine's inner loop: link every record of a batch, in order, to its best earlier referent or to the root.

Referents are the pinned reference set, a sliding window of earlier records, and representatives of those that left it.
The window lies in a buffer of more than its length: records are appended, and the caller moves the live part to the
front before the end is reached.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inlined, inner, kernel
from netclust.kernels.linking.boxes import (
    BOUNDED,
    LOST,
    MEMBERS,
    NEXT,
    RECENT,
    RECENT_FULL,
    SCANS,
    SCORED,
    SEARCHED,
    BoundedRecord,
    Steps,
    prepare_box_query,
)
from netclust.kernels.linking.grouping import fill_row, insert_into_group, remove_from_group
from netclust.kernels.linking.representatives import MEDOID, best_kept, first_weight, retain_representative
from netclust.kernels.linking.score import best_two, score_referents
from netclust.kernels.linking.search import search

# A member's side: not (yet) to be linked to, normal, not normal.
WITHHELD, NORMAL_SIDE, OTHER_SIDE = 0, 1, 2

# Verdicts and what they came from.
NORMAL, KNOWN_ATTACK, NOVEL = 0, 1, 2
VIA_REFERENCE, VIA_WINDOW, VIA_ROOT, VIA_DESCENDANT = 0, 1, 2, 3

NOVEL_LABEL = -2  # the predicted label of what hangs on the root

# Referent handles: the root, nothing, reference k as -2-k, a record by its arrival number.
ROOT = -1
NOTHING = np.iinfo(np.int64).min

# How the best referent is looked for: by scoring all, by bounds, or by bounds as long as that costs less.
FULL, PRUNED, CHEAPEST = 0, 1, 2
LOOK = 256  # searches between two looks at what they cost
REST = 8192  # records that are scanned in full before bounds are tried again

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


class SearchScratch(NamedTuple):
    """Scratch space of a search by bounds: how values are cut into steps, and room for one record."""

    steps: Steps
    query: BoundedRecord
    matches: NDArray[np.float32]


class LinkSettings(NamedTuple):
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
    keep: bool  # False: judge only, as if nothing had come
    search: int  # FULL, PRUNED or CHEAPEST, among the window's members
    search_references: int
    policy: int  # RESERVOIR, MEDOID or DIFFICULTY: who stays among the representatives


class Records(NamedTuple):
    """A batch as the kernel sees it."""

    num: NDArray[np.float32]
    code: NDArray[np.uint16]
    root: NDArray[np.float32]
    label: NDArray[np.int32]
    time: NDArray[np.int64]
    source: NDArray[np.uint16]
    seq: NDArray[np.uint64]


@borrowing(inner)
def _side_of(label: Any, is_normal: Any) -> Any:
    """Return the side of a label; what hangs on the root is not normal."""
    return NORMAL_SIDE if label >= 0 and is_normal[label] else OTHER_SIDE


@borrowing(inner)
def _regroup(window_index: Any, win: Any, cursor: Any, number: Any, scratch: Any, scorer: Any) -> None:
    """Move a member of the window in the index to the side that it is on now."""
    slot = number % len(window_index.where)
    at = cursor[END] - (cursor[PUSHED] - number)
    side = win.side[at]
    if number >= window_index.tally[NEXT] or side == window_index.held[slot] or window_index.tally[LOST] > 0:
        return
    if window_index.held[slot]:
        remove_from_group(window_index, number)
    if side != WITHHELD:
        fill_row(window_index, slot, win, at)
        insert_into_group(window_index, side - 1, number, scorer, scratch.steps, scratch.query, scratch.matches)


@borrowing(inlined)
def _make_eligible(window_index: Any, win: Any, cursor: Any, conf: Any, scratch: Any, scorer: Any) -> None:
    """Insert the members that the gap no longer keeps from being linked to."""
    window_index.tally[NEXT] = max(window_index.tally[NEXT], cursor[PUSHED] - (cursor[END] - cursor[START]))
    while window_index.tally[NEXT] < cursor[PUSHED] - conf.gap:
        window_index.tally[NEXT] += 1
        _regroup(window_index, win, cursor, window_index.tally[NEXT] - 1, scratch, scorer)


@borrowing(kernel)
def link_window_by_side(window_index: Any, win: Any, cursor: Any, scratch: Any, scorer: Any) -> None:
    """Move all members of a window to the side that they are on now: labels have changed from outside."""
    for number in range(cursor[PUSHED] - (cursor[END] - cursor[START]), window_index.tally[NEXT]):
        _regroup(window_index, win, cursor, number, scratch, scorer)


@borrowing(kernel)
def link_references_by_side(reference_index: Any, refs: Any, scratch: Any, scorer: Any) -> None:
    """Move all references to the side that they are on now."""
    for number in range(len(refs.label)):
        if refs.side[number] == reference_index.held[number]:
            continue
        if reference_index.held[number]:
            remove_from_group(reference_index, number)
        if refs.side[number] == WITHHELD or reference_index.tally[LOST] > 0:
            continue
        fill_row(reference_index, number, refs, number)
        insert_into_group(
            reference_index,
            refs.side[number] - 1,
            np.int64(number),
            scorer,
            scratch.steps,
            scratch.query,
            scratch.matches,
        )


@borrowing(inlined)
def _by_bounds(index: Any, how: Any, keep: Any) -> Any:
    """Return whether to search by bounds: the index holds all members, and lately that cost less than scoring them
    all."""
    if how == FULL or index.tally[LOST] > 0:
        return False
    if how == PRUNED or not keep:
        return True
    if index.tally[SCANS] > 0:
        index.tally[SCANS] -= 1
        return False
    tally = index.tally
    if tally[SEARCHED] % LOOK == 0:
        # In referents that a scan would score in the time: a search, a bound, and a member scored by itself.
        cost = 1500 * tally[SEARCHED] + 8 * tally[BOUNDED] + 37 * tally[SCORED]
        if cost - tally[RECENT] > tally[RECENT_FULL]:
            tally[SCANS] = REST
        tally[RECENT], tally[RECENT_FULL] = cost, 0
    tally[SEARCHED] += 1
    tally[RECENT_FULL] += tally[MEMBERS]
    return True


@borrowing(inner)
def _reveal(win: Any, cursor: Any, conf: Any, is_normal: Any, window_index: Any, scratch: Any, scorer: Any) -> None:
    """Bring true labels into force after their delay (visible to record j if j - i > delay)."""
    cursor[REVEALED] = max(cursor[REVEALED], cursor[PUSHED] - (cursor[END] - cursor[START]))
    while cursor[REVEALED] < cursor[PUSHED] - conf.delay:
        at = cursor[END] - (cursor[PUSHED] - cursor[REVEALED])
        cursor[REVEALED] += 1
        if win.truth[at] < 0:
            continue
        win.label[at] = win.truth[at]
        win.side[at] = _side_of(win.truth[at], is_normal)
        win.event[at] = -1
        if win.trusted[at]:
            win.trusted[at] = 0
            cursor[TRUSTED] -= 1
        if scratch is not None:
            if conf.search != FULL:
                _regroup(window_index, win, cursor, cursor[REVEALED] - 1, scratch, scorer)


@borrowing(inner)
def _mature(
    win: Any,
    clusters: Any,
    cursor: Any,
    conf: Any,
    is_normal: Any,
    now: Any,
    window_index: Any,
    scratch: Any,
    scorer: Any,
) -> None:
    """Trust members as normal after a stretch of traffic time without an alarm, up to a share of the window.

    In order of arrival: one that is too young holds up those behind it; one without a time is passed over.
    """
    cursor[MATURED] = max(cursor[MATURED], cursor[PUSHED] - (cursor[END] - cursor[START]))
    while cursor[MATURED] < cursor[PUSHED]:
        at = cursor[END] - (cursor[PUSHED] - cursor[MATURED])
        if win.side[at] == WITHHELD and win.time[at] >= 0:
            slot = win.slot[at]
            known = clusters.ident[slot] == win.cluster[at]
            if known and _side_of(clusters.label[slot], is_normal) == NORMAL_SIDE:
                if now - win.time[at] < conf.mature_after or cursor[TRUSTED] >= conf.mature_cap:
                    break
                win.side[at] = NORMAL_SIDE
                win.trusted[at] = 1
                cursor[TRUSTED] += 1
                cursor[MATURED_TOTAL] += 1
                if scratch is not None:
                    if conf.search != FULL:
                        _regroup(window_index, win, cursor, cursor[MATURED], scratch, scorer)
        cursor[MATURED] += 1


@borrowing(inner)
def _open_cluster(clusters: Any, cursor: Any, conf: Any) -> Any:
    """Return (id, slot) of a new cluster. A slot is taken from one that nothing joined since the hand last passed."""
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


@borrowing(inner)
def _summarise(
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


@borrowing(inner)
def _best_members(
    x: Any,
    codes: Any,
    start: Any,
    matches: Any,
    scorer: Any,
    num: Any,
    code: Any,
    unary: Any,
    side: Any,
    lo: Any,
    hi: Any,
    acc: Any,
) -> Any:
    """Return the best normal and the best non-normal of the members lo..hi for one record: (score, position) of
    each."""
    score_referents(x, codes, start, matches, scorer.slope, scorer.far, num, code, unary, lo, hi, acc)
    return best_two(acc, side, lo, hi - lo)


@borrowing(kernel)
def link_records(
    index: Any,
    first_tick: Any,
    records: Any,
    scorer: Any,
    refs: Any,
    reference_index: Any,
    win: Any,
    window_index: Any,
    scratch: Any,
    store: Any,
    clusters: Any,
    cursor: Any,
    conf: Any,
    is_normal: Any,
    acc: Any,
    matches: Any,
    out: Any,
) -> None:
    """Link the records `index` of a batch, in order, and append them to the window; a record sees the earlier ones.

    The window's buffer must have room for them. Without `conf.keep` each is judged by itself, and no state changes.
    """
    M = len(refs.label)
    R = len(store.member.label)
    W = M + R  # from where on positions are those of the window
    kept = conf.referent_window + conf.gap
    none: Any = np.int64(0)
    nowhere: Any = np.int64(-1)
    never = np.float32(-np.inf)
    for i in index:
        tick = first_tick + i
        x = records.num[i]
        time = records.time[i]
        if conf.keep and conf.delay >= 0:
            _reveal(win, cursor, conf, is_normal, window_index, scratch, scorer)
        if conf.keep and conf.mature_after >= 0 and time >= 0:
            _mature(win, clusters, cursor, conf, is_normal, time, window_index, scratch, scorer)
        if scratch is not None:  # else what is for groups is not even compiled
            if conf.search != FULL:
                _make_eligible(window_index, win, cursor, conf, scratch, scorer)
        start = scorer.base
        unary = scorer.base - scorer.base  # a float32 zero
        codes = records.code[i]
        for s in range(len(matches)):
            value = scorer.offset[s] + codes[s]
            start += scorer.own[value]
            unary += scorer.other[value]
            matches[s] = scorer.match[value]

        normal_hint = other_hint = nowhere
        normal, normal_at, other, other_at = never, nowhere, never, nowhere
        scan = True
        if scratch is not None:
            prepare_box_query(scratch.query, scratch.steps, x, codes, start, matches)
            if _by_bounds(reference_index, conf.search_references, conf.keep):
                query = scratch.query
                query.best[:], query.number[:] = never, nowhere
                search(reference_index, x, codes, start, matches, scorer, scratch.steps, query)
                normal, normal_at, other, other_at = query.best[0], query.number[0], query.best[1], query.number[1]
                scan = False
        if scan:
            normal, normal_at, other, other_at = _best_members(
                x, codes, start, matches, scorer, refs.num, refs.code, refs.unary, refs.side, none, M, acc
            )
        if R > 0 and store.size[0] > 0:
            n_best, n_at, o_best, o_at = best_kept(x, codes, start, matches, scorer, store, acc)
            if n_best > normal:  # references are older and win ties
                normal, normal_at = n_best, M + n_at
            if o_best > other:
                other, other_at = o_best, M + o_at
        hi = cursor[END] - conf.gap
        lo = max(hi - conf.referent_window, cursor[START])
        if hi > lo and (not conf.whole or cursor[PUSHED] >= kept):
            n_best, n_at, o_best, o_at = never, nowhere, never, nowhere
            scan = True
            if scratch is not None:
                if _by_bounds(window_index, conf.search, conf.keep):
                    query = scratch.query
                    query.best[0], query.best[1], query.number[:] = normal, other, nowhere
                    search(window_index, x, codes, start, matches, scorer, scratch.steps, query)
                    n_best, n_at = query.best[0], query.number[0] + cursor[END] - cursor[PUSHED]
                    o_best, o_at = query.best[1], query.number[1] + cursor[END] - cursor[PUSHED]
                    normal_hint, other_hint = query.hint[0], query.hint[1]
                    scan = False
            if scan:
                n_best, n_at, o_best, o_at = _best_members(
                    x, codes, start, matches, scorer, win.num, win.code, win.unary, win.side, lo, hi, acc
                )
            if n_best > normal:  # the others are older and win ties
                normal, normal_at = n_best, W + n_at
            if o_best > other:
                other, other_at = o_best, W + o_at

        root = records.root[i]
        best, at = other, other_at
        older = normal_at < other_at
        if M <= normal_at < W and M <= other_at < W:  # the kept lie in no order
            older = store.member.tick[normal_at - M] < store.member.tick[other_at - M]
        if normal > other or (normal == other and normal_at >= 0 and (other_at < 0 or older)):
            best, at = normal, normal_at
        if at < 0 or root >= best:
            best, at = root, -1

        label: Any = NOVEL_LABEL
        parent: Any = np.int64(ROOT)
        event = np.int64(-1)
        origin = np.int64(ROOT)
        if at < 0:
            via = VIA_ROOT
            cluster, slot = np.int64(-1), np.int64(0)
            if conf.keep:
                cluster, slot = _open_cluster(clusters, cursor, conf)
                if R > 0:
                    store.held[slot] = 0
        elif at < M:
            label, via, parent = np.int64(refs.label[at]), VIA_REFERENCE, np.int64(-2 - at)
            cluster = slot = refs.cluster[at]
            event, origin = refs.event[at], refs.origin[at]
        else:
            members = win if at >= W else store.member
            if R > 0 and at >= W and conf.keep and conf.policy == MEDOID:
                store.weight[at - W] += np.float32(1)
            at -= W if at >= W else M
            label, via, parent = np.int64(members.label[at]), VIA_WINDOW, members.tick[at]
            if label == NOVEL_LABEL:
                via = VIA_DESCENDANT
            cluster, slot = members.cluster[at], members.slot[at]
            event, origin = members.event[at], members.origin[at]
            out.parent_source[i] = members.source[at]
            out.parent_seq[i] = members.seq[at]
        own_side = _side_of(label, is_normal)
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
        out.parent[i] = parent
        for where, into, label_into in (
            (normal_at, out.normal_at, out.normal_label),
            (other_at, out.other_at, out.other_label),
        ):
            if where < 0:
                into[i], label_into[i] = NOTHING, -1
            elif where < M:
                into[i], label_into[i] = -2 - where, refs.label[where]
            elif where < W:
                into[i], label_into[i] = store.member.tick[where - M], store.member.label[where - M]
            else:
                into[i], label_into[i] = win.tick[where - W], win.label[where - W]
        if not conf.keep:
            continue
        _summarise(clusters, cursor, cluster, slot, tick, time, score, label, verdict != NORMAL)

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
        if R > 0:
            store.weight[end] = first_weight(conf.policy, cursor[PUSHED], score)
        if scratch is not None:
            if conf.search != FULL:
                window_index.hint[0, cursor[PUSHED] % len(window_index.where)] = normal_hint
                window_index.hint[1, cursor[PUSHED] % len(window_index.where)] = other_hint
        cursor[END] = end + 1
        cursor[PUSHED] += 1
        if cursor[END] - cursor[START] > kept:
            oldest = cursor[PUSHED] - (cursor[END] - cursor[START])
            if scratch is not None:
                if (
                    conf.search != FULL
                    and window_index.tally[LOST] == 0
                    and window_index.held[oldest % len(window_index.where)]
                ):
                    remove_from_group(window_index, oldest)
            if win.trusted[cursor[START]]:
                cursor[TRUSTED] -= 1
            if R > 0 and win.side[cursor[START]] != WITHHELD:
                retain_representative(store, win, cursor[START], oldest, clusters)
            cursor[START] += 1
