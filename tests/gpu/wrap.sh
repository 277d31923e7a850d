#!/bin/sh
# What stands in a folder of `make gpu-folder` where a build tree has a program (bin/gtrain, tests/ops/test_ops …): it runs libexec/NAME
# with the shared libraries that came along. The machine's own C library is used where it is new enough for them (GLIBC holds the version
# they need), else the one in lib/libc, through its loader; GTRAIN_LOADER=host|bundled decides instead.
# Libraries of the machine are found as ever: libcuda.so.1 through ld.so.cache, pip's CUDA libraries through LD_LIBRARY_PATH (cuda_libs.sh).
self=$(readlink -f "$0")
root=${self%/*} name=${self##*/}
while [ ! -e "$root/packed.tar.xz" ]; do
	case $root in '' | /) echo "$name: no packed.tar.xz beside or above $self: the folder is not whole" >&2 && exit 70 ;; esac
	root=${root%/*}
done
unpack() { # DIR
	if command -v xz >/dev/null && command -v tar >/dev/null; then xz -dc "$root/packed.tar.xz" | tar xf - -C "$1"
	else python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1], "r:xz").extractall(sys.argv[2])' "$root/packed.tar.xz" "$1"; fi
}
if [ ! -d "$root/libexec" ]; then # the first start; where two come at once, the second one's moves fail
	mkdir "$root/packed.$$" && unpack "$root/packed.$$" &&
		for d in tests/golden lib libexec; do mv -T "$root/packed.$$/$d" "$root/$d" 2>/dev/null; done
	rm -rf "$root/packed.$$"
	if [ ! -e "$root/libexec/$name" ]; then
		echo "$name: $root/packed.tar.xz cannot be unpacked beside it (a folder that cannot be written?)" >&2
		exit 73
	fi
fi
dep=$root/lib/dep
loader=${GTRAIN_LOADER:-}
if [ -z "$loader" ]; then
	loader=bundled
	read -r need <"$root/GLIBC"
	have=$(getconf GNU_LIBC_VERSION 2>/dev/null) && have=${have#glibc } &&
		[ "${have%%.*}" = "${need%%.*}" ] && [ "${have#*.}" -ge "${need#*.}" ] && loader=host
fi
if [ "$loader" = host ]; then
	LD_LIBRARY_PATH=$dep${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export LD_LIBRARY_PATH
	exec "$root/libexec/$name" "$@"
fi
# The loader lies beside the programs: /proc/self/exe is the loader then, and gtrain finds its plugins from there.
exec "$root/libexec/ld-linux-x86-64.so.2" --library-path "$root/lib/libc:$dep${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" --argv0 "$0" \
	"$root/libexec/$name" "$@"
