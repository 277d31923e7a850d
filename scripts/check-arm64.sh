#!/bin/bash
# check-arm64.sh BUILD TEST...: cross-compiles the program and the tests for arm64 into BUILD and runs the tests under qemu's emulation of
# an arm64 processor (make check-arm64). It takes the packages of scripts/deps.sh arm64 (a cross compiler and qemu-user); if they are
# missing, it says so and ends with 77. The arm64 libraries come from the machine's Debian mirror. They are unpacked into BUILD/root, so
# that nothing is installed.
#   QEMU      the emulator; default: qemu-aarch64. Version 7.2, that of Debian 12, loses 100 MB a second in programs with many threads:
#             tests/par/test_dp needs more than 23 GB. Version 10.0 does not.
#   QEMU_CPU  the processor: neoverse-n1, the default, has no SVE; neoverse-v1 has SVE of 256 bits; max has everything that qemu knows
# The kernel starts the emulator for each arm64 program (binfmt_misc). The registration is made in a user namespace of its own and ends with
# the tests; that takes Linux 6.7. On an older system, install the package qemu-user-binfmt.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: check-arm64.sh BUILD TEST...}
shift
cannot() { echo "check-arm64: not run: $1" >&2; exit 77; }
for tool in aarch64-linux-gnu-gcc "${QEMU:=qemu-aarch64}"; do
	command -v $tool >/dev/null || cannot "there is no $tool; run scripts/deps.sh arm64"
done
command -v apt-get >/dev/null || cannot 'the arm64 libraries are unpacked with apt-get, and this is no Debian system'
mkdir -p "$build"
root=$(cd "$build" && pwd)/root

# Unpacks the arm64 packages with a package database of its own.
make_root() {
	local apt=$root/apt packages
	rm -rf "$root"
	mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$root/usr/bin" "$root/usr/lib" "$root/usr/sbin"
	for d in bin lib sbin; do ln -s "usr/$d" "$root/$d"; done
	apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= -o Dir::State="$apt"
		-o Dir::State::status=/dev/null -o Dir::Cache="$apt")
	"${apt[@]}" update
	# shellcheck disable=SC2046
	packages=$("${apt[@]}" -s --no-install-recommends install $(scripts/deps.sh libraries) | sed -n 's/^Inst \([^ ]*\).*/\1/p')
	# shellcheck disable=SC2086
	(cd "$root/apt/archives" && "${apt[@]}" download $packages)
	for d in "$root"/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$d" | tar -x -C "$root" --keep-directory-symlink --exclude=./etc --exclude=./var --exclude=./usr/share \
			--exclude=./usr/bin --exclude=./usr/sbin --exclude='*.d'
	done
	# oneDNN reads the processor's model from a file that only an arm64 kernel has, and prints a message if it is missing.
	mkdir -p "$root/sys/devices/system/cpu/cpu0/regs/identification"
	echo 0x00000000413fd0c1 >"$root/sys/devices/system/cpu/cpu0/regs/identification/midr_el1"
	rm -rf "$root/apt"
	touch "$root/.ready"
}
[ -e "$root/.ready" ] || make_root || cannot 'the arm64 libraries cannot be unpacked'

# shellcheck disable=SC2016
inside='
if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
	mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
	magic="\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
	mask="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
	printf "%s" ":qemu-aarch64:M::$magic:$mask:$0:FPOC" >/proc/sys/fs/binfmt_misc/register
fi
exec "$@"'
qemu=$(command -v "$QEMU")
run=(unshare --user --map-root-user --mount bash -euc "$inside" "$qemu")
"${run[@]}" true 2>/dev/null || cannot "the kernel does not start $qemu for arm64 programs: that takes Linux 6.7 or qemu-user-binfmt"
export CC="aarch64-linux-gnu-gcc --sysroot=$root" # of the program, and of the libraries that tests preload into it
export QEMU_LD_PREFIX=$root QEMU_CPU=${QEMU_CPU:-neoverse-n1} TEST_TIMEOUT=${TEST_TIMEOUT:-3600}
targets=()
for t in "$@"; do [[ $t != "$build"/* ]] || targets+=("$t"); done
"${run[@]}" make --no-print-directory -j"$(nproc)" BUILD="$build" CUDA= GLOO= all "${targets[@]}"
echo "check-arm64: $# test programs under $("$qemu" --version | head -n 1) as $QEMU_CPU"
exec "${run[@]}" tests/run "$build" "$@"
