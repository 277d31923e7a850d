#!/usr/bin/env bash
# bare-root.sh RELEASE COMMAND: runs COMMAND, a line of shell, in a fresh clone of this repository's HEAD in a bare Debian root: RELEASE (12
# or 13), git, make and CA certificates, and nothing else: no CUDA, no Python, no compiler. The exit status is COMMAND's; 77 and a sentence
# if this machine cannot make such a root: it takes root, Debian's debootstrap (installed if missing) and the right to mount.
# $BARE_SHARE, if set, is a directory of this machine that the command finds as /mnt.
# The root is made once, in $BARE_ROOTS (/var/tmp/bare-roots). Each call works in an overlay of it, or in a copy, which is removed at the
# end, so that nothing that an earlier call installed is there.
set -euo pipefail
release=${1:?usage: bare-root.sh 12|13 COMMAND} command=${2:?usage: bare-root.sh 12|13 COMMAND}
case $release in 12) suite=bookworm ;; 13) suite=trixie ;; *) echo 'bare-root: expected release 12 or 13' >&2; exit 64 ;; esac
cannot() { echo "bare-root: no bare root of Debian $release on this machine: $1" >&2; exit 77; }
repo=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
roots=${BARE_ROOTS:-/var/tmp/bare-roots} base=${BARE_ROOTS:-/var/tmp/bare-roots}/$suite
[ "$(id -u)" = 0 ] || cannot 'only root can make one'
sources=/etc/apt/sources.list.d/debian.sources
[ -e $sources ] || cannot "there is no $sources to take the mirror from"
unshare --mount true 2>/dev/null || cannot 'mounting is not permitted'
command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; } \
	>/dev/null 2>&1 || cannot 'debootstrap cannot be installed'
mkdir -p "$roots"
exec 9>"$roots/$suite.lock"
flock 9
if [ ! -e "$base/.ready" ]; then
	rm -rf "$base"
	here=$(sed -n 's/^Suites: *\([a-z]*\).*/\1/p' $sources | head -n 1)
	debootstrap --variant=minbase --include=git,make,ca-certificates $suite "$base" "$(sed -n 's/^URIs: *//p' $sources | head -n 1)" \
		>"$roots/$suite.log" 2>&1 || cannot "debootstrap failed: $(tail -n 1 "$roots/$suite.log")"
	rm -f "$base/etc/apt/sources.list"
	sed "s/$here/$suite/g" $sources >"$base$sources"
	cp /etc/resolv.conf /etc/hosts "$base/etc/"
	# how this machine reaches its mirror: proxies and certificates
	cp /etc/apt/apt.conf.d/99* "$base/etc/apt/apt.conf.d/" 2>/dev/null || true
	mkdir -p "$base/usr/local/share/ca-certificates"
	cp /usr/local/share/ca-certificates/*.crt "$base/usr/local/share/ca-certificates/" 2>/dev/null || true
	chroot "$base" update-ca-certificates >/dev/null 2>&1
	rm -rf "$base"/var/cache/apt/archives/*.deb
	touch "$base/.ready"
fi
flock -u 9
work=$(mktemp -d "$roots/$suite.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$work/root" "$work/upper" "$work/work"
git clone -q --no-hardlinks "$repo" "$work/gtrain"
mapfile -t environment < <(env | grep -iE '^(https?_proxy|no_proxy|PIP_[A-Z_]*|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|TEST_[A-Z]*|CI)=' || true)
# All mounts, devices and processes of the root are in namespaces of its own, which end with the command: nothing of this machine is mounted
# where the end removes files, and no process is left.
# shellcheck disable=SC2016
unshare --mount --propagation private --pid --fork --kill-child bash -euc '
	base=$1 work=$2 command=$3
	shift 3
	root=$work/root
	mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$root" 2>/dev/null || cp -a "$base/." "$root/"
	mount -t proc proc "$root/proc"
	mount -t tmpfs -o mode=755 dev "$root/dev"
	while read -r name minor; do mknod -m 666 "$root/dev/$name" c 1 "$minor"; done <<<"null 3
zero 5
full 7
random 8
urandom 9"
	mknod -m 666 "$root/dev/tty" c 5 0
	ln -s /proc/self/fd "$root/dev/fd"
	for i in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${i%:*}" "$root/dev/${i#*:}"; done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
	[ -z "${BARE_SHARE:-}" ] || mount --bind "$BARE_SHARE" "$root/mnt"
	mkdir -p "$root/root"
	mv "$work/gtrain" "$root/root/gtrain"
	exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
		"$@" /bin/bash -c "cd /root/gtrain && $command"
' bash "$base" "$work" "$command" "${environment[@]}"
