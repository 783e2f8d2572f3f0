#!/usr/bin/env bash
# Makes a virtual environment that holds exactly the locked development packages and this checkout, editable.
#
#   scripts/make-venv.sh DIR [PYTHON]
set -euo pipefail

venv=${1:?usage: make-venv.sh DIR [PYTHON]} python=${2:-python3}
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

command -v "$python" >/dev/null || die "no $python found; install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  die "$("$python" --version) is too old; name Python 3.11 or newer: make setup PYTHON=/path/to/python3"

# Debian ships Python without the part that puts pip into a new environment.
if [ ! -x "$venv/bin/pip" ] && ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  install='apt-get update && apt-get install --yes --no-install-recommends python3-venv'
  command -v apt-get >/dev/null || die "this Python has no ensurepip; install its venv package"
  [ "$(id -u)" -eq 0 ] || die "python3-venv is missing; run once: sudo sh -c '$install'"
  echo 'setup: installing python3-venv'
  DEBIAN_FRONTEND=noninteractive timeout 600 sh -c "$install" >/dev/null
fi

[ -x "$venv/bin/pip" ] || "$python" -m venv --clear "$venv"
echo 'setup: installing the locked packages'
"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
