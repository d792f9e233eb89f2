"""The console beside a daemon under load: updates keep coming, nothing piles up in the page, detection does not pay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import browser

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """benchmarks/console.py."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import console

    with browser():  # or skip, before anything else is started
        pass
    return console


def test_updates_keep_coming_and_nothing_piles_up(bench: Any, tmp_path: Path) -> None:
    found = bench.memory(tmp_path, 3.0, rate=4000, quick=True)
    for page in ("overview", "clusters"):
        assert found[page]["updates_per_second"] > 0.2
        assert found[page]["elements_last"] < 2 * found[page]["elements_first"] + 1000
        assert found[page]["heap_mb_last"] < 100
    assert found["records_judged"] > 10_000


@pytest.mark.long
def test_ten_minutes_at_the_rated_input(bench: Any, tmp_path: Path) -> None:
    painted = bench.in_browser(tmp_path / "paint")
    assert painted["first_contentful_paint_ms"] < 1000
    assert painted["forest"]["nodes"] == 10_000
    assert painted["forest"]["frames_per_second_live"] >= 30
    found = bench.memory(tmp_path / "memory", 600.0)
    for page in ("overview", "clusters"):
        assert found[page]["updates_per_second"] > 0.9
        assert found[page]["heap"]["flat"], found[page]


@pytest.mark.long
def test_pages_that_listen_cost_detection_nothing(bench: Any, tmp_path: Path) -> None:
    found = bench.cost(tmp_path)
    assert found["detector"]["ratio"] < 1.05
