"""Text from outside, made safe to show."""

from __future__ import annotations


def sanitize(text: str) -> str:
    """Return text from outside without what would break a line or control a terminal.

    >>> sanitize("one\\ntwo")
    'one\\\\ntwo'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
