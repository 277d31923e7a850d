#!/bin/sh
# commit.sh FILE: writes the commit of these sources to FILE if FILE does not hold it already, with "modified" if files differ from it. The
# text is empty if there is no git, or if the sources are not the top of a working tree, as in an unpacked archive.
set -eu
text=
top=$(git rev-parse --show-toplevel 2>/dev/null) || top=
if [ -n "$top" ] && [ "$top" = "$(pwd -P)" ]; then
	text=$(git rev-parse --short=12 HEAD 2>/dev/null) || text=
	if [ -n "$text" ] && ! git diff --quiet HEAD -- 2>/dev/null; then text="$text (modified)"; fi
fi
if [ ! -e "$1" ] || [ "$(cat "$1")" != "$text" ]; then printf '%s\n' "$text" >"$1"; fi
