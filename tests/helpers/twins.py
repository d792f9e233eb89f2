"""Plain-numpy twins of the scoring and training kernels: same order of additions, no other cleverness."""

from __future__ import annotations

import functools
import operator

import numpy as np

from netclust.scoring.similarity import WeightLayout


def pair_features(a_num, a_code, b_num, b_code, layout: WeightLayout, sign, far=None):
    """Return phi(a, b) in full, as the spec writes it; the kernels never build it."""
    phi = np.zeros(layout.dimension)
    gap = np.abs(a_num - b_num).astype(np.float64)
    phi[: layout.features] = 1 + sign * (gap if far is None else np.minimum(gap, far))
    for s, width in enumerate(layout.widths):
        for value in range(1, width):
            bits = int(a_code[s] == value) + int(b_code[s] == value)
            phi[layout.at[s] + 3 * (value - 1) :][:3] = (bits == 2, bits > 0, bits == 0)
    return phi


def lookups(w, at, values, dtype):
    """own, other and match of one coded attribute, from its indicator weights, in the kernel's order of additions."""
    neither = 0.0
    for v in range(values):
        neither += w[at + 3 * v + 2]
    both, one, none = (np.array([w[at + 3 * v + k] for v in range(values)]) for k in range(3))
    own = [neither, *(neither + (one - none))]
    return np.array(own, dtype), np.array([0, *(one - none)], dtype), np.array([0, *(both - (one - none))], dtype)


def scores(x_num, x_code, num, code, w, layout: WeightLayout, sign, dtype, far=None):
    """Scores of one record with every referent (columns of num and code), accumulated in `dtype`."""
    base = 0.0
    for f in range(layout.features):
        base += w[f]
    folded = [lookups(w, layout.at[s], width - 1, dtype) for s, width in enumerate(layout.widths)]
    start = dtype(base)
    unary = np.zeros(num.shape[1], dtype)
    for s, (own, other, _) in enumerate(folded):
        start += own[x_code[s]]
        unary += other[code[s]]
    acc = start + unary
    for f in range(layout.features):
        gap = np.abs(x_num[f].astype(dtype) - num[f].astype(dtype))
        acc += dtype(sign * w[f]) * (gap if far is None else np.minimum(gap, dtype(far[f])))
    for s, (_, _, match) in enumerate(folded):
        if x_code[s]:
            acc += np.where(code[s] == x_code[s], match[x_code[s]], dtype(0))
    return acc


def train(
    num, code, label, layout: WeightLayout, *, window, C, r, absent, update, sign, cap, epochs, prices=None,
    is_normal=None,
):  # fmt: skip
    """Algorithm 2 on the stream, record by record; returns last, averaged, and every update (epoch, j, h^, h*).

    Without prices a wrong link costs 1, an invented root arc 1 + r.
    """
    n = len(label)
    w = np.zeros(layout.dimension)
    u = np.zeros(layout.dimension)
    seen: set[int] = set()
    first = [not (int(y) in seen or seen.add(int(y))) for y in label]
    step = 0
    trace = []
    for epoch in range(1, epochs + 1):
        for j in range(n):
            step += 1
            lo = max(0, j - window)
            s = scores(num[:, j], code[:, j], num[:, lo:j], code[:, lo:j], w, layout, sign, np.float64)
            same = label[lo:j] == label[j]
            root = w[-1] if layout.roots else 0.0
            right = lo + int(np.argmax(np.where(same, s, -np.inf))) if same.any() else -1
            root_right = right < 0 and (absent == "window" or first[j])
            if right < 0 and not root_right:
                continue
            to_root, links = 1.0 + r, np.ones(j - lo)
            if prices is not None:
                normal = is_normal[label[lo:j]]
                if is_normal[label[j]]:
                    to_root = prices.false_root
                    links = np.where(normal, prices.wrong_normal, prices.false_alarm)
                else:
                    to_root = prices.known_root
                    links = np.where(normal, prices.miss, prices.wrong_attack)
            loss_of = [0.0 if root_right else to_root, *np.where(same, 0.0, links)]
            augmented = [root + C * loss_of[0], *(s + C * np.array(loss_of[1:]))]
            best = int(np.argmax(augmented))
            h_hat = -1 if best == 0 else lo + best - 1
            loss = loss_of[best]
            if loss == 0:
                continue
            g = phi(right, j, num, code, layout, sign) - phi(h_hat, j, num, code, layout, sign)
            tau = 1.0
            if update == "lspa":
                norm = added(g * g)
                margin = added(w * g)
                if norm == 0:
                    continue
                tau = min((C * loss - margin) / norm, cap)
                if tau <= 1e-12:
                    continue
            trace.append((epoch, j, h_hat, right, loss, g))
            w += tau * g
            u += (step - 1) * (tau * g)
    return w, w - u / step, trace


def added(values) -> float:
    """The sum, one after the other: from Python 3.12 on `sum` is more exact than that."""
    return functools.reduce(operator.add, map(float, values), 0.0)


def phi(i, j, num, code, layout: WeightLayout, sign):
    """phi(i, j) in full; i < 0 is the root."""
    if i < 0:
        root = np.zeros(layout.dimension)
        root[layout.dimension - layout.roots :] = 1
        return root
    a, b = num[:, i].astype(np.float64), num[:, j].astype(np.float64)
    return pair_features(a, code[:, i], b, code[:, j], layout, sign)
