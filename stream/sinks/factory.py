"""Makes a sink of its configuration; each kind's module is loaded when it is used.

>>> from netclust.stream.config import SinkConfig
>>> open_sink(SinkConfig(kind="syslog", name="siem", address="udp://127.0.0.1:514"), observer="probe").name
'siem'
"""

from __future__ import annotations

from netclust.errors import InputError
from netclust.stream.config import SinkConfig
from netclust.stream.sinks.base import Sink


def open_sink(config: SinkConfig, *, observer: str) -> Sink:
    """The sink, not yet opened. InputError says what its configuration lacks."""
    try:
        sink = _made(config, observer)
    except InputError as error:
        raise InputError(f"sink {config.name or config.kind!r}: {error}") from None
    if config.min_severity == "low":
        return sink
    from netclust.stream.sinks.filtering import AtLeast

    return AtLeast(sink, config.min_severity)


def _made(config: SinkConfig, observer: str) -> Sink:
    name = config.name or config.kind
    if not 0 < config.timeout_seconds <= 300:
        raise InputError(f"timeout_seconds = {config.timeout_seconds}: use more than 0 and at most 300")
    if config.queue_events < 1:
        raise InputError(f"queue_events = {config.queue_events}: use 1 or more")
    if config.spool_bytes < 0:
        raise InputError(f"spool_bytes = {config.spool_bytes}: use 0 (no spool) or more")
    if config.kind == "jsonl":
        from netclust.stream.sinks.jsonl import JsonLines

        return JsonLines(name, _needed(config, "path"), observer=observer)
    if config.kind == "syslog":
        from netclust.stream.sinks.syslog import Syslog

        address = _needed(config, "address")

        return Syslog(
            name,
            address,
            style=config.format,
            observer=observer,
            ca_file=config.ca_file,
            timeout=config.timeout_seconds,
        )
    if config.kind == "terminal":
        from netclust.stream.sinks.terminal import Terminal

        return Terminal(name)
    if config.kind == "bus":
        from netclust.stream.bus.factory import check_bus
        from netclust.stream.sinks.bus_sink import BusSink

        check_bus(_needed(config, "url"))
        return BusSink(name, config.url, observer=observer)
    from netclust.stream.sinks.alertmanager import Alertmanager
    from netclust.stream.sinks.webhook import Webhook

    make = Webhook if config.kind == "webhook" else Alertmanager
    return make(
        name,
        _needed(config, "url"),
        observer=observer,
        headers=config.headers,
        token_file=config.token_file,
        ca_file=config.ca_file,
        timeout=config.timeout_seconds,
    )


def _needed(config: SinkConfig, field: str) -> str:
    value: str = getattr(config, field)
    if not value:
        raise InputError(f"kind {config.kind!r} needs {field} = ...")
    return value
