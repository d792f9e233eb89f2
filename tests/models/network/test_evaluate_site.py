"""`netclust evaluate site`: reading logs, moving malware, splits, and the command on small generated logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from needed import need_module
from numpy.typing import NDArray
from zeek_logs import write_zeek_json, write_zeek_tsv

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.errors import InputError
from netclust.models.network.site.run_site import site_result
from netclust.models.network.site.site_alerts import watch_site
from netclust.models.network.site.site_records import (
    Site,
    join_tables,
    load_connections,
    load_site_records,
    merge_connections,
    move_connections,
    site_of,
)
from netclust.models.network.site.site_scorers import RuleScorer
from netclust.models.network.site.site_splits import (
    Malware,
    host_questions,
    infected,
    load_malware,
    poisoned_questions,
    time_questions,
)
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables
from netclust.shipped.loading import load_shipped
from netclust.stream.packets.capture_labels import load_labels
from netclust.stream.packets.capture_reader import CaptureReader
from netclust.stream.sources.conn_records import Conn

HOST = "198.51.100.7"
SECOND = 10**9


def _conn(
    second: float, source: str = HOST, destination: str = "203.0.113.5", label: str = "Benign", **other: Any
) -> Conn:
    start = 10**18 + int(second * SECOND)
    plain: dict[str, Any] = {
        "uid": "C1", "start": start, "end": start + SECOND, "source": source, "source_port": 40_000,
        "destination": destination, "destination_port": 443, "proto": 6, "app": "ssl", "state": "SF",
        "orig": (5, 300, 560), "resp": (6, 9000, 9312), "label": label,
    }  # fmt: skip
    return Conn(**plain | other)


def _probe(second: float, source: str) -> Conn:
    return _conn(
        second, source, HOST, "Malicious", destination_port=23, app="", state="S0", orig=(1, 0, 40), resp=(0, 0, 0)
    )


def _day(host: str = HOST, seed: int = 0, records: int = 400) -> list[Conn]:
    """Browsing and name resolution of a host, with scans from outside between them."""
    rng = np.random.default_rng(seed)
    conns = []
    for i in range(records):
        kind = rng.random()
        size = int(rng.integers(200, 4000))
        if kind < 0.3:
            conns.append(_probe(i * 10, f"192.0.2.{rng.integers(1, 250)}")._replace(destination=host))
        elif kind < 0.6:
            conns.append(
                _conn(
                    i * 10,
                    host,
                    "203.0.113.1",
                    proto=17,
                    app="dns",
                    destination_port=53,
                    orig=(1, 40, 68),
                    resp=(1, 90 + size // 50, 118 + size // 50),
                )
            )
        else:
            conns.append(_conn(i * 10, host, f"203.0.113.{rng.integers(2, 30)}", orig=(5, size, size + 260)))
    return conns


class Made(NamedTuple):
    folder: Path
    days: list[Path]
    capture: Path
    labels: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Logs of two hosts, one per format, and a capture with an infected host."""
    folder = tmp_path_factory.mktemp("site")
    days = [folder / "first.conn.log", folder / "second.conn.log"]
    write_zeek_tsv(days[0], _day(), "truth")
    write_zeek_json(days[1], _day("198.51.100.99", seed=1), "truth")
    capture, named = folder / "scan.pcap", folder / "named.csv"
    simulate_capture(capture, named, hours=0.1, seed=8, attacks="port_scan", hosts=8, scale=0.1)
    malware = [conn for conn in load_connections(capture, rules=load_labels(named)) if conn.label == "port_scan"]
    inside = malware[0].source
    labels = folder / "labels.csv"
    rows = {(conn.destination, conn.destination_port) for conn in malware}
    lines = [f"scan.pcap,{inside},{host},{port},tcp,port_scan" for host, port in sorted(rows)]
    labels.write_text("\n".join(["file,source,destination,destination_port,protocol,label", *lines]) + "\n")
    return Made(folder, days, capture, labels)


def _sites(made: Made) -> list[Site]:
    return [site_of(day.name[:5], load_connections(day, "truth")) for day in made.days]


# Reading


def test_both_forms_of_a_log_give_the_same_records(tmp_path: Path) -> None:
    conns = _day()
    write_zeek_tsv(tmp_path / "tsv.log", conns)
    write_zeek_json(tmp_path / "json.log", conns)
    tsv, lines = (load_site_records(tmp_path / name) for name in ("tsv.log", "json.log"))
    np.testing.assert_array_equal(tsv.table.num, lines.table.num)
    assert tsv.labels.tolist() == lines.labels.tolist() == [conn.label for conn in conns]
    assert tsv.times.tolist() == [conn.start for conn in conns]
    assert set(tsv.hosts.tolist()) == {HOST}


def test_labels_come_from_the_column_that_is_named(made: Made) -> None:
    for day in made.days:
        assert {conn.label for conn in load_connections(day, "truth")} == {"Benign", "Malicious"}
        assert {conn.label for conn in load_connections(day)} == {""}


def test_connections_of_a_capture_have_the_attributes_that_the_capture_has(made: Made) -> None:
    conns = load_connections(made.capture)
    ours = load_site_records(made.capture).table
    theirs = concat_tables(list(CaptureReader([made.capture], load_schema("conn"))))
    assert len(conns) == len(ours) == len(theirs) > 50
    np.testing.assert_array_equal(ours.num, theirs.num)
    for s in range(ours.sym.shape[1]):
        assert [ours.symbols[s][i] for i in ours.sym[:, s]] == [theirs.symbols[s][i] for i in theirs.sym[:, s]]


def test_eve_logs_are_read(tmp_path: Path) -> None:
    event = {
        "timestamp": "2026-01-02T03:04:06.0+0000", "flow_id": 7, "event_type": "flow", "src_ip": "10.0.0.1",
        "src_port": 4000, "dest_ip": "192.0.2.1", "dest_port": 53, "proto": "UDP", "app_proto": "dns", "truth": "worm",
        "flow": {"pkts_toserver": 1, "pkts_toclient": 1, "bytes_toserver": 72, "bytes_toclient": 132,
                 "start": "2026-01-02T03:04:05.0+0000", "end": "2026-01-02T03:04:05.5+0000"},
    }  # fmt: skip
    (tmp_path / "eve.json").write_text(json.dumps(event) + "\n")
    records = load_site_records(tmp_path / "eve.json", label_column="truth")
    assert (len(records.table), records.labels.tolist(), records.hosts.tolist()) == (1, ["worm"], ["10.0.0.1"])


def test_a_file_without_connections_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.log").write_text("hello\n")
    with pytest.raises(InputError, match="no connections in it"):
        load_connections(tmp_path / "text.log")


def test_background_is_in_the_traffic_and_not_judged() -> None:
    conns = [_conn(0), _conn(1, label="Background"), _conn(2, label="Malicious")]
    site = site_of("x", conns)
    assert (len(site), site.benign.tolist(), site.attack.tolist()) == (3, [True, False, False], [False, False, True])


def test_joined_tables_keep_every_value() -> None:
    first, second = (site_of("x", _day(seed=seed)).table for seed in (1, 2))
    both = join_tables([first, second])
    names = [both.symbols[1][i] for i in both.sym[:, 1]]
    assert names == [t.symbols[1][i] for t in (first, second) for i in t.sym[:, 1]]
    np.testing.assert_array_equal(both.num, np.concatenate([first.num, second.num]))
    assert len(both.context["source"]) == len(both)


# Malware that is moved


def test_moved_malware_begins_at_the_host_and_in_the_span() -> None:
    conns = [_conn(second, "10.1.1.1", label="worm") for second in (5, 6, 500)] + [_conn(7, "10.1.1.2")]
    moved = move_connections(conns, "10.1.1.1", HOST, 1000 * SECOND, 100 * SECOND)
    assert {conn.source for conn in moved} == {HOST}
    assert [conn.start // SECOND for conn in moved] == [1000, 1001, 1095]
    assert all(conn.end - conn.start == SECOND for conn in moved)


def test_a_log_keeps_its_order_when_malware_is_moved_into_it() -> None:
    day = [_conn(second) for second in (0, 9, 3, 20)]
    merged = merge_connections(day, [_conn(second, label="worm") for second in (30, 5, 10)])
    assert [conn for conn in merged if conn.label != "worm"] == day
    assert [(conn.start - 10**18) // SECOND for conn in merged] == [0, 5, 9, 3, 10, 20, 30]


def test_benign_records_keep_their_attributes_beside_malware() -> None:
    site = site_of("x", _day())
    worm = Malware("worm.pcap", "worm", "10.1.1.1", [_conn(i, "10.1.1.1", f"192.0.2.{i}", "worm") for i in range(50)])
    ill = infected(site, [worm], 10**18, 10**18 + 60 * SECOND, most=20)
    own = ill.kind != "worm"
    np.testing.assert_array_equal(ill.table.num[own], site.table.num)
    assert ill.conns[int(np.flatnonzero(~own)[0])].source == HOST
    assert (int((~own).sum()), int((ill.judged & ~own).sum())) == (50, 20)
    assert not (ill.judged & (ill.kind == "Malicious")).any()
    hosts = [a.name for a in site.table.schema.numeric].index("src_hosts")
    assert ill.table.num[~own, hosts].max() > 40  # counted among the traffic of its new host


def test_malware_is_what_the_infected_host_of_a_label_row_began(made: Made) -> None:
    (found,) = load_malware(made.capture, load_labels(made.labels))
    assert found.kind == "port_scan"
    assert {conn.source for conn in found.conns} == {found.inside}
    assert len(found.conns) > 20


# Splits


def test_a_host_is_judged_by_what_another_one_taught(made: Made) -> None:
    sites = _sites(made)
    questions = list(host_questions(sites, load_malware(made.capture, load_labels(made.labels))))
    assert [q.split for q in questions] == ["T", "I, other host"] * 2
    first = questions[0]
    assert len(first.train) == int(sites[0].benign.sum())
    assert len(first.test) == len(sites[1])
    assert set(questions[1].kind.tolist()) == {"", "port_scan"}
    three = [*sites, site_of("third", _day("198.51.100.3", seed=5))]
    left_out = [q for q in host_questions(three, []) if q.split == "L"]
    assert [len(q.train) for q in left_out] == [
        sum(int(s.benign.sum()) for s in three if s is not own) for own in three
    ]
    with pytest.raises(InputError, match="two hosts or more"):
        list(host_questions(sites[:1], []))


def test_the_second_half_is_judged_by_what_the_first_taught(made: Made) -> None:
    site = _sites(made)[0]
    own, moved = list(time_questions([site], load_malware(made.capture, load_labels(made.labels))))
    half = len(site) // 2
    assert len(own.train) == int(site.benign[:half].sum())
    assert own.truth.tolist() == site.attack[half:].tolist()
    assert int((~moved.truth).sum()) == int(site.benign[half:].sum())


def test_the_warm_up_has_the_share_of_attacks_that_was_asked_for(made: Made) -> None:
    site = _sites(made)[0]
    malware = load_malware(made.capture, load_labels(made.labels))
    questions = list(poisoned_questions(site, malware, (0.0, 0.1)))
    assert [(q.split, q.share) for q in questions] == [
        ("poison from outside", 0.0), ("poison from outside", pytest.approx(0.1, abs=0.01)),
        ("poison from inside", 0.0), ("poison from inside", pytest.approx(0.1, abs=0.01)),
    ]  # fmt: skip
    benign = int(site.benign[: len(site) // 2].sum())
    assert [len(q.train) - benign for q in questions] == [0, round(benign / 9), 0, round(benign / 9)]
    assert len({len(q.test) for q in questions if q.split == "poison from inside"}) == 1


# Alerts and the command


def test_alerts_are_counted_after_the_warm_up_alone() -> None:
    scan = [_probe(4000 + i / 10, "192.0.2.9")._replace(destination_port=i + 1) for i in range(200)]
    site = site_of("x", [*_day(), *scan])
    model = load_shipped("conn")
    warmed, without = watch_site(site, model, warmup=200), watch_site(site, model, warmup=0)
    assert warmed["attacks_after_warmup"] == int(site.attack[200:].sum())
    assert warmed["benign_after_warmup"] == int(site.benign[200:].sum())
    assert without["attacks_in_alert"] > 0.3
    assert without["alerts_per_day"] == pytest.approx(without["alerts"] / site.days)
    assert 0 <= without["benign_only_alerts_per_day"] <= without["alerts_per_day"]
    assert without["seconds_to_first_alert"] > 0
    assert without["held_back_in_warmup"] == 0


def test_the_command_judges_two_logs_and_moved_malware(made: Made, run: Any) -> None:
    out = made.folder / "result.json"
    code, printed, err = run(
        "evaluate", "site", "--benign", made.days[0], "--benign", made.days[1], "--attacks", made.capture,
        "--labels", made.labels, "--label-column", "truth", "--peers", "none", "--json", out,
    )  # fmt: skip
    assert code == 0, err
    assert "begun outside" in printed
    body = json.loads(out.read_text())
    assert list(body["summary"]) == ["T", "I, other host", "S", "I, own half"]
    ours = ["netclust", "netclust novelty", "netclust, window"]
    assert sorted(body["detectors"]) == [*ours, "rule: begun outside", "rule: failed connections"]
    assert body["summary"]["T"]["rule: begun outside"]["auc"] == 1.0
    assert body["summary"]["I, own half"]["rule: begun outside"]["auc"] == 0.5
    assert {each["split"] for each in body["poisoning"]} == {"poison from outside", "poison from inside"}
    assert [(a["site"], a["warmup_records"]) for a in body["alerts"]] == [
        ("first", 4000), ("first", 0), ("second", 4000), ("second", 0),
    ]  # fmt: skip
    assert [site["host"] for site in body["sites"]] == [HOST, "198.51.100.99"]


class _Bytes(RuleScorer):
    """A detector of somebody else: large answers are odd."""

    name = "large answers"

    def scores(self, table: Table) -> NDArray[np.float64]:
        return np.asarray(table.num[:, [a.name for a in table.schema.numeric].index("resp_bytes")])


def test_a_detector_of_somebody_else_is_one_more_row(made: Made) -> None:
    body = site_result(
        [str(made.days[0])], [], ["time"], label_column="truth", poison=False, alerts=False, extra=lambda: [_Bytes()]
    )
    assert set(body["summary"]["S"]) == {*body["detectors"], "large answers"}
    assert body["summary"]["S"]["large answers"]["auc"] < 0.1  # probes are not answered


def test_the_command_judges_captures_by_others(made: Made, run: Any, tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        simulate_capture(tmp_path / f"benign{seed}.pcap", hours=0.05, seed=seed, attacks="none", hosts=8, scale=0.2)
    out = tmp_path / "result.json"
    code, _, err = run(
        "evaluate", "site", "--benign", tmp_path, "--attacks", made.capture, "--labels", made.labels,
        "--split", "capture", "--peers", "none", "--folds", 3, "--json", out,
    )  # fmt: skip
    assert code == 0, err
    found = json.loads(out.read_text())["captures"]
    assert (found["schema"], found["benign_captures"], found["folds"]) == ("flow", 3, 3)
    assert list(found["scorers"]) == ["netclust", "netclust novelty"]
    assert set(found["scorers"]["netclust"]["benign_captures"]) == {"benign1.pcap", "benign2.pcap", "benign3.pcap"}
    assert found["scorers"]["netclust"]["captures"]["scan.pcap"]["auc"] > 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--benign", "missing.log"), "missing.log: no such file"),
        (("--benign", "-"), "standard input will not do"),
        (("--benign", "DAY", "--split", "host"), "two hosts or more"),
        (("--benign", "DAY", "--split", "capture"), "two benign captures or more"),
        (("--benign", "DAY", "--model", "no.model"), "no.model"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], message: str, made: Made, run: Any) -> None:
    code, _, err = run("evaluate", "site", *(str(made.days[0]) if a == "DAY" else a for a in arguments))
    assert code == 2
    assert message in err


def test_the_real_days_are_judged_beside_the_isolation_forest(data_folder: Path) -> None:
    need_module("sklearn")
    days = [data_folder / "real" / "zeek-days" / f"{day}.conn.log.labeled" for day in ("008", "010")]
    if not all(day.is_file() for day in days):
        pytest.skip("real days not found in NETCLUST_DATA")
    body = site_result(
        [str(day) for day in days], [], ["host", "time"], rivals=("isolation forest",), poison=False, alerts=False
    )
    assert [(s["benign"], s["attacks"]) for s in body["sites"]] == [(1402, 4201), (1937, 3373)]
    for split in ("T", "S"):
        summary = body["summary"][split]
        assert summary["rule: begun outside"]["auc"] == pytest.approx(1.0, abs=0.001)
        assert summary["isolation forest"]["auc"] > 0.97
        assert summary["netclust, window"]["auc"] > 0.85
