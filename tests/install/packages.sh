#!/usr/bin/env bash
# packages.sh 12|13 [cuda]: executes the steps of deploy/Containerfile, or of deploy/Containerfile.cuda, in bare Debian roots, the first
# stage in one root and the second in another. The first root then runs lintian on the packages; the second trains (debian/tests/train),
# purges the packages and compares its files with those before the installation. About 10 minutes, with cuda 30 and 8 GiB of disk; status 77
# where scripts/bare-root.sh cannot work.
set -euo pipefail
release=${1:?usage: packages.sh 12|13 [cuda]}
cd "$(dirname "$0")/../.."
file=deploy/Containerfile${2:+.$2}
[ -e "$file" ] || { echo "packages.sh: expected cuda or nothing, got '$2'" >&2; exit 64; }
export BARE_SHARE
BARE_SHARE=$(mktemp -d)
trap 'rm -rf "$BARE_SHARE"' EXIT

# stage N: prints the steps of a stage as a script
stage() {
	awk -v stage="$1" '
	$1 == "FROM" { n++; next }
	n != stage { next }
	$1 == "WORKDIR" { print "mkdir -p " $2 " && cd " $2 }
	$1 == "RUN" { sub(/^RUN /, ""); more = 1 }
	more { more = /\\$/; print $0 (more ? "" : " || exit 1"); next }
	$1 == "COPY" && $2 ~ /^--from=/ { print "mkdir -p " $4 " && cp -a /mnt" $3 ". " $4 }
	$1 == "COPY" && $2 !~ /^--/ { print "cp -a /root/gtrain/" $2 "/. " $3 }' "$file"
}
files() { # the files of a root, without those that apt and dpkg keep about themselves
	echo 'find / -xdev \( -path /root -o -path /tmp -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log' \
		'-o -path /mnt -o -path /data -o -path /packages -o -path /proc -o -path /dev \) -prune -o -print | sort'
}
cat >"$BARE_SHARE/build.sh" <<SH
set -e
start=\$SECONDS
$(stage 1)
echo "packages built in \$((SECONDS - start)) s"
apt-get install -y -qq --no-install-recommends lintian >/dev/null 2>&1
lintian --profile debian --fail-on error,warning build/deb/*.changes || exit 1
echo 'lintian: no error, no warning'
$(awk '$1 == "COPY" && $2 ~ /^--from=/ { print "mkdir -p /mnt" $3 " && cp -a " $3 ". /mnt" $3 }' "$file")
SH
cat >"$BARE_SHARE/use.sh" <<SH
set -e
$(files) >/tmp/before
start=\$SECONDS
$(stage 2)
echo "installed in \$((SECONDS - start)) s"
gtrain --version
[ -z "${2-}" ] || gtrain --version | grep -q '^plugins .*cuda' || { echo 'the plugin cuda is missing'; exit 1; }
gtrain devices
apt-get update -qq
apt-get install -y -qq --no-install-recommends dataset-fashion-mnist >/dev/null
mkdir -p /tmp/use
start=\$SECONDS
AUTOPKGTEST_TMP=/tmp/use sh /root/gtrain/debian/tests/train
echo "trained, resumed and evaluated in \$((SECONDS - start)) s"
apt-get purge -y -qq gtrain gtrain-gloo ${2:+gtrain-cuda} dataset-fashion-mnist >/dev/null
apt-get autoremove -y -qq --purge >/dev/null
$(files) >/tmp/after
if left=\$(diff /tmp/before /tmp/after | sed -n 's/^> //p' | grep -i gtrain); then echo "left behind: \$left"; exit 1; fi
echo 'removed: no file is left'
SH
scripts/bare-root.sh "$release" 'bash /mnt/build.sh'
scripts/bare-root.sh "$release" 'bash /mnt/use.sh'
