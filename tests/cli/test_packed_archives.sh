#!/bin/bash
# Packed archives (.zip, .tar.gz, .tar.zst, .tar.xz) of images and of texts: the same numbers as from the folder, the cache, and archives
# that must be refused in one sentence.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip packed_archives 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
export XDG_CACHE_HOME=$tmp/cache
cache=$XDG_CACHE_HOME/gtrain/archives
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }
scores() { sed 's/step.*//'; }
cached() { find "$cache" -name '*.tar' 2>/dev/null | wc -l; }

# ---- images --------------------------------------------------------------------------------------------------------------------------
python3 "$src/tests/cli/make_images.py" images/train 12 24 rose aster
python3 "$src/tests/cli/make_images.py" images/valid 4 24 rose aster
tar -cf images.tar images
tar -czf images.tgz images
tar -cJf images.tar.xz images
python3 -c 'import shutil; shutil.make_archive("images", "zip", ".", "images"); shutil.make_archive("bare", "zip", "images")'
archives='images.zip images.tgz images.tar.xz bare.zip'
if command -v zstd >/dev/null; then
	tar --zstd -cf images.tar.zst images
	archives="$archives images.tar.zst"
else
	skip zstd 'zstd is not installed'
fi
cat >net.cfg <<'CFG'
schema = 1;
name = "net";
seed = 3;
data = { root = "images"; batch = 8; mean = [0.5]; std = [0.25]; augment = ( { type = "random_resized_crop"; size = 16; } ); };
model = { input = [3, 16, 16]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 2; optimizer = { type = "adam"; lr = 0.01; }; };
CFG
run run net.cfg -q -o plain_run
[ "$rc" = 0 ] || fail plain "$(head -n 1 err)"
weights plain_run >weights
"$gtrain" eval plain_run images/valid -q 2>err | scores >scores
for f in $archives; do
	run run net.cfg -q -o run -s "data.root=\"$f\""
	[ "$rc" = 0 ] || fail "run_$f" "$(head -n 1 err)"
	if weights run | cmp -s weights; then pass "weights_$f"; else fail "weights_$f" "$(head -n 1 err)"; fi
	gives "resume_$f" 0 out '(3 epochs' resume run -q -s train.epochs=3
	rm -rf run
	gives "init_$f" 0 err 'wrote' init "$f" -o "init-$f.cfg"
	gives "check_$f" 0 out '24 train, 8 valid' check "init-$f.cfg"
done
gives smoke 0 out 'smoke test passed' run init-images.zip.cfg --smoke --device cpu -s data.workers=1
(cd images/valid && tar -czf ../../valid.tar.gz .)
if "$gtrain" eval plain_run valid.tar.gz -q 2>err | scores | cmp -s - scores; then pass eval; else fail eval "$(head -n 1 err)"; fi
"$gtrain" predict plain_run images/valid 2>err | sed 's|^[^ ]*images/||' | sort >predicted
[ -s predicted ] || fail predict_plain "$(head -n 1 err)"
(cd images && tar -czf ../members.tar.gz valid)
if "$gtrain" predict plain_run members.tar.gz 2>err | sed 's/^members.tar.gz: //' | sort | cmp -s - predicted; then pass predict; else
	fail predict "$(head -n 1 err)"; fi
gives predict_csv 0 out 'members.tar.gz: valid/rose/0.png,0' predict plain_run members.tar.gz images/valid/rose/1.png --csv
gives predict_other 65 out 'images/valid/rose/1.png' predict plain_run absent.zip images/valid/rose/1.png "$src/README.md"

# ---- the cache -----------------------------------------------------------------------------------------------------------------------
before=$(cached)
touch -c images.zip
gives changed 0 out '24 train' check init-images.zip.cfg
if [ "$(cached)" = "$before" ]; then pass former_state; else fail former_state "$before archives became $(cached)"; fi
rm -rf "$cache"
"$gtrain" check init-images.zip.cfg >out1 2>&1 &
"$gtrain" check init-images.zip.cfg >out2 2>&1 &
"$gtrain" check init-images.zip.cfg >out3 2>&1
wait
if [ "$(cached)" = 1 ] && [ "$(ls "$cache" | wc -l)" = 1 ] && cat out1 out2 out3 | grep -c '24 train' | grep -qx 3; then pass together; else
	fail together "$(ls "$cache")"; fi
touch "$cache/x.tar.tmp-0123456789abcdef"
mv "$cache"/*.tar moved
gives again 0 out '24 train' check init-images.zip.cfg
if [ "$(ls "$cache" | wc -l)" = 1 ]; then pass temporary; else fail temporary "$(ls "$cache")"; fi
if cmp -s moved "$cache"/*.tar; then pass same_bytes; else fail same_bytes 'a second conversion has other bytes'; fi
if tar -tf moved >list 2>err && [ "$(grep -c png list)" = 32 ]; then pass tar_reads; else fail tar_reads "$(head -n 1 err)"; fi
head -c 4000 moved >"$(echo "$cache"/*.tar)"
gives damaged_cache 65 err 'images.zip: damaged tar archive' check init-images.zip.cfg
rm -rf "$cache"
mkdir "$cache" # another user may lock the directory, which is readable, for ever
if flock "$cache" timeout 60 "$gtrain" check init-images.zip.cfg >out1 2>err && [ "$(cached)" = 1 ]; then pass directory_locked; else
	fail directory_locked "$(head -n 1 err)"; fi
rm -rf "$cache"
XDG_CACHE_HOME=/proc/none gives no_cache 73 err 'cannot create' check init-images.zip.cfg
(
	unset XDG_CACHE_HOME HOME
	gives no_home 73 err 'neither XDG_CACHE_HOME nor HOME is set to an absolute path' check init-images.zip.cfg
	HOME=here gives relative_home 73 err 'neither XDG_CACHE_HOME nor HOME is set to an absolute path' check init-images.zip.cfg
)
(
	ulimit -f 8
	gives full 74 err "$cache: cannot write: File too large" check init-images.zip.cfg
)
left=$(find "$cache" -type f ! -name .lock)
if [ -z "$left" ]; then pass full_leaves_nothing; else fail full_leaves_nothing "$left"; fi

# ---- texts ---------------------------------------------------------------------------------------------------------------------------
for i in $(seq 1 12); do
	mkdir -p plain/good plain/poor
	echo "a good and fine film, number $i" >"plain/good/$i.txt"
	echo "a poor and sad film, number $i" >"plain/poor/$i.txt"
done
(umask 022; python3 "$src/tests/cli/make_archives.py") || fail make_archives 'python3'
"$gtrain" init plain -o plain.cfg -q 2>err || fail texts "$(head -n 1 err)"
run run plain.cfg -q -o texts -s train.epochs=1
weights texts >weights
for f in good.zip stored.zip other_files.zip; do
	gives "init_$f" 0 err 'wrote' init "$f" -o "$f.cfg"
	run run "$f.cfg" -q -o run -s train.epochs=1
	if weights run | cmp -s weights; then pass "weights_$f"; else fail "weights_$f" "$(head -n 1 err)"; fi
	rm -rf run
done
"$gtrain" predict texts plain 2>err | sed 's|^plain/||' | sort >predicted
if "$gtrain" predict texts good.zip 2>err | sed 's/^good.zip: //' | sort | cmp -s - predicted; then pass predict_texts; else
	fail predict_texts "$(head -n 1 err)"; fi
gives changed_data 0 out '(24 samples' eval texts good.zip
gives twice 0 out '19 train, 5 valid' check good.zip.cfg -s 'data.root="twice.zip"'
gives names 0 out '20 train, 5 valid' check good.zip.cfg -s 'data.root="names.tar.gz"'

# ---- archives that must be refused ---------------------------------------------------------------------------------------------------
refused() { gives "refused_$1" 65 err "$2" init "$1"; }
refused up.zip 'up.zip: the path of member ../../up.txt leads out of the archive'
refused absolute.zip 'absolute.zip: the path of member /tmp/up.txt leads out of the archive'
refused up.tar.gz 'up.tar.gz: the path of member good/../../up.txt leads out of the archive'
refused escape.tar.gz 'the path of member good/../?[31m.txt leads out of the archive'
refused link.tar.gz 'link.tar.gz: member good/l.txt is a link; expected a regular file'
refused hard.tar.gz 'hard.tar.gz: member good/l.txt is a link; expected a regular file'
refused fifo.tar.gz 'fifo.tar.gz: member good/l.txt is a special file; expected a regular file'
refused bomb.zip 'bomb.zip: the archive expands to more than the 64 MiB allowed'
refused bomb.tar.gz 'bomb.tar.gz: the archive expands to more than the 64 MiB allowed'
refused encrypted.zip 'is encrypted; unpack the archive with its password'
refused cut.zip 'cut.zip: the archive is damaged or truncated: the directory at the end of the archive cannot be read'
refused cut.tar.gz 'cut.tar.gz: the archive is damaged or truncated'
refused flipped.zip 'flipped.zip: the archive is damaged or truncated in member good/1.txt'
refused noise.zip 'noise.zip: expected a zip file or a compressed tar archive'
refused words.tar.gz 'words.tar.gz: expected a zip file or a compressed tar archive'
refused empty.zip 'empty.zip: the file is empty'
refused nothing.zip 'nothing.zip: expected folders of images'
gives predict_refused 65 err 'cut.zip: the archive is damaged' predict texts cut.zip
gives predict_nothing 66 err 'nothing.zip: expected texts (.txt) in this archive, found none' predict texts nothing.zip
gives missing 66 err 'none.zip' init none.zip
if [ "$(find "$cache" -name '*.tmp-*' | wc -l)" = 0 ]; then pass no_temporaries; else fail no_temporaries "$(ls "$cache")"; fi
if [ -e "$tmp/../up.txt" ] || [ -e /tmp/up.txt ]; then fail written_outside 'a member was written outside'; else pass written_outside; fi
# Without the plugin, which a distribution may package separately, the error names it.
mkdir -p alone/bin alone/lib/gtrain
cp "$gtrain" alone/bin/gtrain
for p in cpu null init; do cp "$(dirname "$gtrain")/../lib/gtrain/$p.so" alone/lib/gtrain; done
rm -rf "$cache"
alone/bin/gtrain init good.zip >out 2>err
rc=$?
if [ $rc = 69 ] && grep -q 'archive' err; then pass no_plugin; else fail no_plugin "status $rc: $(head -n 1 err)"; fi
