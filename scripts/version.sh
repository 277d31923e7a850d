#!/bin/sh
# version.sh: prints the version of these sources for packages: that of the program, and for a commit without the tag of this version also
# its date and name: 0.1.0~git20261125.0123456789ab, which dpkg sorts before 0.1.0. In an unpacked archive, the version of the program.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^#define GT_VERSION "\([^"]*\)".*/\1/p' engine/base/public.h)
[ -n "$version" ] || { echo 'version.sh: engine/base/public.h has no GT_VERSION' >&2; exit 1; }
top=$(git rev-parse --show-toplevel 2>/dev/null) || top=
if [ "$top" = "$(pwd -P)" ] && ! git describe --exact-match --match "v$version" >/dev/null 2>&1; then
	version=$version~git$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d).$(git rev-parse --short=12 HEAD)
fi
printf '%s\n' "$version"
