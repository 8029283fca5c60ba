"""The configs of a topic, with the names and defaults of Apache Kafka 4.3."""

from __future__ import annotations

from rota.coordinator.config.definition import LONG_MAX, Definition, Support, Type, by_name

_NO_LIMIT = str(LONG_MAX)
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_D, _T = Definition, Type
_IDLE, _NEVER = Support.NO_EFFECT, Support.REFUSED

TOPIC = by_name(
    (
        _D(
            "cleanup.policy",
            _T.LIST,
            "delete",
            "How old records are removed: deleted, compacted, or both.",
            choices=("compact", "delete"),
        ),
        _D(
            "compression.gzip.level",
            _T.INT,
            "-1",
            "Compression level if the broker compresses with gzip.",
            1,
            9,
            also=-1,
        ),
        _D("compression.lz4.level", _T.INT, "9", "Compression level if the broker compresses with lz4.", 1, 17),
        _D(
            "compression.type",
            _T.STRING,
            "producer",
            "Codec of stored batches; `producer` keeps the producer's codec.",
            choices=_CODECS,
        ),
        _D("compression.zstd.level", _T.INT, "3", "Compression level if the broker compresses with zstd.", -131072, 22),
        _D("delete.retention.ms", _T.LONG, "86400000", "How long compaction keeps a tombstone, in ms.", 0),
        _D(
            "file.delete.delay.ms",
            _T.LONG,
            "60000",
            "Delay before a file is deleted from disk, in ms.",
            0,
            support=_IDLE,
        ),
        _D("flush.messages", _T.LONG, _NO_LIMIT, "Number of records after which the log is synced to disk.", 1),
        _D("flush.ms", _T.LONG, _NO_LIMIT, "Time after which the log is synced to disk, in ms.", 0),
        _D(
            "follower.replication.throttled.replicas",
            _T.LIST,
            "",
            "Follower replicas to throttle: PARTITION:BROKER,… or *.",
        ),
        _D("index.interval.bytes", _T.INT, "4096", "Bytes of log between two offset index entries.", 0),
        _D(
            "leader.replication.throttled.replicas",
            _T.LIST,
            "",
            "Leader replicas to throttle: PARTITION:BROKER,… or *.",
        ),
        _D(
            "local.retention.bytes",
            _T.LONG,
            "-2",
            "Maximum size of a tiered log's local part, in bytes.",
            -2,
            support=_IDLE,
        ),
        _D("local.retention.ms", _T.LONG, "-2", "Maximum age of a tiered log's local part, in ms.", -2, support=_IDLE),
        _D("max.compaction.lag.ms", _T.LONG, _NO_LIMIT, "Maximum age of an uncompacted record, in ms.", 1),
        _D("max.message.bytes", _T.INT, "1048588", "Maximum size of a record batch, in bytes.", 0),
        _D(
            "message.timestamp.after.max.ms",
            _T.LONG,
            "3600000",
            "How far a timestamp may be ahead of the broker's clock, in ms.",
            0,
        ),
        _D(
            "message.timestamp.before.max.ms",
            _T.LONG,
            _NO_LIMIT,
            "How far a timestamp may be behind the broker's clock, in ms.",
            0,
        ),
        _D(
            "message.timestamp.type",
            _T.STRING,
            "CreateTime",
            "Clock that sets a record's timestamp: the producer's or the broker's.",
            choices=("CreateTime", "LogAppendTime"),
        ),
        _D("min.cleanable.dirty.ratio", _T.DOUBLE, "0.5", "Share of uncompacted log at which compaction starts.", 0, 1),
        _D("min.compaction.lag.ms", _T.LONG, "0", "Minimum age of a record before compaction, in ms.", 0),
        _D(
            "min.insync.replicas",
            _T.INT,
            "1",
            "In-sync replicas required for a write with acks=all.",
            1,
        ),
        _D("preallocate", _T.BOOLEAN, "false", "Preallocate a segment's file on disk.", support=_IDLE),
        _D("remote.log.copy.disable", _T.BOOLEAN, "false", "Stop copying to tiered storage.", support=_IDLE),
        _D(
            "remote.log.delete.on.disable",
            _T.BOOLEAN,
            "false",
            "Delete tiered data when tiering is disabled.",
            support=_IDLE,
        ),
        _D("remote.storage.enable", _T.BOOLEAN, "false", "Tiered storage; Rota has none.", support=_NEVER),
        _D(
            "retention.bytes",
            _T.LONG,
            "-1",
            "Log size above which old segments are deleted, in bytes; -1 for no limit.",
        ),
        _D("retention.ms", _T.LONG, "604800000", "Age at which segments are deleted, in ms; -1 for no limit.", -1),
        _D("segment.bytes", _T.INT, "1073741824", "Size at which a new segment is started, in bytes.", 1 << 20),
        _D("segment.index.bytes", _T.INT, "10485760", "Maximum size of a segment's index, in bytes.", 4, support=_IDLE),
        _D("segment.jitter.ms", _T.LONG, "0", "Maximum random reduction of segment.ms, in ms.", 0, support=_IDLE),
        _D("segment.ms", _T.LONG, "604800000", "Age at which a new segment is started, in ms.", 1),
        _D(
            "unclean.leader.election.enable",
            _T.BOOLEAN,
            "false",
            "Allow a replica outside the ISR to become leader; records may be lost.",
        ),
    )
)

_HOURS, _MINUTES = 3_600_000, 60_000

SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", _MINUTES), ("log.retention.hours", _HOURS)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOURS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOURS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
"""Topic config -> (broker property, factor to the topic's unit); the first property with a value gives the default."""
