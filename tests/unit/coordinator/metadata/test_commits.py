from __future__ import annotations

import pytest

from rota.coordinator.metadata import commits


def test_changes_keep_their_order_and_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "OPS_PER_COMMIT_MAX", 5)
    assert list(commits.split(range(7), 2)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(commits.split(range(5), 0)) == [[0, 1, 2, 3, 4]]
    assert list(commits.split([], 2)) == []
