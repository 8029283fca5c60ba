"""Access tokens of OAUTHBEARER: the claims that count, signatures, and the public keys that verify them."""
