#!/usr/bin/env bash
# Sets the preview up below .cache and runs it; `make preview` calls this. Nothing is written into the source folder.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$source/../.." && pwd)
app=$root/.cache/preview/app

die() { printf 'preview: %s\n' "$*" >&2; exit 2; }

command -v node >/dev/null && command -v npm >/dev/null || die "needs Node.js 20.19 or later and npm"
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
  die "needs Node.js 20.19 or later, and this is $(node --version)"
if ! command -v chromium >/dev/null && [ -z "${CHROMIUM:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get install -y --no-install-recommends chromium
fi

mkdir -p "$app"
exec 9>"$app/.lock"
flock --wait 600 9 || die "another run holds $app/.lock since ten minutes"

# The packages change with the lock file only.
locked=$(cat "$source/package-lock.json" "$source/.npmrc" | sha256sum)
if [ "$(cat "$app/.installed" 2>/dev/null)" != "$locked" ]; then
  rm -f "$app/.installed"
  cp "$source"/{package.json,package-lock.json,.npmrc} "$app/"
  (cd "$app" && npm ci --loglevel=error)
  printf '%s\n' "$locked" > "$app/.installed"
fi

# The page is built from a copy, so that it finds the packages beside it. A changed page has to notice faults before it
# is believed: the tests draw dashboards with one fault each.
for name in index.html vite.config.mjs src public tests; do
  rm -rf "${app:?}/$name"
  cp -R "$source/$name" "$app/$name"
done
cp "$source"/*.mjs "$app/"
built=$(cd "$app" && find . -maxdepth 1 -name '*.mjs' -print0 | sort -z |
  { cat; find index.html src public tests -type f -print0 | sort -z; } | xargs -0 sha256sum | cat - .installed | sha256sum)
if [ "$(cat "$app/.built" 2>/dev/null)" != "$built" ]; then
  rm -f "$app/.built"
  (cd "$app" && node_modules/.bin/vite build && PROMETHEUS_TOOLS=$root/.cache/prometheus/trixie/usr/bin node --test --test-reporter=dot tests/*.test.mjs)
  printf '%s\n' "$built" > "$app/.built"
fi
exec 9>&-

exec node "$app/preview.mjs" --root "$root" "$@"
