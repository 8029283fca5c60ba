"""Who is alive, who leads what: the metadata store, topics and their configuration."""
