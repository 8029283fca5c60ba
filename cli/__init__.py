"""The command line: `rota topics`, `rota groups` and the rest, for Rota and for Apache Kafka."""
