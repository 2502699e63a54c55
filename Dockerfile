# syntax=docker/dockerfile:1

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
# The compiler of this image, whatever rust-toolchain.toml says for a developer's machine.
ENV RUSTUP_TOOLCHAIN=1.95.0
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --package posthaste \
    && cp target/dist/posthaste /usr/local/bin/posthaste

FROM debian:bookworm-slim
# The certificates that endpoints, PostgreSQL and Redis are checked against.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /var/lib/posthaste --create-home posthaste
COPY --from=build /usr/local/bin/posthaste /usr/local/bin/posthaste
USER posthaste
# Where `posthaste-data/` is made when the ledger is SQLite.
WORKDIR /var/lib/posthaste
VOLUME /var/lib/posthaste
ENV POSTHASTE_CONFIG=/etc/posthaste/posthaste.toml
EXPOSE 8080
# Reads the configuration and connects to ledger and queue, in every role.
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s CMD ["posthaste", "check"]
ENTRYPOINT ["posthaste"]
CMD ["up"]
