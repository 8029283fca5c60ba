# Rota's image: the wheel is built in one stage and installed in another; no compiler, no root at run time.
#   docker build -t rota .                         (any Python base: --build-arg BASE=python:3.13-slim)
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE constraints.txt ./
COPY src src
COPY protocol protocol
COPY coordinator coordinator
COPY client client
COPY demo demo
COPY spark_connector spark_connector
COPY cli cli
COPY testing testing
COPY transport transport
ARG ROTA_OPTIMIZE=3
RUN python -m venv /opt/rota && /opt/rota/bin/pip install --no-cache-dir -c constraints.txt '.[broker]'

# the jobs of rota.spark_connector, with PySpark and Java: docker build --target spark .
FROM ${BASE} AS spark
RUN apt-get update && apt-get install -y --no-install-recommends default-jre-headless procps && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/rota /opt/rota
COPY --from=build /src/constraints.txt /opt/rota/
RUN /opt/rota/bin/pip install --no-cache-dir -c /opt/rota/constraints.txt 'rota[pyspark,report]'
RUN useradd --system --uid 10001 --home-dir /var/lib/rota --create-home rota && mkdir /var/lib/rota/lake && chown rota /var/lib/rota/lake
ENV PATH=/opt/rota/bin:$PATH PYTHONUNBUFFERED=1
USER rota
WORKDIR /var/lib/rota
VOLUME /var/lib/rota/lake
ENTRYPOINT ["python", "-m"]

FROM ${BASE}
RUN useradd --system --uid 10001 --home-dir /var/lib/rota --create-home rota
COPY --from=build /opt/rota /opt/rota
ENV PATH=/opt/rota/bin:$PATH PYTHONUNBUFFERED=1
USER rota
VOLUME /var/lib/rota
EXPOSE 9092 29092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=10s --start-period=5s CMD ["rota", "check", "127.0.0.1:29092"]
ENTRYPOINT ["rota"]
CMD ["serve", "--data", "/var/lib/rota/data", "--set", "listeners=HOST://0.0.0.0:9092,INSIDE://0.0.0.0:29092", "--set", "listener.security.protocol.map=HOST:PLAINTEXT,INSIDE:PLAINTEXT", "--set", "rota.allow.plaintext.beyond.loopback=true", "--set", "advertised.listeners=HOST://localhost:9092,INSIDE://localhost:29092"]
