"""The daemon's configuration: one TOML file, checked as a whole before anything starts.

>>> config = parse_config('''
... [[source]]
... kind = "records"
... path = "-"
... ''')
>>> config.sources[0].kind, config.alerts.quiet_seconds
('records', 300.0)
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from netclust.errors import InputError
from netclust.linking.linker_config import LinkerConfig

MAX_CONFIG_BYTES = 1 << 20


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the file; unknown names are refused."""


SourceKind = Literal["capture", "live", "records", "zeek", "eve", "bus"]


class SourceConfig(_Section, frozen=True, kw_only=True, rename={"schema_": "schema"}):
    """One source. `path`: a file, a folder of captures, `-`, `tcp://HOST:PORT` or `unix:///PATH` (listened at).

    Or a topic of a bus, `kafka://`, `nats://` or `redis://`: of lines, or (kind `bus`) of records that sensors ship.
    """

    kind: SourceKind
    name: str = ""
    path: str = ""
    interfaces: tuple[str, ...] = ()
    bpf: str = ""
    promiscuous: bool = False
    follow: bool = False
    schema_: str = ""  # of records: "kdd", or a TOML file; default: the model's
    max_flows: int = 131_072
    max_writers: int = 64  # of a socket
    partitions: int = 1  # of kind bus: how many are shipped to
    pace: float = 0.0  # of files: as fast as it happened, times this; 0: as fast as it can be read


class ModelConfig(_Section, frozen=True, kw_only=True):
    """`path`: a model file, or the name of a shipped one (`flow`, `conn`, `kdd`); empty: what fits the sources."""

    path: str = ""
    false_alarm_rate: float = 0.001
    online_updates: bool = False
    update_rate: float = 0.05


class WarmupConfig(_Section, frozen=True, kw_only=True):
    """Learn the site first: so many records, assumed normal unless they look like a known attack. 0: no warm-up.

    Meanwhile only what is clearly a known attack is told.
    """

    records: int = 20_000
    references: int = 4000  # how many of them become referents


class WindowConfig(_Section, frozen=True, kw_only=True):
    """The linker's memory (see LinkerConfig)."""

    referent_window: int = 100  # a longer one spreads a wrong verdict further
    mature_after: float | None = 3600.0
    mature_share: float = 0.5
    partitions: int = 1
    max_clusters: int = 65_536
    representatives: int = 0  # of what left the referent window, still to be linked to
    keep: Literal["reservoir", "medoid", "difficulty"] = "reservoir"
    threads: int = 1  # partitions that are linked at a time

    def linker(self) -> LinkerConfig:
        """As the engine wants it."""
        return LinkerConfig(
            referent_window=self.referent_window,
            mature_after=self.mature_after,
            mature_share=self.mature_share,
            partitions=self.partitions,
            max_clusters=self.max_clusters,
            representatives=self.representatives,
            keep=self.keep,
        )


class AlertConfig(_Section, frozen=True, kw_only=True):
    """Alerts: one an entity and episode. Seconds are of traffic time."""

    quiet_seconds: float = 300.0  # without a record, it closes
    cooldown_seconds: float = (
        3600.0  # the same again within it reopens nothing: it is counted, and told once it is over
    )
    max_per_hour: int = 60  # opened; what is beyond is counted and summed up in one alert
    max_open: int = 4096
    reminder_interval: float = 60.0  # an open alert is reported again at most this often, and when its records double
    min_severity: Literal["low", "medium", "high", "critical"] = "low"
    min_records: int = 1  # before it is told


class SuppressConfig(_Section, frozen=True, kw_only=True):
    """A rule of the configuration's allowlist. All that is given must match."""

    reason: str
    address: str = ""  # an address or a network, either end
    source: str = ""
    destination: str = ""
    port: int | None = None
    cluster: int | None = None
    label: str = ""
    attribute: str = ""  # name=value of a symbolic attribute or context column
    until: str = ""  # ISO time; empty: for good


SinkKind = Literal["jsonl", "syslog", "webhook", "alertmanager", "bus", "terminal"]


class SinkConfig(_Section, frozen=True, kw_only=True):
    """One sink. `path` of a file; `url` of a webhook, an Alertmanager or a bus; `address` of a syslog receiver."""

    kind: SinkKind
    name: str = ""
    path: str = ""
    url: str = ""
    address: str = ""  # udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT, unix:///dev/log
    format: Literal["rfc5424", "cef"] = "rfc5424"
    headers: dict[str, str] = {}
    token_file: str = ""
    ca_file: str = ""
    timeout_seconds: float = 5.0
    min_severity: Literal["low", "medium", "high", "critical"] = "low"
    queue_events: int = 10_000
    spool_bytes: int = 64 << 20


class VerdictConfig(_Section, frozen=True, kw_only=True):
    """A line for each verdict, if a path is given."""

    path: str = ""
    which: Literal["anomalous", "all"] = "anomalous"


class StoreConfig(_Section, frozen=True, kw_only=True):
    """The SQLite store of alerts, clusters, labels and decisions."""

    max_days: float = 90.0
    max_bytes: int = 1 << 30


class HttpConfig(_Section, frozen=True, kw_only=True):
    """Metrics, health and feedback. Without a token nothing can be changed over HTTP; beyond loopback it is needed."""

    listen: str = "127.0.0.1:9471"  # empty: no HTTP
    token_file: str = ""
    tls_cert: str = ""
    tls_key: str = ""


class DaemonConfig(_Section, frozen=True, kw_only=True):
    """The process."""

    state_dir: str = ""  # default: systemd's STATE_DIRECTORY, else the user's state folder
    user: str = ""  # to become after interfaces are open, if started as root
    checkpoint_seconds: float = 60.0
    shutdown_timeout: float = 20.0  # seconds to drain and to write the last checkpoint
    queue_records: int = 16_384
    max_queue_age: float = 0.5  # seconds; sources that cannot wait drop records that have waited longer


class ShardingConfig(_Section, frozen=True, kw_only=True):
    """The distributed engine: a bus's partitions in; verdicts, events and campaigns out. An empty URL is not written.

    Each topic has as many `partitions`, except campaigns, which has one. The number cannot change later.
    """

    input: str
    verdicts: str = ""
    events: str = ""
    campaigns: str = ""
    partitions: int = 1
    recovery: str = ""  # a folder; default: `cluster` in the daemon's state folder
    epoch_seconds: float = 10.0  # state is kept this often; what came since is read again after a crash
    batch_messages: int = 16  # taken at once from a partition
    campaign_gap_seconds: float = 3600.0  # of traffic time between clusters of the same known attack
    max_campaign_clusters: int = 4096
    max_restarts: int = 20  # in an hour, before it gives up
    metrics: str = ""  # HOST:PORT of the first worker process, the next one is at the next port; empty: none


class ShipConfig(_Section, frozen=True, kw_only=True):
    """Records that are read also go to partitions of a bus; verdicts (those of `[verdicts] which`) to a topic."""

    url: str = ""  # empty: records are not shipped
    verdicts_url: str = ""  # empty: verdicts are not
    partitions: int = 1  # as many as whoever receives them has
    sensor: str = ""  # who we are; default: the host's name
    batch_records: int = 1000  # at most so many in a message
    batch_seconds: float = 0.5  # what is read waits so long for company
    queue_records: int = 65_536  # read and not packed
    spool_bytes: int = 256 << 20  # on disk while the bus is away, of records, and as much of verdicts


class LogConfig(_Section, frozen=True, kw_only=True):
    """Logs go to standard error."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(
    _Section, frozen=True, kw_only=True, rename={"sources": "source", "sinks": "sink", "suppress": "suppress"}
):
    """Everything."""

    sources: tuple[SourceConfig, ...] = ()
    sinks: tuple[SinkConfig, ...] = ()
    suppress: tuple[SuppressConfig, ...] = ()
    model: ModelConfig = ModelConfig()
    warmup: WarmupConfig = WarmupConfig()
    window: WindowConfig = WindowConfig()
    alerts: AlertConfig = AlertConfig()
    verdicts: VerdictConfig = VerdictConfig()
    store: StoreConfig = StoreConfig()
    http: HttpConfig = HttpConfig()
    daemon: DaemonConfig = DaemonConfig()
    log: LogConfig = LogConfig()
    ship: ShipConfig = ShipConfig()
    sharding: ShardingConfig | None = None
    old_spellings: tuple[str, ...] = ()  # no section: a warning for each name of an earlier release in the file


_OLD_SPELLINGS = (
    ("", "cluster", "sharding"),
    ("alerts", "update_seconds", "reminder_interval"),
    ("daemon", "queue_seconds", "max_queue_age"),
    ("daemon", "stop_seconds", "shutdown_timeout"),
)
"""Section, old name, new name. The old names of 0.1 are read until 0.2."""


def _respell(raw: dict[str, Any], where: str) -> list[str]:
    """Give sections and options their new names; return a warning for each that had its old one."""
    if "old_spellings" in raw:
        raise InputError(f"{where}: Object contains unknown field `old_spellings`")
    warnings = []
    for section, old, new in _OLD_SPELLINGS:
        inside = raw.get(section) if section else raw
        if not isinstance(inside, dict) or old not in inside:
            continue
        before, now = (f"[{section}] {old}", f"[{section}] {new}") if section else (f"[{old}]", f"[{new}]")
        if new in inside:
            raise InputError(f"{where}: {before} is the old name of {now}: give {now} alone")
        inside[new] = inside.pop(old)
        warnings.append(f"{before} is now {now}: rename it, the next release will refuse the old name")
    return warnings


def parse_config(text: str, where: str = "configuration") -> Config:
    """A configuration from TOML."""
    try:
        raw: dict[str, Any] = tomllib.loads(text)
        raw["old_spellings"] = _respell(raw, where)
        return named(msgspec.convert(raw, Config), where)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{where}: {error}") from None


def load_config(path: str | Path) -> Config:
    """A configuration from a file."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
        if len(data) > MAX_CONFIG_BYTES:
            raise InputError(f"{path}: larger than {MAX_CONFIG_BYTES} bytes, not a configuration")
        return parse_config(data.decode(), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None


def named(config: Config, where: str) -> Config:
    """Every source and sink with a name of its own, which metrics show: short, of letters, digits, - and _."""
    replaced: dict[str, Any] = {}
    for group in ("sources", "sinks"):
        taken: set[str] = set()
        given = []
        for i, one in enumerate(getattr(config, group)):
            name = one.name or (one.kind if one.kind not in taken else f"{one.kind}-{i}")
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
                raise InputError(f"{where}: {group[:-1]} name {name[:40]!r}: 1 to 32 letters, digits, - or _")
            if name in taken:
                raise InputError(f"{where}: two {group} are called {name!r}: give one another name")
            taken.add(name)
            given.append(msgspec.structs.replace(one, name=name))
        replaced[group] = tuple(given)
    if not replaced["sources"] and config.sharding is None:
        raise InputError(f"{where}: neither [[source]] nor [sharding]: there is nothing to watch")
    return msgspec.structs.replace(config, **replaced)
