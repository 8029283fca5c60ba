"""Each micro-batch of a sink once: tasks prepare transactions, the driver decides and commits them."""
