"""Unfinished lines of cleartext dialogues without what was said in them, for files: half a password is never written.

Every byte is masked, but for those that the rules of `netclust.kernels.packets.dialogue` look at and still need:
whatever comes next, the kernel decides on a redacted line as on the line itself. What can remain:

- the line's length, and what is part of a word that is searched for in that direction of that protocol (`cp `,
  `/etc/passwd`), or of the beginning of one at the line's end, which may be completed (`/etc/pa`, or one letter);
- at the line's beginning: three digits, a plus, minus or asterisk of an answer, the `u` of USER with a name that is
  searched for, the `p` and the space of PASS, `su `, `./`;
- IMAP's first space, and behind it the letters `lo` and `i` of LOGIN or the first one of OK, NO, BAD.

Prompts need not be kept: the segment that brought one has been judged, and what it showed stays with the connection.

>>> lines = np.zeros((1, 2, layout.LINE_BYTES), np.uint8)
>>> lines[0, 0, :22] = np.frombuffer(b"PASS hunter2/etc/passw", np.uint8)
>>> sizes = np.array([[22, 0]])
>>> redacted = redact_lines(lines, sizes, np.zeros((1, 2)), np.array([layout.FTP]))
>>> bytes(redacted[0, 0, :22]).replace(bytes([MASK]), b"_")
b'____________/etc/passw'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.packets import dialogue
from netclust.kernels.packets import flow_layout as layout

__all__ = ["MASK", "redact_lines"]

MASK = 1
"""Instead of what is hidden: in no word, no digit, no space, and no rule looks for it."""

_TO_COME = 10  # behind a line, where it may still grow: no line holds a newline
_ANY = 0  # in a pattern: whatever stands there, it is not kept
_CHUNK = 4096  # lines at once, which bounds the memory that is needed
_LOWER = np.arange(256, dtype=np.uint8)
_LOWER[65:91] += 32
_ORIG, _RESP = 0, 1


def _words(*tables: NDArray[np.uint8]) -> tuple[bytes, ...]:
    """What the kernel searches for: each word lies behind its length."""
    found = []
    for table in map(bytes, tables):
        at = 0
        while at < len(table):
            found.append(table[at + 1 : at + 1 + table[at]])
            at += 1 + table[at]
    return tuple(found)


@dataclass(frozen=True)
class _Rules:
    """What is looked for in one direction of a protocol, in lower case: words and patterns, by where they stand."""

    anywhere: tuple[bytes, ...] = ()
    first: tuple[bytes, ...] = ()
    at_space: tuple[bytes, ...] = ()  # from the first one on
    code: bool = False  # three digits at the beginning


_USER = bytes([ord("u"), _ANY, _ANY, _ANY, _ANY])  # a name stands at place 5, whatever the rest of USER is
_RULES = {
    (layout.FTP, _ORIG): _Rules(
        anywhere=_words(dialogue._SYSTEM_PLACES, dialogue._SECRETS, dialogue._SHELLS),
        first=(
            _USER,
            *(_USER + name for name in _words(dialogue._GUESTS, dialogue._ROOT)),
            *_words(dialogue._FILE_COMMANDS),
        ),
    ),
    (layout.FTP, _RESP): _Rules(code=True),
    (layout.TELNET, _ORIG): _Rules(
        anywhere=_words(dialogue._SECRETS, dialogue._SHELLS, dialogue._MAKES_FILES), first=(b"su ", b"./")
    ),
    (layout.TELNET, _RESP): _Rules(anywhere=_words(dialogue._LOGIN_FAILED, dialogue._LOGIN_DONE)),
    (layout.SMTP, _ORIG): _Rules(first=_words(dialogue._PROBES)),
    (layout.SMTP, _RESP): _Rules(code=True),
    (layout.POP3, _ORIG): _Rules(first=(bytes([ord("p"), _ANY, _ANY, _ANY, ord(" ")]),)),
    (layout.POP3, _RESP): _Rules(first=(b"+", b"-")),
    (layout.IMAP, _ORIG): _Rules(at_space=(b" ", bytes([*b" lo", _ANY, ord("i")]))),
    (layout.IMAP, _RESP): _Rules(first=(b"*",), at_space=(b" ", b" o", b" n", b" b")),
}
_LONGEST = max(len(word) for rules in _RULES.values() for word in (*rules.anywhere, *rules.first, *rules.at_space))


def redact_lines(
    lines: NDArray[np.uint8], sizes: NDArray[Any], skipped: NDArray[Any], apps: NDArray[Any]
) -> NDArray[np.uint8]:
    """A copy that holds no secret, for the kernel the same as the lines: as many bytes of each, 0 behind them.

    `lines` is [connection, direction, byte], `sizes` and `skipped` are [connection, direction] as in layout.SIDE
    (`line`, `skip`), `apps` says which protocol each connection speaks; of one without rules all is masked.
    """
    redacted = (np.arange(layout.LINE_BYTES) < sizes[:, :, None]) * np.uint8(MASK)
    for (app, direction), rules in _RULES.items():
        spoken = np.flatnonzero((apps == app) & (sizes[:, direction] > 0))
        for begin in range(0, len(spoken), _CHUNK):
            rows = spoken[begin : begin + _CHUNK]
            text, size = lines[rows, direction], sizes[rows, direction].astype(np.int64)
            kept = _looked_at(text, size, rules)
            kept[skipped[rows, direction] != 0] = False  # an overlong line has been read
            kept &= np.arange(layout.LINE_BYTES) < size[:, None]
            redacted[rows, direction] = np.where(kept, text, redacted[rows, direction])
    return redacted


def _looked_at(text: NDArray[np.uint8], size: NDArray[np.int64], rules: _Rules) -> NDArray[np.bool_]:
    """Which bytes still decide something; a word may be completed as far as there is room for it."""
    table = np.full((len(text), layout.LINE_BYTES + _LONGEST), MASK, np.uint8)
    has_come = np.arange(layout.LINE_BYTES) < size[:, None]
    table[:, : layout.LINE_BYTES] = np.where(has_come, _LOWER[text], np.uint8(_TO_COME))
    kept = np.zeros(table.shape, np.bool_)
    flat, flat_kept = table.reshape(-1), kept.reshape(-1)
    begun = np.isin(np.arange(256), [word[0] for word in rules.anywhere])
    _keep(flat, flat_kept, np.flatnonzero(begun[flat]), rules.anywhere)
    begins = np.arange(len(text)) * table.shape[1]
    _keep(flat, flat_kept, begins, rules.first)
    if rules.at_space:
        is_space = table == ord(" ")
        _keep(flat, flat_kept, (begins + is_space.argmax(axis=1))[is_space.any(axis=1)], rules.at_space)
    if rules.code:
        digit = (table[:, :3] >= ord("0")) & (table[:, :3] <= ord("9"))
        kept[:, :3] |= (digit | (table[:, :3] == _TO_COME)).all(axis=1)[:, None]
    return kept[:, : layout.LINE_BYTES]


def _keep(
    text: NDArray[np.uint8], kept: NDArray[np.bool_], places: NDArray[np.int64], words: tuple[bytes, ...], at: int = 0
) -> None:
    """Mark each of the words that stands at one of the places, as far as its line goes yet.

    Words that begin alike are followed together, from their byte `at` on: lines of slashes take no longer than others.
    """
    here = text[places + at]
    for byte in {word[at] for word in words}:
        found = places if byte == _ANY else places[(here == byte) | (here == _TO_COME)]
        alike = tuple(word for word in words if word[at] == byte)
        for word in alike:
            if len(word) == at + 1:
                for k in np.flatnonzero(np.frombuffer(word, np.uint8) != _ANY):
                    kept[found + k] = True
        longer = tuple(word for word in alike if len(word) > at + 1)
        if longer and len(found):
            _keep(text, kept, found, longer, at + 1)
