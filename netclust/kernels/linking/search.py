"""The best member of either side, by bounds: see `boxes` for what the groups and their bounds are.

Where there are more groups than a cache holds, to wait for them costs more than to look at them. So what is wanted next
is asked for while what is here is looked at: a leaf is looked at one turn after it was chosen, and only if its exact
box allows it; members are scored after all leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import borrowing, inlined, inner
from netclust.kernels.linking.boxes import (
    AT_ONCE,
    BOUNDED,
    MEMBERS,
    MOST,
    NOWHERE,
    SCORED,
    box_bound,
    box_lacks,
    ceiling_of,
    leaf_boxes,
    least_column,
    limit_of,
    members_within,
    node_boxes,
    score_four,
    score_of,
)
from netclust.kernels.linking.bytewise import WIDE, first_bit, first_bits, least, within
from netclust.kernels.linking.prefetch import LINE, prefetch

SORTED = 96  # so many nodes are visited in order of what they lack, should more have to be
FEW = 4  # at so many members of a leaf that may win, its exact box is looked at
CACHED = 40_000  # so many members are in a cache anyway
ROUNDS = 3  # in which members that were put off are scored


@borrowing(inlined)
def _oldest_of(bits: Any, oldest: Any, node: Any) -> Any:
    """Return the leaf with the oldest member."""
    first = first_bit(bits)
    bits &= bits - np.uint64(1)
    while bits:
        j = first_bit(bits)
        bits &= bits - np.uint64(1)
        if oldest[node, j] < oldest[node, first]:
            first = j
    return first


@borrowing(inlined)
def _cannot_win(bound: Any, oldest: Any, best: Any, number: Any) -> Any:
    """Return whether no member is better than `best`, and none as good is older."""
    return bound < best or (bound == best and number < oldest)


@borrowing(inlined)
def _kept(places: Any, lacks: Any, begin: Any, end: Any, limit: Any) -> Any:
    """Move those put off that still may win to the front, and return how many they are."""
    count = 0
    for i in range(begin, end):
        place, lack = places[i], lacks[i]  # no branch: nobody could foretell it
        places[begin + count], lacks[begin + count] = place, lack
        count += 1 if lack <= limit else 0
    return count


@borrowing(inner)
def search(index: Any, x: Any, codes: Any, start: Any, matches: Any, scorer: Any, steps: Any, query: Any) -> None:
    """Find the best member of either side, if it beats the best so far: `query` has that, and has the answer.

    `number` of the best so far is -1, so that members win no ties; afterwards it is the member's, if one has won.
    """
    # By names of their own: to take an array out of a tuple counts a reference each time.
    boxes, leaves = node_boxes(index), leaf_boxes(index)
    lacks, leaf_lacks, mine, todo, tally = index.lacks, index.leaf_lacks, index.member_lacks, index.todo, index.tally
    node_at, leaf_at, widths, sizes, numbers, members = (
        index.root_node,
        index.leaf,
        index.width,
        index.size,
        index.number,
        index.member,
    )
    rows, slots, wide = index.row, len(index.where), index.row.shape[1]
    later_place, later_lack, four, scores = index.later_place, index.later_lack, index.four, index.scores
    picked_place, picked_number, picked_lack = index.picked_place, index.picked_number, index.picked_lack
    number_at, room = numbers.reshape(numbers.size), numbers.shape[1]
    step, price, byte, bit, cap = query.step, query.price, query.byte, query.bit, steps.cap
    slope, far = scorer.slope, scorer.far
    exact, mask, oldest = boxes.exact, boxes.mask, boxes.oldest
    leaf_exact, leaf_mask, leaf_oldest = leaves.exact, leaves.mask, leaves.oldest
    best_of, number_of, hint_of = query.best, query.number, query.hint
    hints, sides, nodes_of, stride = index.hint, index.side, index.node, leaves.exact.shape[2]
    bytes_of_part = members.shape[2] * WIDE
    soon: Any = min(1 + len(price) + AT_ONCE, members.shape[2]) * WIDE  # bytes of it that are looked at first
    ahead = tally[MEMBERS] > CACHED
    for side in range(2):
        best, number, hint = best_of[side], number_of[side], np.int64(NOWHERE)
        hint_of[side] = NOWHERE
        n = index.roots[side]
        if n == 0:
            continue
        box_lacks(step, cap, price, bit, boxes, side, n, lacks)
        tally[BOUNDED] += n
        ceiling, unit = ceiling_of(index, query, scorer, x), steps.unit[0]
        limit = limit_of(ceiling, best, unit)
        promise, later = np.int64(MOST), 0
        chosen = np.int64(NOWHERE)  # the leaf that is looked at next
        if side == 1 and number_of[0] >= 0:  # first of all, that in which the other side's best had its own best
            chosen = np.int64(hints[1, number_of[0] % slots])
            if chosen < 0 or sizes[chosen] == 0 or sides[nodes_of[chosen]] != side:
                chosen = np.int64(NOWHERE)
        begun = chosen
        waiting = 0
        turn = -1
        while turn <= waiting:
            node: Any = np.int64(NOWHERE)
            width: Any = np.int64(0)
            bits = alike = np.uint64(0)  # its leaves that may win; those of them that lack as much as the last one
            if turn < waiting:
                if turn < 0:  # the most promising node; then those that still may win, in order of what they lack
                    k = least_column(lacks, oldest, side, n)
                    hint = -2 - np.int64(node_at[side, k])
                else:
                    k = todo[turn]
                if lacks[k] <= limit:
                    bound = box_bound(x, codes, start, matches, slope, far, exact, mask, side, k)
                    if not _cannot_win(bound, oldest[side, k], best, number):
                        node = np.int64(node_at[side, k])
                        width = np.int64(widths[node])
                        box_lacks(step, cap, price, bit, leaves, node, width, leaf_lacks)
                        tally[BOUNDED] += width
                        if limit >= 0:
                            bits = within(leaf_lacks, 0, np.uint16(limit)) & first_bits(width)
                        if ahead:
                            wanted = bits
                            while wanted:
                                j = first_bit(wanted)
                                wanted &= wanted - np.uint64(1)
                                for at in range(0, stride, LINE // 4):
                                    prefetch(leaf_exact, (node * leaf_exact.shape[1] + j) * stride + at)
            while True:
                leaf = np.int64(NOWHERE)
                exactly = not ahead
                if exactly and chosen >= 0:
                    leaf, chosen, exactly = chosen, np.int64(NOWHERE), False
                elif bits:
                    if alike:
                        j = first_bit(alike)
                    else:  # those that lack least, of them the one with the oldest member first
                        alike = least(leaf_lacks, 0, bits)
                        j = _oldest_of(alike, leaf_oldest, node)
                    bits &= ~(np.uint64(1) << np.uint64(j))
                    alike &= bits
                    found = np.int64(leaf_at[node, j])
                    if leaf_lacks[j] > limit:
                        bits = np.uint64(0)
                    elif found != begun:
                        tally[BOUNDED] += 1
                        if ahead:
                            bound = box_bound(x, codes, start, matches, slope, far, leaf_exact, leaf_mask, node, j)
                            if _cannot_win(bound, leaf_oldest[node, j], best, number):
                                continue
                        if not ahead or (hint < NOWHERE and begun < 0):  # else nothing is known yet: this is waited for
                            leaf = found
                        else:
                            for at in range(0, soon, LINE):
                                prefetch(members, found * members.shape[1] * bytes_of_part + at)
                            leaf, chosen = chosen, found
                        if hint < NOWHERE:
                            hint = found
                    if leaf < 0 and bits:
                        continue
                if leaf < 0 and turn == waiting:
                    leaf, chosen = chosen, np.int64(NOWHERE)
                if leaf < 0:
                    break
                size: Any = np.int64(sizes[leaf])
                begin = first = later
                crowded = later + size > len(later_place)
                for chunk in range(0, size, WIDE):
                    passed = members_within(step, cap, price, byte, members, leaf, chunk, size, limit, mine)
                    while passed:
                        i = chunk + first_bit(passed)
                        passed &= passed - np.uint64(1)
                        if crowded:
                            slot = numbers[leaf, i] % slots
                            score = score_of(x, codes, start, matches, slope, far, rows, slot)
                            tally[SCORED] += 1
                            if score > best or (score == best and numbers[leaf, i] < number):
                                best, number, hint = score, numbers[leaf, i], leaf
                                limit = limit_of(ceiling, best, unit)
                            continue
                        later_place[later], later_lack[later] = leaf * room + i, mine[i]
                        if mine[i] < later_lack[first]:
                            first = later
                        later += 1
                if exactly and later - begin >= FEW:  # many alike: is there one that can win?
                    bound = box_bound(x, codes, start, matches, slope, far, leaf_exact, leaf_mask, node, j)
                    if _cannot_win(bound, leaf_oldest[node, j], best, number):
                        later = begin
                if begin == later or later_lack[first] >= promise:
                    continue
                promise = np.int64(later_lack[first])  # at once: what it scores spares others
                candidate = number_at[later_place[first]]
                score = score_of(x, codes, start, matches, slope, far, rows, candidate % slots)
                tally[SCORED] += 1
                if score > best or (score == best and candidate < number):
                    best, number, hint = score, candidate, leaf
                    limit = limit_of(ceiling, best, unit)
                later_lack[first] = MOST
                later = begin + _kept(later_place, later_lack, begin, later, limit)
            if turn < 0:
                lacks[k] = MOST
                for k in range(n):
                    if lacks[k] <= limit and lacks[k] < MOST:
                        j = waiting
                        while 0 < j < SORTED and lacks[todo[j - 1]] > lacks[k]:
                            todo[j] = todo[j - 1]
                            j -= 1
                        todo[j] = k
                        waiting += 1
            turn += 1
        # What was put off, the most promising first, four at a time: terms of a score are added one after the other.
        for part in range(ROUNDS, 0, -1):
            later, until, count = _kept(later_place, later_lack, 0, later, limit), limit // part, 0
            for i in range(later):
                place, lack = later_place[i], later_lack[i]
                picked_place[count], picked_lack[count] = place, lack
                later_lack[i] = np.uint16(MOST) if lack <= until else lack
                count += 1 if lack <= until else 0
            for i in range(count):
                prefetch(number_at, picked_place[i])
            for i in range(count):
                picked_number[i] = number_at[picked_place[i]]
                slot = picked_number[i] % slots
                for at in range(0, wide, LINE // 4):
                    prefetch(rows, slot * wide + at)
            i = 0
            while i < count:
                filled = 0
                while i < count and filled < 4:
                    if picked_lack[i] <= limit:
                        four[filled] = i
                        filled += 1
                    i += 1
                if filled == 0:
                    break
                tally[SCORED] += filled
                for k in range(filled, 4):
                    four[k] = four[0]
                score_four(x, codes, start, matches, slope, far, rows, picked_number, four, slots, scores)
                for k in range(filled):
                    candidate = picked_number[four[k]]
                    if scores[k] > best or (scores[k] == best and candidate < number):
                        best, number, hint = scores[k], candidate, picked_place[four[k]] // room
                        limit = limit_of(ceiling, best, unit)
        best_of[side], number_of[side], hint_of[side] = best, number, hint
