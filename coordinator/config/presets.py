"""Sets of properties with a name, under whatever else is given."""

from __future__ import annotations

PRESETS: dict[str, dict[str, str]] = {
    "dev": {
        # A test wants its group at once, and members that die noticed soon.
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
