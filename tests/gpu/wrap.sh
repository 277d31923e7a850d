#!/bin/sh
# What stands in a folder of `make gpu-folder` where a build tree has a program (bin/gtrain, tests/ops/test_ops …): it runs libexec/NAME
# with the shared libraries that came along. The machine's own C library is used where it is new enough for them (GLIBC holds the version
# they need), else the one in lib/libc, through its loader; GTRAIN_LOADER=host|bundled decides instead.
# Libraries of the machine are found as ever: libcuda.so.1 through ld.so.cache, pip's CUDA libraries through LD_LIBRARY_PATH (cuda_libs.sh).
self=$(readlink -f "$0")
root=${self%/*} name=${self##*/}
while [ ! -d "$root/libexec" ]; do
	case $root in '' | /) echo "$name: no libexec beside or above $self: the folder is not whole" >&2 && exit 70 ;; esac
	root=${root%/*}
done
dep=$root/lib/dep
# The largest files travel compressed, the folder has a limit: unpacked at the first start.
unpack() {
	if command -v xz >/dev/null; then xz -dc "$1"
	else python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$1"; fi
}
for packed in "$dep"/libdnnl.so.*.xz "$root/lib/gtrain/cuda.so.xz" "$root/libexec/dnn_plans.xz"; do
	file=${packed%.xz}
	if [ -e "$file" ] || [ ! -e "$packed" ]; then continue; fi
	if ! { unpack "$packed" >"$file.$$" && chmod 755 "$file.$$" && mv "$file.$$" "$file"; }; then
		rm -f "$file.$$"
		echo "$name: $packed cannot be unpacked beside it (a folder that cannot be written?)" >&2
		exit 73
	fi
done
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
