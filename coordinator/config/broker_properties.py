"""The broker properties that Rota knows by type: Apache Kafka 4.3's names and defaults, and Rota's own under `rota.`.

Where a default differs from Kafka's, the line says why. Kafka's other properties are in other_properties.py.
The file is longer than 400 lines because it is one table.
"""

from __future__ import annotations

from rota.coordinator.config.definition import LONG_MAX, Definition, Support, Type, Update, by_name
from rota.coordinator.config.security_properties import SECURITY

_NO_LIMIT = str(LONG_MAX)
_NO_COUNT = "2147483647"
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_D, _T, _ANY = Definition, Type, Update.CLUSTER_WIDE
_IDLE = Support.NO_EFFECT  # accepted for a later version

_IDENTITY = (
    # Kafka has no default for node.id; a lone broker needs none.
    _D("node.id", _T.INT, "0", "Number of this broker; unique in its cluster.", 0),
    _D("broker.id", _T.INT, "-1", "Older name of node.id. -1: node.id counts.", -1),
    _D(
        "broker.rack",
        _T.STRING,
        None,
        "Rack of this broker. Replicas are spread over racks; consumers may read from a replica in their own.",
    ),
    # Kafka may change its listeners while it runs, and listens on every interface by default; Rota listens on the
    # loopback, where plain text is safe.
    _D(
        "listeners",
        _T.LIST,
        "PLAINTEXT://127.0.0.1:9092",
        "Addresses to listen on, as NAME://HOST:PORT; port 0 takes any free port.",
    ),
    _D(
        "advertised.listeners",
        _T.LIST,
        None,
        "Addresses that clients connect to. Unset: each client gets the address that it used.",
    ),
    # Kafka's is /tmp/kafka-logs, which a reboot empties.
    _D("log.dir", _T.LIST, "rota-data", "Folder of the logs where log.dirs is unset."),
    _D("log.dirs", _T.LIST, None, "Folder of the logs."),
)

_GROUPS = (
    _D(
        "group.initial.rebalance.delay.ms",
        _T.INT,
        "3000",
        "How long the first rebalance of an empty group waits for more members, in ms.",
        0,
    ),
    _D(
        "group.min.session.timeout.ms",
        _T.INT,
        "6000",
        "Shortest session timeout, in ms. A member with a shorter one is refused: INVALID_SESSION_TIMEOUT.",
    ),
    _D(
        "group.max.session.timeout.ms",
        _T.INT,
        "1800000",
        "Longest session timeout, in ms. A member with a longer one is refused: INVALID_SESSION_TIMEOUT.",
    ),
    _D(
        "group.consumer.session.timeout.ms",
        _T.INT,
        "45000",
        "Time without a heartbeat after which a member of the consumer protocol is removed, in ms.",
        1,
    ),
    _D(
        "group.consumer.heartbeat.interval.ms",
        _T.INT,
        "5000",
        "Time between the heartbeats of a member of the consumer protocol, in ms.",
        1,
    ),
    _D(
        "group.consumer.assignment.interval.ms",
        _T.INT,
        "1000",
        "Shortest time between two assignments of a group of the consumer protocol, in ms.",
        0,
        update=_ANY,
    ),
    _D(
        "group.consumer.assignors",
        _T.LIST,
        "uniform,range",
        "Assignors that members of the consumer protocol may name: uniform, range. The first is the default.",
    ),
    _D(
        "group.consumer.max.size",
        _T.INT,
        _NO_COUNT,
        "Maximum number of members of a group of the consumer protocol. Another one gets GROUP_MAX_SIZE_REACHED.",
        1,
    ),
    _D(
        "group.consumer.migration.policy",
        _T.STRING,
        "bidirectional",
        "Which groups with members may change their type: upgrade, from classic to consumer, when a member of the "
        "consumer protocol joins; downgrade, when the last one leaves; bidirectional; disabled.",
        choices=("disabled", "downgrade", "upgrade", "bidirectional"),
    ),
    _D(
        "group.max.size",
        _T.INT,
        _NO_COUNT,
        "Maximum number of members of a group. Another member is refused: GROUP_MAX_SIZE_REACHED.",
        1,
    ),
    _D(
        "offsets.topic.num.partitions",
        _T.INT,
        "50",
        "Number of partitions of __consumer_offsets. It is read when the topic is created.",
        1,
    ),
    _D(
        "offsets.topic.replication.factor",
        _T.SHORT,
        "3",
        "Number of replicas of __consumer_offsets; fewer where fewer brokers run when it is created.",
        1,
    ),
    _D(
        "offsets.topic.segment.bytes",
        _T.INT,
        "104857600",
        "Size of the segments of __consumer_offsets, in bytes. It is read when the topic is created.",
        1,
    ),
    _D(
        "offsets.retention.minutes",
        _T.INT,
        "10080",
        "Time after which the offsets of an empty group are deleted, in minutes.",
        1,
    ),
    _D(
        "offsets.retention.check.interval.ms",
        _T.LONG,
        "600000",
        "Time between two searches for expired offsets, in ms.",
        1,
    ),
    _D(
        "offset.metadata.max.bytes",
        _T.INT,
        "4096",
        "Maximum size of the metadata of a committed offset, in bytes. More is refused: OFFSET_METADATA_TOO_LARGE.",
    ),
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
    _D("num.partitions", _T.INT, "1", "Number of partitions of a topic whose creation gives none.", 1),
    # Kafka starts with 0, and then refuses each topic that gives no factor.
    _D("default.replication.factor", _T.INT, "1", "Number of replicas of a topic whose creation gives none.", 1),
    _D(
        "auto.create.topics.enable",
        _T.BOOLEAN,
        "true",
        "Create a topic that does not exist when a client asks for its metadata and allows that.",
    ),
    _D("delete.topic.enable", _T.BOOLEAN, "true", "Whether clients may delete topics. false: TOPIC_DELETION_DISABLED."),
    _D(
        "min.insync.replicas",
        _T.INT,
        "1",
        "Number of in-sync replicas without which acks=all is refused: NOT_ENOUGH_REPLICAS.",
        1,
        update=_ANY,
    ),
    _D(
        "unclean.leader.election.enable",
        _T.BOOLEAN,
        "false",
        "Elect a replica that is not in sync when no other is alive. Acknowledged records may be lost.",
        update=_ANY,
    ),
    _D(
        "message.max.bytes",
        _T.INT,
        "1048588",
        "Maximum size of a record batch, in bytes. A larger one is refused: MESSAGE_TOO_LARGE.",
        0,
        update=_ANY,
    ),
    _D(
        "compression.type",
        _T.STRING,
        "producer",
        "Compression of the batches in the log. producer: as the producer has sent them.",
        choices=_CODECS,
        update=_ANY,
    ),
    _D(
        "compression.gzip.level",
        _T.INT,
        "-1",
        "Level of gzip when the broker compresses. -1: the default of the codec.",
        1,
        9,
        also=-1,
        update=_ANY,
    ),
    _D("compression.lz4.level", _T.INT, "9", "Level of lz4 when the broker compresses.", 1, 17, update=_ANY),
    _D("compression.zstd.level", _T.INT, "3", "Level of zstd when the broker compresses.", -131072, 22, update=_ANY),
    _D(
        "producer.id.expiration.ms",
        _T.INT,
        "86400000",
        "Time without writes after which the state of an idempotent producer is deleted, in ms.",
        1,
        update=_ANY,
    ),
    _D("transaction.max.timeout.ms", _T.INT, "900000", "Longest transaction that may be asked for, in ms.", 1),
    _D(
        "transaction.state.log.num.partitions",
        _T.INT,
        "50",
        "Partitions of __transaction_state; do not change it afterwards.",
        1,
    ),
    _D(
        "transaction.state.log.replication.factor",
        _T.SHORT,
        "3",
        "Replicas of __transaction_state; a broker that is alone makes one.",
        1,
    ),
    _D(
        "transaction.state.log.min.isr",
        _T.INT,
        "2",
        "min.insync.replicas of __transaction_state, at most the number of its replicas.",
        1,
    ),
    _D(
        "transaction.state.log.segment.bytes",
        _T.INT,
        "104857600",
        "Size at which a log of __transaction_state begins a new segment, in bytes.",
        1,
    ),
    _D(
        "transactional.id.expiration.ms",
        _T.INT,
        "604800000",
        "Time without use after which a transactional id is forgotten, in ms.",
        1,
    ),
    _D(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        _T.INT,
        "3600000",
        "Time between two searches for transactional ids to forget, in ms.",
        1,
    ),
)

_LOG = (
    _D(
        "log.segment.bytes",
        _T.INT,
        "1073741824",
        "Size at which a log begins a new segment, in bytes.",
        1 << 20,
        update=_ANY,
    ),
    _D(
        "log.roll.ms",
        _T.LONG,
        None,
        "Age at which a log begins a new segment, in ms. Unset: log.roll.hours counts.",
        update=_ANY,
    ),
    _D("log.roll.hours", _T.INT, "168", "Age at which a log begins a new segment, in hours.", 1),
    _D(
        "log.retention.ms",
        _T.LONG,
        None,
        "Age at which segments are deleted, in ms; -1: never. Unset: log.retention.minutes counts.",
        -1,
        update=_ANY,
    ),
    _D(
        "log.retention.minutes",
        _T.INT,
        None,
        "Age at which segments are deleted, in minutes; -1: never. Unset: log.retention.hours counts.",
        -1,
    ),
    _D("log.retention.hours", _T.INT, "168", "Age at which segments are deleted, in hours; -1: never.", -1),
    _D(
        "log.retention.bytes",
        _T.LONG,
        "-1",
        "Size of a log above which its oldest segments are deleted, in bytes; -1: no limit.",
        update=_ANY,
    ),
    _D(
        "log.retention.check.interval.ms",
        _T.LONG,
        "300000",
        "Time between two searches for segments to delete, in ms.",
        1,
    ),
    _D(
        "log.cleanup.policy",
        _T.LIST,
        "delete",
        "delete: old segments are deleted. compact: the last record of each key is kept. Both may be given.",
        choices=("compact", "delete"),
        update=_ANY,
    ),
    _D(
        "log.flush.interval.messages",
        _T.LONG,
        _NO_LIMIT,
        "Number of records after which a log is flushed to the disk. By default the operating system decides.",
        1,
        update=_ANY,
    ),
    _D(
        "log.flush.interval.ms",
        _T.LONG,
        None,
        "Time after which appended records are flushed to the disk, in ms. Unset: the operating system decides.",
        update=_ANY,
    ),
    _D("log.flush.scheduler.interval.ms", _T.LONG, _NO_LIMIT, "Time between two searches for logs to flush, in ms."),
    _D(
        "log.index.interval.bytes",
        _T.INT,
        "4096",
        "Number of bytes of the log between two entries of its index.",
        0,
        update=_ANY,
    ),
    _D("log.cleaner.enable", _T.BOOLEAN, "true", "Compact the logs whose cleanup policy is compact.", support=_IDLE),
    _D(
        "log.cleaner.backoff.ms",
        _T.LONG,
        "15000",
        "Pause of the cleaner when no log has to be compacted, in ms.",
        0,
        update=_ANY,
        support=_IDLE,
    ),
    _D(
        "log.cleaner.delete.retention.ms",
        _T.LONG,
        "86400000",
        "Time for which compaction keeps tombstones, in ms.",
        0,
        update=_ANY,
    ),
    _D(
        "log.cleaner.min.cleanable.ratio",
        _T.DOUBLE,
        "0.5",
        "Share of the log that must be uncompacted before it is compacted, from 0 to 1.",
        0,
        1,
        update=_ANY,
    ),
    _D(
        "log.cleaner.min.compaction.lag.ms",
        _T.LONG,
        "0",
        "Minimum age of a record that compaction may delete, in ms.",
        0,
        update=_ANY,
    ),
    _D(
        "log.cleaner.max.compaction.lag.ms",
        _T.LONG,
        _NO_LIMIT,
        "Age of a record at which its log is compacted at the latest, in ms.",
        1,
        update=_ANY,
        support=_IDLE,
    ),
    _D(
        "log.message.timestamp.type",
        _T.STRING,
        "CreateTime",
        "CreateTime: the producer gives a record its timestamp. LogAppendTime: the broker does.",
        choices=("CreateTime", "LogAppendTime"),
        update=_ANY,
    ),
    _D(
        "log.message.timestamp.before.max.ms",
        _T.LONG,
        _NO_LIMIT,
        "How far a timestamp may be before the broker's clock, in ms. More is refused: INVALID_TIMESTAMP.",
        0,
        update=_ANY,
    ),
    _D(
        "log.message.timestamp.after.max.ms",
        _T.LONG,
        "3600000",
        "How far a timestamp may be after the broker's clock, in ms. More is refused: INVALID_TIMESTAMP.",
        0,
        update=_ANY,
    ),
)

_SERVER = (
    _D(
        "socket.request.max.bytes",
        _T.INT,
        "104857600",
        "Maximum size of a request, in bytes. A larger one closes its connection.",
        1,
    ),
    # Kafka's is 50; a thousand members that come back at once would have to wait a second for their second try.
    _D(
        "socket.listen.backlog.size",
        _T.INT,
        "1024",
        "Number of connections that the operating system holds until they are accepted.",
        1,
    ),
    _D("max.connections", _T.INT, _NO_COUNT, "Maximum number of connections. Further ones are closed.", 0, update=_ANY),
    _D(
        "max.connections.per.ip",
        _T.INT,
        _NO_COUNT,
        "Maximum number of connections from one address. Further ones are closed.",
        0,
        update=_ANY,
    ),
    _D("max.connections.per.ip.overrides", _T.STRING, "", "The same for single addresses: HOST:COUNT,...", update=_ANY),
    _D(
        "connections.max.idle.ms", _T.LONG, "600000", "Time without requests after which a connection is closed, in ms."
    ),
    _D(
        "queued.max.requests",
        _T.INT,
        "500",
        "Number of requests of one connection that may wait. Its further requests are not read meanwhile.",
        1,
    ),
    _D(
        "queued.max.request.bytes",
        _T.LONG,
        "-1",
        "Maximum size of all requests and replies in memory, in bytes; -1: rota.inflight.bytes.max counts.",
    ),
    _D(
        "fetch.max.bytes",
        _T.INT,
        "57671680",
        "Maximum size of the answer to a Fetch, in bytes. A first batch that is larger is sent alone.",
        1024,
    ),
    _D(
        "max.incremental.fetch.session.cache.slots",
        _T.INT,
        "1000",
        "Maximum number of incremental fetch sessions. Without a free slot a Fetch is answered in full.",
        0,
    ),
    _D(
        "max.request.partition.size.limit",
        _T.INT,
        "2000",
        "Maximum number of partitions in an answer to DescribeTopicPartitions; a cursor gives the rest.",
        1,
    ),
    _D("telemetry.max.bytes", _T.INT, "1048576", "Largest push of a client's metrics, in bytes.", 1),
    _D("request.timeout.ms", _T.INT, "30000", "How long one broker waits for another, in ms.", support=_IDLE),
    _D(
        "controlled.shutdown.enable", _T.BOOLEAN, "true", "Move the leaderships to other brokers before this one stops."
    ),
)

_REPLICATION = (
    _D(
        "replica.lag.time.max.ms",
        _T.LONG,
        "30000",
        "Time after which a follower that is not caught up leaves the in-sync replicas, in ms.",
        1,
    ),
    _D(
        "replica.selector.class",
        _T.STRING,
        None,
        "Which replica a consumer reads from. Unset: the leader.",
        choices=(
            "org.apache.kafka.common.replica.LeaderSelector",
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        ),
    ),
    _D(
        "inter.broker.listener.name",
        _T.STRING,
        None,
        "Name of the listener that brokers use for each other. Unset: as security.inter.broker.protocol.",
    ),
    _D(
        "num.replica.fetchers",
        _T.INT,
        "1",
        "Number of connections to each broker that this one follows.",
        1,
        64,
        update=_ANY,
    ),
    _D("replica.fetch.backoff.ms", _T.INT, "1000", "Maximum pause before a failed fetch is repeated, in ms.", 1),
    _D(
        "replica.fetch.max.bytes",
        _T.INT,
        "1048576",
        "Maximum number of bytes of one partition in an answer to a follower.",
        1,
    ),
    _D(
        "replica.fetch.min.bytes",
        _T.INT,
        "1",
        "Number of bytes for which a leader waits before it answers a follower.",
        1,
    ),
    _D("replica.fetch.response.max.bytes", _T.INT, "10485760", "Maximum size of an answer to a follower, in bytes.", 1),
    _D(
        "replica.fetch.wait.max.ms",
        _T.INT,
        "500",
        "Maximum time for which a leader waits before it answers a follower, in ms.",
        1,
    ),
    _D("quota.window.num", _T.INT, "11", "Number of windows over which a rate of a client's quota is measured.", 1),
    _D(
        "quota.window.size.seconds",
        _T.INT,
        "1",
        "Length of a window over which a rate of a client's quota is measured, in seconds.",
        1,
    ),
    _D(
        "replication.quota.window.num",
        _T.INT,
        "11",
        "Number of windows over which a rate of throttled replication is measured.",
        1,
    ),
    _D(
        "replication.quota.window.size.seconds",
        _T.INT,
        "1",
        "Length of a window over which a rate of throttled replication is measured, in seconds.",
        1,
    ),
    _D(
        "leader.replication.throttled.rate",
        _T.LONG,
        None,
        "Bytes per second that this broker sends to throttled replicas that are not in sync. Unset: no limit.",
        0,
        update=_ANY,
    ),
    _D(
        "follower.replication.throttled.rate",
        _T.LONG,
        None,
        "Bytes per second that this broker copies to throttled replicas that are not in sync. Unset: no limit.",
        0,
        update=_ANY,
    ),
    _D(
        "replica.socket.timeout.ms",
        _T.INT,
        "30000",
        "Time in which a leader must answer a follower, in ms. After that the connection is closed.",
        1,
    ),
)

_CLUSTER = (
    _D("auto.leader.rebalance.enable", _T.BOOLEAN, "true", "Elect preferred replicas again when they are in sync."),
    _D(
        "leader.imbalance.check.interval.seconds",
        _T.LONG,
        "300",
        "Time between two searches for partitions that their preferred replica does not lead, in seconds.",
        1,
    ),
    _D(
        "zookeeper.connect",
        _T.STRING,
        "",
        "Addresses of ZooKeeper: HOST:PORT,.../CHROOT. Empty: this broker is alone and keeps its metadata itself.",
    ),
    _D(
        "zookeeper.session.timeout.ms",
        _T.INT,
        "18000",
        "Time without contact after which ZooKeeper ends a broker's session, in ms.",
        500,
    ),
    _D(
        "zookeeper.set.acl",
        _T.BOOLEAN,
        "false",
        "Allow changes of the nodes to this login alone. It needs rota.zookeeper.digest.",
    ),
    _D("rota.zookeeper.digest", _T.PASSWORD, "", "USER:PASSWORD of ZooKeeper's digest login. Empty: no login."),
    _D(
        "zookeeper.connection.timeout.ms",
        _T.INT,
        None,
        "Time in which ZooKeeper must answer at the start, in ms.",
        1,
        support=_IDLE,
    ),
)

_ROTA = (
    _D("rota.swim.port", _T.INT, "0", "UDP port of the failure detector; 0: any free port.", 0, 65535),
    _D("rota.swim.interval.ms", _T.INT, "200", "Time between two pings of the failure detector, in ms.", 10, 60_000),
    _D(
        "rota.swim.ping.timeout.ms",
        _T.INT,
        "100",
        "Time in which a ping must be answered, and again the same time through other brokers, in ms.",
        5,
        60_000,
    ),
    _D(
        "rota.swim.suspicion.timeout.ms",
        _T.INT,
        "300",
        "Time in which a suspected broker can object before it is declared dead, in ms.",
        5,
        600_000,
    ),
    _D(
        "rota.swim.indirect.pings",
        _T.INT,
        "3",
        "Number of brokers that are asked to ping one that does not answer.",
        0,
        16,
    ),
    _D(
        "rota.swim.secret",
        _T.PASSWORD,
        "",
        "Secret that authenticates the datagrams. Empty: the secret that the first broker put into the metadata store.",
    ),
    _D(
        "rota.drain.timeout.ms",
        _T.LONG,
        "5000",
        "Time for which a stop waits for requests under way, in ms. After that their connections are closed.",
        0,
    ),
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
        "Maximum size of all requests and replies in memory, in bytes. At half of it Fetches wait.",
        1,
    ),
    _D(
        "rota.connection.inflight.bytes.max",
        _T.LONG,
        "67108864",
        "Maximum size of the requests and replies of one connection in memory, in bytes.",
        1,
    ),
    _D(
        "rota.connection.write.buffer.bytes.max",
        _T.INT,
        "65536",
        "Number of unread bytes at which a connection's requests are not processed until the peer reads.",
        1,
    ),
    _D(
        "rota.stalled.reader.timeout.ms",
        _T.LONG,
        "10000",
        "Time without reading after which a peer is closed while Fetches wait for memory, in ms.",
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
        "rota.http.tls",
        _T.BOOLEAN,
        "false",
        "TLS for console, API and metrics: the broker's ssl.* properties, or those of listener.name.http.ssl.*.",
    ),
    _D(
        "rota.http.login",
        _T.BOOLEAN,
        "false",
        "Console, API and metrics need a login of a SCRAM user; ACLs decide who may read (DESCRIBE) and act (ALTER).",
    ),
    _D(
        "rota.http.metrics.public",
        _T.BOOLEAN,
        "false",
        "Serve /metrics without a login where rota.http.login is set.",
    ),
    _D(
        "rota.http.read.only",
        _T.BOOLEAN,
        None,
        "Refuse the console's actions; unset: true with an authorizer or beyond the loopback, without rota.http.login.",
    ),
    _D(
        "rota.tracing.otlp.endpoint",
        _T.STRING,
        "",
        "URL of an OpenTelemetry collector (OTLP over HTTP) that receives a span of each request and rebalance, as "
        "http://127.0.0.1:4318/v1/traces; empty: no tracing. It needs the extra rota[tracing].",
    ),
    _D("rota.tracing.sample.ratio", _T.DOUBLE, "1.0", "Share of the requests and rebalances that get a span.", 0, 1),
)

_ACCESS = (
    _D(
        "authorizer.class.name",
        _T.STRING,
        "",
        "Any name, as Kafka's org.apache.kafka.metadata.authorizer.StandardAuthorizer, switches access control on: "
        "ACLs decide who may do what. Empty: everybody may do everything.",
    ),
    _D(
        "super.users",
        _T.STRING,
        "",
        "Principals that may do everything, separated by semicolons: User:admin;User:CN=broker,O=Example.",
    ),
    _D(
        "allow.everyone.if.no.acl.found",
        _T.BOOLEAN,
        "false",
        "Whether everybody may use a resource that no ACL matches.",
    ),
)

USED = by_name((*_IDENTITY, *_GROUPS, *_TOPICS, *_LOG, *_SERVER, *_REPLICATION, *_CLUSTER, *SECURITY, *_ACCESS, *_ROTA))
"""Every property that is an attribute of BrokerConfig, by name; a few are kept and have no effect yet."""
