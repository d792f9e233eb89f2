"""Checkpoints: atomic, checksummed, with a base for large windows; a corrupt one gives way to the one before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from netclust.errors import InputError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.scoring.model import Model
from netclust.stream.daemon.checkpoint import CheckpointStore, Cut


def cut(note: str, linker: Linker | None = None, since: int | None = None) -> Cut:
    return Cut({"note": note}, {"a": np.arange(5)}, None if linker is None else linker.freeze(since))


def spoil(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("at", [0, 9, 100, -1, -40])
def test_a_checkpoint_with_one_flipped_bit_gives_way_to_the_one_before(tmp_path: Path, at: int) -> None:
    store = CheckpointStore(tmp_path)
    store.write(cut("old"))
    spoil(store.write(cut("new")).path, at)
    again = CheckpointStore(tmp_path)
    found = again.load()
    assert found is not None
    assert found.facts["note"] == "old"
    assert len(again.refused) == 1
    assert "checksum" in again.refused[0]


def test_a_torn_checkpoint_of_any_length_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    store.write(cut("old"))
    path = store.write(cut("new")).path
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        found = CheckpointStore(tmp_path).load()
        assert found is not None
        assert found.facts["note"] == "old"


def test_a_later_run_does_not_write_over_the_checkpoints_of_an_earlier_one(tmp_path: Path) -> None:
    CheckpointStore(tmp_path).write(cut("first"))
    CheckpointStore(tmp_path).write(cut("second"))
    found = CheckpointStore(tmp_path).load()
    assert found is not None
    assert found.facts["note"] == "second"
    assert len(list(tmp_path.glob("checkpoint-*"))) == 2


def test_old_checkpoints_and_bases_do_not_pile_up(tmp_path: Path, small_model: Model) -> None:
    linker = Linker(small_model, LinkerConfig(referent_window=100))
    store = CheckpointStore(tmp_path, small_window=50)
    for k in range(12):
        linker.process(small_model.reference)
        store.write(cut(str(k), linker, store.since(linker.tick, 100, small_model.fingerprint)))
    assert len(list(tmp_path.glob("checkpoint-*"))) == 2
    assert len(list(tmp_path.glob("base-*"))) <= 2


def test_a_large_window_comes_back_from_base_and_changes_as_it_was(tmp_path: Path, small_model: Model) -> None:
    linker = Linker(small_model, LinkerConfig(referent_window=400))
    store = CheckpointStore(tmp_path, small_window=100)
    rows = np.random.default_rng(3).integers(0, len(small_model.reference), 900)
    stream = small_model.reference[rows]
    sizes = []
    for k in range(0, 800, 40):
        linker.process(stream[k : k + 40])
        if k == 440:
            linker.label_cluster(int(linker.process(stream[:1]).cluster[0]), linker.normal_label)
        written = store.write(cut(str(k), linker, store.since(linker.tick, 400, small_model.fingerprint)))
        sizes.append((written.bytes, written.base_bytes))
        found = CheckpointStore(tmp_path, small_window=100).load()
        assert found is not None
        assert found.linker is not None
        again = Linker.restore(small_model, found.linker, base=found.base)
        assert again.snapshot() == linker.snapshot()
    assert sum(base > 0 for _, base in sizes) >= 2  # written anew as the window moves on
    assert sum(base == 0 for _, base in sizes) >= 10


def test_a_folder_that_is_not_there_holds_no_checkpoint(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "missing")
    assert store.load() is None
    assert store.refused == []


def test_a_base_serves_until_half_of_the_window_is_new(tmp_path: Path, small_model: Model) -> None:
    linker = Linker(small_model, LinkerConfig(referent_window=400))
    linker.process(small_model.reference[:200])
    store = CheckpointStore(tmp_path, small_window=100)
    model = small_model.fingerprint
    assert store.since(200, 400, model) is None
    store.write(cut("with base", linker))
    assert [store.since(tick, 400, model) for tick in (200, 400, 401)] == [200, 200, None]
    assert store.since(300, 100, model) is None  # small enough to be written whole
    assert store.since(300, 101, model) is None
    assert store.since(250, 101, model) == 200
    assert store.since(300, 400, "another") is None


def test_a_corrupt_base_takes_its_checkpoints_with_it(tmp_path: Path, small_model: Model) -> None:
    linker = Linker(small_model, LinkerConfig(referent_window=400))
    linker.process(small_model.reference[:200])
    store = CheckpointStore(tmp_path, small_window=100)
    store.write(cut("with base", linker))
    spoil(next(tmp_path.glob("base-*")), 50)
    again = CheckpointStore(tmp_path)
    assert again.load() is None
    assert len(again.refused) == 1


def test_a_full_disk_leaves_the_last_checkpoint_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CheckpointStore(tmp_path)
    store.write(cut("old"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match="No space left"):
        store.write(cut("new"))
    monkeypatch.undo()
    found = CheckpointStore(tmp_path).load()
    assert found is not None
    assert found.facts["note"] == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-000000000001.netclust"]
