"""The warm-up: records of a site are gathered, then the model is made to fit it, at a fixed number of records.

Fitting takes a second or so. Where records cannot wait for it, it is done in a thread while further records come (the
`reserve`), and taken into use when these have come: at the same record in every run.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.models.network.train_network import train_network
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> site = model.encoding.encode(simulate(900, seed=2, day=1, attacks=()).table())
>>> warm_up = WarmUp(model, records=600, references=100, rate=0.01, reserve=200)
>>> warm_up.take(site[:600]), warm_up.until_next
(None, 200)
>>> adapted = warm_up.take(site[600:800])
>>> len(adapted.reference) - len(model.reference), warm_up.active
(100, False)
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from netclust.errors import InputError, ModelError
from netclust.foundation.container import Arrays
from netclust.linking.adaptation import adapt, adaptation_of
from netclust.records.batch import Batch, concat_batches
from netclust.scoring.model import Model

__all__ = ["WarmUp"]


class WarmUp:
    """Gathers `records` of them; `left` counts down to 0, the reserve included. A model that fits a site needs none."""

    def __init__(self, model: Model, *, records: int, references: int, rate: float, reserve: int = 0) -> None:
        self.model = model
        self.records = records
        self.references = references
        self.rate = rate
        self.reserve = reserve
        self.left = records + reserve if records and adaptation_of(model) is None else 0
        self._site: list[Batch] = []
        self._fitting: Future[Model] | None = None

    @property
    def active(self) -> bool:
        """Whether the site is still being learned."""
        return self.left > 0

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        return 1.0 - self.left / max(self.records + self.reserve, 1) if self.left else 1.0

    @property
    def until_next(self) -> int:
        """After how many records something happens: a batch must not go beyond."""
        return self.left - self.reserve if self.left > self.reserve else self.left

    def take(self, batch: Batch) -> Model | None:
        """Count records in; at the end, the model that fits. InputError: it cannot be fitted, and begins anew."""
        if self.left > self.reserve:
            self._site.append(Batch(num=batch.num, code=batch.code, time=batch.time))
        self.left -= len(batch)
        if self.left <= self.reserve and self._fitting is None:
            self._fit()
        if self.left > 0 or self._fitting is None:
            return None
        fitting, self._fitting, self._site = self._fitting, None, []
        try:
            return fitting.result()
        except InputError:
            self.left = self.records + self.reserve
            raise

    def _fit(self) -> None:
        site = concat_batches(self._site)
        self._site = [site]
        if not self.reserve:
            self._fitting = Future()
            try:
                self._fitting.set_result(self._fitted(site))
            except InputError as error:
                self._fitting.set_exception(error)
            return
        thread = ThreadPoolExecutor(1, thread_name_prefix="warm-up")
        self._fitting = thread.submit(self._fitted, site)
        thread.shutdown(wait=False)

    def _fitted(self, site: Batch) -> Model:
        return adapt(self.model, site, rate=self.rate, references=self.references)

    def state(self) -> Arrays:
        """What a checkpoint needs besides `left`."""
        if not self._site:
            return {}
        site = concat_batches(self._site)
        self._site = [site]
        return {"site.num": site.num, "site.code": site.code, "site.time": site.time}

    def restore(self, left: int, arrays: Arrays, where: str) -> None:
        """Go on from a checkpoint."""
        self.left, self._site, self._fitting = left, [], None
        if "site.num" in arrays:
            num, code, time = (arrays.get(f"site.{name}", np.zeros(0)) for name in ("num", "code", "time"))
            widths = ((len(self.model.encoding.kept),), (len(self.model.encoding.widths),))
            if (num.shape[1:], code.shape[1:]) != widths or not len(num) == len(code) == len(time):
                raise ModelError(f"{where}: the records of the warm-up do not fit the model")
            self._site = [Batch(num=num, code=code, time=time)]
        if self._site and 0 < self.left <= self.reserve:
            self._fit()
