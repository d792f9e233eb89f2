"""Kernels are loaded before the first record waits for them, and before the right to read their cache is given up."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np

from netclust.errors import InputError
from netclust.linking.adaptation import adapt
from netclust.linking.linker import Linker
from netclust.scoring.model import Model
from netclust.stream.config import Config
from netclust.stream.logs import Log

__all__ = ["leaving_cache", "log_kernel_preload", "preload_kernels"]

_PACKETS = {"capture", "live"}
_LOGS = {"zeek", "eve"}


def log_kernel_preload(log: Log) -> None:
    """Log that kernels will be compiled, before any is used: a first start is silent for up to a minute."""
    from netclust.kernels.cache_folder import is_warm
    from netclust.kernels.jit import CACHE_FOLDER

    if not is_warm(CACHE_FOLDER):
        kept = CACHE_FOLDER or "nowhere: set NUMBA_CACHE_DIR"
        log.info("compiles its kernels: the first start takes a minute or so longer", kept=kept)


def _import_later_ones() -> None:
    """Import what is otherwise imported at its first use: its files may be out of reach once rights are given up."""
    import prometheus_client  # noqa: F401
    import safetensors.numpy  # noqa: F401

    import netclust.linking.snapshot
    import netclust.shipped.loading  # noqa: F401


def preload_kernels(config: Config, model: Model, *, warming: bool) -> None:
    """Load everything that sources and the linker of this configuration run, and import what is needed later."""
    _import_later_ones()
    schema = model.encoding.schema
    Linker(model, config.window.linker()).process_with_evidence(model.reference[:1])
    kinds = {source.kind for source in config.sources}
    if kinds & _PACKETS:
        _load_packets(schema.name)
    if "live" in kinds:
        from netclust.stream.packets import live

        live.load_live_kernels()
    if kinds & _LOGS:
        _load_logs(schema.name)
    if "records" in kinds:
        from netclust.records.reader import load_reader_kernels as load_parser

        load_parser(schema)
    if warming:
        normal = np.flatnonzero(model.encoding.label_table().is_normal[model.reference.label])
        with contextlib.suppress(InputError):  # a model that cannot be adapted says so when it is to be
            adapt(model, model.reference[np.resize(normal, 64)], rate=0.5, references=2)


def _load_packets(schema: str) -> None:
    """What reads packets, follows connections, and counts between them."""
    from netclust.kernels.packets.flow_layout import RECORD
    from netclust.stream.packets import flow_table
    from netclust.stream.sources.packet_flows import PacketFlows

    flow_table.load_flow_kernels()
    flows = PacketFlows(schema, Counter(), max_flows=16)
    flows.table.advance(0)
    flows.finish()
    flows.connections.table(np.zeros(1, RECORD))


def _load_logs(schema: str) -> None:
    """What counts between connections of a log."""
    from netclust.stream.sources.dialects import Notes
    from netclust.stream.sources.log_format import LogFormat
    from netclust.stream.sources.zeek import ZeekDialect

    form = LogFormat(schema, ZeekDialect)
    line = b'{"ts":0.0,"id.orig_h":"10.0.0.1","id.orig_p":1,"id.resp_h":"10.0.0.2","id.resp_p":2,"proto":"tcp"}\n'
    form.table(form.dialect("", Notes(Counter())).parse(line))


@contextlib.contextmanager
def leaving_cache() -> Iterator[None]:
    """Rights are given up within. If the cache is out of reach then, kernels not yet loaded are compiled again."""
    from netclust.kernels.jit import CACHE_FOLDER, Kernel
    from netclust.stream.alerts.alert_triage import load_search

    load_search()
    yield
    if CACHE_FOLDER is None or os.access(CACHE_FOLDER, os.R_OK | os.W_OK | os.X_OK):
        return
    for module in [module for name, module in sys.modules.items() if name.startswith("netclust.")]:
        for function in vars(module).values():
            if isinstance(function, Kernel):
                function.forget_cache()
