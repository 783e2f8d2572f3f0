#!/usr/bin/env bash
# Makes sure that there is a Chromium for the tests of the status page: installs Debian's where this user may.
# Without one those tests are skipped, and in a pipeline (CI is set) they fail.
set -euo pipefail

say() { printf 'chromium: %s\n' "$*"; }

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
install='apt-get update && apt-get install --yes --no-install-recommends chromium'
if command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ]; then
  say 'installing it'
  DEBIAN_FRONTEND=noninteractive timeout 600 sh -c "$install" >/dev/null && exit 0
fi
say "there is none, so the status page is not tried in a browser; run once: sudo sh -c '$install'" >&2
[ -z "${CI:-}" ]
