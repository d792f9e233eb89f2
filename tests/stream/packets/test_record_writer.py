"""What comes from packets is written so that our own readers take a line for a record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from netclust.datasets.simulators.simulate import simulate
from netclust.records.reader import read_table
from netclust.stream.packets.record_writer import open_writer


def test_a_name_with_a_line_break_stays_on_one_line(tmp_path: Path) -> None:
    table = simulate(4, seed=1).table()
    names = np.array(["plain", 'a,"b"', "one\ntwo\r\n", "\r"], object)
    with open_writer(tmp_path / "some.csv") as writer:
        writer.write(replace(table, context={**table.context, "server_name": names}))
    lines = (tmp_path / "some.csv").read_text().splitlines()
    assert len(lines) == 5
    assert r'"one\ntwo\r\n"' in lines[3]
    assert '"a,""b"""' in lines[2]
    assert len(read_table(tmp_path / "some.csv", table.schema)) == 4
