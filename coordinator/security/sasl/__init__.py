"""The broker's side of SASL: one pure machine for each connection, and the exchange of each mechanism."""
