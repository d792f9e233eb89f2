"""Rules hide what they say, nothing else, and never silently."""

from __future__ import annotations

import ipaddress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.stream.alerts.suppression import FOR_GOOD, MAX_RULES, Suppression, SuppressionSet, suppression_of
from netclust.stream.config import SuppressConfig

NOW = 1_700_000_000 * 10**9


def rule_of(**given: object) -> Suppression:
    return suppression_of(msgspec.convert({"reason": "test", **given}, SuppressConfig))


def hides(rule: Suppression, now: int = NOW, **record: object) -> bool:
    found = SuppressionSet([rule]).hidden(
        str(record.get("source", "10.0.0.7")),
        str(record.get("destination", "192.0.2.1")),
        record.get("port", 443),  # type: ignore[arg-type]
        int(str(record.get("cluster", 9))),
        str(record.get("label", "novel")),
        lambda: {"service": "http"},
        now,
    )
    return found is not None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reason": " ", "port": 1}, "needs a reason"),
        ({"reason": "x" * 501, "port": 1}, "needs a reason"),
        ({}, "says nothing to match"),
        ({"until": "2030-01-01"}, "says nothing to match"),
        ({"address": "10.0.0"}, "address '10.0.0' is neither an address nor a network"),
        ({"source": "10.0.0.7/24"}, "write 10.0.0.0/24 or 10.0.0.7"),
        ({"destination": "10.0.0.0/33"}, "neither an address nor a network"),
        ({"port": 65_536}, "a port is 0 to 65535"),
        ({"port": -1}, "a port is 0 to 65535"),
        ({"cluster": -1}, "cluster -1"),
        ({"attribute": "service"}, "write name=value"),
        ({"attribute": "=http"}, "write name=value"),
        ({"label": "x" * 256}, "at most 255"),
        ({"port": 1, "until": "soon"}, "until 'soon': write a time such as"),
    ],
)
def test_a_rule_that_cannot_mean_anything_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rule_of(**given)


def test_more_rules_than_the_bound_are_refused() -> None:
    with pytest.raises(InputError, match="use networks"):
        SuppressionSet([rule_of(port=1)] * (MAX_RULES + 1))


def test_ids_are_given_by_what_a_rule_says() -> None:
    assert rule_of(port=1).id == rule_of(port=1).id != rule_of(port=2).id
    assert suppression_of(SuppressConfig(reason="x", port=1), origin="people", rule_id="s-7").id == "s-7"


@pytest.mark.parametrize(
    ("given", "record", "hidden"),
    [
        ({"source": "10.0.0.0/24"}, {}, True),
        ({"source": "10.0.0.0/24"}, {"source": "10.0.1.7"}, False),
        ({"source": "192.0.2.1"}, {}, False),
        ({"destination": "192.0.2.1"}, {}, True),
        ({"address": "192.0.2.0/24"}, {}, True),
        ({"address": "10.0.0.7"}, {}, True),
        ({"address": "10.0.0.8"}, {}, False),
        ({"address": "0.0.0.0/0"}, {"source": "", "destination": ""}, False),
        ({"address": "0.0.0.0/0"}, {"source": "2001:db8::1", "destination": "::1"}, False),
        ({"source": "2001:db8::/32"}, {"source": "2001:DB8:0::1"}, True),
        ({"source": "10.0.0.7"}, {"source": "::ffff:10.0.0.7"}, True),
        ({"source": "::ffff:10.0.0.0/120"}, {}, True),
        ({"source": "fe80::1"}, {"source": "fe80::1%eth0"}, True),
        ({"source": "10.0.0.7"}, {"source": "ten"}, False),
        ({"port": 443}, {}, True),
        ({"port": 0}, {"port": 0}, True),
        ({"port": 0}, {"port": None}, False),
        ({"cluster": 9}, {}, True),
        ({"cluster": 8}, {}, False),
        ({"label": "novel"}, {}, True),
        ({"label": "scan"}, {}, False),
        ({"attribute": "service=http"}, {}, True),
        ({"attribute": "service = http"}, {}, True),
        ({"attribute": "service=ssh"}, {}, False),
        ({"attribute": "other=http"}, {}, False),
        ({"source": "10.0.0.7", "port": 443, "label": "novel", "attribute": "service=http"}, {}, True),
        ({"source": "10.0.0.7", "port": 443, "label": "novel", "attribute": "service=ssh"}, {}, False),
        ({"source": "10.0.0.7", "port": 80}, {}, False),
        ({"source": "10.0.0.7", "destination": "10.0.0.7"}, {}, False),
        ({"source": "10.0.0.7", "address": "192.0.2.1"}, {}, True),
        ({"port": 443, "cluster": 8}, {}, False),
    ],
)
def test_a_rule_hides_all_that_it_says_and_nothing_else(
    given: dict[str, object], record: dict[str, object], hidden: bool
) -> None:
    assert hides(rule_of(**given), **record) is hidden


def test_a_rule_does_not_outlive_its_end() -> None:
    rule = rule_of(port=443, until="2023-11-14T22:13:20Z")
    assert rule.until == NOW
    assert hides(rule, NOW - 1)
    assert not hides(rule, NOW)
    assert not hides(rule_of(port=443, until="1999-01-01"))
    assert hides(rule, -1)  # the time is not known
    assert rule_of(port=443).until == FOR_GOOD


def test_a_remembered_answer_does_not_outlive_a_rules_end_nor_a_clock_set_back() -> None:
    rules = SuppressionSet([rule_of(port=443, until="2023-11-14T22:13:20Z")])
    found = [rules.hidden("", "", 443, 1, "novel", None, now) is not None for now in (NOW - 1, NOW, NOW - 1, NOW + 5)]
    assert found == [True, False, True, False]


def test_the_first_rule_hides_and_is_counted() -> None:
    first, second = rule_of(port=443), rule_of(source="10.0.0.7")
    rules = SuppressionSet([first, second])
    for _ in range(3):
        rules.hidden("10.0.0.7", "", 443, 1, "novel", None, NOW)
    rules.hidden("10.0.0.7", "", 80, 1, "novel", None, NOW)
    rules.hidden("10.0.0.8", "", 80, 1, "novel", None, NOW)
    assert rules.counts == {first.id: 3, second.id: 1}


def test_attributes_are_not_asked_for_where_no_rule_needs_them() -> None:
    def asked() -> dict[str, str]:
        raise AssertionError("asked for")

    assert not SuppressionSet()
    assert SuppressionSet().hidden("10.0.0.7", "", 443, 1, "novel", asked, NOW) is None
    rules = SuppressionSet([rule_of(source="10.0.0.8", attribute="service=http"), rule_of(port=1)])
    assert rules.hidden("10.0.0.7", "", 443, 1, "novel", asked, NOW) is None


addresses = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.9.1", "172.16.0.1", "2001:db8::1", "2001:db8::9", ""])
networks = st.sampled_from(["", "", "10.0.0.1", "10.0.0.0/24", "10.0.0.0/8", "2001:db8::/64", "2001:db8::1", "::/0"])
small = st.one_of(st.none(), st.integers(0, 2))
texts = st.sampled_from(["", "", "novel", "scan"])
rules_drawn = st.builds(
    SuppressConfig, reason=st.just("drawn"), address=networks, source=networks, destination=networks, port=small,
    cluster=small, label=texts, attribute=st.sampled_from(["", "", "service=a", "service=b"]),
    until=st.sampled_from(["", "2023-11-14T22:13:20Z"]),
)  # fmt: skip
records_drawn = st.tuples(
    addresses, addresses, small, st.integers(0, 2), st.sampled_from(["novel", "scan"]), st.sampled_from("ab"),
    st.sampled_from([NOW - 1, NOW]),
)  # fmt: skip


def within(address: str, network: str) -> bool:
    return bool(address) and ipaddress.ip_address(address) in ipaddress.ip_network(network)


def plainly(rule: Suppression, record: tuple[str, str, int | None, int, str, str, int]) -> bool:
    source, destination, port, cluster, label, service, now = record
    return (
        (not rule.source or within(source, rule.source))
        and (not rule.destination or within(destination, rule.destination))
        and (not rule.address or within(source, rule.address) or within(destination, rule.address))
        and rule.port in (None, port)
        and rule.cluster in (None, cluster)
        and rule.label in ("", label)
        and rule.attribute in ("", f"service={service}")
        and (rule.until == FOR_GOOD or now < rule.until)
    )


@settings(max_examples=300, deadline=None)
@given(configs=st.lists(rules_drawn, max_size=6), records=st.lists(records_drawn, max_size=12))
def test_filed_rules_do_not_differ_from_trying_one_after_the_other(
    configs: list[SuppressConfig], records: list[tuple[str, str, int | None, int, str, str, int]]
) -> None:
    rules = []
    for number, config in enumerate(configs):
        try:
            rules.append(suppression_of(config, rule_id=f"s-{number}"))
        except InputError:
            continue
    ready = SuppressionSet(rules)
    for record in records:
        expected = next((rule for rule in rules if plainly(rule, record)), None)
        *key, service, now = record
        found = ready.hidden(*key, lambda service=service: {"service": service}, now)  # type: ignore[misc]
        assert found is expected
