"""Events for pages: everybody hears them, nobody is waited for, and the end of the daemon is told."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator

from netclust.stream.console.events import BYE, LAGGED, WAITING, EventHub, event_frame
from netclust.stream.console.overview import COLUMNS, Overview, as_columns

MINUTE = 60 * 10**9


async def heard(stream: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(10):
        return await anext(stream)


def test_every_page_hears_what_another_thread_tells() -> None:
    async def listen() -> None:
        hub = EventHub()
        hub.publish("alert", {"id": "nobody listens"})
        pages = [hub.listen(event_frame("hello", {"page": k})) for k in range(3)]
        for k, page in enumerate(pages):
            assert await heard(page) == event_frame("hello", {"page": k})
        assert hub.listeners == 3
        await asyncio.to_thread(hub.publish, "alert", {"id": "a-1\n\nevent: forged"})
        for page in pages:
            message = await heard(page)
            assert message.count(b"\n") == 3, "what records hold cannot forge an event"
            assert json.loads(message.split(b"data: ")[1])["id"] == "a-1\n\nevent: forged"
        await pages[0].aclose()  # type: ignore[attr-defined]
        assert hub.listeners == 2
        threading.Thread(target=hub.close).start()
        assert await heard(pages[1]) == BYE
        assert [m async for m in pages[1]] == []
        assert [m async for m in pages[2]] == [BYE]
        assert hub.listeners == 0

    asyncio.run(listen())


def test_a_page_that_does_not_take_its_events_does_not_grow() -> None:
    async def listen() -> None:
        hub = EventHub()
        page = hub.listen(b"first")
        await heard(page)
        for k in range(WAITING + 10):
            hub.publish("alert", {"k": k})
        await asyncio.sleep(0)
        message = await heard(page)
        assert message.startswith(LAGGED)
        assert message.endswith(event_frame("alert", {"k": WAITING + 9}))
        await page.aclose()  # type: ignore[attr-defined]

    asyncio.run(listen())


def test_a_page_that_left_before_its_answer_began_keeps_no_place() -> None:
    async def listen() -> None:
        hub = EventHub()
        hub.listen(b"first")  # nobody ever asks it for anything
        assert hub.listeners == 1
        for k in range(2 * WAITING + 2):
            hub.publish("overview", {"k": k})
        await asyncio.sleep(0)
        assert hub.listeners == 0

    asyncio.run(listen())


def test_a_hub_whose_loop_is_gone_is_silent() -> None:
    hub = EventHub()

    async def listen() -> None:
        await heard(hub.listen(b"first"))

    asyncio.run(listen())
    hub.publish("overview", {})
    hub.close()


# The overview


def test_rates_are_per_second_and_never_negative() -> None:
    overview = Overview(clock=lambda: 5)
    assert overview.take({"records": 1000}, seconds=10.0).rates["records"] == 0.0, "nothing to compare with"
    sample = overview.take({"records": 1500, "novel": 20, "roots": 10}, {"drift": 2.0}, seconds=12.0)
    assert (sample.rates["records"], sample.rates["novel"], sample.gauges["root"]) == (250.0, 10.0, 0.02)
    assert overview.take({"records": 3}, seconds=13.0).rates["records"] == 0.0, "counted from 0 again"


def test_a_minute_is_stored_once_with_its_means() -> None:
    now = 10 * MINUTE
    overview = Overview(clock=lambda: now)
    for second in range(121):
        overview.take({"records": 50.0 * second}, {"window": 0.5}, seconds=float(second))
        now += 10**9
    ((first, means), (second_minute, _)) = overview.take_minutes()
    assert (first, second_minute) == (10 * MINUTE, 11 * MINUTE)
    assert means["window"] == 0.5
    assert 49 <= means["records"] <= 50
    assert overview.take_minutes() == []
    recent = overview.recent(30)
    assert 29 <= len(recent) <= 30
    columns = as_columns(recent)
    assert set(columns) == {"time", *COLUMNS}
    assert columns["records"] == [50.0] * len(recent)


def test_minutes_that_nobody_stores_are_bounded() -> None:
    now = 0
    overview = Overview(clock=lambda: now)
    for _ in range(100):
        now += MINUTE
        overview.take({}, seconds=now / 1e9)
    assert len(overview.take_minutes()) == 60
