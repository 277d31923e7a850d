#!/bin/bash
# gtrain predict: files, folders and lists; many files in little memory and full batches; damaged ones among them; its output.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip predict 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
cat >big.cfg <<'CFG'
schema = 1;
name = "big";
data = { name = "synthetic"; batch = 8; classes = 4; samples = 8; samples_test = 8; };
model = { input = [3, 224, 224]; layers = ( { type = "global_avgpool"; }, { type = "flatten"; },
	{ name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
checkpoint = { dir = "big"; };
CFG
"$gtrain" run big.cfg -q >/dev/null 2>&1 || fail predict_run "gtrain run ended with $?"
python3 - <<'PY'
import struct, zlib
def chunk(t, d): return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
pixels = zlib.compress(b"".join(b"\0" + bytes(x * y % 251 for x in range(224)) for y in range(224)))
header = struct.pack(">IIBBBBB", 224, 224, 8, 0, 0, 0, 0)
good = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
for i in range(64):
    open(f"{i}.png", "wb").write(good)
open("cut.png", "wb").write(good[:-40])
open("text.jpg", "w").write("no picture")
PY

# peak FILES...: the most memory that predicting them takes, in MiB
peak() {
	python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' "$gtrain" predict big "$@"
}
# Three times as many files need no more memory. Their batches have the same size; a leak of each file's image would be 73 MiB.
few=$(peak {0..63}.png) many=$(peak {0..63}.png {0..63}.png {0..63}.png)
echo "# peak memory of 64 files: $few MiB, of 192: $many MiB"
if [ "$many" -le $((few + 32)) ]; then pass predict_memory; else fail predict_memory "$few MiB for 64 files, $many MiB for 192"; fi

gives bad_files 65 err '2 of 5 files could not be classified' predict big 0.png cut.png 1.png text.jpg 2.png
if [ "$(cut -f1 "$tmp/out" | tr '\n' ' ')" = '0.png 1.png 2.png ' ]; then
	pass bad_files_others
else
	fail bad_files_others "$(cat "$tmp/out")"
fi
if grep -q '^gtrain: cut.png: PNG: ' "$tmp/err" &&
	grep -q '^gtrain: text.jpg: expected a PNG, JPEG, WebP, IDX or NumPy file' "$tmp/err"; then
	pass bad_files_named
else
	fail bad_files_named "$(cat "$tmp/err")"
fi
run predict big --json 0.png absent.png 1.png
if [ $rc = 65 ] && python3 -c '
import json, sys
r = [json.loads(l) for l in sys.stdin]
assert [e["path"] for e in r] == ["0.png", "absent.png", "1.png"] and "No such file" in r[1]["error"] and r[0]["top"] and r[2]["top"], r
' <"$tmp/out" 2>"$tmp/why"; then pass bad_files_json; else fail bad_files_json "status $rc: $(tail -n 1 "$tmp/why")"; fi
gives bad_file_alone 66 err 'absent.png: ' predict big absent.png

# ---- batches fill across files ----
cat >heavy.cfg <<'CFG'
schema = 1;
name = "heavy";
data = { name = "synthetic"; batch = 8; classes = 4; samples = 8; samples_test = 8; };
model = { input = [3, 224, 224]; layers = ( { name = "c1"; type = "conv2d"; out = 32; kernel = 5; stride = 2; }, { type = "relu"; },
	{ type = "global_avgpool"; }, { type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
checkpoint = { dir = "heavy"; };
CFG
"$gtrain" run heavy.cfg -q >/dev/null 2>&1 || fail predict_heavy "gtrain run ended with $?"
# processor seconds of predicting FILES..., without those of the kernel: where the cache is not known, 64 files need more memory at once
seconds() {
	python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
r = resource.getrusage(resource.RUSAGE_CHILDREN)
print(r.ru_utime)' "$gtrain" predict heavy "$@"
}
some=$(seconds {0..15}.png) all=$(seconds {0..63}.png)
echo "# processor time of 16 files: $some s, of 64: $all s"
# Four times as many files take four times as long at most, and the time of a start. A batch of 64 for each file took 30 times as long.
if awk "BEGIN { exit !($all <= 8 * $some) }"; then pass batches_fill; else fail batches_fill "$some s for 16 files, $all s for 64"; fi

# ---- folders ----
cat >small.cfg <<'CFG'
schema = 1;
name = "small";
data = { name = "synthetic"; batch = 8; classes = 12; samples = 64; samples_test = 8; };
model = { input = [3, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 12; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
checkpoint = { dir = "small"; };
CFG
"$gtrain" run small.cfg -q >/dev/null 2>&1 || fail predict_small "gtrain run ended with $?"
mkdir -p tree/a/deep tree/b tree/.hidden empty/below
python3 - <<'PY'
import struct, zlib
def chunk(t, d): return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
def png(seed):
    rows = b"".join(b"\0" + bytes((seed * 31 + x * 7 + y * 13) % 256 for x in range(24)) for y in range(8))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
names = ["tree/a.png", "tree/a/1.PNG", "tree/a/deep/2.png", "tree/b/3,4 \"five\".png", "tree/b/6.png", "tree/.hidden/7.png"]
names += ["tree/b/.8.png"]
names += ["tree/z%03d.png" % i for i in range(130)]
for i, name in enumerate(names):
    open(name, "wb").write(png(i))
open("tree/b/notes.txt", "w").write("no image")
open("many.idx", "wb").write(struct.pack(">IIIII", 0x00000804, 70, 3, 8, 8) + bytes(i * 7 % 256 for i in range(70 * 192)))
PY
ln -s .. tree/b/loop
ln -s ../a tree/b/again
ln -s missing tree/b/5.png
cat >check.py <<'PY'
import json, sys
def lines(name): return [json.loads(l) for l in open(name)]
r = lines("out.json")
paths = [e["path"] for e in r]
want = ["tree/a.png", "tree/a/1.PNG", "tree/a/deep/2.png", "tree/b/3,4 \"five\".png", "tree/b/5.png", "tree/b/6.png"]
assert paths == want + ["tree/z%03d.png" % i for i in range(130)], paths[:12]
for e in r:
    if e["path"] == "tree/b/5.png":
        assert "No such file" in e["error"], e
        continue
    assert e["index"] == 0 and not e["scaled"] and len(e["top"]) == 3 and e["name"] is None, e
    assert (e["class"], e["probability"]) == (e["top"][0]["class"], e["top"][0]["probability"])
    p = [t["probability"] for t in e["top"]]
    assert p == sorted(p, reverse=True) and 0 < sum(p) <= 1, e
PY
run predict small tree --json --top 3
cp "$tmp/out" out.json
if [ $rc = 65 ] && grep -q '^gtrain: tree/b/5.png: ' "$tmp/err" && grep -q '1 of 136 files could not be classified' "$tmp/err" &&
	python3 check.py 2>why; then pass folder; else fail folder "status $rc: $(tail -n 1 why) $(tail -n 1 "$tmp/err")"; fi
gives folder_empty 66 err 'empty: expected images (.jpg, .jpeg, .png or .webp) in the folder or below it, found none' predict small empty
gives folder_empty_among_others 65 err '1 of 2 files could not be classified' predict small empty 0.png
if [ "$(id -u)" = 0 ]; then
	skip folder_unreadable 'root can read every folder'
else
	mkdir closed && chmod 0 closed
	gives folder_unreadable 65 err 'closed: Permission denied' predict small 0.png closed
	chmod 700 closed
fi

# ---- lists: the same results as the folder's, in the order of the list ----
printf 'tree/z003.png\r\n\ntree/b/6.png\nabsent.png\ntree/a.png' >list
cat >same.py <<'PY'
import json, sys
known = {e["path"]: e for e in map(json.loads, open("out.json"))}
r = [json.loads(l) for l in sys.stdin]
assert [e["path"] for e in r] == ["tree/z003.png", "tree/b/6.png", "absent.png", "tree/a.png"], r
for e in r:
    if "error" not in e:  # another place in a batch may change the order of a sum: some 2^-24
        k = known[e["path"]]
        assert all(a["class"] == b["class"] and abs(a["probability"] - b["probability"]) < 1e-6 for a, b in zip(e["top"], k["top"])), (e, k)
PY
for form in '--list list' '@list' '--list -' '-' '@-'; do
	# shellcheck disable=SC2086 # two words
	"$gtrain" predict small --json --top 3 $form <list >"$tmp/out" 2>"$tmp/err"
	rc=$?
	if [ $rc = 65 ] && python3 same.py <"$tmp/out" 2>why; then pass "list_${form// /_}"; else
		fail "list_${form// /_}" "status $rc: $(tail -n 1 why) $(tail -n 1 "$tmp/err")"; fi
done
printf 'tree/a.png\ntree/\0b\n' >nul
: >nothing
gives list_nul 65 err 'nul:2: expected the path of a file, got a line with a NUL byte' predict small --list nul
gives list_empty 66 err 'nothing: expected a list with a path on each line' predict small @nothing
gives list_absent 66 err 'gone: cannot open the list: No such file' predict small @gone
gives list_folder 74 err 'tree: cannot read the list' predict small @tree
printf '%05000d\n' 1 >long
gives list_long 65 err 'long:1: expected a path of at most 4095 bytes' predict small @long
printf 'b1.png\nb2.png\n' >wrong
gives list_of_none 66 err 'wrong: expected a list with a path on each line, got 2 lines that name no file, such as "b1.png" in the' \
	predict small @wrong 0.png
if [ -s "$tmp/out" ]; then fail list_of_none_only "$(head -n 1 "$tmp/out")"; else pass list_of_none_only; fi
head -c 3000 /dev/zero | "$gtrain" predict small - >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ $rc = 65 ] && grep -q 'got a line with a NUL byte; gtrain cannot read images from standard input' "$tmp/err"; then
	pass stdin_image
else
	fail stdin_image "status $rc: $(cat "$tmp/err")"
fi
gives no_files 64 err 'expected a FILE, --list or --text, got none' predict small
gives text_of_images 64 err '--text: expected a model of texts (data.format = "text"), got small, which is a model of images' \
	predict small --text 'a text'
gives append_images 64 err '--append: expected a model of tables (data.format = "csv"), got small' predict small 0.png --append
gives csv_and_json 64 err '--csv and --json cannot be combined' predict small 0.png --csv --json

# ---- CSV, IDX files among others, results that nobody reads ----
run predict small --csv --top 2 tree/b many.idx tree/a.png
if [ $rc = 65 ] && python3 -c '
import csv, json, sys
r = list(csv.DictReader(sys.stdin))
known = {e["path"]: e for e in map(json.loads, open("out.json"))}
want = ["tree/b/3,4 \"five\".png", "tree/b/6.png"]
paths = [e["path"] for e in r]
assert [p for p in paths[:40] if p in want] == want, paths
assert paths[-71:] == ["many.idx"] * 70 + ["tree/a.png"] and [int(e["index"]) for e in r[-71:]] == [*range(70), 0], paths[-71:]
for e in r:
    if e["path"] in known:
        k = known[e["path"]]["top"]
        assert int(e["class"]) == k[0]["class"] and int(e["class_2"]) == k[1]["class"] and e["name"] == "", (e, k)
        assert abs(float(e["probability"]) - k[0]["probability"]) < 1e-6, (e, k)
        assert abs(float(e["probability_2"]) - k[1]["probability"]) < 1e-6, (e, k)
' <"$tmp/out" 2>why; then pass csv; else fail csv "status $rc: $(tail -n 1 why)"; fi
if [ -e /dev/full ]; then
	"$gtrain" predict small tree/a >/dev/full 2>"$tmp/err"
	rc=$?
	if [ $rc = 74 ] && grep -q 'cannot write standard output' "$tmp/err"; then pass full_disk
	else fail full_disk "$rc: $(cat "$tmp/err")"; fi
else
	skip full_disk 'no /dev/full'
fi
# 2,100 lines, more than a pipe holds
for ((i = 0; i < 30; i++)); do echo many.idx; done >list
("$gtrain" predict small --json @list 2>"$tmp/err"; echo $? >"$tmp/rc") | head -n 1 >/dev/null
if [ "$(cat "$tmp/rc")" = 141 ]; then pass closed_pipe; else fail closed_pipe "status $(cat "$tmp/rc"): $(tail -n 1 "$tmp/err")"; fi

# the loss bce: outputs are independent, so probabilities are sigmoids and need not sum to 1; a report, which needs a softmax, is refused
sed 's/train = {/train = { loss = "bce";/; s/"big"/"bce"/g' big.cfg >bce.cfg
"$gtrain" run bce.cfg -q >/dev/null 2>&1 || fail bce_run "gtrain run ended with $?"
run predict bce 0.png --top 4
if cut -f2- out | grep -o '[01]\.[0-9]*' | awk '{ s += $1 } END { exit !(s > 1.05 || s < 0.95) }'; then
	pass bce_sigmoids
else
	fail bce_sigmoids "$(cat out err)"
fi
gives bce_report 78 err 'the loss bce cannot be combined' eval bce --report
