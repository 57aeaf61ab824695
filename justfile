# `just` lists these recipes; each is one plain command.

default:
    @just --list

# compile the reference toolset
build:
    cargo run --release -- build

# run everything that CI checks
test:
    ./scripts/test

# run only the tests
quick *ARGS:
    cargo nextest run --workspace {{ARGS}}

# run the build benchmark: ratios against a builder on Node
bench *ARGS:
    cargo bench --bench build -- {{ARGS}}

# count the instructions of a cold build of DIR, repeatable on a busy machine
profile DIR:
    cargo build --release
    RAYON_NUM_THREADS=1 valgrind --tool=callgrind --callgrind-out-file=target/callgrind.out target/release/toolwright check {{DIR}} --format json > /dev/null
    callgrind_annotate target/callgrind.out | head -60
