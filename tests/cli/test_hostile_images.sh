#!/bin/bash
# Folders, lists and archives of images that somebody has damaged, or made to do damage: each is one sentence with the name of the file and
# the documented exit code, within a few seconds, and neither an earlier run nor the data changes.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip hostile_images 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
chmod 755 "$tmp"
python3 "$src/tests/cli/make_images.py" good/train 12 30 rose aster
cat >net.cfg <<'CFG'
schema = 1;
name = "hostile";
data = { root = "good"; format = "folder"; batch = 8;
	augment = ( { type = "random_resized_crop"; size = 16; }, { type = "hflip"; } ); };
model = { input = [3, 16, 16]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG
before=$(find good -type f -exec sha256sum {} + | sort | sha256sum)

# bad NAME STATUS TEXT [ARGS]: a run on the folder NAME ends with STATUS, and its message has TEXT; nothing else is in the run's folder
bad() {
	local name=$1 status=$2 text=$3
	shift 3
	timeout 20 "$gtrain" run net.cfg -q -o "run-$name" -s "data.root=$name" "$@" >out 2>err </dev/null
	rc=$?
	if [ $rc != "$status" ]; then
		fail "$name" "ended with $rc, not $status: $(head -n 2 err)"
	elif ! grep -qF -- "$text" err; then
		fail "$name" "no '$text' in: $(head -n 3 err)"
	elif [ "$(wc -l <err)" -gt 2 ]; then
		fail "$name" "$(wc -l <err) lines of errors: $(cat err)"
	else
		pass "$name"
	fi
}
copy() { cp -r good "$1"; }

# special files and links
copy pipe && rm pipe/train/rose/3.png && mkfifo pipe/train/rose/3.png
bad pipe 65 'pipe/train/rose/3.png'
copy itself && rm itself/train/rose/3.png && ln -s 3.png itself/train/rose/3.png
bad itself 65 'itself/train/rose/3.png'
copy nowhere && rm nowhere/train/rose/3.png && ln -s /nonexistent nowhere/train/rose/3.png
bad nowhere 65 'nowhere/train/rose/3.png'
copy device && rm device/train/rose/3.png && ln -s /dev/zero device/train/rose/3.png
bad device 65 'device/train/rose/3.png'

# contents
copy empty && : >empty/train/rose/3.png
bad empty 65 'empty/train/rose/3.png'
copy text && echo 'not an image' >text/train/rose/3.png
bad text 65 'text/train/rose/3.png'
copy huge && python3 -c 'import struct, zlib, sys
h = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 6, 0, 0, 0)
sys.stdout.buffer.write(b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + h + struct.pack(">I", zlib.crc32(b"IHDR" + h)))' \
	>huge/train/rose/3.png
bad huge 65 'huge/train/rose/3.png'
copy short && truncate -s 200 short/train/rose/3.png
bad short 65 'short/train/rose/3.png'
copy skipped && truncate -s 200 skipped/train/rose/3.png
bad skipped 0 'skipped/train/rose/3.png' -s 'data.on_error="skip"'

# classes
mkdir -p single/train && cp -r good/train/rose single/train/
bad single 65 'single'
copy cases && cp -r cases/train/rose cases/train/Rose
bad cases 65 'Rose'
copy none && mkdir none/train/tulip
bad none 0 'are not classes: tulip' # an empty folder is no class
mkdir -p hollow/train/rose hollow/train/aster
bad hollow 65 'hollow'

# archives
tar -cf good.tar -C good train
head -c $(($(stat -c %s good.tar) / 2)) good.tar >cut.tar
bad cut.tar 65 'cut.tar'
tar -P --transform='s,^train/rose/3,/tmp/train/rose/3,' -cf absolute.tar -C good train
bad absolute.tar 65 'absolute.tar'
tar -P --transform='s,^train/rose/3,train/../../3,' -cf up.tar -C good train
bad up.tar 65 'up.tar'
head -c 5000 /dev/urandom >noise.tar
bad noise.tar 65 'noise.tar'

# lists
echo 'file,label
good/train/rose/1.png,rose
good/train/aster/1.png,aster
good/train/aster/99.png,aster' >missing.csv
gives missing 65 err 'missing.csv:4: cannot read good/train/aster/99.png' run net.cfg -q -o run-missing -s 'data.format="list"' \
	-s data.root="$PWD" -s 'data.train=["missing.csv"]'

# what this user may not read
as=()
[ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if [ ${#as[@]} != 0 ] && ! "${as[@]}" test -r "${gtrain%/bin/gtrain}/lib/gtrain/cpu.so"; then
	skip secret "root can read everything, and another user cannot read ${gtrain%/bin/gtrain}"
elif [ "$(id -u)" != 0 ] || [ ${#as[@]} != 0 ]; then
	copy secret && chmod 000 secret/train/rose/3.png
	copy closed && chmod 000 closed/train/rose
	mkdir -m 777 theirs
	for name in secret closed; do
		timeout 20 "${as[@]}" "$gtrain" run net.cfg -q -o "theirs/$name" -s "data.root=$name" >out 2>err </dev/null
		rc=$?
		if { [ $rc = 65 ] || [ $rc = 66 ]; } && grep -qF "$name/train/rose" err; then
			pass "$name"
		else
			fail "$name" "status $rc: $(head -n 2 err)"
		fi
		"${as[@]}" "$gtrain" check net.cfg -s "data.root=$name" >out 2>err </dev/null
		echo "# $name: gtrain check ended with $?: $(head -n 1 err)"
	done
	chmod 755 closed/train/rose
else
	skip secret 'root can read everything, and there is no setpriv'
fi
after=$(find good -type f -exec sha256sum {} + | sort | sha256sum)
if [ "$after" = "$before" ]; then pass data_untouched; else fail data_untouched 'files of the data have changed'; fi
