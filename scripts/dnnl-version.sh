#!/bin/sh
# dnnl-version.sh FILE CC [CFLAGS...]: writes the version of the oneDNN that CC finds to FILE if FILE does not hold it already, so that what
# was built with another version is built again. A version that kernels/cpu/dnnl_api.h does not know is refused in one line, exit status 69.
set -eu
file=$1
shift
version=$(printf '#include <dnnl_version.h>\nDNNL_VERSION_MAJOR DNNL_VERSION_MINOR\n' | "$@" -E -P -x c - 2>/dev/null | tail -n 1) || true
major=${version%% *} minor=${version##* }
case $major.$minor in
2.[6-9] | 2.[1-9][0-9] | 3.*) ;;
*[!0-9.]* | .)
	echo "oneDNN's headers (dnnl.h) are missing: run scripts/deps.sh, which installs libdnnl-dev" >&2
	exit 69
	;;
*)
	echo "oneDNN $major.$minor is not supported: gtrain builds with 2.6 or a later 2.x, and with 3.x (libdnnl-dev of Debian 12 and 13)" >&2
	exit 69
	;;
esac
[ "$(cat "$file" 2>/dev/null)" = "$major.$minor" ] || echo "$major.$minor" >"$file"
