"""The product's own settings with the benchmark's addresses."""

from marketplace.settings import *  # noqa: F403

ROOT_URLCONF = "tests.benchmarks.bench_urls"
