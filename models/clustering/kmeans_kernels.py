"""Point-incremental k-means on a symmetric matrix M, which may be indefinite (Finley 2009, section 4.4).

Kept while points move: S[c, p] = sum_{j in c} M[p, j], Q[c] = sum_{i, j in c} M[i, j] and n[c] = |c|. A move is made
for what it adds to the objective sum_c Q[c] / n[c], not for the nearest centre, so that every move climbs.
"""

from __future__ import annotations

from typing import Any

from netclust.kernels.jit import kernel


@kernel
def climb_kmeans(M: Any, z: Any, order: Any, least: Any, S: Any, Q: Any, n: Any) -> Any:
    """Move points, in that order, to where they gain most, until a sweep moves none; returns the number of moves.

    `z` holds labels 0 to k-1, each used, and changes in place; S, Q and n start as zeros. A gain counts above `least`.
    """
    for j in range(len(z)):
        n[z[j]] += 1
        for p in range(len(z)):
            S[z[j], p] += M[j, p]
    for p in range(len(z)):
        Q[z[p]] += S[z[p], p]
    moves, before = 0, -1
    while moves > before:
        before = moves
        for p in order:
            a = z[p]
            if n[a] == 1:
                continue  # a cluster is never emptied
            own = M[p, p]
            leave = (Q[a] - 2.0 * S[a, p] + own) / (n[a] - 1) - Q[a] / n[a]
            best, to = least, a
            for b in range(len(n)):
                if b != a:
                    gain = (Q[b] + 2.0 * S[b, p] + own) / (n[b] + 1) - Q[b] / n[b] + leave
                    if gain > best:
                        best, to = gain, b
            if to == a:
                continue
            Q[a] += own - 2.0 * S[a, p]
            Q[to] += own + 2.0 * S[to, p]
            for q in range(len(z)):
                S[a, q] -= M[p, q]
                S[to, q] += M[p, q]
            n[a] -= 1
            n[to] += 1
            z[p] = to
            moves += 1
    return moves
