#!/bin/sh
# Installs the Debian packages that are missing. deps.sh run: to build and train; deps.sh quick: what make check-quick uses as well; deps.sh
# arm64: what make check-arm64 uses; deps.sh test: what all tests use; deps.sh deb: to build the Debian packages. Where it may not install
# packages it says in one line what to run, and ends with 77; on other systems with 69. deps.sh libraries prints the libraries' packages.
set -eu
libraries="libc6-dev libconfig-dev libxxhash-dev libdeflate-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libwebp-dev libutf8proc-dev
libdnnl-dev libarchive-dev libcairo2-dev libcurl4-openssl-dev libssl-dev"
pkgs="gcc make $libraries dataset-fashion-mnist"
if [ -x /usr/local/cuda/bin/nvcc ]; then
	pkgs="$pkgs g++" # nvcc's host compiler
fi
case ${1:-run} in
libraries) echo "$libraries"; exit ;;
deb) pkgs="$pkgs build-essential libgloo-dev git debhelper" ;;
quick) pkgs="$pkgs git python3" ;;
arm64) pkgs="$pkgs git python3 gcc-aarch64-linux-gnu qemu-user" ;;
test) pkgs="$pkgs g++ libgloo-dev git python3 mandoc strace procps shellcheck openmpi-bin mpich xz-utils" ;;
esac
missing=
for p in $pkgs; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
	echo "deps.sh: not a Debian system; install the equivalents of:$missing" >&2
	exit 69
fi
sudo=
if [ "$(id -u)" != 0 ]; then
	sudo=sudo
	if ! command -v sudo >/dev/null; then
		echo "deps.sh: packages are missing and only root can install them; run as root: apt-get update && apt-get install -y" \
			"--no-install-recommends$missing" >&2
		exit 77
	fi
fi
echo "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if ! { $sudo apt-get update && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y --no-install-recommends $missing; } \
	>"$log" 2>&1; then
	tail -n 20 "$log" >&2
	exit 1
fi
