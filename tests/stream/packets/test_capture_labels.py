"""Label files: which connection gets which class, and what is said about a file that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from exchanges import CLIENT, NO_TIMEOUTS, SERVER, T0, Packet, arp, icmp, records_of, tcp, udp
from hypothesis import given
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.stream.packets.capture_labels import LabelRules, load_labels, parse_labels

SECONDS = T0 // 10**9


def labels(text: str, packets: list[Packet]) -> list[str]:
    records = records_of(packets, NO_TIMEOUTS)
    rules = parse_labels(text)
    return [rules.names[k] for k in rules.labels_of(records)]


HEADER = "source,source_port,destination,destination_port,protocol,start,end,label\n"


@pytest.mark.parametrize(
    ("row", "matches"),
    [
        pytest.param(f"{CLIENT},40000,{SERVER},9999,udp,,,x", True, id="exactly"),
        pytest.param(f"{SERVER},9999,{CLIENT},40000,udp,,,x", True, id="the other way round"),
        pytest.param(f"{CLIENT},40000,{SERVER},9999,tcp,,,x", False, id="another protocol"),
        pytest.param(f"{CLIENT},40000,{SERVER},9998,udp,,,x", False, id="another port"),
        pytest.param("10.0.0.0/8,,,,,,,x", True, id="a network"),
        pytest.param("11.0.0.0/8,,,,,,,x", False, id="another network"),
        pytest.param("2001:db8::/32,,,,,,,x", False, id="a network of IPv6"),
        pytest.param(",,,9000-10000,,,,x", True, id="a range of ports"),
        pytest.param(",,,9000-9998,,,,x", False, id="another range"),
        pytest.param("*,any,,9999,17,,,x", True, id="words for any, and a number"),
        pytest.param(f",,,,,{SECONDS + 2}.0,,x", True, id="ends after it began"),
        pytest.param(f",,,,,{SECONDS + 9}.5,,x", False, id="begins later"),
        pytest.param(",,,,,2023-11-14T22:13:21Z,2023-11-14T22:13:30+00:00,x", True, id="ISO times"),
        pytest.param(",,,,,,2023-11-14 22:13:00,x", False, id="an ISO time without a zone is UTC"),
    ],
)
def test_a_row_labels_the_right_connections(row: str, matches: bool) -> None:
    assert labels(HEADER + row + "\n", [udp(0), udp(5)]) == ["x" if matches else ""]


def test_rows_count_in_the_stated_order() -> None:
    text = HEADER + f",,,,,,,rest\n10.0.0.0/8,,,,,,,net\n{CLIENT},40000,{SERVER},9999,udp,,,one\n"
    assert labels(text, [udp(0), udp(0, sport=5)]) == ["one", "rest"]


def test_one_five_tuple_used_twice_gets_two_labels() -> None:
    key = f"{CLIENT},40000,{SERVER},9999,udp"
    text = HEADER + f"{key},{SECONDS}.0,{SECONDS + 1}.0,first\n{key},{SECONDS + 100}.0,{SECONDS + 101}.0,second\n"
    rules = parse_labels(text)
    found = [records_of([udp(at)]) for at in (0, 100.5, 300)]
    assert [rules.names[rules.labels_of(r)[0]] for r in found] == ["first", "second", ""]


def test_what_has_no_ports_can_be_named() -> None:
    text = HEADER + f"{CLIENT},,{SERVER},,icmp,,,ping\n10.0.0.1,,10.0.0.2,,arp,,,who\n"
    assert sorted(labels(text, [icmp(0, 8), arp(1, 1, "10.0.0.1", "10.0.0.2"), tcp(2, "S")])) == ["", "ping", "who"]


def test_rules_of_one_capture_do_not_hold_for_another() -> None:
    rules = parse_labels("file,label\nattack/*,bad\nbenign/a.pcap,good\n")
    names = [
        [rules.names[r.label] for r in rules.for_file(p).rules] for p in ("/x/attack/b.pcap", "benign/a.pcap", "c")
    ]
    assert names == [["bad"], ["good"], []]


def test_connections_that_are_known_are_found_again() -> None:
    records = records_of([udp(0), tcp(1, "S"), icmp(2, 8)], NO_TIMEOUTS)
    rules = LabelRules()
    rules.add_connections(records, ["a", "", "c"], shift=5)
    shifted = records.copy()
    for name in ("first", "last"):
        shifted["flow"][name] += 5
    assert [rules.names[k] for k in rules.labels_of(shifted)] == ["a", "", "c"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("source,kind\n1.2.3.4,x\n", "line 1: no column label"),
        ("label,colour\nx,red\n", "line 1: unknown columns colour"),
        ("label\n", "no labels"),
        ("source,label\n1.2.3,x\n", "line 2: '1.2.3' is no address"),
        ("source,label\n1.2.3.4\n", "line 2: as many fields"),
        ("label,source\nx,1.2.3.4,5\n", "line 2: as many fields"),
        ("source_port,label\n70000,x\n", "line 2: '70000' is no port"),
        ("source_port,label\n1-x,x\n", "line 2: '1-x' is no port"),
        ("protocol,label\nquic,x\n", "line 2: 'quic' is no protocol"),
        ("start,label\nyesterday,x\n", "line 2: 'yesterday' is no time"),
        ("source,label\n1.2.3.4,\n", "line 2: a row without a label"),
        ('source,label\n"1.2.3.4,x\n', "unexpected end"),
    ],
)
def test_bad_label_files_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=r"^labels") as found:
        parse_labels(text)
    assert complaint in str(found.value)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"label\n\xff\xfe\n")
    with pytest.raises(InputError, match="byte 6: not UTF-8"):
        load_labels(tmp_path / "x.csv")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for content in (text, HEADER + text):
        try:
            parse_labels(content)
        except InputError:
            continue
