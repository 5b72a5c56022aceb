#!/bin/sh
# The whole suite; pytest's closing line comes last.
set -e
here=$(dirname "$0")
sh "$here/lint.sh"
if [ -n "$TEST_LOCAL_MODEL" ]; then make .venv/.installed-local-model; fi
python -m pytest -q -n 2 --dist loadscope -m "not stack and not browser" -p no:cacheprovider
exec python -m pytest -q -p no:cacheprovider -m "stack or browser"
