"""Arrays as kernels want them: a kernel is compiled once for each kind of array that it gets."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that nobody writes to: bytes of files cannot be written to, those of buffers can.

    >>> import numpy as np
    >>> view = read_only(np.zeros(2))
    >>> import numpy as np
    >>> view.flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view
