"""Unfinished lines in a saved flow table: no secret is in them, and whatever comes next is read as if all was there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchanges import NO_TIMEOUTS, Packet, block, tcp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from netclust.foundation.container import Arrays, pack_container, unpack_container
from netclust.kernels.packets import dialogue
from netclust.kernels.packets import flow_layout as layout
from netclust.stream.packets.capture_writer import write_capture
from netclust.stream.packets.flow_table import FlowTable
from netclust.stream.packets.line_redaction import MASK, redact_lines
from netclust.stream.sources.captures import CaptureSource

KIND = "netclust.test"
PORTS = {21: layout.FTP, 23: layout.TELNET, 25: layout.SMTP, 110: layout.POP3, 143: layout.IMAP}
SECRET = b"hunter2-secr"
CODED, ALONE = b"AGJvYgBodW50ZXIyLXNlY3I", b"aHVudGVyMi1zZWNy"  # in base64, with a name and without

Piece = tuple[bool, bytes]  # whether the server says it, and what


def words_of(table: NDArray[np.uint8]) -> Iterator[bytes]:
    left = table.tobytes()
    while left:
        yield left[1 : 1 + left[0]]
        left = left[1 + left[0] :]


# Every table of the kernel, also one that is added later.
TABLES = [table for table in vars(dialogue).values() if isinstance(table, np.ndarray)]
WORDS = sorted({word for table in TABLES for word in words_of(table)})
PLAIN = [
    b"USER ", b"user ", b"PASS ", b"U2345", b"p234 ", b"p2345", b"su", b"su ", b"sU ", b"sux", b"./", b".x/", b"a1 ",
    b"a1 LOGIN u p", b"a1 login", b"x lo_i__", b"a1 OK in", b"a1 NO no", b"a1 bad", b"* OK x", b"* NO x", b"+OK in",
    b"-ERR no", b"230 in", b"235 in", b"354 go", b"454 no", b"530 no", b"535 no", b"550 no", b"553 no", b"5x0",
    b"bob$ ", b"bob% ", b"C:\\>", b"# ", b"#", b"$", b" ", b"     ", b"hunter2", b"\0", b"\xff\xfd\x01", bytes([MASK]),
    b"x" * 60,
]  # fmt: skip


class Talk:
    """One connection that is fed piece by piece, with sequence numbers in order."""

    def __init__(self, port: int, src: str = "10.0.0.1") -> None:
        self.ends = {"dport": port, "src": src}
        self.next = [101, 901]

    def say(self, pieces: list[Piece]) -> list[Packet]:
        packets = []
        for back, data in pieces:
            packets.append(tcp(sum(self.next) / 1e4, "PA", back=back, seq=self.next[back], data=data, **self.ends))
            self.next[back] += len(data)
        return packets


def stored(arrays: Arrays) -> Arrays:
    """As they come back from a file."""
    return unpack_container(pack_container(KIND, arrays, {}), KIND, "test")[0]


def both_ways(
    before: list[Packet], after: list[Packet], max_flows: int = 16, active: float = 0.0
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The records of a table that goes on, and of one that is restored from what was saved of it."""
    timeouts = replace(NO_TIMEOUTS, active=active)
    table, restored = FlowTable(max_flows, timeouts), FlowTable(max_flows, timeouts)
    table.feed(block(before))
    restored.restore(stored(table.state()))
    whole, again = ([one.feed(block(after)), one.finish()] for one in (table, restored))
    return np.concatenate(whole), np.concatenate(again)


def any_case(word: bytes) -> st.SearchStrategy[bytes]:
    return st.sampled_from([word, word, word.upper(), word.title(), word.swapcase()])


tokens = st.one_of(
    st.sampled_from(WORDS).flatmap(any_case),
    st.sampled_from(PLAIN),
    st.sampled_from([b"\n", b"\r\n"]),
    st.binary(max_size=6),
)
begun = st.tuples(st.sampled_from(WORDS), st.integers(1, 22)).map(lambda pair: pair[0][: pair[1]])
texts = st.lists(tokens | begun, max_size=5).map(b"".join)
# What makes an answer count, or a line.
LOGINS = {110: b"p234 x\n", 143: b"a1 LOGIN u p\n"}
PRELUDES: list[list[Piece]] = [[], *([(False, login)] for login in LOGINS.values()), [(True, b"# "), (True, b"\r\n")]]


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[list[Piece], list[Piece]]:
    """What is said before the table is saved, and after: a line is cut anywhere, and goes on as it was or otherwise."""
    before, after = list(draw(st.sampled_from(PRELUDES))), []
    for back in draw(st.permutations([False, True])):
        text = draw(texts)
        cut = draw(st.integers(0, len(text)))
        before.append((back, text[:cut]))
        later = [text[cut:], *draw(st.lists(texts, max_size=2)), *draw(st.sampled_from([[], [b"\n"]]))]
        after += [(back, part) for part in later[draw(st.integers(0, 1)) :]]
    return [piece for piece in before if piece[1]], [piece for piece in after if piece[1]]


@settings(max_examples=300)
@given(st.sampled_from(sorted(PORTS)), exchanges(), st.sampled_from([0.0, 0.0005]))
def test_a_redacted_line_is_judged_the_same(port: int, said: tuple[list[Piece], list[Piece]], active: float) -> None:
    talk = Talk(port)
    before, after = talk.say([(False, b"\n"), *said[0]]), talk.say(said[1])
    whole, again = both_ways(before, after, active=active)  # with interim records, and without
    assert len(whole) >= 1
    for name in layout.CONTENT_NAMES:
        assert whole["flow"][name].tolist() == again["flow"][name].tolist(), name
    assert np.array_equal(whole, again)


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize("back", [False, True])
def test_a_word_that_is_cut_anywhere_is_neither_missed_nor_made_up(port: int, back: bool) -> None:
    before, after = [], []
    fill = b"z" * (layout.LINE_BYTES - 4)  # a word that comes behind it has no room
    for text in [begin + word for begin in (b"", b"pw", b"u234 ", fill) for word in (*WORDS, *PLAIN[:37])]:
        middle = len(text) // 2
        for cut in {len(text) - k for k in (0, 1, 2, 3, 4)} | {1, 2, 3, middle}:
            number = len(after)
            talk = Talk(port, f"10.1.{number // 200}.{number % 200 + 1}")
            before.append(talk.say([(False, LOGINS.get(port, b"\n")), (back, text[: max(cut, 1)])]))
            after.append(talk.say([(back, text[max(cut, 1) :] + b"\n")]))
    # In the order of time, as a table wants it.
    first, then = (
        sorted((packet for part in parts for packet in part), key=lambda p: p[0]) for parts in (before, after)
    )
    latest = first[-1][0]
    then = [(at + latest, frame) for at, frame in then]
    whole, again = both_ways(first, then, 1 << 14)
    assert len(whole) == len(after)
    told = sum((whole["flow"][name] > 0).astype(int) for name in layout.CONTENT_NAMES)
    if (port, back) not in {(110, False), (143, False)}:  # there a line tells nothing by itself
        assert np.count_nonzero(told) > 8
    for name in (*layout.CONTENT_NAMES, "command"):
        assert np.array_equal(whole["flow"][name], again["flow"][name]), name
    assert np.array_equal(whole, again)


SECRETS: list[tuple[str, int, list[Piece], bytes]] = [
    ("ftp", 21, [(False, b"USER bob\r\n"), (True, b"331 pw\r\n"), (False, b"PASS " + SECRET)], SECRET),
    ("ftp, of root", 21, [(False, b"USER root\r\n"), (False, b"PASS root" + SECRET)], SECRET),
    ("ftp, a name", 21, [(False, b"USER " + SECRET)], SECRET),
    ("telnet", 23, [(True, b"login: "), (False, b"bob\r\n"), (True, b"Password: "), (False, SECRET)], SECRET),
    ("telnet, echoed", 23, [(True, b"Password: "), (False, b"pw"), (True, SECRET + b"# ")], SECRET),
    ("telnet, digits", 23, [(True, b"Password: "), (False, b"  20071969 ")], b"20071969"),
    ("smtp", 25, [(True, b"220 x\r\n"), (False, b"AUTH PLAIN " + CODED)], CODED),
    ("smtp, alone", 25, [(False, b"AUTH LOGIN\r\n"), (True, b"334 x\r\n"), (False, ALONE)], ALONE),
    ("smtp, too long", 25, [(False, b"AUTH PLAIN " + b"QUJDRE9" * 30)], b"QUJDRE9"),
    ("pop3", 110, [(True, b"+OK\r\n"), (False, b"USER bob\r\n"), (False, b"PASS " + SECRET)], SECRET),
    ("pop3, apop", 110, [(False, b"APOP bob c4c9334bac560ecc979e")], b"c4c9334bac560ecc979e"),
    ("imap", 143, [(True, b"* OK\r\n"), (False, b"a1 LOGIN bob " + SECRET)], SECRET),
    ("imap, literal", 143, [(False, b"a1 LOGIN bob {20}\r\n"), (True, b"+ go\r\n"), (False, SECRET)], SECRET),
    ("imap, base64", 143, [(False, b"a1 AUTHENTICATE PLAIN\r\n"), (False, CODED)], CODED),
]  # fmt: skip


def assert_not_in(secret: bytes, blob: bytes) -> None:
    """No four bytes of it, in upper or lower case."""
    blob, secret = blob.lower(), secret.lower()
    assert [secret[k : k + 4] for k in range(len(secret) - 3) if secret[k : k + 4] in blob] == []


@pytest.mark.parametrize(("port", "said", "secret"), [pytest.param(*case[1:], id=case[0]) for case in SECRETS])
def test_no_half_password_is_saved(port: int, said: list[Piece], secret: bytes, tmp_path: Path) -> None:
    packets = Talk(port).say(said)
    table = FlowTable(64, NO_TIMEOUTS)
    table.feed(block(packets))
    assert any(secret[:4] in array.tobytes() for array in table._table)  # it is there, to be hidden
    state = table.state()
    assert state["lines"].size
    for array in state.values():
        assert_not_in(secret, array.tobytes())

    path = tmp_path / "c.pcap"
    write_capture(path, [block(packets)])
    source = CaptureSource("test", [path], "kdd", max_flows=64)
    source.open(None)
    source.stop()  # what is open stays so
    last = list(source)[-1].state
    source.close()
    assert source.open_flows == 1
    assert last is not None
    assert_not_in(secret, pack_container(KIND, last.arrays, last.facts))


def in_words(line: bytes) -> set[int]:
    """The places that are part of a word, or at the end of the beginning of one."""
    lower, found = line.lower(), set()
    for word in WORDS:
        for at in range(len(lower)):
            if lower.startswith(word, at) or word.startswith(lower[at:]):
                found |= set(range(at, min(at + len(word), len(line))))
    return found


lines = st.lists(tokens, min_size=1, max_size=6).map(lambda parts: b"".join(parts).translate(None, b"\r\n"))


@given(st.sampled_from(sorted(PORTS.values())), st.booleans(), lines, st.booleans())
def test_only_words_and_a_few_letters_remain(app: int, back: bool, line: bytes, skip: bool) -> None:
    line = line[: layout.LINE_BYTES]
    given_lines = np.full((1, 2, layout.LINE_BYTES), 7, np.uint8)  # what an earlier line left behind
    given_lines[0, int(back), : len(line)] = list(line)
    sizes = np.zeros((1, 2), np.uint16)
    sizes[0, int(back)] = len(line)
    redacted = redact_lines(given_lines, sizes, np.full((1, 2), skip, np.uint8), np.array([app], np.uint8))
    found = bytes(redacted[0, int(back)])
    assert not redacted[0, 1 - int(back)].any()
    assert not any(found[len(line) :])
    assert all(byte in (MASK, was) for byte, was in zip(found, line, strict=False))
    remain = {at for at, byte in enumerate(found[: len(line)]) if byte != MASK}
    if skip:
        assert not remain  # it has been read
    assert len(remain - in_words(line)) <= 4


def test_a_protocol_without_rules_is_masked() -> None:
    text = np.full((1, 2, layout.LINE_BYTES), ord("x"), np.uint8)
    sizes = np.full((1, 2), 5)
    redacted = redact_lines(text, sizes, np.zeros((1, 2)), np.array([layout.HTTP]))
    assert redacted.tolist() == [[[MASK] * 5 + [0] * 123] * 2]


def test_the_mask_is_nothing_that_is_searched_for() -> None:
    assert len(TABLES) > 10
    assert all(MASK not in word for word in WORDS)
    assert not chr(MASK).isprintable()
