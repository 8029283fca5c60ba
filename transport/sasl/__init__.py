"""SASL of a client: one pure conversation for each mechanism, credentials, and JAAS texts."""
