"""The broker properties that Rota knows by type: Apache Kafka 4.3's names and defaults, and Rota's own under `rota.`.

Where a default differs from Kafka's, the line says why. Kafka's other properties are in other_properties.py.
"""

from __future__ import annotations

from rota.coordinator.config.definition import LONG_MAX, Definition, Support, Type, Update, by_name

_NO_LIMIT = str(LONG_MAX)
_NO_COUNT = "2147483647"
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_D, _T, _ANY = Definition, Type, Update.CLUSTER_WIDE
_IDLE = Support.NO_EFFECT  # accepted for a later version

_IDENTITY = (
    # Kafka has no default for node.id; a lone broker needs none.
    _D("node.id", _T.INT, "0", "Number of this broker in its cluster.", 0),
    _D("broker.id", _T.INT, "-1", "Older name of node.id.", -1),
    _D("broker.rack", _T.STRING, None, "Place of this broker, for clients that prefer a near one."),
    # Kafka may change its listeners while it runs, and listens on every interface by default; Rota listens on the
    # loopback, because it has no authentication yet.
    _D("listeners", _T.LIST, "PLAINTEXT://127.0.0.1:9092", "Where to listen: NAME://HOST:PORT."),
    _D(
        "advertised.listeners",
        _T.LIST,
        None,
        "Addresses that clients connect to; unset, each client gets the address that it used.",
    ),
    # Kafka's is /tmp/kafka-logs, which a reboot empties.
    _D("log.dir", _T.LIST, "rota-data", "Folder of the logs when log.dirs is unset."),
    _D("log.dirs", _T.LIST, None, "Folders of the logs."),
)

_GROUPS = (
    _D(
        "group.initial.rebalance.delay.ms", _T.INT, "3000", "Wait for more members when an empty group fills, in ms.", 0
    ),
    _D("group.min.session.timeout.ms", _T.INT, "6000", "Shortest session timeout that a member may ask for, in ms."),
    _D("group.max.session.timeout.ms", _T.INT, "1800000", "Longest session timeout that a member may ask for, in ms."),
    _D("group.max.size", _T.INT, _NO_COUNT, "Most members of one group.", 1),
    _D("offsets.topic.num.partitions", _T.INT, "50", "Partitions of __consumer_offsets.", 1),
    _D("offsets.topic.replication.factor", _T.SHORT, "3", "Replicas of __consumer_offsets, as far as brokers go.", 1),
    _D("offsets.topic.segment.bytes", _T.INT, "104857600", "Segment size of __consumer_offsets, in bytes.", 1),
    _D("offsets.retention.minutes", _T.INT, "10080", "How long an empty group's offsets are kept, in minutes.", 1),
    _D("offsets.retention.check.interval.ms", _T.LONG, "600000", "Time between looks for old offsets, in ms.", 1),
    _D("offset.metadata.max.bytes", _T.INT, "4096", "Largest text that a commit may carry, in bytes."),
    _D(
        "offsets.commit.timeout.ms",
        _T.INT,
        "5000",
        "How long a commit may wait to be durable, in ms.",
        1,
        support=_IDLE,
    ),
)

_TOPICS = (
    _D("num.partitions", _T.INT, "1", "Partitions of a topic that nobody gave a number.", 1),
    # Kafka starts with 0, and then refuses each topic that gives no factor.
    _D("default.replication.factor", _T.INT, "1", "Number of replicas of a topic whose creation gives none.", 1),
    _D("auto.create.topics.enable", _T.BOOLEAN, "true", "Create a topic when a client asks for its metadata."),
    _D("delete.topic.enable", _T.BOOLEAN, "true", "Let clients delete topics."),
    _D(
        "min.insync.replicas",
        _T.INT,
        "1",
        "Replicas that must have a record before acks=all.",
        1,
        update=_ANY,
    ),
    _D(
        "unclean.leader.election.enable",
        _T.BOOLEAN,
        "false",
        "Let a replica that lags behind lead.",
        update=_ANY,
    ),
    _D("message.max.bytes", _T.INT, "1048588", "Largest batch that is accepted, in bytes.", 0, update=_ANY),
    _D("compression.type", _T.STRING, "producer", "Codec that batches are kept in.", choices=_CODECS, update=_ANY),
    _D("compression.gzip.level", _T.INT, "-1", "Level of gzip on the broker.", 1, 9, also=-1, update=_ANY),
    _D("compression.lz4.level", _T.INT, "9", "Level of lz4 on the broker.", 1, 17, update=_ANY),
    _D("compression.zstd.level", _T.INT, "3", "Level of zstd on the broker.", -131072, 22, update=_ANY),
    _D("producer.id.expiration.ms", _T.INT, "86400000", "When an idle producer is forgotten, in ms.", 1, update=_ANY),
    _D("transaction.max.timeout.ms", _T.INT, "900000", "Longest transaction that may be asked for, in ms.", 1),
)

_LOG = (
    _D(
        "log.segment.bytes", _T.INT, "1073741824", "Size at which a new segment begins, in bytes.", 1 << 20, update=_ANY
    ),
    _D("log.roll.ms", _T.LONG, None, "Age at which a new segment begins, in ms; before log.roll.hours.", update=_ANY),
    _D("log.roll.hours", _T.INT, "168", "Age at which a new segment begins, in hours.", 1),
    _D("log.retention.ms", _T.LONG, None, "Age at which segments go, in ms; -1 for no limit.", -1, update=_ANY),
    _D("log.retention.minutes", _T.INT, None, "Age at which segments go, in minutes.", -1),
    _D("log.retention.hours", _T.INT, "168", "Age at which segments go, in hours.", -1),
    _D("log.retention.bytes", _T.LONG, "-1", "Size above which old segments go, in bytes.", update=_ANY),
    _D("log.retention.check.interval.ms", _T.LONG, "300000", "Time between looks for old segments, in ms.", 1),
    _D(
        "log.cleanup.policy",
        _T.LIST,
        "delete",
        "What happens to old records.",
        choices=("compact", "delete"),
        update=_ANY,
    ),
    _D("log.flush.interval.messages", _T.LONG, _NO_LIMIT, "Records after which a log is synced.", 1, update=_ANY),
    _D("log.flush.interval.ms", _T.LONG, None, "Time after which a log is synced, in ms.", update=_ANY),
    _D("log.flush.scheduler.interval.ms", _T.LONG, _NO_LIMIT, "Time between looks for logs to sync, in ms."),
    _D("log.index.interval.bytes", _T.INT, "4096", "Bytes of log between two index entries.", 0, update=_ANY),
    _D("log.cleaner.enable", _T.BOOLEAN, "true", "Compact the logs whose policy says so.", support=_IDLE),
    _D(
        "log.cleaner.backoff.ms",
        _T.LONG,
        "15000",
        "Rest of the cleaner when nothing is due, in ms.",
        0,
        update=_ANY,
        support=_IDLE,
    ),
    _D("log.cleaner.delete.retention.ms", _T.LONG, "86400000", "Age at which tombstones go, in ms.", 0, update=_ANY),
    _D("log.cleaner.min.cleanable.ratio", _T.DOUBLE, "0.5", "Uncompacted share that is due.", 0, 1, update=_ANY),
    _D("log.cleaner.min.compaction.lag.ms", _T.LONG, "0", "Age below which none is compacted, in ms.", 0, update=_ANY),
    _D(
        "log.cleaner.max.compaction.lag.ms",
        _T.LONG,
        _NO_LIMIT,
        "Age at which all is due, in ms.",
        1,
        update=_ANY,
        support=_IDLE,
    ),
    _D(
        "log.message.timestamp.type",
        _T.STRING,
        "CreateTime",
        "Whose clock stamps a record.",
        choices=("CreateTime", "LogAppendTime"),
        update=_ANY,
    ),
    _D(
        "log.message.timestamp.before.max.ms", _T.LONG, _NO_LIMIT, "How late a timestamp may be, in ms.", 0, update=_ANY
    ),
    _D(
        "log.message.timestamp.after.max.ms", _T.LONG, "3600000", "How early a timestamp may be, in ms.", 0, update=_ANY
    ),
)

_SERVER = (
    _D("socket.request.max.bytes", _T.INT, "104857600", "Largest request, in bytes.", 1),
    # Kafka's is 50; a thousand members that come back at once would have to wait a second for their second try.
    _D("socket.listen.backlog.size", _T.INT, "1024", "Connections that may wait to be accepted.", 1),
    _D("max.connections", _T.INT, _NO_COUNT, "Most connections at one time.", 0, update=_ANY),
    _D("max.connections.per.ip", _T.INT, _NO_COUNT, "Most connections of one address.", 0, update=_ANY),
    _D("max.connections.per.ip.overrides", _T.STRING, "", "host:count,... for single addresses.", update=_ANY),
    _D("connections.max.idle.ms", _T.LONG, "600000", "Silence after which a connection is closed, in ms."),
    _D("queued.max.requests", _T.INT, "500", "Requests of one connection that may wait for their turn.", 1),
    _D(
        "queued.max.request.bytes",
        _T.LONG,
        "-1",
        "Bytes of requests and replies in memory; -1 for rota.inflight.bytes.max.",
    ),
    _D("fetch.max.bytes", _T.INT, "57671680", "Largest answer to one Fetch, in bytes.", 1024),
    _D("max.incremental.fetch.session.cache.slots", _T.INT, "1000", "Fetch sessions that are remembered.", 0),
    _D("max.request.partition.size.limit", _T.INT, "2000", "Most partitions in one DescribeTopicPartitions answer.", 1),
    _D("telemetry.max.bytes", _T.INT, "1048576", "Largest push of a client's metrics, in bytes.", 1),
    _D("request.timeout.ms", _T.INT, "30000", "How long one broker waits for another, in ms.", support=_IDLE),
    _D("controlled.shutdown.enable", _T.BOOLEAN, "true", "Hand leadership over before stopping."),
)

_REPLICATION = (
    _D("replica.lag.time.max.ms", _T.LONG, "30000", "Lag at which a replica leaves the in-sync ones, in ms.", 1),
    _D(
        "replica.selector.class",
        _T.STRING,
        None,
        "How consumers find a replica to read from: by default they read from the leader.",
        choices=(
            "org.apache.kafka.common.replica.LeaderSelector",
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        ),
    ),
    _D("inter.broker.listener.name", _T.STRING, None, "Listener that brokers use for each other; unset, the first."),
    _D(
        "num.replica.fetchers",
        _T.INT,
        "1",
        "Connections to each broker whose partitions are followed.",
        1,
        64,
        update=_ANY,
    ),
    _D("replica.fetch.backoff.ms", _T.INT, "1000", "Longest wait before a fetch that failed is tried again, in ms.", 1),
    _D("replica.fetch.max.bytes", _T.INT, "1048576", "Bytes of one partition that a follower fetches at once.", 1),
    _D("replica.fetch.min.bytes", _T.INT, "1", "Bytes that a leader gathers before it answers a follower.", 1),
    _D("replica.fetch.response.max.bytes", _T.INT, "10485760", "Largest answer to a follower, in bytes.", 1),
    _D("replica.fetch.wait.max.ms", _T.INT, "500", "Longest time that a leader gathers, in ms.", 1),
    _D("replica.socket.timeout.ms", _T.INT, "30000", "Time that a leader has to answer a follower, in ms.", 1),
)

_CLUSTER = (
    _D("auto.leader.rebalance.enable", _T.BOOLEAN, "true", "Let preferred replicas lead again, from time to time."),
    _D("leader.imbalance.check.interval.seconds", _T.LONG, "300", "How often that is looked at, in seconds.", 1),
    _D("zookeeper.connect", _T.STRING, "", "ZooKeeper of a cluster, HOST:PORT,.../chroot; empty: a broker alone."),
    _D("zookeeper.session.timeout.ms", _T.INT, "18000", "Silence after which ZooKeeper gives a broker up, in ms.", 500),
    _D("zookeeper.set.acl", _T.BOOLEAN, "false", "Let nobody else change the nodes; needs rota.zookeeper.digest."),
    _D("rota.zookeeper.digest", _T.PASSWORD, "", "USER:PASSWORD for ZooKeeper's digest scheme; empty: no login."),
    _D("zookeeper.connection.timeout.ms", _T.INT, None, "Time to connect to ZooKeeper at the start, in ms.", 1),
)

_ROTA = (
    _D("rota.swim.port", _T.INT, "0", "UDP port of the failure detector of a cluster; 0 for any free port.", 0, 65535),
    _D("rota.swim.interval.ms", _T.INT, "200", "Time between two pings of the failure detector, in ms.", 10, 60_000),
    _D(
        "rota.swim.ping.timeout.ms",
        _T.INT,
        "100",
        "Time to answer a ping, and again to answer it through other brokers, in ms.",
        5,
        60_000,
    ),
    _D(
        "rota.swim.suspicion.timeout.ms",
        _T.INT,
        "300",
        "Time that a broker that answers no ping has to object before it is declared dead, in ms.",
        5,
        600_000,
    ),
    _D("rota.swim.indirect.pings", _T.INT, "3", "Brokers that are asked to ping one that is silent.", 0, 16),
    _D(
        "rota.swim.secret",
        _T.PASSWORD,
        "",
        "Secret that authenticates the datagrams; empty: the secret in the metadata store, made by the first broker.",
    ),
    _D("rota.drain.timeout.ms", _T.LONG, "5000", "Time that a stop gives to requests under way, in ms.", 0),
    _D(
        "rota.group.timeline.topic.enable",
        _T.BOOLEAN,
        "true",
        "Keep the events of groups in the topic __rota_group_timeline; false: in memory alone.",
    ),
    _D(
        "rota.inflight.bytes.max",
        _T.LONG,
        "268435456",
        "Bytes of all requests and replies in memory; Fetches wait at half of it.",
        1,
    ),
    _D("rota.connection.inflight.bytes.max", _T.LONG, "67108864", "The same for one connection.", 1),
    _D("rota.connection.write.buffer.bytes.max", _T.INT, "65536", "Unread bytes at which a peer is served no more.", 1),
    _D(
        "rota.stalled.reader.timeout.ms",
        _T.LONG,
        "10000",
        "Time without reading after which a peer is closed when Fetches wait for memory, in ms.",
        0,
    ),
    _D("rota.http.listener", _T.STRING, "", "HOST:PORT of console, API and metrics (HTTP); empty: none. Use loopback."),
    _D(
        "rota.http.allowed.hosts",
        _T.LIST,
        "",
        "Host names that HTTP requests may use, beside addresses, localhost and the listener's own (DNS rebinding).",
    ),
    _D(
        "rota.http.read.only",
        _T.BOOLEAN,
        None,
        "Refuse the console's actions; unset: true unless the listener is on the loopback interface.",
    ),
)

USED = by_name((*_IDENTITY, *_GROUPS, *_TOPICS, *_LOG, *_SERVER, *_REPLICATION, *_CLUSTER, *_ROTA))
"""Every property that is an attribute of BrokerConfig, by name; a few are kept and have no effect yet."""
