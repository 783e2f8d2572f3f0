#!/usr/bin/env bash
# Fetches axe-core, which finds what a page makes hard for people who cannot see or click, into .cache/axe-core.
# It is used by tests only and is no part of the package (licence MPL-2.0). What is there already is not fetched again.
set -euo pipefail

version=4.14.1
digest=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache/axe-core

say() { printf 'axe-core: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
holds() { [ -f "$1" ] && echo "$digest  $1" | sha256sum --check --status; }

holds "$cache/axe.min.js" && exit 0
command -v npm >/dev/null || die "npm is needed once, to fetch axe-core $version: apt-get install npm"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && timeout 120 npm pack --silent "axe-core@$version" >/dev/null) || die "npm could not fetch version $version"
tar -xzf "$work/axe-core-$version.tgz" -C "$work"
holds "$work/package/axe.min.js" || die "version $version is not the one that was reviewed: its digest differs"
mkdir -p "$cache"
cp "$work/package/axe.min.js" "$work/package/LICENSE" "$cache/"
say "ready in $cache"
