"""An Apache Kafka to compare with: downloaded with Maven, bound to 127.0.0.1, in the folder .peer.

    python -m tools.peer fetch               download its jars, unless they are there
    python -m tools.peer start [PORT]        start one broker; prints HOST:PORT when it answers
    python -m tools.peer stop                stop it
    python -m tools.peer tool CLASS ARGS…    run one of Kafka's own tools
    python -m tools.peer run COMMAND…        start the broker, run the command with ROTA_PEER=HOST:PORT, stop it

Needs Java 17 and Maven. `make test`, `make interop`, `make soak` and `make bench` use it.
"""
