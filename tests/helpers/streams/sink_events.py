"""Events for the tests of sinks: plain ones, nasty ones, and any ones."""

from __future__ import annotations

import time
from collections.abc import Callable

from hypothesis import strategies as st

from netclust.stream.alerts.alert_events import Alert, AlertEvent, AttributeNote, Count, Event, Notice

NASTY = 'a\nb\r\x1b[31mred\x00|pipe="quote"]\\back\u202eüß€\U0001f600\ud800 <1>'


def alert_event(number: int = 0, *, action: str = "open", **fields: object) -> AlertEvent:
    given = {
        "label": "novel",
        "summary": f"number {number}",
        "last_seen": number * 10**9,
        "records": 1,
        "id": f"a-{number:06d}",
    }
    whole = given | {"entity": "10.0.0.7", "entity_kind": "source", "kind": "novel"} | fields
    return AlertEvent(action=action, alert=Alert(**whole))  # type: ignore[arg-type]


def alert_events(count: int, first: int = 0) -> list[Event]:
    return [alert_event(i) for i in range(first, first + count)]


def nasty_event() -> AlertEvent:
    """An event with text from outside wherever there can be some."""
    counts = [Count(NASTY, 1)]
    return alert_event(
        1,
        id=NASTY,
        label=NASTY,
        entity=NASTY,
        summary=NASTY * 50,
        explanation=NASTY * 500,
        protocol=NASTY,
        service=NASTY,
        sources=counts,
        destinations=counts,
        ports=counts,
        example={NASTY: NASTY},
        attributes=[AttributeNote(name=NASTY, contribution=float("inf"), value=NASTY, normal=None)],
        top_score=float("inf"),
    )


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something that other threads do."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


any_text = st.text(max_size=20) | st.just(NASTY)
any_number = st.floats() | st.integers(-3, 3).map(float)
any_value = st.none() | any_number | any_text
addresses = st.ip_addresses().map(str) | any_text
times = st.integers(-1, 2**63 - 1)
counts = st.lists(st.builds(Count, addresses, st.integers(0, 2**40)), max_size=3)
ports = st.lists(st.builds(Count, st.integers(0, 70000).map(str) | any_text, st.integers(0, 9)), max_size=2)
whole = st.integers(0, 2**40)
any_alert = st.builds(
    Alert,
    id=any_text.filter(bool),
    kind=st.sampled_from(["novel", "known_attack"]),
    label=any_text,
    entity=addresses,
    entity_kind=st.sampled_from(["source", "destination", "cluster"]),
    state=st.sampled_from(["open", "closed"]),
    closed_by=st.sampled_from(["", "quiet", "stopped", "label", "limit"]),
    update=whole,
    severity=st.sampled_from(["low", "medium", "high", "critical"]),
    severity_score=st.integers(0, 100),
    source=any_text,
    clusters=st.lists(st.integers(0, 2**40), max_size=3),
    records=whole,
    first_seen=times,
    last_seen=times,
    first_record=any_text,
    record_ids=st.lists(any_text, max_size=3),
    sources=counts,
    source_count=whole,
    destinations=counts,
    destination_count=st.integers(0, 2),
    ports=ports,
    port_count=st.integers(0, 2),
    protocol=any_text,
    service=any_text,
    top_score=any_number,
    attributes=st.lists(
        st.builds(AttributeNote, name=any_text, contribution=any_number, value=any_value, normal=any_value), max_size=2
    ),
    example=st.dictionaries(any_text, any_value, max_size=3),
    explanation=any_text,
    summary=any_text,
)
any_event = st.one_of(
    st.builds(AlertEvent, action=st.sampled_from(["open", "update", "close"]), alert=any_alert),
    st.builds(
        Notice,
        topic=st.sampled_from(["drift", "warmup", "feedback", "reload", "model", "loss"]),
        time=times,
        key=any_text.filter(bool),
        message=any_text,
        facts=st.dictionaries(any_text, any_value | st.integers(), max_size=3),
    ),
)
