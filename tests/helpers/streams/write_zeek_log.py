"""Write a labelled Zeek log of a capture: CAPTURE LABELS OUTPUT. Every tenth normal connection is Background."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from conn_logs import labelled_tsv, loggable

from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.capture_labels import load_labels
from netclust.stream.packets.flow_table import FlowTable

if __name__ == "__main__":
    capture, labels, output = sys.argv[1:]
    table = FlowTable()
    parts = [table.feed(block) for block in CaptureFile(capture)]
    records = loggable(np.concatenate([*parts, table.finish()]))
    rules = load_labels(labels)
    names = [rules.names[number] for number in rules.labels_of(records)]
    said = ["Benign" if name == "normal" and i % 10 else "Background" if name == "normal" else name or "Background"
            for i, name in enumerate(names)]  # fmt: skip
    Path(output).write_text(labelled_tsv(records, label=said))
