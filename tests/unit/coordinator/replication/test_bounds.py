from __future__ import annotations

from tests.unit.coordinator.replication.cluster import Cluster

from rota.coordinator.replication.bounds import leader_bounds
from rota.protocol.errors import ErrorCode
from rota.transport.handshake import connect


async def test_where_the_logs_of_a_leader_start_and_end_committed_or_not() -> None:
    async with Cluster(size=2, partitions=2) as cluster:
        await cluster[2].replication.stop()
        for value in (b"a", b"b", b"c"):
            await cluster[1].produce(value, acks=1)
        cluster.elect(2, index=1, to={1})
        connection = await connect(
            "127.0.0.1", cluster[1].port, "1", "test", setup_seconds=5, request_seconds=5, ended=lambda _: None
        )
        followers = [cluster[2].partition(1), cluster[2].partition(0)]
        assert await leader_bounds(connection, followers, 2, 5) == [ErrorCode.FENCED_LEADER_EPOCH, (0, 3)]
        connection.end(ConnectionError())  # type: ignore[arg-type]
        await connection.closed()
