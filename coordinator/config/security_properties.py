"""The broker properties of TLS and SASL. Each may be set for one listener: `listener.name.internal.ssl.client.auth`."""

from __future__ import annotations

from rota.coordinator.config.definition import Definition, Type, Update

_D, _T, _OWN = Definition, Type, Update.PER_BROKER

SECURITY = (
    # Kafka may change the map while it runs.
    _D(
        "listener.security.protocol.map",
        _T.STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener, as NAME:PROTOCOL: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    ),
    _D(
        "ssl.keystore.type",
        _T.STRING,
        "JKS",
        "Format of the key store: PEM, PKCS12, or JKS, which stands for either; the content decides.",
        choices=("JKS", "PEM", "PKCS12"),
        update=_OWN,
    ),
    _D("ssl.keystore.location", _T.STRING, None, "File with the broker's key and certificate chain.", update=_OWN),
    _D("ssl.keystore.password", _T.PASSWORD, None, "Password of the key store.", update=_OWN),
    _D("ssl.keystore.key", _T.PASSWORD, None, "The broker's key as PEM text, in place of a file.", update=_OWN),
    _D("ssl.keystore.certificate.chain", _T.PASSWORD, None, "The broker's certificate chain as PEM text.", update=_OWN),
    _D("ssl.key.password", _T.PASSWORD, None, "Password of the key inside the key store.", update=_OWN),
    _D(
        "ssl.truststore.type",
        _T.STRING,
        "JKS",
        "Format of the trust store: PEM, PKCS12, or JKS, which stands for either; the content decides.",
        choices=("JKS", "PEM", "PKCS12"),
        update=_OWN,
    ),
    _D(
        "ssl.truststore.location",
        _T.STRING,
        None,
        "File with the authorities that sign clients' certificates.",
        update=_OWN,
    ),
    _D("ssl.truststore.password", _T.PASSWORD, None, "Password of the trust store.", update=_OWN),
    _D(
        "ssl.truststore.certificates",
        _T.PASSWORD,
        None,
        "The trusted certificates as PEM text, in place of a file.",
        update=_OWN,
    ),
    _D(
        "ssl.client.auth",
        _T.STRING,
        "none",
        "Whether a client has to show a certificate: required, requested (it may) or none.",
        choices=("required", "requested", "none"),
        update=_OWN,
    ),
    _D(
        "ssl.principal.mapping.rules",
        _T.STRING,
        "DEFAULT",
        "Rules from the name in a client's certificate to the name of its principal: RULE:pattern/replacement/[LU].",
    ),
    _D(
        "ssl.enabled.protocols",
        _T.LIST,
        "TLSv1.2,TLSv1.3",
        "The versions of TLS.",
        choices=("TLSv1.2", "TLSv1.3"),
        update=_OWN,
    ),
    _D(
        "ssl.cipher.suites",
        _T.LIST,
        "",
        "The cipher suites of TLS 1.2, by Java's or OpenSSL's names; empty: OpenSSL's. Those of 1.3 are all allowed.",
        update=_OWN,
    ),
    _D(
        "ssl.endpoint.identification.algorithm",
        _T.STRING,
        "https",
        "Whether the certificate of another broker has to be for its host name: https; empty: any host name.",
        choices=("https", "HTTPS", ""),
        update=_OWN,
    ),
    _D(
        "security.inter.broker.protocol",
        _T.STRING,
        "PLAINTEXT",
        "Name of the listener that brokers use for each other where it is a protocol's name; set this or "
        "inter.broker.listener.name. Neither set: the first listener.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    _D(
        "sasl.mechanism.inter.broker.protocol",
        _T.STRING,
        "GSSAPI",  # as in Kafka; Rota has no Kerberos, so brokers that speak SASL with each other need a value
        "SASL mechanism between brokers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. The credentials are in "
        "listener.name.NAME.MECHANISM.sasl.jaas.config.",
        update=_OWN,
    ),
    _D(
        "sasl.enabled.mechanisms",
        _T.LIST,
        "GSSAPI",  # as in Kafka; Rota has no Kerberos, so a SASL listener needs a value
        "SASL mechanisms: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. A listener with SASL refuses any other.",
        update=_OWN,
    ),
    _D(
        "sasl.server.callback.handler.class",
        _T.CLASS,
        None,
        "Kafka's validator of OAUTHBEARER tokens. OAuthBearerUnsecuredValidatorCallbackHandler accepts tokens without "
        "a signature; unset or OAuthBearerValidatorCallbackHandler: only those that a key of the key set has signed.",
    ),
    _D(
        "sasl.oauthbearer.jwks.endpoint.url",
        _T.STRING,
        None,
        "URL of the key set (JWKS) that tokens are verified with: https:, http: or file:.",
    ),
    _D(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        _T.LONG,
        "3600000",
        "Time after which the key set is read again, in ms; an unknown key id causes a read before that.",
        1,
    ),
    _D(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        _T.LONG,
        "100",
        "Time until the next read of the key set after one that failed, in ms; it doubles with each failure.",
        1,
    ),
    _D(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        _T.LONG,
        "10000",
        "The longest time until the next read of the key set after failures, in ms.",
        1,
    ),
    _D(
        "sasl.oauthbearer.expected.audience",
        _T.LIST,
        "",
        "Audiences (aud), one of which a token has to name. Empty: a token that names an audience is refused.",
    ),
    _D("sasl.oauthbearer.expected.issuer", _T.STRING, None, "Issuer (iss) that a token has to name; unset: any."),
    _D(
        "sasl.oauthbearer.clock.skew.seconds",
        _T.INT,
        "30",
        "Difference between the clocks of broker and authorization server that is allowed, in seconds.",
        0,
    ),
    _D("sasl.oauthbearer.scope.claim.name", _T.STRING, "scope", "Claim of a token that has its scopes."),
    _D("sasl.oauthbearer.sub.claim.name", _T.STRING, "sub", "Claim of a token that names its principal."),
    _D(
        "sasl.oauthbearer.token.endpoint.url",
        _T.STRING,
        None,
        "URL of the tokens of this broker at other brokers: https: or http:.",
    ),
    _D(
        "sasl.oauthbearer.client.credentials.client.id",
        _T.STRING,
        None,
        "Name of this broker at the token endpoint; or clientId in the JAAS text of OAUTHBEARER.",
    ),
    _D(
        "sasl.oauthbearer.client.credentials.client.secret",
        _T.PASSWORD,
        None,
        "Secret of this broker at the token endpoint; or clientSecret in the JAAS text.",
    ),
    _D("sasl.oauthbearer.scope", _T.STRING, None, "Scope of the tokens of this broker; or scope in the JAAS text."),
    _D(
        "sasl.server.max.receive.size",
        _T.INT,
        "524288",
        "Largest message with an access token, in bytes; other requests before authentication have at most 16 KiB.",
        1,
    ),
    _D(
        "connections.max.reauth.ms",
        _T.LONG,
        "0",
        "Time after which a client with SASL has to authenticate again, in ms; 0: never.",
        0,
    ),
    _D(
        "connection.failed.authentication.delay.ms",
        _T.INT,
        "100",
        "Time until a client that fails to authenticate is answered and its connection closed, in ms.",
        0,
    ),
    _D(
        "rota.authentication.timeout.ms",
        _T.INT,
        "10000",
        "Time that a client has for the TLS handshake and for SASL, in ms; then its connection is closed.",
        1,
    ),
    _D(
        "rota.unauthenticated.connections.max",
        _T.INT,
        "1000",
        "Connections without a finished TLS handshake or SASL; above it one of the host with the most is closed.",
        1,
    ),
    _D(
        "rota.scram.bootstrap.users",
        _T.PASSWORD,
        None,
        "SCRAM users that a start creates where they do not exist, as name=password,...; passwords without a comma.",
    ),
    _D(
        "rota.allow.plaintext.beyond.loopback",
        _T.BOOLEAN,
        "false",
        "Allow listeners of PLAINTEXT and SASL_PLAINTEXT on addresses that other hosts can reach.",
    ),
)
