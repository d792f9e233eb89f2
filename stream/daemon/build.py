"""From a configuration to its parts: model, sources and sinks; and the check of all of them before anything starts."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from netclust.errors import InputError
from netclust.records.schema import Schema
from netclust.scoring.model import Model
from netclust.stream.alerts.suppression import suppression_of
from netclust.stream.bus.addresses import MAX_PARTITIONS, is_bus
from netclust.stream.config import Config, SourceConfig
from netclust.stream.daemon.paths import default_state_dir
from netclust.stream.sinks.base import Sink
from netclust.stream.sinks.factory import open_sink
from netclust.stream.sources.base import Source

_PACKETS = ("capture", "live")
_LOGS = ("zeek", "eve")


def state_dir(config: Config) -> Path:
    """Where the daemon keeps what it must not lose."""
    return Path(config.daemon.state_dir) if config.daemon.state_dir else default_state_dir()


def model_name(config: Config) -> str:
    """The model that is meant: a path, or the name of a shipped one that fits the sources."""
    if config.model.path:
        return config.model.path
    kinds = {source.kind for source in config.sources}
    schemas = {source.schema_ for source in config.sources if source.schema_}
    if len(schemas) == 1:
        return schemas.pop()
    if kinds <= {"records"}:
        return "kdd"
    return "flow" if kinds <= set(_PACKETS) else "conn"


def load_model(config: Config) -> Model:
    """The configured model."""
    from netclust.shipped.loading import load_shipped, shipped_models

    name = model_name(config)
    if name in shipped_models():
        return load_shipped(name)
    if not Path(name).exists():
        raise InputError(f"model {name!r}: no such file, and none of the shipped ones ({', '.join(shipped_models())})")
    return Model.load(name)


def _schema_of(source: SourceConfig, model: Model) -> Schema:
    """Return the schema in which a source gives its records: the model's."""
    schema = model.encoding.schema
    if source.schema_ and source.schema_ != schema.name and not source.schema_.endswith(".toml"):
        raise InputError(f"source {source.name}: schema {source.schema_} is not that of the model ({schema.name})")
    if source.kind in _PACKETS:
        from netclust.stream.packets.connections import SCHEMAS

        if schema.name not in SCHEMAS:
            raise InputError(f"source {source.name}: packets give {', '.join(SCHEMAS)}, the model wants {schema.name}")
    if source.kind in _LOGS and schema.name not in ("conn", "kdd"):
        raise InputError(
            f"source {source.name}: {source.kind} gives records of schema conn or kdd, the model wants {schema.name}: "
            'leave out model.path, or set it to "conn"'
        )
    return schema


def build_source(config: SourceConfig, model: Model) -> Source:
    """A source, not yet opened."""
    schema = _schema_of(config, model)
    source: Source
    if config.kind in _PACKETS:
        from netclust.stream.sources.captures import open_packet_source

        source = open_packet_source(config, schema)
    elif config.kind == "bus":
        from netclust.stream.sources.bus_records import BusSource

        source = BusSource(config.name, config.path, schema, partitions=config.partitions)
    else:
        from netclust.stream.sources.records import open_text_source

        source = open_text_source(config, schema)
    if not config.pace:
        return source
    if config.pace < 0 or config.follow or not source.replayable or is_bus(config.path):
        given = config.path or ", ".join(config.interfaces)
        raise InputError(
            f"source {config.name}: pace ({config.pace:g}) is for files that are complete, not for {given}"
        )
    from netclust.stream.sources.paced import PacedSource

    return PacedSource(source, config.pace)


def build_sinks(config: Config) -> list[Sink]:
    """The sinks, not yet opened."""
    observer = socket.gethostname()
    return [open_sink(sink, observer=observer) for sink in config.sinks]


def read_token(config: Config) -> str:
    """The token that changes over HTTP need; "" where there is none, and then nothing can be changed."""
    path = config.http.token_file
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            token = file.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"http.token_file {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(token) < 16:
        raise InputError(f"http.token_file {path}: a token has at least 16 characters: `openssl rand -hex 24 > {path}`")
    return token


def _check_source(source: SourceConfig) -> None:
    """Refuse what cannot be read, and options that would say nothing."""
    if source.kind == "live":
        if not source.interfaces:
            raise InputError(f'source {source.name}: a live source needs interfaces = ["eth0"]')
        if source.path or source.follow:
            raise InputError(f"source {source.name}: path and follow are not for a live source")
        return
    if not source.path:
        raise InputError(f"source {source.name}: path is missing: a file, -, an address to listen at, or a bus")
    if source.kind == "bus" or is_bus(source.path):
        from netclust.stream.bus.factory import check_bus

        try:
            check_bus(source.path)
        except InputError as error:
            raise InputError(f"source {source.name}: {error}") from None
        if source.kind == "capture":
            raise InputError(f"source {source.name}: packets do not come over a bus: records do")
    if source.partitions != 1 and source.kind != "bus":
        raise InputError(f"source {source.name}: partitions is for a source of kind bus")
    for name in ("interfaces", "bpf", "promiscuous"):
        if getattr(source, name):
            raise InputError(f"source {source.name}: {name} is for a live source")


def sensor_name(config: Config) -> str:
    """Who ships."""
    return config.ship.sensor or socket.gethostname() or "sensor"


def _check_ship(config: Config) -> None:
    ship = config.ship
    for name in ("url", "verdicts_url"):
        try:
            if getattr(ship, name):
                from netclust.stream.bus.factory import check_bus

                check_bus(getattr(ship, name))
        except InputError as error:
            raise InputError(f"ship.{name}: {error}") from None
    if ship.url and ship.url == ship.verdicts_url:
        raise InputError("ship: url and verdicts_url are the same topic: give each its own")
    if not 1 <= ship.partitions <= MAX_PARTITIONS:
        raise InputError(f"ship.partitions lies between 1 and {MAX_PARTITIONS}")
    if len(sensor_name(config)) > 64 or not sensor_name(config).isprintable():
        raise InputError("ship.sensor is a name of at most 64 characters")
    if not 1 <= ship.batch_records <= 65_536 or not 1 <= ship.queue_records <= 1 << 24:
        raise InputError("ship: batch_records lies between 1 and 65536, queue_records between 1 and 16777216")
    if not 0 < ship.batch_seconds <= 60:
        raise InputError("ship.batch_seconds is more than 0 and at most 60")
    if ship.spool_bytes < 1 << 20:
        raise InputError("ship.spool_bytes is at least 1048576: without it all is lost while the bus is away")


def check_detector(config: Config, model: Model) -> None:
    """What decides about verdicts and alerts, in a daemon and in shards: window, warm-up, rate, suppression."""
    config.window.linker()
    if not 1 <= config.window.threads <= 256:
        raise InputError(f"window.threads lies between 1 and 256, not {config.window.threads}")
    if config.window.partitions > 1 and model.encoding.schema.with_role("key") is None:
        raise InputError(f"window.partitions: schema {model.encoding.schema.name} has no key attribute, so it is 1")
    if not 0 < config.model.false_alarm_rate < 1:
        raise InputError("model.false_alarm_rate lies between 0 and 1")
    if config.warmup.records < 0 or (config.warmup.records and config.warmup.references < 2):
        raise InputError("warmup: records is 0 or more, and references is 2 or more")
    if config.warmup.records and config.warmup.records - config.warmup.references < 100:
        raise InputError("warmup: at least 100 records more than references, to calibrate with")
    for i, rule in enumerate(config.suppress, 1):
        suppression_of(rule, f"suppress {i}")
        name = rule.attribute.partition("=")[0].strip()
        if name and name not in {a.name for a in model.encoding.schema.attributes}:
            raise InputError(f"suppress {i}: schema {model.encoding.schema.name} has no attribute {name!r}")


def check_config(config: Config) -> Model:
    """Everything that can be known before the start; InputError says what is wrong. Nothing is opened or changed."""
    from netclust.stream.telemetry.telemetry import MAX_NAMES

    if not config.sources:
        raise InputError("no [[source]]: there is nothing to watch (`netclust shards run` needs none)")
    model = load_model(config)
    check_detector(config, model)
    if max(len(config.sources), len(config.sinks)) > MAX_NAMES - 2:
        raise InputError(f"at most {MAX_NAMES - 2} sources and as many sinks: metrics would be too many")
    for source in config.sources:
        _check_source(source)
        build_source(source, model)
    build_sinks(config)
    _check_ship(config)
    token = read_token(config)
    if config.http.listen:
        from netclust.stream.http.guard import is_loopback, parse_listen

        host, _ = parse_listen(config.http.listen)
        if not is_loopback(host) and not token:
            raise InputError(f"http.listen {config.http.listen} is not loopback: it needs http.token_file")
    for name in ("tls_cert", "tls_key"):
        if (path := getattr(config.http, name)) and not os.access(path, os.R_OK):
            raise InputError(f"http.{name} {path}: cannot be read")
    if bool(config.http.tls_cert) != bool(config.http.tls_key):
        raise InputError("http: tls_cert and tls_key go together")
    for path in [sink.path for sink in config.sinks if sink.path] + [config.verdicts.path]:
        if path and not Path(path).absolute().parent.is_dir():
            raise InputError(f"{path}: there is no folder {Path(path).parent}")
    for name in ("checkpoint_seconds", "shutdown_timeout", "max_queue_age"):
        if not 0 < getattr(config.daemon, name) <= 1e6:
            raise InputError(f"daemon.{name} is a number of seconds above 0")
    if not 1 <= config.daemon.queue_records <= 1 << 24:
        raise InputError("daemon.queue_records lies between 1 and 16777216")
    return model
