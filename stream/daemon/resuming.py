"""Going on from a checkpoint: the detector as it was, also under another model or window; numbers of sources."""

from __future__ import annotations

from netclust.errors import InputError, ModelError
from netclust.linking.linker import Linker
from netclust.scoring.model import Model
from netclust.stream.config import Config
from netclust.stream.daemon.checkpoint import Loaded
from netclust.stream.daemon.model_archive import ModelArchive
from netclust.stream.detection.detector import Detector
from netclust.stream.logs import Log
from netclust.stream.sources.base import is_socket
from netclust.stream.store.store import Store, StoreError

__all__ = ["bridge_gap", "resumed_detector", "resumed_source_numbers"]

_PREFIX = "detector."


def resumed_source_numbers(config: Config, loaded: Loaded | None) -> dict[str, int]:
    """Return the number of every source: those of a checkpoint never change, new ones come behind."""
    numbers: dict[str, int] = {} if loaded is None else dict(loaded.facts.get("numbers", {}))
    for source in config.sources:
        numbers.setdefault(source.name, 1 + max(numbers.values(), default=-1))
    return numbers


def bridge_gap(detector: Detector, store: Store, log: Log, *, all_lost: bool) -> None:
    """After records were lost, keep apart what was told of them: no cluster gets the number of one of theirs.

    Where no source is read again (`all_lost`), nobody else closes the alerts that were told since the checkpoint.
    """
    try:
        detector.linker.number_clusters_after(store.newest_cluster())
        closed = store.close_orphans({alert.id for alert in detector.book.open_alerts}) if all_lost else 0
        if closed:
            log.info("closed alerts that were opened after the last checkpoint: their records are lost", alerts=closed)
    except StoreError as error:
        log.error("the store could not be asked about what was lost", why=str(error))


def resumed_detector(
    config: Config, model: Model, loaded: Loaded | None, archive: ModelArchive, names: list[str], log: Log
) -> Detector:
    """Return the detector of a checkpoint, with the configured model; a new one where that cannot be."""
    patient = not any(source.kind == "live" or is_socket(source.path) for source in config.sources)
    if loaded is None:
        return Detector(model, config, names=names, patient=patient)
    where = str(loaded.path)
    try:
        if loaded.linker is None:
            raise ModelError(f"{where}: has no linker")
        same = loaded.facts["configured_model"] == model.fingerprint
        used = model if loaded.facts["model"] == model.fingerprint else archive.load(loaded.facts["model"])
        linker = Linker.restore(used, loaded.linker, where, loaded.base, threads=config.window.threads)
        if linker.config != config.window.linker():
            log.warning("[window] has changed since the last stop: the referent window begins anew")
            linker = linker.with_model(used, config.window.linker())
        detector = Detector(model if same else used, config, linker=linker, names=names, patient=patient)
        arrays = {name.removeprefix(_PREFIX): a for name, a in loaded.arrays.items() if name.startswith(_PREFIX)}
        detector.restore(loaded.facts["detector"], arrays, where)
        if not same:
            log.warning("the model is another one than at the last stop: the site is learned anew")
            detector.swap(model)
    except (InputError, KeyError) as error:
        log.error("the detector's part of the checkpoint cannot be used: it begins anew", why=str(error))
        return Detector(model, config, names=names, patient=patient)
    log.info("goes on after record", records=linker.tick, checkpoint=loaded.path.name)
    return detector
