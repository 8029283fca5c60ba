"""Apache Kafka beside the project, to compare with: fetched with Maven, bound to 127.0.0.1, kept in .peer.

    python -m tools.peer fetch               its jars, once
    python -m tools.peer start [PORT]        one broker; prints HOST:PORT when it answers
    python -m tools.peer stop
    python -m tools.peer tool CLASS ARGS…    one of Kafka's own tools
    python -m tools.peer run COMMAND…        start, run the command with ROTA_PEER=HOST:PORT, stop

Needs Java 17 and Maven. Only tests that say so, and `make interop` and `make bench`, use it.
"""
