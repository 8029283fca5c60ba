"""Sockets: one connection to a broker, all brokers of a cluster, what is known of topics, how requests are repeated."""
