"""Named sets of properties. Every other source of settings overrides them."""

from __future__ import annotations

PRESETS: dict[str, dict[str, str]] = {
    "dev": {
        # A test needs its group at once, and a short session timeout for members that crash.
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        "offsets.topic.replication.factor": "1",
        "rota.drain.timeout.ms": "1000",
    },
    "durable": {
        # Every acknowledged batch is on the medium, not only in the page cache.
        "log.flush.interval.messages": "1",
    },
}
