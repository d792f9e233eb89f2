"""What sinks write: ECS documents as the published schema says, syslog and CEF that no text from outside can break."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import msgspec
import pytest
import sink_events as make
from hypothesis import given, settings
from needed import need_module

from netclust.stream.alerts.alert_events import Alert, AlertEvent, Count, Event, Notice
from netclust.stream.sinks import cef, ecs, syslog
from netclust.stream.sinks.terminal import Terminal

jsonschema = need_module("jsonschema")


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = ecs.event_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker(["ipv4", "ipv6"]))


@given(event=make.any_event)
@settings(max_examples=300)
def test_no_event_leaves_the_published_schema(validator: Any, event: Event) -> None:
    line = ecs.encode_ecs(event, "probe")
    assert b"\n" not in line
    validator.validate(json.loads(line))
    assert ecs.encode_ecs(msgspec.structs.replace(event), "probe") == line


@pytest.mark.parametrize("change", [{"more": 1}, {"event": {}}, {"@timestamp": "yesterday"}, {"netclust": {}}])
def test_the_schema_does_not_take_anything(validator: Any, change: dict[str, Any]) -> None:
    assert not validator.is_valid(ecs.to_document(make.alert_event()) | change)


def test_equal_events_do_not_give_different_bytes() -> None:
    one = Notice(topic="drift", time=5, key="n", message="", facts={"a": 1, "b": 2})
    other = Notice(topic="drift", time=5, key="n", message="", facts={"b": 2, "a": 1})
    assert ecs.encode_ecs(one) == ecs.encode_ecs(other)


def test_one_of_many_destinations_is_not_shown_as_the_destination() -> None:
    two = [Count("10.0.0.1", 5), Count("10.0.0.2", 4)]
    event = make.alert_event(destinations=two, destination_count=2, ports=[Count("80", 9)], port_count=1)
    document = ecs.to_document(event)
    assert document["source"] == {"ip": "10.0.0.7"}
    assert document["destination"] == {"port": 80}
    assert document["related"]["ip"] == ["10.0.0.1", "10.0.0.2", "10.0.0.7"]


SYSLOG = re.compile(
    rb"<(\d{1,3})>1 (-|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) ([!-~]{1,255}) netclust - ([!-~]{1,32}) "
    rb'(-|\[netclust@32473(?: [A-Za-z]+="(?:[^"\\\]]|\\["\\\]])*")*\])(?: (.*))?'
)


@given(event=make.any_event)
def test_text_from_outside_cannot_break_a_syslog_message(event: Event) -> None:
    for limit in (syslog.MAX_DATAGRAM, syslog.MAX_COUNTED):
        message = syslog.format_message(event, limit, observer="probe 7\n")
        assert len(message) <= limit
        message.decode()
        assert not re.search(rb"[\x00-\x1f\x7f]", message)
        parts = SYSLOG.fullmatch(message)
        assert parts is not None
        assert parts[3] == b"probe7"


def test_a_long_nasty_message_does_not_exceed_a_datagram() -> None:
    for style in ("rfc5424", "cef"):
        message = syslog.format_message(make.nasty_event(), syslog.MAX_DATAGRAM, observer="p" * 999, style=style)
        assert syslog.MAX_DATAGRAM - 20 < len(message) <= syslog.MAX_DATAGRAM


def test_syslog_priority_follows_the_severity() -> None:
    events = [make.alert_event(severity=s) for s in ("low", "medium", "high", "critical")]
    assert [syslog.format_message(e, 2048)[:5] for e in events] == [b"<133>", b"<132>", b"<131>", b"<130>"]


@given(event=make.any_event)
def test_text_from_outside_cannot_break_a_cef_line(event: Event) -> None:
    line = cef.to_cef(event, 1600, "probe")
    assert len(line.encode()) <= 1600
    assert line.isprintable()
    fields = re.split(r"(?<!\\)(?:\\\\)*\|", line, maxsplit=7)
    assert fields[0] == "CEF:0"
    assert len(fields) == 8
    names = [m[1] for m in re.finditer(r"(?:^| )([a-zA-Z0-9]+)(?<!\\)=", fields[7])]
    assert len(names) == len(set(names)), "an equals sign of a value was taken for a field"
    assert {"dvchost"} <= set(names)


def terminal_lines(*events: Event) -> list[str]:
    shown = io.StringIO()
    Terminal(stream=shown, width=60).write(events)
    return shown.getvalue().splitlines()


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    lines = terminal_lines(make.nasty_event(), Notice(topic="drift", time=-1, key="n", message=make.NASTY))
    assert all(line.isprintable() for line in lines)


def test_a_growing_flood_does_not_fill_the_terminal() -> None:
    def told(action: str, records: int) -> AlertEvent:
        return make.alert_event(1, action=action, records=records, explanation="It is far from normal. " * 5)

    sizes = [2**i for i in range(18)]
    lines = terminal_lines(told("open", 1), *(told("update", n) for n in sizes), told("close", 200_000))
    heads = [line for line in lines if not line.startswith("    ")]
    assert [re.split(r" {2,}", h)[4] for h in heads] == [
        "1 record",
        *(f"grew to {n:,} records" for n in (16, 256, 4096, 65536)),
        "closed at 200,000 records",
    ]
    assert len(lines) > len(heads)
    assert all(len(line) <= 60 for line in lines if line.startswith("    "))


def test_colours_do_not_go_into_a_pipe() -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    tty = Tty()
    Terminal(stream=tty).write([make.alert_event(severity="critical", summary="[bold]no markup[/bold]")])
    assert "\x1b" not in "".join(terminal_lines(make.alert_event(severity="critical")))
    assert "[bold]no markup[/bold]" in tty.getvalue()


def test_an_empty_alert_can_be_told_everywhere() -> None:
    event = AlertEvent(action="close", alert=Alert(id="a", kind="novel", label="", entity="", entity_kind="cluster"))
    assert ecs.encode_ecs(event)
    assert syslog.format_message(event, 480)
    assert syslog.format_message(event, 480, style="cef")
    assert terminal_lines(event)
