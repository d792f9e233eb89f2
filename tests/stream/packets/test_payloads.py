"""What payloads say in clear: content attributes, DNS questions, TLS hellos; and that nothing else of them stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exchanges import NO_TIMEOUTS, Packet, block, handshake, records_of, tcp, udp
from hypothesis import given
from hypothesis import strategies as st

from netclust.stream.packets.connections import connection_maker, context_columns
from netclust.stream.packets.flow_table import FlowTable

Line = tuple[str, str]  # > from the client, < from the server


def dialogue(port: int, lines: list[Line], pieces: int = 1 << 20) -> list[Packet]:
    """A conversation, each line in segments of so many bytes."""
    packets = handshake(dport=port)
    numbers = {">": 101, "<": 901}
    at = 0.1
    for who, text in lines:
        data = text.encode()
        for k in range(0, len(data), pieces):
            part = data[k : k + pieces]
            packets.append(tcp(at, "PA", back=who == "<", seq=numbers[who], data=part, dport=port))
            numbers[who] += len(part)
            at += 0.001
    return packets


def content(packets: list[Packet]) -> dict[str, int]:
    """The content attributes that are not 0."""
    table = connection_maker("kdd").table(records_of(packets, NO_TIMEOUTS))
    names = [a.name for a in table.schema.numeric]
    values: dict[str, int] = {n: int(v) for n, v in zip(names, table.num[0], strict=True)}
    coded = {a.name: table.symbols[s][table.sym[0, s]] for s, a in enumerate(table.schema.coded)}
    wanted = [
        "hot", "num_failed_logins", "num_compromised", "su_attempted", "num_root", "num_file_creations", "num_shells",
        "num_access_files", "num_outbound_cmds",
    ]  # fmt: skip
    found = {name: values[name] for name in wanted if values[name]}
    bits = ("logged_in", "root_shell", "is_host_login", "is_guest_login")
    return found | {name: 1 for name in bits if coded[name] == "1"}


FTP_LOGIN = [("<", "220 ready\r\n"), (">", "USER bob\r\n"), ("<", "331 password\r\n"), (">", "PASS secret\r\n")]
CASES: list[tuple[str, int, list[Line], dict[str, int]]] = [
    ("ftp login", 21, [*FTP_LOGIN, ("<", "230 in\r\n")], {"logged_in": 1}),
    (
        "ftp guesses",
        21,
        [*FTP_LOGIN, ("<", "530 no\r\n"), *FTP_LOGIN[1:], ("<", "530 no\r\n")],
        {"num_failed_logins": 2},
    ),
    (
        "ftp guest who uploads",
        21,
        [(">", "USER anonymous\r\n"), (">", "PASS me@\r\n"), ("<", "230 in\r\n"), (">", "STOR game.zip\r\n")],
        {"logged_in": 1, "is_guest_login": 1, "hot": 1, "num_file_creations": 1},
    ),
    (
        "ftp passwords",
        21,
        [*FTP_LOGIN, ("<", "230 in\r\n"), (">", "CWD /etc\r\n"), (">", "RETR /etc/passwd\r\n"), ("<", "550 no\r\n")],
        {"logged_in": 1, "hot": 2, "num_access_files": 1, "num_compromised": 1},
    ),
    (
        "telnet root",
        23,
        [
            ("<", "login: "),
            (">", "bob\r\n"),
            ("<", "\r\nLast login: today\r\nbob$ "),
            (">", "su root\r\n"),
            ("<", "\r\n# "),
            (">", "cat /etc/shadow\r\n"),
            ("<", "\r\n# "),
        ],
        {"logged_in": 1, "su_attempted": 1, "root_shell": 1, "num_root": 1, "num_access_files": 1, "hot": 1},
    ),
    ("telnet guess", 23, [("<", "login: "), (">", "root\r\n"), ("<", "Login incorrect\r\n")], {"num_failed_logins": 1}),
    (
        "mail sent",
        25,
        [("<", "220 hi\r\n"), (">", "MAIL FROM:<a@b>\r\n"), ("<", "250 ok\r\n"), ("<", "354 go\r\n")],
        {"logged_in": 1},
    ),
    (
        "mail refused",
        25,
        [(">", "AUTH LOGIN\r\n"), ("<", "535 bad\r\n"), (">", "VRFY root\r\n")],
        {"num_failed_logins": 1, "hot": 1},
    ),
    (
        "pop3 login",
        110,
        [("<", "+OK hi\r\n"), (">", "USER a\r\n"), ("<", "+OK\r\n"), (">", "PASS b\r\n"), ("<", "+OK in\r\n")],
        {"logged_in": 1},
    ),
    (
        "pop3 guess",
        110,
        [(">", "USER a\r\n"), ("<", "+OK\r\n"), (">", "PASS b\r\n"), ("<", "-ERR no\r\n")],
        {"num_failed_logins": 1},
    ),
    (
        "imap login",
        143,
        [("<", "* OK hi\r\n"), (">", "a1 LOGIN u p\r\n"), ("<", "* CAPS\r\n"), ("<", "a1 OK in\r\n")],
        {"logged_in": 1},
    ),
    (
        "imap guess",
        143,
        [(">", "a1 login u p\r\n"), ("<", "a1 NO bad\r\n"), (">", "a2 noop\r\n"), ("<", "a2 OK\r\n")],
        {"num_failed_logins": 1},
    ),
    (
        "web page",
        80,
        [(">", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), ("<", "HTTP/1.1 200 OK\r\n\r\nbody")],
        {"logged_in": 1},
    ),
    (
        "web password",
        8080,
        [(">", "GET /a HTTP/1.1\r\n\r\n"), ("<", "HTTP/1.1 401 No\r\n\r\n")],
        {"num_failed_logins": 1},
    ),
    (
        "web tricks",
        80,
        [(">", "GET /?id=1%27+or+1=1 HTTP/1.1\r\n\r\n"), (">", "GET /../etc/passwd HTTP/1.1\r\n\r\n")],
        {"hot": 3, "num_access_files": 1},
    ),
    ("encrypted", 22, [("<", "SSH-2.0-x\r\n"), (">", "USER anonymous\r\n230 in\r\n")], {}),
]


@pytest.mark.parametrize(("port", "lines", "expected"), [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_dialogues_are_read(port: int, lines: list[Line], expected: dict[str, int]) -> None:
    assert content(dialogue(port, lines)) == expected


@pytest.mark.parametrize(
    ("port", "lines", "expected"), [pytest.param(*c[1:], id=c[0]) for c in CASES if c[1] not in (80, 8080)]
)
@pytest.mark.parametrize("pieces", [1, 3])
def test_lines_in_pieces_are_read(port: int, lines: list[Line], expected: dict[str, int], pieces: int) -> None:
    assert content(dialogue(port, lines, pieces)) == expected


def test_a_repeated_segment_is_read_once() -> None:
    packets = dialogue(21, [*FTP_LOGIN, ("<", "530 no\r\n")])
    assert content([*packets, packets[-1]]) == {"num_failed_logins": 1}


def test_an_endless_line_stays_within_its_room() -> None:
    assert content(dialogue(21, [(">", "USER " + "x" * 5000 + "\r\n"), *FTP_LOGIN, ("<", "530 no\r\n")])) == {
        "num_failed_logins": 1
    }


def test_no_password_stays_in_memory() -> None:
    table = FlowTable(64, NO_TIMEOUTS)
    table.feed(block(dialogue(21, [(">", "PASS hunter2")])))
    assert any(b"hunter2" in array.tobytes() for array in table._table)  # while the line is unfinished
    records = table.finish()
    assert not any(b"hunter2" in array.tobytes() for array in table._table)
    assert b"hunter2" not in records.tobytes()


def dns(name: str, kind: int = 1, *, answer: int | None = None) -> bytes:
    bits = 0x0100 if answer is None else 0x8180 | answer
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return (
        bytes([0, 1])
        + bits.to_bytes(2, "big")
        + bytes([0, 1, 0, 0, 0, 0, 0, 0])
        + labels
        + b"\0"
        + bytes([0, kind, 0, 1])
    )


def flow_row(records: Any) -> dict[str, float]:
    table = connection_maker("flow").table(records)
    return dict(zip((a.name for a in table.schema.numeric), table.num[0].tolist(), strict=True))


def test_dns_questions_are_read() -> None:
    question, answer = (
        udp(0, dport=53, data=dns("abab.Example.org", 16)),
        udp(0.1, back=True, dport=53, data=dns("abab.Example.org", 16, answer=3)),
    )
    records = records_of([question, answer, udp(0.2, dport=53, data=dns("x.org"))])
    assert context_columns(records)["name"].tolist() == ["abab.Example.org"]
    row = flow_row(records)
    assert (row["dns_queries"], row["dns_length"], row["dns_failures"]) == (2, 16, 1)
    letters = list("ababExampleorg")
    shares = np.array([letters.count(c) / len(letters) for c in set(letters)])
    assert row["dns_entropy"] == pytest.approx(-(shares * np.log2(shares)).sum(), abs=1e-4)


def test_a_name_longer_than_its_room_is_cut() -> None:
    name = ".".join(["a" * 60] * 4)
    records = records_of([udp(0, dport=53, data=dns(name))])
    assert context_columns(records)["name"].tolist() == [name[:64]]
    assert flow_row(records)["dns_length"] == 243


def test_the_name_of_an_earlier_connection_does_not_show_up_again() -> None:
    table = FlowTable(16)
    table.feed(block([udp(0, dport=53, data=dns("secret.example"))]))
    table.finish()
    later = table.feed(block([udp(100, dport=99), udp(300, dport=99)]))
    assert context_columns(later)["name"].tolist() == [""]


def hello(name: bytes = b"www.example.org", ciphers: tuple[int, ...] = (0x1301, 0x0A0A, 0xC02F)) -> bytes:
    def extension(kind: int, body: bytes) -> bytes:
        return kind.to_bytes(2, "big") + len(body).to_bytes(2, "big") + body

    server = len(name) + 3
    extensions = extension(0, server.to_bytes(2, "big") + b"\0" + len(name).to_bytes(2, "big") + name)
    extensions += extension(16, b"\0\x03\x02h2") + extension(43, b"\x04\x7a\x7a\x03\x04") + extension(0x1A1A, b"")
    suites = b"".join(c.to_bytes(2, "big") for c in ciphers)
    body = b"\x03\x03" + bytes(32) + b"\0" + len(suites).to_bytes(2, "big") + suites + b"\x01\0"
    body += len(extensions).to_bytes(2, "big") + extensions
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


def tls(data: bytes) -> Any:
    return records_of([*handshake(dport=4433), tcp(0.1, "PA", seq=101, data=data, dport=4433)], NO_TIMEOUTS)


def test_tls_hellos_are_read() -> None:
    records = tls(hello())
    context = context_columns(records)
    assert context["name"].tolist() == ["www.example.org"]
    assert context["tls"][0].startswith("t13d0203h2_")
    row = flow_row(records)
    assert (row["tls_ciphers"], row["tls_extensions"]) == (2, 3)


def test_the_order_of_ciphers_does_not_change_the_code() -> None:
    codes = [context_columns(tls(hello(ciphers=c)))["tls"][0] for c in ((1, 2, 3), (3, 1, 2), (1, 2, 4))]
    assert codes[0] == codes[1] != codes[2]


@given(st.integers(0, 120), st.integers(0, 255))
def test_a_broken_hello_leaves_the_table_whole(at: int, byte: int) -> None:
    data = bytearray(hello())
    data[at % len(data)] = byte
    for end in (len(data), at):
        records = tls(bytes(data[:end]) or b"x")
        assert len(context_columns(records)["tls"]) == 1


@given(st.binary(max_size=80))
def test_a_broken_question_leaves_the_table_whole(data: bytes) -> None:
    records = records_of([udp(0, dport=53, data=data or b"x")])
    assert np.isfinite(list(flow_row(records).values())).all()
