"""Membership: a consumer's side of a group as a pure machine, its shell, the assignors."""
