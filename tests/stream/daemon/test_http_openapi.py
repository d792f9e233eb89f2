"""The API keeps its word: whatever fits its description, and whatever does not, is answered as described."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from console_cases import grown, saved_of
from http_cases import TOKEN, FakeControl
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from store_cases import told

from netclust.stream.daemon.http_app import make_app
from netclust.stream.http import guard
from netclust.stream.http.server import serve
from netclust.stream.store.store import Store

pytestmark = pytest.mark.system

EXAMPLES = 500 if os.environ.get("NETCLUST_LONG") else 5
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with Store(tmp_path_factory.mktemp("api") / "netclust.db") as store, pytest.MonkeyPatch.context() as patch:
        store.save_events([told("a-1"), told("a-2", clusters=[41, 42])])
        control = FakeControl(store)
        control.view.history.save_nodes(saved_of(grown(control.view.forest, [-1, 0, 1])))
        store.add_label("a-1", "normal", by="eve")
        patch.setattr(guard.RequestLimits, "wait_to_write", lambda self: 0)  # it is fuzzed faster than people write
        server = serve(make_app(control), "127.0.0.1:0")
        yield schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json").exclude(path_regex="/events$")
        assert server.stop()


def test_what_is_described_is_what_is_answered(described: Any) -> None:
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 20
    for operation in operations:
        for mode in GenerationMode:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
            def fuzz(case: schemathesis.Case) -> None:
                case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}, checks=CHECKS)

            with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with it
                fuzz()
