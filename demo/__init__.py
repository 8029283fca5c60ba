"""`rota demo`, `make demo`: a broker, a book, and a consumer group that grows, loses a member and survives a crash."""
