"""`netclust train correlation|kmeans`, `cluster`, `evaluate` and `info` of clusterers, and every way to misuse them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import complaint

from netclust.foundation import container
from netclust.models.test_set_ledger import TEST_SETS, count_test_uses

WORDS = {"sport": "ball goal team match", "space": "orbit moon rocket launch", "food": "bread soup salt oven"}


def lines_of(sets: int = 3, each: int = 4, seed: int = 0) -> list[list[str]]:
    """Items of three topics a set: some of the topic's words and a number near the topic's."""
    rng = np.random.default_rng(seed)
    made = []
    for s in range(sets):
        for n in range(3 * each):
            topic = list(WORDS)[n % 3]
            text = " ".join([*rng.choice(WORDS[topic].split(), 3, replace=False), rng.choice(["and", "or"])])
            made.append([f"s{s}", f"i{s}-{n}", f"{topic}{s}", text, f"{10 * (n % 3) + rng.normal():.3f}"])
    return made


HEADER = ["day", "name", "topic", "text", "size"]
COLUMNS = ["--label", "topic", "--set", "day", "--id", "name"]
READ = ["--set", "day", "--id", "name"]


def write(path: Path, rows: list[list[str]], header: list[str] = HEADER) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return write(tmp_path / "items.csv", lines_of())


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return write(tmp_path / "new.csv", lines_of(2, seed=1))


@pytest.fixture
def model(run: Any, items: Path, tmp_path: Path) -> Path:
    assert run("train", "correlation", items, "-o", tmp_path / "m", *COLUMNS, "--C", "1e5").code == 0
    return tmp_path / "m"


def clusters_in(text: str) -> dict[str, set[frozenset[str]]]:
    found: dict[tuple[str, str], set[str]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        found.setdefault((row.get("set", ""), row["cluster"]), set()).add(row["item"])
    return {s: {frozenset(v) for (t, _), v in found.items() if t == s} for s, _ in found}


def true_clusters(rows: list[list[str]], one_set: bool = False) -> dict[str, set[frozenset[str]]]:
    text = "\n".join(["set,item,cluster", *(f"{'' if one_set else r[0]},{r[1]},{r[2]}" for r in rows)])
    return clusters_in(text)


def test_what_was_trained_clusters_new_items(run: Any, model: Path, new: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    ran = run("cluster", new, "--model", model, "-o", tmp_path / "out.csv", *READ, "--json", tmp_path / "c.json")
    assert ran.code == 0, ran.err
    assert "24 items in 2 sets: 6 clusters, the largest of 4" in ran.out
    text = (tmp_path / "out.csv").read_text()
    assert text.splitlines()[:2] == ["set,item,cluster", "s0,i0-0,0"]
    assert clusters_in(text) == true_clusters(lines_of(2, seed=1))
    body = json.loads((tmp_path / "c.json").read_text())
    assert (body["items"], body["sets"], body["clusters"], body["command"]) == (24, 2, 6, "cluster")
    assert body["data"] == {"new.csv": hashlib.sha256(new.read_bytes()).hexdigest()}
    ran = run("cluster", new, "--model", model, "-o", "-", *READ)
    assert ran.out == text
    ran = run("cluster", new, "--model", model, "-o", "-", "--id", "name")  # all in one set
    assert ran.out.startswith("item,cluster\n")
    assert len(ran.out.splitlines()) == 25
    assert model.read_bytes() == before


def test_an_evaluation_prints_and_writes_its_measures(run: Any, model: Path, new: Path, tmp_path: Path) -> None:
    ran = run("evaluate", "correlation", "--model", model, "--test", new, *COLUMNS)
    assert ran.code == 0, ran.err
    for part in ("24 items in 2 sets", "delta_p", "0.00 %", "muc_f1", "1.0000", "clusters a set: 3.0 found, 3.0 true"):
        assert part in ran.out
    ran = run(
        *("evaluate", "correlation", "--model", model, "--test", new, "--label", "topic", "--id", "name"),
        *("--set-size", "12-12", "--predictor", "single-link", "--seed", 3, "--json", "-"),
    )
    body = json.loads(ran.out)
    assert (body["sets"], body["seed"], body["settings"]["predictor"]) == (2, 3, "single-link")
    assert body["measures"]["rand"]["mean"] > 0.5
    assert "trained on this very file" not in ran.err
    train = model.parent / "items.csv"
    assert (
        "trained on this very file" in run("evaluate", "correlation", "--model", model, "--test", train, *COLUMNS).err
    )


def test_info_describes_a_clusterer(run: Any, model: Path) -> None:
    ran = run("info", model)
    for part in ("correlation, one-slack", "C = 100000", "items.csv (36 items, seed 0)", "text 1-grams", "constant"):
        assert part in ran.out
    body = json.loads(run("info", model, "--json", "-").out)
    assert (body["task"], body["settings"]["C"], body["provenance"]["records"]) == ("correlation", 1e5, 36)
    assert list(body["weights"])[-1] == "constant"
    assert body["bytes"] == model.stat().st_size


def test_options_of_training_are_heeded(run: Any, items: Path, tmp_path: Path) -> None:
    ran = run(
        *("train", "correlation", items, "-o", tmp_path / "m", *COLUMNS, "--field", "text", "--words", 1),
        *("--characters", 3, "--loss", "mitre", "--oracle", "local", "--predictor", "greedy"),
        *("--rescaling", "slack", "--learner", "n-slack", "--C", "1e5", "--epsilon", 0.5, "--jobs", 2, "--seed", 4),
        *("--structure", "correlation", "--json", "-"),
    )
    assert ran.code == 0, ran.err
    body = json.loads(ran.out)
    wanted = {
        "loss": "mitre", "oracle": "local", "predictor": "greedy", "rescaling": "slack", "learner": "n-slack",
        "C": 1e5, "epsilon": 0.5, "seed": 4, "structure": "correlation",
    }  # fmt: skip
    assert {name: body["settings"][name] for name in wanted} == wanted
    assert list(body["weights"]) == ["text 1-grams", "text 3-character grams", "text missing", "constant"]
    assert (body["items"], body["sets"], body["seed"], body["chosen"]) == (36, 3, 4, None)
    assert body["converged"]
    assert body["gap"] is not None
    assert body["training"]["delta_m"]["mean"] == 0


@pytest.mark.parametrize(
    "options", [("--structure", "E"), ("--structure", "K", "--learner", "lspa"), ("--learner", "pairwise")]
)
def test_other_structures_and_learners_are_trained(
    run: Any, items: Path, new: Path, tmp_path: Path, options: Any
) -> None:
    ran = run("train", "correlation", items, "-o", tmp_path / "m", *COLUMNS, *options, "--C", 1)
    assert ran.code == 0, ran.err
    body = json.loads(
        run("evaluate", "correlation", "--model", tmp_path / "m", "--test", new, *COLUMNS, "--json", "-").out
    )
    assert body["measures"]["rand"]["mean"] > 0.85
    assert run("info", tmp_path / "m").code == 0
    if "--structure" in options:
        ran = run("evaluate", "correlation", "--model", tmp_path / "m", "--test", new, *COLUMNS, "--predictor", "lp")
        complaint(ran, tmp_path / "m", "clusters by best links")


def test_the_cost_is_chosen_by_default(run: Any, items: Path, tmp_path: Path) -> None:
    body = json.loads(run("train", "correlation", items, "-o", tmp_path / "m", *COLUMNS, "--json", "-").out)
    assert body["chosen"]["grid"] == [1e4, 1e5, 1e6, 1e7, 1e8]
    assert body["settings"]["C"] == body["chosen"]["C"] in body["chosen"]["grid"]
    again = tmp_path / "again"
    assert "by cross-validation over sets" in run("train", "correlation", items, "-o", again, *COLUMNS).err
    assert json.loads(run("info", again, "--json", "-").out)["weights"] == body["weights"]  # deterministic


def test_kmeans_is_trained_and_given_the_number_of_clusters(run: Any, items: Path, new: Path, tmp_path: Path) -> None:
    ran = run(
        *("train", "kmeans", items, "-o", tmp_path / "m", "--label", "topic", "--id", "name", "--field", "text"),
        *("--words", 1, "--characters", 2, "--set-size", "8-12", "--method", "discrete", "--predictor", "iterative"),
        *("--C", "1", "--epsilon", 0.5, "--jobs", 1, "--seed", 2, "--checkpoint", tmp_path / "state"),
    )
    assert ran.code == 0, ran.err
    assert "36 items in" in ran.err
    for told in (["-k", 3], []):
        ran = run("cluster", new, "--model", tmp_path / "m", "-o", "-", *READ, *told)
        found = clusters_in(ran.out)
        assert set(found) == {"s0", "s1"}
        if told:
            assert found == true_clusters(lines_of(2, seed=1))
    evaluate = ["evaluate", "kmeans", "--model", tmp_path / "m", "--test", new, *COLUMNS, "--json", "-"]
    body = json.loads(run(*evaluate, "--predictor", "discrete", "--seed", 1).out)
    assert body["measures"]["delta_p"]["mean"] == 0
    assert body["settings"]["predictor"] == "discrete"
    assert json.loads(run(*evaluate, "--choose-k").out)["sets"] == 2
    alone = [a for a in evaluate if a not in ("--set", "day")]
    assert json.loads(run(*alone, "--set-size", "12").out)["sets"] == 2
    assert "kmeans, one-slack" in run("info", tmp_path / "m").out


def test_folders_of_documents_are_clustered(run: Any, tmp_path: Path) -> None:
    for s in range(2):
        for name, words in WORDS.items():
            folder = tmp_path / "docs" / f"day{s}" / name
            folder.mkdir(parents=True)
            for n, left_out in enumerate(words.split()):
                (folder / f"{n}.txt").write_text(words.replace(left_out, "") + " and")
    assert run("train", "correlation", tmp_path / "docs", "-o", tmp_path / "m", "--C", "1e5", "--words", 1).code == 0
    ran = run("cluster", tmp_path / "docs" / "day1", "--model", tmp_path / "m", "-o", "-")
    (found,) = clusters_in(ran.out).values()
    assert sorted(map(len, found)) == [4, 4, 4]
    assert all(len({name.split("/")[0] for name in group}) == 1 for group in found)
    ran = run("evaluate", "correlation", "--model", tmp_path / "m", "--test", tmp_path / "docs", "--json", "-")
    assert json.loads(ran.out)["measures"]["rand"]["mean"] == 1


def test_training_continues_from_a_checkpoint(
    run: Any, items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    train = ["train", "correlation", items, *COLUMNS, "--C", "1e5", "--json", "-"]
    whole = json.loads(run(*train, "-o", tmp_path / "a").out)
    train += ["--checkpoint", state]
    seen: list[int] = []
    with monkeypatch.context() as patch:
        stop = lambda report: seen.append(report.iteration) or report.iteration == 3  # noqa: E731
        patch.setattr("netclust.models.clustering.run_clustering.Reporter", lambda: stop)
        assert "stopped" in run(*train, "-o", tmp_path / "b").err
        assert state.is_file()
        seen.clear()
        patch.setattr(
            "netclust.models.clustering.run_clustering.Reporter", lambda: lambda report: seen.append(report.iteration)
        )
        again = json.loads(run(*train, "-o", tmp_path / "b").out)
    assert seen[0] == 4
    assert (again["weights"], again["iterations"]) == (whole["weights"], whole["iterations"])
    for other in (("--loss", "mitre"), ("--oracle", "local")):
        ran = run(*train, "-o", tmp_path / "c", *other)
        assert (ran.code, ran.out, (tmp_path / "c").exists()) == (2, "", False)
        assert f"{state}: checkpoint of another training (task " in ran.err


def test_a_use_of_a_test_set_is_noted(
    run: Any, model: Path, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "looks.jsonl"
    monkeypatch.setenv("NETCLUST_LOOKS", str(ledger))
    evaluate = ["evaluate", "correlation", "--model", model, "--test", new, *COLUMNS]
    assert "a look at" not in run(*evaluate).err
    monkeypatch.setitem(TEST_SETS, hashlib.sha256(new.read_bytes()).hexdigest(), "cited")
    assert f"a look at cited: noted in {ledger}" in run(*evaluate).err
    assert count_test_uses(ledger) == (1, 1)


GOOD = lines_of()


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("", (), "line 1: no header line"),
        ("day,name,topic,text,size\n", (), "no items: a header line, then one item a line"),
        ("day,name,topic,text,size\na,b,c,d,1\n", (), "no set has two items"),
        ([*GOOD, GOOD[0]], (), "line 38: id 'i0-0' of set 's0' was there in line 2 already"),
        (
            [*GOOD, [*GOOD[0][:2], "other", *GOOD[0][3:]]],
            (),
            "line 38: id 'i0-0' of set 's0' was there in line 2 already",
        ),
        ([*GOOD[:-1], [*GOOD[-1][:4], "nan"]], (), "item i2-11: size is 'nan', expected a number or nothing"),
        ([*GOOD[:-1], [*GOOD[-1][:4], "-inf"]], (), "item i2-11: size is '-inf'"),
        (GOOD, ("--learner", "lsp", "--structure", "K", "--checkpoint", "ck"), "--checkpoint is for structural SVMs"),
        (GOOD, ("--field", "topic"), "column 'topic' is the cluster"),
        (GOOD, ("--set", "topic"), "column 'topic' is the cluster"),
        ([*GOOD, GOOD[0][:4]], (), "line 38: 4 columns, the header has 5"),
        ([*GOOD[:-1], [*GOOD[-1][:2], " ", *GOOD[-1][3:]]], (), "column 'topic' is empty: every item needs its label"),
        ([*GOOD[:-1], ["", *GOOD[-1][1:]]], (), "column 'day' is empty: every item needs its set"),
        (GOOD, ("--label", "colour"), "no column 'colour': there are day, name, topic"),
        (GOOD, ("--field", "colour"), "no column 'colour'"),
        (GOOD, ("--C", "much"), "--C 'much': give a number, or cv"),
        (GOOD, ("--C", "-1"), "must be above 0"),
        (GOOD, ("--C", "nan"), "must be above 0"),
        (GOOD, ("--words", "99"), "orders of n-grams"),
        (GOOD, ("--set-size", "4-8"), "name their sets already"),
        (GOOD, ("--oracle", "lp", "--loss", "mitre"), "does not split over pairs"),
        (GOOD, ("--structure", "E", "--learner", "one-slack"), "learned by lsp, lspa, latent"),
        (GOOD, ("--learner", "lsp", "--rescaling", "slack"), "cutting-plane learners"),
    ],
)
def test_bad_items_and_options_give_one_clear_line(
    run: Any, tmp_path: Path, text: Any, options: Any, told: str
) -> None:
    path = tmp_path / "items.csv"
    if isinstance(text, str):
        path.write_text(text)
    else:
        write(path, text)
    given = options if "--C" in options else (*options, "--C", "1e5")
    ran = run("train", "correlation", path, "-o", tmp_path / "m", *COLUMNS, *given)
    complaint(ran, told, *([path] if not options or "column" in told or "orders" in told else []))
    assert os.listdir(tmp_path) == ["items.csv"]


def test_bad_use_of_sets_and_labels_gives_one_clear_line(run: Any, items: Path, tmp_path: Path) -> None:
    out = ["-o", tmp_path / "m", "--json", tmp_path / "j"]
    complaint(run("train", "correlation", items, *out), items, "no clusters to learn from", "--label")
    one = ["--label", "topic", "--id", "name"]
    complaint(run("train", "correlation", items, *out, *one), items, "there is one set", "--C", "--set-size")
    complaint(run("train", "kmeans", items, *out, *one, "--C", "cv"), items, "there is one set")
    for size in ("many", "8-", "-8", "8-4", "0-0", "1-2"):
        complaint(run("train", "correlation", items, *out, *one, f"--set-size={size}"))
    complaint(run("train", "correlation", tmp_path / "gone.csv", *out), "gone.csv", "No such file")
    complaint(run("train", "correlation", tmp_path, *out, "--label", "x"), tmp_path, "columns are for a CSV")
    (tmp_path / "empty").mkdir()
    complaint(run("train", "correlation", tmp_path / "empty", *out), tmp_path / "empty")
    assert sorted(os.listdir(tmp_path)) == ["empty", "items.csv"]


@pytest.mark.parametrize("option", ["--oracle", "--predictor"])
def test_a_set_that_is_too_large_is_refused_before_the_start(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    path = write(tmp_path / "large.csv", [["a", str(n), str(n % 9), "", str(n)] for n in range(500)])
    monkeypatch.setattr(
        "netclust.models.clustering.run_clustering.learn_clusterer", lambda *a, **k: pytest.fail("training began")
    )
    for C in ("1e5", "cv"):
        ran = run("train", "correlation", path, "-o", tmp_path / "m", *COLUMNS, "--C", C, option, "lp")
        complaint(ran, path, "500 items is too large for the LP relaxation: 124,750 variables", "MB of memory")
    assert os.listdir(tmp_path) == ["large.csv"]


def test_bad_use_of_a_model_gives_one_clear_line(run: Any, model: Path, new: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    cluster = ["cluster", new, "--model", model]
    complaint(run(*cluster, "-o", out, "-k", 3), "-k is for a model of k-means")
    complaint(run("evaluate", "kmeans", "--model", model, "--test", new, *COLUMNS), model, "is a model of correlation")
    complaint(run("evaluate", "correlation", "--model", model, "--test", new), new, "--label")
    complaint(run(*cluster, "-o", tmp_path / "no" / "where"), "there is no folder")
    complaint(run(*cluster, "-o", out, "--json", out), out, "two outputs")
    complaint(run(*cluster, "-o", "-", "--json", "-"), "standard output")
    complaint(run(*cluster, "-o", out, "--set", "week"), new, "no column 'week'")
    complaint(run("cluster", tmp_path / "gone", "--model", model, "-o", out), "gone", "No such file")
    complaint(run("cluster", new, "--model", tmp_path / "gone", "-o", out), "gone", "No such file")
    other = write(tmp_path / "other.csv", [["x", "y"]], ["a", "b"])
    complaint(run("cluster", other, "--model", model, "-o", out), other, "no column 'text'")
    odd = write(tmp_path / "odd.csv", [["a", "1", "t", "ball", "nan"], ["a", "2", "t", "ball", "3"]])
    complaint(run("cluster", odd, "--model", model, "-o", out), odd, "item 1: size is 'nan'")
    assert not out.exists()


def test_what_is_read_is_not_written_over(run: Any, model: Path, items: Path, new: Path) -> None:
    kept = {path: path.read_bytes() for path in (model, items, new)}
    complaint(run("train", "correlation", items, "-o", items, *COLUMNS, "--C", 1), items, "is the input")
    complaint(run("train", "correlation", items, "-o", model, "--json", items, *COLUMNS, "--C", 1), "is the input")
    complaint(run("cluster", new, "--model", model, "-o", new), new, "is the input")
    complaint(run("cluster", new, "--model", model, "-o", model), model, "is the input")
    for target in (new, model):
        ran = run("evaluate", "correlation", "--model", model, "--test", new, *COLUMNS, "--json", target)
        complaint(ran, target, "is the input")
    assert {path: path.read_bytes() for path in kept} == kept


def test_files_of_another_kind_are_refused(run: Any, model: Path, new: Path, tmp_path: Path) -> None:
    network = tmp_path / "net.model"
    container.write_container_bytes(network, container.pack_container("netclust.model", {"weights": np.zeros(3)}, {}))
    for wrong in (network, new):
        complaint(run("cluster", new, "--model", wrong, "-o", tmp_path / "o"), wrong)
        complaint(run("evaluate", "correlation", "--model", wrong, "--test", new, *COLUMNS), wrong)
    complaint(run("evaluate", "network", "--model", model, "--test", new), model)
    cut = tmp_path / "cut"
    cut.write_bytes(model.read_bytes()[:-7])
    complaint(run("cluster", new, "--model", cut, "-o", tmp_path / "o"), cut)
    complaint(run("info", cut), cut)
    assert not (tmp_path / "o").exists()


def test_a_text_among_numbers_is_noted(run: Any, tmp_path: Path) -> None:
    rows = lines_of()
    rows[5][4] = "NA"
    ran = run("train", "correlation", write(tmp_path / "na.csv", rows), "-o", tmp_path / "m", *COLUMNS, "--C", "1e5")
    assert ran.code == 0, ran.err
    assert "column 'size' is compared as text: 'NA' is no number" in ran.err
    assert "compared as text: text, size; as numbers: -" in ran.err


def test_an_id_that_two_sets_have_is_refused(run: Any, tmp_path: Path) -> None:
    rows = [[row[0], row[1].split("-")[1], *row[2:]] for row in lines_of()]
    ran = run("train", "correlation", write(tmp_path / "ids.csv", rows), "-o", tmp_path / "m", *COLUMNS, "--C", "1e5")
    assert ran.code == 0, ran.err
