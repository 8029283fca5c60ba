"""Which brokers answer: SWIM over UDP. `swim` is the pure machine, `service` its socket and its timer."""
