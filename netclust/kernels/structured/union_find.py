"""Union-find, and Kruskal's forest on it.

A component's root is its lowest item, so that numbering roots in order numbers components by first appearance.
"""

from __future__ import annotations

from typing import Any

from netclust.kernels.jit import inner, kernel


@inner
def find(parent: Any, i: Any) -> Any:
    """The root of an item; every second item on the way is hung one step higher (path halving)."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel
def grow_forest(left: Any, right: Any, parent: Any, taken: Any) -> Any:
    """Kruskal: of the pairs in their order, the places of those that join two components, into `taken`; how many.

    `parent` holds the components so far, every item its own to begin with, and the joined ones afterwards.
    """
    count = 0
    for k in range(len(left)):
        a, b = find(parent, left[k]), find(parent, right[k])
        if a == b:
            continue
        if a < b:
            parent[b] = a
        else:
            parent[a] = b
        taken[count] = k
        count += 1
    return count


@kernel
def number_components(parent: Any, labels: Any) -> Any:
    """labels[i] = the component of item i, numbered from 0 by first appearance; returns how many there are."""
    count = 0
    for i in range(len(parent)):
        root = find(parent, i)
        if root == i:
            labels[i] = count
            count += 1
        else:
            labels[i] = labels[root]
    return count
