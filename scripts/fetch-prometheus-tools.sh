#!/usr/bin/env bash
# Unpacks tools of the Prometheus family into a folder of the checkout: the binaries of Debian packages of one
# named suite, whichever Debian this machine runs. Nothing is installed or upgraded, and apt's own state is left alone.
#
#   scripts/fetch-prometheus-tools.sh [--suite SUITE] [PACKAGE…]        default: trixie, promtool
#
# Packages that are known to work: promtool, prometheus, prometheus-alertmanager (holds amtool too), victoria-metrics
# (holds vmalert too), mtail. In bookworm promtool is a part of prometheus.
# The binaries are then in .cache/prometheus/SUITE/usr/bin. What is there already is not fetched again.
#
# The suite is named, not chosen: rule tests mean different things to different versions, so another version
# has to be a decision and not an accident. bookworm holds Prometheus 2.42, trixie 2.53; neither moves. sid moves.
set -euo pipefail

suite=trixie
if [ "${1:-}" = --suite ]; then
  suite=${2:?--suite needs a name}
  shift 2
fi
case $suite in *[!a-z]*) echo "prometheus tools: $suite is no name of a suite" >&2; exit 1 ;; esac
cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache/prometheus/$suite
packages=("$@")
[ $# -gt 0 ] || packages=(promtool)

say() { printf 'prometheus tools: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

# Debian's Alertmanager opens its default template at a fixed path and does not start without it.
link_alertmanager_template() {
  local path=/usr/share/prometheus/alertmanager
  [ -e "$cache$path" ] || return 0
  [ -e "$path" ] && return 0 # of the installed package, or of another suite
  if ! { mkdir -p "${path%/*}" && ln -sfn "$cache$path" "$path"; } 2>/dev/null; then
    say "alertmanager does not start until this was run once: sudo mkdir -p ${path%/*} && sudo ln -sfn $cache$path $path" >&2
  fi
}

mkdir -p "$cache/.unpacked"
exec 9>"$cache/.lock"
flock --wait 600 9 || die "another run holds $cache/.lock since ten minutes"

missing=()
for package in "${packages[@]}"; do
  [ "$(cat "$cache/.unpacked/$package" 2>/dev/null)" = "$suite" ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  link_alertmanager_template
  exit 0
fi

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || die "apt-get and dpkg-deb are needed (a Debian system)"
# shellcheck source=/dev/null
codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
# The mirror that this machine's apt uses for its own Debian release.
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
  awk -v own="$codename" '$2 == own && $3 == "main" { print $1; exit }') || true
[ -n "$mirror" ] || die "apt's configuration names no mirror for ${codename:-this release} main; add one and try again"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,packages}
chmod 755 "$work"
[ "$(id -u)" -ne 0 ] || chmod 777 "$work/packages" # apt downloads as its own user when root starts it
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
own=(
  -qq
  -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=-
  -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache"
  -o Acquire::Languages=none -o Acquire::Retries=3
  -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30
)

say "fetching ${missing[*]} of $suite"
timeout 300 apt-get "${own[@]}" update || die "the package list of $suite could not be read from this machine's Debian mirror"
(cd "$work/packages" && timeout 600 apt-get "${own[@]}" download "${missing[@]}") || die "download failed: ${missing[*]}"
for package in "${missing[@]}"; do
  rm -f "$cache/.unpacked/$package"
  dpkg-deb -x "$work/packages/$package"_*.deb "$work/unpacked"
  for binary in "$work"/unpacked/usr/bin/*; do
    ! ldd "$binary" 2>&1 | grep -q 'not found' || die "${binary##*/} of $suite needs newer libraries than this system has"
  done
  cp -a "$work/unpacked/." "$cache/"
  rm -rf "$work/unpacked"
  echo "$suite" >"$cache/.unpacked/$package"
done
link_alertmanager_template
say "ready in $cache/usr/bin"
