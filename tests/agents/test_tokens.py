"""Tokens are counted offline, at first use, and without litellm."""

import os
import subprocess
import sys
import time

from agents.llm import tokens


def test_words_are_counted_as_the_encoding_has_them():
    assert tokens.count("hello world") == 2
    assert tokens.count("") == 0


def test_special_tokens_in_somebodys_text_are_text():
    assert tokens.count("<|endoftext|>") > 1


def test_a_long_text_without_a_space_is_counted_in_time():
    start = time.monotonic()
    assert tokens.count("x" * 200_000) > 20_000
    assert time.monotonic() - start < 5


def test_counting_does_not_import_litellm():
    program = "import django, sys; django.setup(); from agents.llm import tokens; tokens.count('a')"
    program += "; assert 'litellm' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        timeout=60,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
    )
