"""The profiles of a daemon's clusters, out of its state folder: as of its last checkpoint, whether it runs or not."""

from __future__ import annotations

from pathlib import Path

from netclust.errors import InputError
from netclust.linking.cluster_profiles import ClusteredRows, ClusterProfile, profile_clusters
from netclust.linking.linker import Linker
from netclust.stream.alerts.exemplars import Exemplars
from netclust.stream.daemon.checkpoint import CheckpointStore
from netclust.stream.daemon.model_archive import ModelArchive

__all__ = ["profiles_of_state"]


def profiles_of_state(folder: Path, *, least: int = 1) -> tuple[list[ClusterProfile], str]:
    """The clusters, of records in the referent window (else of those kept of alerts); and the schema's name."""
    store = CheckpointStore(folder)
    loaded = store.load(set_aside=False)
    if loaded is None or loaded.linker is None:
        why = f": {store.refused[0]}" if store.refused else ": is it a daemon's state folder, and did the daemon run?"
        raise InputError(f"{folder}: has no checkpoint to read clusters from{why}")
    try:
        model = ModelArchive(folder).load(str(loaded.facts["model"]))
        linker = Linker.restore(model, loaded.linker, str(loaded.path), loaded.base)
        facts = loaded.facts["detector"]
        arrays = {name.removeprefix("detector."): a for name, a in loaded.arrays.items()}
        widths = (len(model.encoding.kept), len(model.encoding.widths))
        Exemplars().restore(list(facts.get("exemplars", [])), arrays, widths, str(loaded.path))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{loaded.path}: lacks what a checkpoint has: {error}") from None
    kept = None
    if "exemplars.cluster" in arrays:
        kept = ClusteredRows(*(arrays[f"exemplars.{part}"] for part in ("cluster", "num", "code")))
    return profile_clusters(linker, least=least, kept=kept), model.encoding.schema.name
