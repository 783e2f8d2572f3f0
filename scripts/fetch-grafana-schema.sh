#!/usr/bin/env bash
# Unpacks Grafana's own types of dashboards and a compiler that checks against them into .cache/grafana-schema.
# Nothing is installed; the registry is the one that npm of this machine uses. What is there already is not fetched.
set -euo pipefail

packages=(@grafana/schema@13.2.3 typescript@7.0.2)
cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache/grafana-schema

command -v npm >/dev/null || { echo "grafana schema: npm is not there" >&2; exit 1; }
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock --wait 300 9 || { echo "grafana schema: another run holds $cache/.lock since five minutes" >&2; exit 1; }
wanted="${packages[*]}"
[ "$(cat "$cache/.fetched" 2>/dev/null)" = "$wanted" ] && exit 0
echo '{"private": true}' >"$cache/package.json"
npm install --prefix "$cache" --ignore-scripts --no-audit --no-fund --legacy-peer-deps --loglevel=error "${packages[@]}"
echo "$wanted" >"$cache/.fetched"
