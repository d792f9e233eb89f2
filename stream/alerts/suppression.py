"""What operators do not want to hear about: rules with a reason and, if they like, an end. Nothing is hidden uncounted.

A rule's conditions must all hold. Each rule is filed under its most telling condition (a network, a port, a cluster, a
label, an attribute), so that a record is compared with the few rules that could concern it, however many there are.

>>> from netclust.stream.config import SuppressConfig
>>> rule = suppression_of(SuppressConfig(reason="our scanner", source="10.0.0.0/28", until="2030-01-01"))
>>> rules = SuppressionSet([rule])
>>> found = rules.hidden("10.0.0.7", "192.0.2.1", 443, 9, "novel", None, now=0)
>>> found.reason, rules.hidden("10.0.0.99", "192.0.2.1", 443, 9, "novel", None, now=0)
('our scanner', None)
>>> rules.counts == {rule.id: 1}
True
"""

from __future__ import annotations

import hashlib
import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

from netclust.errors import InputError
from netclust.stream.config import SuppressConfig

__all__ = ["FOR_GOOD", "MAX_RULES", "Suppression", "SuppressionSet", "suppression_of"]

FOR_GOOD = -1
MAX_RULES = 10_000
MAX_REASON = 500
MAX_VALUE = 255
REMEMBERED = 8192
"""Answers kept for records that look alike to every rule."""

Attributes = Callable[[], Mapping[str, str]] | None
Origin = Literal["config", "people"]
_FIELDS = ("address", "source", "destination", "port", "cluster", "label", "attribute")


class Suppression(msgspec.Struct, frozen=True, kw_only=True):
    """A rule: what is given must all match. `address` is either end; `attribute` is name=value; `until` is in ns."""

    id: str
    reason: str
    address: str = ""
    source: str = ""
    destination: str = ""
    port: int | None = None
    cluster: int | None = None
    label: str = ""
    attribute: str = ""
    until: int = FOR_GOOD
    origin: Origin = "config"


def suppression_of(
    config: SuppressConfig, where: str = "suppress", *, origin: Origin = "config", rule_id: str = ""
) -> Suppression:
    """A checked rule of what people wrote; without an id, it gets one that is made of what it says.

    >>> suppression_of(SuppressConfig(reason="test", source="10.0.0.7/24"))
    Traceback (most recent call last):
    netclust.errors.InputError: suppress: source '10.0.0.7/24' is within a network: write 10.0.0.0/24 or 10.0.0.7
    """
    reason = config.reason.strip()
    if not reason or len(reason) > MAX_REASON:
        raise InputError(f"{where}: a rule needs a reason, of 1 to {MAX_REASON} characters")
    nets = {name: _network(getattr(config, name), f"{where}: {name}") for name in ("address", "source", "destination")}
    if config.port is not None and not 0 <= config.port <= 65_535:
        raise InputError(f"{where}: port {config.port}: a port is 0 to 65535")
    if config.cluster is not None and not 0 <= config.cluster < 1 << 63:
        raise InputError(f"{where}: cluster {config.cluster}: a cluster's number is 0 or more")
    name, equals, value = config.attribute.partition("=")
    if config.attribute and not (name.strip() and equals and value.strip()):
        raise InputError(f"{where}: attribute {config.attribute[:40]!r}: write name=value")
    if max(len(config.label), len(config.attribute)) > MAX_VALUE:
        raise InputError(f"{where}: label and attribute are at most {MAX_VALUE} characters")
    rule = Suppression(
        id=rule_id,
        reason=reason,
        **nets,
        port=config.port,
        cluster=config.cluster,
        label=config.label,
        attribute=f"{name.strip()}={value.strip()}" if config.attribute else "",
        until=_until(config.until, where),
        origin=origin,
    )
    if not any(getattr(rule, field) not in ("", None) for field in _FIELDS):
        raise InputError(f"{where}: the rule {reason[:40]!r} says nothing to match: give one of {', '.join(_FIELDS)}")
    return rule if rule_id else msgspec.structs.replace(rule, id=_rule_id(rule))


def _rule_id(rule: Suppression) -> str:
    return "s-" + hashlib.blake2b(msgspec.json.encode(rule), digest_size=5).hexdigest()


def _network(text: str, where: str) -> str:
    text = text.strip()
    if not text:
        return ""
    try:
        return str(ipaddress.ip_network(text)) if "/" in text else str(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        wider = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise InputError(f"{where} {text[:60]!r} is neither an address nor a network such as 10.0.0.0/8") from None
    raise InputError(f"{where} {text!r} is within a network: write {wider} or {text.partition('/')[0]}")


def _until(text: str, where: str) -> int:
    if not text.strip():
        return FOR_GOOD
    try:
        time = datetime.fromisoformat(text.strip())
        seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{where}: until {text[:40]!r}: write a time such as 2030-01-31T18:00:00Z") from None
    return min(max(int(seconds), 0) * 10**9, (1 << 63) - 1)


Number = tuple[int, int]
"""An address: its width in bits, its value. A mapped IPv4 address is the IPv4 address."""


def _number(text: str) -> Number | None:
    try:
        if ":" not in text:
            return 32, int.from_bytes(socket.inet_pton(socket.AF_INET, text), "big")
        value = int.from_bytes(socket.inet_pton(socket.AF_INET6, text.partition("%")[0]), "big")
    except (OSError, ValueError):
        return None
    return (32, value & 0xFFFFFFFF) if value >> 32 == 0xFFFF else (128, value)


class _Networks:
    """Rules by network: one look-up for each length of prefix that is in use."""

    def __init__(self) -> None:
        self.lengths: dict[int, set[int]] = {}
        self.rules: dict[tuple[int, int, int], list[int]] = {}

    def file(self, network: str, rule: int) -> None:
        width, length, prefix = _prefix(network)
        self.lengths.setdefault(width, set()).add(length)
        self.rules.setdefault((width, length, prefix), []).append(rule)

    def find(self, number: Number | None, found: list[int]) -> None:
        if number is not None:
            width, value = number
            for length in self.lengths.get(width, ()):
                rules = self.rules.get((width, length, value >> (width - length)))
                if rules is not None:
                    found += rules


def _prefix(network: str) -> tuple[int, int, int]:
    """Width, length and value of a prefix."""
    net = ipaddress.ip_network(network)
    width, length, value = net.max_prefixlen, net.prefixlen, int(net.network_address)
    if width == 128 and length >= 96 and value >> 32 == 0xFFFF:
        width, length, value = 32, length - 96, value & 0xFFFFFFFF
    return width, length, value >> (width - length)


class SuppressionSet:
    """Rules made ready for many records. `counts`: how many records each rule has hidden, by its id.

    The first rule that matches, in the order given, hides a record. To change rules, make another set.
    """

    def __init__(self, rules: Iterable[Suppression] = (), counts: Mapping[str, int] | None = None) -> None:
        self.rules = tuple(rules)
        if len(self.rules) > MAX_RULES:
            raise InputError(f"more than {MAX_RULES} suppression rules: use networks instead of single addresses")
        self.counts = {rule.id: (counts or {}).get(rule.id, 0) for rule in self.rules}
        self._source, self._destination, self._address = _Networks(), _Networks(), _Networks()
        self._nets: list[tuple[tuple[int, int, int] | None, ...]] = []
        self._plain: dict[tuple[str, int | str], list[int]] = {}
        self._named: dict[str, dict[str, list[int]]] = {}
        for i, rule in enumerate(self.rules):
            self._nets.append(
                tuple(_prefix(net) if net else None for net in (rule.source, rule.destination, rule.address))
            )
            self._file(i, rule)
        self._ends = sorted({rule.until for rule in self.rules if rule.until != FOR_GOOD})
        self._needs_source, self._needs_destination, self._needs_port, self._needs_cluster, self._needs_label = (
            any(getattr(rule, name) not in ("", None) for rule in self.rules for name in names)
            for names in (("source", "address"), ("destination", "address"), ("port",), ("cluster",), ("label",))
        )
        # An answer can be kept where it depends on nothing but addresses, port, cluster and label.
        self._answers: dict[tuple[str, str, int | None, int, str], int] | None = (
            None if any(rule.attribute for rule in self.rules) else {}
        )
        self._valid = (0, -1)  # answers hold for times from, up to but without

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self.rules)

    def _file(self, i: int, rule: Suppression) -> None:
        for net, files in (
            (rule.source, self._source),
            (rule.destination, self._destination),
            (rule.address, self._address),
        ):
            if net:
                files.file(net, i)
                return
        for name, value in (("port", rule.port), ("cluster", rule.cluster), ("label", rule.label)):
            if value not in (None, ""):
                self._plain.setdefault((name, value), []).append(i)
                return
        name, _, text = rule.attribute.partition("=")
        self._named.setdefault(name, {}).setdefault(text, []).append(i)

    def hidden(
        self,
        source: str,
        destination: str,
        port: int | None,
        cluster: int,
        label: str,
        attributes: Attributes,
        now: int,
    ) -> Suppression | None:
        """The rule that hides this record at `now` (ns, -1 unknown), if one does; it is counted."""
        if not self.rules:
            return None
        answers, at = self._answers, None
        key = (  # what no rule asks for makes no difference
            source if self._needs_source else "",
            destination if self._needs_destination else "",
            port if self._needs_port else None,
            cluster if self._needs_cluster else 0,
            label if self._needs_label else "",
        )
        if answers is not None:
            if not self._valid[0] <= now < self._valid[1] or len(answers) >= REMEMBERED:
                answers.clear()
                self._valid = self._span(now)
            at = answers.get(key)
        if at is None:
            at = self._first(source, destination, port, cluster, label, attributes, now)
            if answers is not None:
                answers[key] = at
        if at < 0:
            return None
        rule = self.rules[at]
        self.counts[rule.id] += 1
        return rule

    def _span(self, now: int) -> tuple[int, int]:
        """From when to when the same rules are in force as now."""
        before = max((end for end in self._ends if end <= now), default=-1)
        return before, min((end for end in self._ends if end > now), default=1 << 63)

    def _first(
        self,
        source: str,
        destination: str,
        port: int | None,
        cluster: int,
        label: str,
        attributes: Attributes,
        now: int,
    ) -> int:
        begin = _number(source) if self._needs_source else None
        end = _number(destination) if self._needs_destination else None
        filed: list[int] = []
        ends = begin, end
        for networks, of in (
            (self._source, begin),
            (self._destination, end),
            (self._address, begin),
            (self._address, end),
        ):
            if networks.rules:
                networks.find(of, filed)
        if self._plain:
            for kind, value in (("port", port), ("cluster", cluster), ("label", label)):
                if value is not None:
                    filed += self._plain.get((kind, value), ())
        values: Mapping[str, str] | None = None
        if self._named:
            values = {} if attributes is None else attributes()
            for name, rules in self._named.items():
                filed += rules.get(values.get(name, ""), ())
        for i in sorted(filed):
            rule = self.rules[i]
            if rule.until != FOR_GOOD and now >= rule.until:
                continue
            if (
                rule.port not in (None, port)
                or rule.cluster not in (None, cluster)
                or rule.label not in ("", label)
                or not self._near(i, ends)
            ):
                continue
            if rule.attribute:
                values = values if values is not None else {} if attributes is None else attributes()
                name, _, text = rule.attribute.partition("=")
                if values.get(name) != text:
                    continue
            return i
        return -1

    def _near(self, i: int, ends: tuple[Number | None, Number | None]) -> bool:
        source, destination, address = self._nets[i]
        if source is not None and not _within(ends[0], source):
            return False
        if destination is not None and not _within(ends[1], destination):
            return False
        return address is None or _within(ends[0], address) or _within(ends[1], address)


def _within(number: Number | None, prefix: tuple[int, int, int]) -> bool:
    width, length, value = prefix
    return number is not None and number[0] == width and number[1] >> (width - length) == value
