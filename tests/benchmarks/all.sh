#!/bin/sh
# Every benchmark, one after the other so that none disturbs another; each has ten minutes. 1 where one failed.
failed=0
for file in "$(dirname "$0")"/*.py; do
    name=$(basename "$file" .py)
    # The others are parts of these.
    grep -q '^if __name__ == "__main__":' "$file" || continue
    echo "== $name"
    timeout 600 python -m "tests.benchmarks.$name" || failed=1
done
exit $failed
