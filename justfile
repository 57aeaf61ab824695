# `just` lists these; each is one plain command.

default:
    @just --list

# compile the reference toolset
build:
    cargo run --release -- build

# all that CI checks
test:
    ./scripts/test

# the inner loop: only the tests, as fast as they go
quick *ARGS:
    cargo nextest run --workspace {{ARGS}}

# the build benchmark: ratios against a builder on Node
bench *ARGS:
    cargo bench --bench build -- {{ARGS}}

# instruction counts of a cold build of DIR, repeatable on a noisy machine
profile DIR:
    cargo build --release
    RAYON_NUM_THREADS=1 valgrind --tool=callgrind --callgrind-out-file=target/callgrind.out target/release/toolwright check {{DIR}} --format json > /dev/null
    callgrind_annotate target/callgrind.out | head -60
