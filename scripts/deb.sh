#!/usr/bin/env bash
# deb.sh [OPTION...]: builds the Debian packages of HEAD into build/deb (make deb). The options are those of dpkg-buildpackage.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(scripts/version.sh)
out=$PWD/build/deb
sources=$out/gtrain-$version
rm -rf "$out"
mkdir -p "$sources"
git archive HEAD | tar -x -C "$sources"
sed -i "1s/([^)]*)/($version)/; s/^ -- \(.*\)  .*/ -- \1  $(git log -1 --format=%cD)/" "$sources/debian/changelog"
(cd "$sources" && dpkg-buildpackage -us -uc "$@")
rm -rf "$sources"
ls "$out"
