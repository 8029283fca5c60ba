"""Who a client is, how it proves it, and what it may do: principals, TLS, SASL, SCRAM credentials, ACLs."""
