"""Makes tests/stream/daemon/state-VERSION: what a daemon of this release leaves in its state folder.

Run once a release (`python tests/stream/daemon/make_release_state.py`); later releases must go on from it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import msgspec

from netclust._version import __version__
from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.models.network.params import load_params
from netclust.models.network.train_network import train_network
from netclust.stream.config import parse_config
from netclust.stream.daemon.service import Daemon
from netclust.stream.logs import Log
from netclust.stream.sources.base import MemorySource
from netclust.stream.store.requests import SuppressionRule
from netclust.stream.store.store import Store

CONFIG = """
[[source]]
kind = "records"
name = "records"
path = "-"
[model]
path = "{folder}/model.safetensors"
[warmup]
records = 400
references = 60
[http]
listen = ""
[daemon]
state_dir = "{folder}"
"""


def main() -> None:
    """Two runs: alerts in the first, a label and a rule that count in the second."""
    target = Path(__file__).parent / f"state-{__version__}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        params = msgspec.structs.replace(load_params("late"), reference_size=60)
        model = train_network(simulate(2000, seed=1, attacks=KNOWN).table(), params, seed=0)
        model.save(folder / "model.safetensors")
        config = parse_config(CONFIG.format(folder=folder))
        tables = [simulate(700, seed=2 + k, day=1, attacks=HELD_BACK).table() for k in range(2)]
        for count in (1, 2):
            source = MemorySource("records", tables[0].schema, tables[:count])
            daemon = Daemon(config, sources=[source], log=Log("text", "error"))
            daemon.open()
            daemon.run()
            if count == 1:
                with Store(folder / "netclust.db") as store:
                    store.add_label(store.alerts()[0].id, "normal", by="eve", why="a test")
                    store.add_suppression(SuppressionRule(port=9), reason="a test", by="eve")
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        newest = sorted(folder.glob("checkpoint-*"))[-1:]
        for path in [*newest, *folder.glob("model*.safetensors"), folder / "netclust.db"]:
            shutil.copy(path, target / path.name)


if __name__ == "__main__":
    main()
