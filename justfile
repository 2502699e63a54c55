# `just` lists what can be done. Each recipe is a command that can be typed by hand.

_default:
    @just --list

# All that a change must pass: what CI runs, nothing else
[group('check')]
check:
    ./.ci/run

# All tests, or those that the options select: just test -p posthaste-store
[group('check')]
test *options:
    ./scripts/test {{ options }}

# Formats the code
[group('check')]
fmt:
    cargo fmt --all

# Lints as strictly as CI does
[group('check')]
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Builds and opens the documentation of the code
[group('check')]
doc:
    cargo doc --workspace --no-deps --locked --open

# Licences, advisories and sources of the dependencies; needs cargo-deny
[group('check')]
deny:
    cargo deny check

# The whole story on embedded payloads, in under a minute
[group('run')]
demo *options:
    cargo run --release --locked -- demo {{ options }}

# Ingress and workers in one process, by ./posthaste.toml
[group('run')]
up *options:
    cargo run --release --locked -- up {{ options }}

# One benchmark: just bench end-to-end
[group('run')]
bench name *options:
    cargo run --release --locked -p bench -- {{ name }} {{ options }}

# PostgreSQL, Redis, two ingresses and two workers in containers
[group('containers')]
compose-up *options:
    docker compose up --build --detach {{ options }}

# Stops the containers; their data stays
[group('containers')]
compose-down:
    docker compose --profile mail --profile objects down
