#!/bin/bash
# gtrain predict: many files in little memory, and damaged ones among them.
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
# A batch of 64 such images is 9.2 MiB: 60 more files leaked 551 MiB of them.
few=$(peak {0..3}.png) many=$(peak {0..63}.png)
echo "# peak memory of 4 files: $few MiB, of 64: $many MiB"
if [ "$many" -le $((few + 32)) ]; then pass predict_memory; else fail predict_memory "$few MiB for 4 files, $many MiB for 64"; fi

gives bad_files 65 err '2 of 5 files could not be classified' predict big 0.png cut.png 1.png text.jpg 2.png
if [ "$(cut -f1 "$tmp/out" | tr '\n' ' ')" = '0.png 1.png 2.png ' ]; then
	pass bad_files_others
else
	fail bad_files_others "$(cat "$tmp/out")"
fi
if grep -q '^gtrain: cut.png: PNG: ' "$tmp/err" && grep -q '^gtrain: text.jpg: expected a PNG, JPEG or IDX file' "$tmp/err"; then
	pass bad_files_named
else
	fail bad_files_named "$(cat "$tmp/err")"
fi
run predict big --json 0.png absent.png 1.png
if [ $rc = 65 ] && python3 -c '
import json, sys
r = [json.loads(l) for l in sys.stdin]
assert [e["file"] for e in r] == ["0.png", "absent.png", "1.png"] and "No such file" in r[1]["error"] and r[0]["top"] and r[2]["top"], r
' <"$tmp/out" 2>"$tmp/why"; then pass bad_files_json; else fail bad_files_json "status $rc: $(tail -n 1 "$tmp/why")"; fi
gives bad_file_alone 66 err 'absent.png: ' predict big absent.png
