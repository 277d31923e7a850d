#!/bin/bash
# gtrain show: pixels against the source, transforms, mixed samples, steps, texts, tables, the terminal, PNG files, hostile names.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || { skip show 'python3 is not installed'; exit 0; }
cd "$tmp" || exit 1
unset COLORTERM

# ---- data ------------------------------------------------------------------------------------------------------------------------------
# 40 grey images of 6 x 5 pixels as IDX files; the pixels are those of a formula that the checks repeat.
cat >data.py <<'PY'
import struct, os
def pixel(i, y, x): return (37 * i + 53 * y * x + 11 * x) % 256
os.makedirs("grey", exist_ok=True)
for split, n in (("train", 40), ("t10k", 10)):
    first = 0 if split == "train" else 40
    with open(f"grey/{split}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 2051, n, 6, 5) + bytes(pixel(first + i, y, x) for i in range(n) for y in range(6) for x in range(5)))
    with open(f"grey/{split}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 2049, n) + bytes(i % 3 for i in range(n)))
PY
python3 data.py
cat >grey.cfg <<'CFG'
schema = 1;
name = "grey";
data = { name = "grey"; root = "grey"; format = "idx"; batch = 8; mean = [0.4]; std = [0.25]; classes = 3; };
model = { input = [1, 6, 5]; layers = ( { type = "flatten"; }, { type = "linear"; out = 3; } ); };
train = { epochs = 3; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG

# tile.py: image(PNG) decodes an RGB image, tile(i, n, h, w) the pixels of tile i of n in a mosaic of images of h x w pixels
cat >tile.py <<'PY'
import json, math, struct, subprocess, sys, zlib
from data import pixel
def image(path):
    raw, at, data = open(path, "rb").read(), 8, b""
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(raw):
        n, kind = struct.unpack(">I4s", raw[at:at + 8])
        body = raw[at + 8:at + 8 + n]
        assert zlib.crc32(kind + body) == struct.unpack(">I", raw[at + 8 + n:at + 12 + n])[0]
        if kind == b"IHDR":
            w, h, depth, color = struct.unpack(">IIBB", body[:10])
            assert (depth, color) == (8, 2)
        data += body if kind == b"IDAT" else b""
        at += 12 + n
    data, rows, before = zlib.decompress(data), [], bytes(3 * w)
    for y in range(h):
        kind, row = data[y * (3 * w + 1)], bytearray(data[y * (3 * w + 1) + 1:(y + 1) * (3 * w + 1)])
        for k in range(3 * w):
            a, b, c = row[k - 3] if k > 2 else 0, before[k], before[k - 3] if k > 2 else 0
            p = a + b - c
            near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[k] = (row[k] + (0, a, b, (a + b) // 2, near)[kind]) & 255
        rows.append(bytes(row))
        before = row
    return w, h, rows
def tiles(path, n, h, w):
    width, height, rows = image(path)
    side, columns = max(h, w), math.ceil(math.sqrt(n * 1.5))
    factor = (160 + side // 2) // side
    step_x, step_y = max(w * factor, 128) + 12, h * factor + 5 + 18 + 12 # captions: a line of 18 pixels, or two of 9
    out = []
    for i in range(n):
        x0, y0 = 12 + i % columns * step_x, 36 + i // columns * step_y
        block = [[rows[y0 + y][3 * (x0 + x):3 * (x0 + x) + 3] for x in range(w * factor)] for y in range(h * factor)]
        assert all(block[y][x] == block[y // factor * factor][x // factor * factor] for y in range(h * factor) for x in range(w * factor))
        out.append([[tuple(block[y * factor][x * factor]) for x in range(w)] for y in range(h)])
    return out
def show(*args):
    return json.loads(subprocess.run([sys.argv[1], "show", "--json", *args], check=True, capture_output=True).stdout)
def grey(i): return [[(pixel(i, y, x),) * 3 for x in range(5)] for y in range(6)]
def check(name, good, why=""): print(f"ok {name}" if good else f"not ok {name}: {why}")
PY

# ---- images against their source -------------------------------------------------------------------------------------------------------
cat >pixels.py <<'PY'
from tile import *
for name, args, draw in (("plain", ["--plain"], lambda i: grey(i)),
                         ("normalised", [], lambda i: grey(i)),
                         ("test_split", ["--split", "test", "--step", "1"], lambda i: grey(40 + i)),
                         ("flipped", ["-s", 'data.augment=({type="hflip";p=1.0;})'], lambda i: [r[::-1] for r in grey(i)]),
                         ("plain_of_flipped", ["--plain", "-s", 'data.augment=({type="hflip";p=1.0;})'], lambda i: grey(i)),
                         ("vflipped", ["-s", 'data.augment=({type="vflip";p=1.0;})'], lambda i: grey(i)[::-1])):
    got = show("grey.cfg", "-o", "x.png", *args)
    n = len(got["samples"])
    drawn = tiles("x.png", n, 6, 5)
    wrong = [s["index"] for s, t in zip(got["samples"], drawn) if t != draw(s["index"])]
    check("pixels_" + name, n == 8 and not wrong, f"{n} samples, other pixels than the source: {wrong}")
    wrong = [s for s in got["samples"] if s["classes"] != [{"class": s["index"] % 3, "name": None, "share": 1}]]
    check("labels_" + name, not wrong, wrong)
got = show("grey.cfg")
values = [(pixel(s["index"], y, x) / 255 - 0.4) / 0.25 for s in got["samples"] for y in range(6) for x in range(5)]
mean = sum(values) / len(values)
std = (sum(v * v for v in values) / len(values) - mean ** 2) ** 0.5
want = {"min": min(values), "max": max(values), "mean": mean, "std": std}
check("input_values", all(abs(got["input"][k] - want[k]) < 1e-5 for k in want), f"{got['input']}, not {want}")

# ---- mixed samples: the sample before in the batch, the first one with the last one; u8 blends are rounded to the nearest
for how in ("mixup", "cutmix"):
    got = show("grey.cfg", "-o", "x.png", "-s", 'data.augment=({type="%s";alpha=1.0;p=1.0;})' % how)
    order, share = [s["index"] for s in got["samples"]], got["mix"][0]["share"]
    check(how + "_named", got["mix"][0]["how"] == how and 0 < share < 1, got["mix"])
    sums = [sum(c["share"] for c in s["classes"]) for s in got["samples"]]
    check(how + "_shares_sum", all(abs(s - 1) < 1e-6 for s in sums), sums)
    wrong = []
    for k, s in enumerate(got["samples"]):
        a, b = order[k], order[k - 1]
        shares = {c["class"]: c["share"] for c in s["classes"]}
        want = {a % 3: share} if a % 3 != b % 3 else {a % 3: 1}
        if a % 3 != b % 3:
            want[b % 3] = 1 - share
        if shares.keys() != want.keys() or any(abs(shares[c] - want[c]) > 1e-6 for c in want):
            wrong.append((a, b, shares))
    check(how + "_shares", not wrong, wrong)
    own, drawn = 0, tiles("x.png", 8, 6, 5)
    for k, t in enumerate(drawn):
        a, b = grey(order[k]), grey(order[k - 1])
        for y in range(6):
            for x in range(5):
                v = t[y][x][0]
                near = abs(v - share * a[y][x][0] - (1 - share) * b[y][x][0]) <= 1 if how == "mixup" else v in (a[y][x][0], b[y][x][0])
                own += a[y][x] == t[y][x]
                if not near:
                    wrong.append((k, y, x))
    check(how + "_pixels", not wrong, wrong[:5])
    if how == "cutmix":
        check("cutmix_area", own >= 8 * 30 * share - 1e-6, f"{own} of 240 pixels are those of the sample, with the share {share}")
plain = show("grey.cfg", "--plain", "-s", 'data.augment=({type="mixup";alpha=1.0;p=1.0;})')
check("plain_is_not_mixed", all(len(s["classes"]) == 1 and s["classes"][0]["share"] == 1 for s in plain["samples"]) and
      plain["mix"][0]["how"] is None and [s["index"] for s in plain["samples"]] == order, plain["mix"])

# ---- steps: each sample once in an epoch, and the same samples whether a step is shown alone or after others
steps = [[s["index"] for s in show("grey.cfg", "--step", str(k))["samples"]] for k in range(1, 7)]
check("epoch_has_each_sample_once", sorted(sum(steps[:5], [])) == list(range(40)), steps)
check("next_epoch_is_shuffled_again", steps[5] != steps[0], steps)
check("samples_of_several_steps", [s["index"] for s in show("grey.cfg", "-n", "24")["samples"]] == sum(steps[:3], []))
check("number_of_step", [s["step"] for s in show("grey.cfg", "-n", "9", "--step", "4")["samples"]] == [4] * 8 + [5])
check("epoch_of_step", show("grey.cfg", "--step", "6")["epoch"] == 2)
ranks = ["-s", 'parallel={mode="ddp";nproc=2;}']
check("samples_of_ranks", [s["index"] for s in show("grey.cfg", *ranks)["samples"]] == steps[0])
PY
python3 pixels.py "$gtrain" || fail pixels 'a check has failed to run'

# ---- colours of folders ----------------------------------------------------------------------------------------------------------------
cat >colors.py <<'PY'
import os, struct, sys, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def write(path, w, h, color):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress((b"\0" + bytes(color) * w) * h)) + chunk(b"IEND", b""))
for name, color in (("red", (200, 10, 20)), ("green", (10, 180, 30)), ("blue", (30, 40, 220))):
    for i in range(4):
        write(f"colors/{name}/{i}.png", 8 + i, 12, color)
write("hostile/\033[31mfoo\nbar/1.png", 8, 8, (1, 2, 3))
write("hostile/\u202eabc\x07/1.png", 8, 8, (1, 2, 3))
write("wide/a/1.png", 1500, 30, (9, 99, 199))
write("wide/b/1.png", 4, 4, (9, 99, 199))
PY
python3 colors.py
cat >colors.cfg <<'CFG'
schema = 1;
name = "colors";
data = { format = "folder"; root = "colors"; batch = 12; mean = [0.485, 0.456, 0.406]; std = [0.229, 0.224, 0.225]; };
eval = { transforms = ( { type = "resize"; size = [8, 8]; } ); };
model = { input = [3, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 3; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG
cat >colored.py <<'PY'
from tile import *
rgb = {"red": (200, 10, 20), "green": (10, 180, 30), "blue": (30, 40, 220)}
got = show("colors.cfg", "-o", "x.png")
drawn = tiles("x.png", 12, 8, 8)
wrong = [s["path"] for s, t in zip(got["samples"], drawn) if {p for r in t for p in r} != {rgb[s["classes"][0]["name"]]}]
check("colors_drawn", len(drawn) == 12 and not wrong, wrong)
check("paths", all("/colors/" + s["classes"][0]["name"] + "/" in s["path"] for s in got["samples"]), got["samples"][0])
plain = show("colors.cfg", "--plain")
check("plain_size", {(s["image"]["height"], s["image"]["width"]) for s in plain["samples"]} == {(12, 8 + i) for i in range(4)})
wide = show("colors.cfg", "-s", "data.root=wide", "--plain", "-o", "x.png")
sizes = {(s["image"]["height"], s["image"]["width"]) for s in wide["samples"]}
check("plain_size_of_large", sizes == {(30, 1500), (4, 4)}, sizes)
PY
python3 colored.py "$gtrain" || fail colored 'a check has failed to run'

# ---- the terminal ----------------------------------------------------------------------------------------------------------------------
# half_blocks COLOR...: the output has blocks whose two pixels have each of the colours
half_blocks() {
	for color in "$@"; do
		if grep -qF $'\e'"[38;${color}m"$'\e'"[48;${color}m▀" out; then pass "color_$color"
		else fail "color_$color" "$(grep -o '38;[0-9;]*' out | sort | uniq -c | head -n 5 | tr '\n' ' ')"; fi
	done
}
COLORTERM=truecolor "$gtrain" show colors.cfg --color always >out 2>err
half_blocks '2;200;10;20' '2;10;180;30' '2;30;40;220'
"$gtrain" show colors.cfg --color always >out 2>err # the nearest of xterm's 256 colours
half_blocks '5;160' '5;34' '5;20'
# on_screen NAME COLUMNS LOCALE ARGS...: no line is wider than the terminal; ASCII in the locale C; escape sequences with colours only
on_screen() {
	local name=$1 columns=$2 locale=$3 bad
	shift 3
	COLUMNS=$columns LC_ALL=$locale "$gtrain" show -q "$@" >out 2>err || fail "$name" "$(cat err)"
	sed 's/\x1b\[[0-9;]*m//g' out >text
	bad=$(LC_ALL=C.UTF-8 awk -v n="$columns" '{ gsub(/[\200-\277]/, ""); if (length($0) > n) { print "wide: " $0; exit } }' text)
	[[ $locale = C ]] && LC_ALL=C grep -q '[^ -~]' text && bad='not ASCII'
	[[ $* = *never* ]] && grep -q $'\e' out && bad='escape sequences without colours'
	[[ $* = *always* ]] && ! grep -q $'\e' out && bad='no colours'
	[ -s out ] || bad=empty
	if [ -z "$bad" ]; then pass "$name"; else fail "$name" "$bad"; fi
}
for columns in 20 40 80 200; do
	for locale in C.UTF-8 C; do
		for color in always never; do on_screen "terminal_${columns}_${locale}_$color" $columns $locale colors.cfg --color $color; done
	done
done
gives summary 0 out 'colors: split train, step 1 (epoch 1); 12 samples, 12 in a batch' show colors.cfg
gives named_transforms 0 out 'transforms: resize' show colors.cfg
gives mix_line 0 out 'step 1: mixup, 0.' show grey.cfg -s 'data.augment=({type="mixup";alpha=1.0;p=1.0;})'
gives captions 0 out 'red' show colors.cfg -q
cp -r colors accents
mv accents/red "accents/$(printf 'r\303\251d')"
run show colors.cfg -o plain.png -q
run show colors.cfg -s data.root=accents -o accents.png -q
cmp -s plain.png accents.png && pass caption_without_accent || fail caption_without_accent "$(cat err)"
rm -r accents
# names that the font lacks: the numbers of the classes, and a line that says which they are
cp -r colors chinese
cp -r colors numbered
i=0
for name in 一 丁 七; do
	color=$(cd colors && printf '%s\n' */ | sed -n "$((i + 1))s|/||p")
	mv "chinese/$color" "chinese/$name"
	mv "numbered/$color" "numbered/class $((i++))"
done
run show colors.cfg -s data.root=numbered -o numbered.png -q
run show colors.cfg -s data.root=chinese -o chinese.png --color never
if cmp -s numbered.png chinese.png && grep -q 'lacks characters of names:.* class 1 is 丁' err; then pass caption_by_number
else fail caption_by_number "$(cat err)"; fi
rm -r chinese numbered
# a run whose data has moved
run run colors.cfg --device cpu -q -o moved -s train.epochs=1 -s data.root="$tmp/colors"
mv colors elsewhere
gives moved_data 66 err 'if the data has moved, add -s data.root=DIR' show moved
gives moved_data_named 0 out 'red' show moved -s data.root="$tmp/elsewhere" --color never
mv elsewhere colors
"$gtrain" show colors.cfg 2>err | head -n 1 >/dev/null
if [ "${PIPESTATUS[0]}" -le 141 ] && [ ! -s err ]; then pass closed_pipe; else fail closed_pipe "$(cat err)"; fi
"$gtrain" show colors.cfg >/dev/full 2>err
if [ $? = 74 ]; then pass full_disk; else fail full_disk "$(cat err)"; fi

# ---- hostile names ---------------------------------------------------------------------------------------------------------------------
run show colors.cfg -s data.root=hostile -s data.limit=2 --color never
if [ "$rc" = 0 ] && ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f]' out && ! grep -q $'\u202e' out && grep -q '?\[31mfoo?' out; then
	pass hostile_names
else
	fail hostile_names "status $rc: $(cat -v "$tmp/out" "$tmp/err" | tail -n 3)"
fi
run show colors.cfg -s data.root=hostile -o hostile.png --json
if [ "$rc" = 0 ] && python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$tmp/out" && [ -s hostile.png ]; then pass hostile_json
else fail hostile_json "$(cat -v "$tmp/err")"; fi

# ---- files -----------------------------------------------------------------------------------------------------------------------------
gives wrong_ending 64 err "--out: expected a file name that ends in .png, got 'x.jpg'" show grey.cfg -o x.jpg
gives only_an_ending 64 err 'ends in .png' show grey.cfg -o .png
gives no_directory 73 err 'none/x.png' show grey.cfg -o none/x.png
rm -f x.png
gives wrote 0 err 'wrote x.png' show grey.cfg -o x.png
if [ -z "$(find . -name '*.tmp-*')" ]; then pass no_temporary; else fail no_temporary "$(find . -name '*.tmp-*')"; fi
gives split_without_samples 66 err 'the split "valid" has no samples' show grey.cfg --split valid
gives step_after_the_run 64 err '--step: expected at most 15, the number of steps of the run, got 16' show grey.cfg --step 16
gives batch_after_the_split 64 err '--step: expected at most 2, the number of batches of an evaluation, got 3' \
	show grey.cfg --split test --step 3
gives wrong_split 64 err '--split' show grey.cfg --split all
gives wrong_key 78 err 'data.mean: expected one value' show grey.cfg -s 'data.mean=[1,2,3,4]'
gives no_data 66 err 'missing' show grey.cfg -s data.root=missing

# ---- a damaged image, and a run as the operand -----------------------------------------------------------------------------------------
cp -r colors damaged
head -c 60 colors/red/1.png >damaged/red/1.png
gives damaged 65 err 'damaged/red/1.png' show colors.cfg -s data.root=damaged
for plain in '' --plain; do
	run show colors.cfg -s data.root=damaged -s data.on_error=skip --color never $plain
	if [ "$rc" = 0 ] && grep -q 'skipped .*damaged/red/1.png' "$tmp/err" && [ "$(grep -o '(not readable)' "$tmp/out" | wc -l)" = 1 ]; then
		pass "skipped$plain"
	else
		fail "skipped$plain" "status $rc: $(cat "$tmp/err" "$tmp/out" | tail -n 5)"
	fi
done
"$gtrain" run grey.cfg --device cpu -q --no-progress -o runs/grey -s seed=7 2>err || fail train "$(cat err)"
"$gtrain" show grey.cfg --json -s seed=7 >a.json 2>err
"$gtrain" show runs/grey --json >b.json 2>err
"$gtrain" show runs/grey/latest --json >c.json 2>err
if [ -s a.json ] && cmp -s a.json b.json && cmp -s a.json c.json; then pass run_operand; else fail run_operand "$(cat err)"; fi
"$gtrain" show grey.cfg --json >d.json 2>err
if cmp -s a.json d.json; then fail seed 'another seed gives the same samples'; else pass seed; fi

# ---- texts -----------------------------------------------------------------------------------------------------------------------------
for split in train test; do
	mkdir -p texts/$split/good texts/$split/bad
	for i in 1 2 3 4 5 6 7 8; do
		echo "A good film $i" >texts/$split/good/$i.txt
		echo "A bad film $i" >texts/$split/bad/$i.txt
	done
done
printf 'Some \e[31mzebra film' >texts/test/good/1.txt
cat >text.cfg <<'CFG'
schema = 1;
name = "text";
data = { format = "text"; root = "texts"; min_freq = 2; max_tokens = 20; batch = 16; };
model = { inputs = ( { name = "tokens"; } ); layers = ( { type = "embedding_bag"; embedding_dim = 4; }, { type = "linear"; out = 2; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG
cat >texts.py <<'PY'
from tile import *
got = show("text.cfg", "--split", "test", "-n", "16")
first = [s for s in got["samples"] if s["path"].endswith("/texts/test/good/1.txt")][0]
tokens = [(t["text"], t["unknown"]) for t in first["tokens"]]
check("tokens", tokens[-2:] == [("<unk>", True), ("film", False)] and first["classes"][0]["name"] == "good", tokens)
others = [[t["text"] for t in s["tokens"]] for s in got["samples"] if s["path"].endswith("bad/2.txt")]
check("tokens_of_known", others == [["a", "bad", "film", "2"]], others)
plain = show("text.cfg", "--split", "test", "--plain", "-n", "16")
texts = {s["path"]: s["text"] for s in plain["samples"]}
check("plain_texts", len(texts) == 16 and all(t == open(p, newline="").read() for p, t in texts.items()), texts)
PY
python3 texts.py "$gtrain" || fail texts 'a check has failed to run'
run show text.cfg --split test --color always -n 16
if grep -q $'\e\[31m<unk>' "$tmp/out" || grep -q $'\e\[[0-9;]*31m<unk>' "$tmp/out"; then pass unknown_marked
else fail unknown_marked "$(cat -v "$tmp/out" | head -n 20)"; fi
# Samples of a split that is sorted by class are drawn, of each class in turn; --step shows its batches in their own order.
cat >drawn.py <<'PY'
from tile import *
def classes(got): return [s["classes"][0]["name"] for s in got["samples"]]
def paths(got): return [s["path"] for s in got["samples"]]
batch = ["text.cfg", "--split", "test", "-s", "data.eval_batch=4"]
some, again, other = (show(*batch, "-n", "6", "-s", "seed=" + seed) for seed in ("1", "1", "2"))
check("drawn_classes", some["drawn"] and all(len(set(classes(some)[k:k + 2])) == 2 for k in (0, 2, 4)), classes(some))
check("drawn_by_seed", paths(some) == paths(again) != paths(other), paths(other))
every = show(*batch, "-n", "100")
check("drawn_all", len(every["samples"]) == len(set(paths(every))) == 16, paths(every))
step = [show(*batch, "--step", str(k)) for k in (1, 2, 3, 4)]
check("steps_of_split", not step[0]["drawn"] and len(set(sum(map(paths, step), []))) == 16 and set(classes(step[0])) == {"bad"},
      [classes(s) for s in step])
PY
python3 drawn.py "$gtrain" || fail drawn 'a check has failed to run'
gives drawn_summary 0 out 'text: split test; 12 samples, drawn from 16 (--step N shows batch N)' show text.cfg --split test
gives tokens_counted 0 out 'bad  4 tokens, 0 unknown' show text.cfg --split test -n 16
run show text.cfg --split test -n 16 --plain --color never
if ! grep -q $'\e' "$tmp/out" && grep -q '?\[31mzebra' "$tmp/out"; then pass hostile_text; else fail hostile_text "$(cat -v "$tmp/out")"; fi
gives no_images 64 err '--out: expected data with images, got text' show text.cfg -o x.png
on_screen text_narrow 30 C text.cfg --color never

# ---- tables ----------------------------------------------------------------------------------------------------------------------------
awk 'BEGIN { print "age,job,size,income"; for (i = 0; i < 60; i++)
	printf "%s,%s,%.1f,%s\n", i == 7 ? "" : 20 + i, i % 3 ? "clerk" : "cook", i / 2, i % 2 ? "high" : "low" }' >train.csv
printf 'age,job,size,income\n30,pilot,4.5,low\n31,clerk,5.0,high\n' >test.csv
cat >table.cfg <<'CFG'
schema = 1;
name = "table";
data = { format = "csv"; train = ["train.csv"]; test = ["test.csv"]; target = "income"; batch = 16;
         columns = ( { name = "age"; type = "continuous"; }, { name = "size"; type = "continuous"; } ); };
model = { inputs = ( { name = "values"; }, { name = "codes"; } );
          layers = ( { name = "e"; type = "embeddings"; in = ["codes"]; }, { type = "concat"; in = ["values", "e"]; },
                     { type = "linear"; out = 2; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG
cat >tables.py <<'PY'
from tile import *
rows = [line.split(",") for line in open("train.csv").read().split("\n")[1:61]]
sizes = [float(r[2]) for r in rows]
mean = sum(sizes) / 60
std = (sum(s * s for s in sizes) / 60 - mean ** 2) ** 0.5
got = show("table.cfg")
check("table_columns", [v["name"] for v in got["samples"][0]["values"]] == ["age", "size", "age_na", "job"], got["samples"][0])
wrong = []
for s in got["samples"]:
    row, v = rows[s["index"]], {v["name"]: v for v in s["values"]}
    if (abs(v["size"]["value"] - (float(row[2]) - mean) / std) > 1e-5 or v["job"]["text"] != row[1] or
            v["age_na"]["value"] != (row[0] == "") or s["classes"][0]["name"] != row[3] or
            not s["path"].endswith(f"train.csv:{s['index'] + 2}")):
        wrong.append(s)
check("table_values", not wrong and len(got["samples"]) == 12, wrong[:1])
got = show("table.cfg", "--plain", "-n", "60")
wrong = []
for s in got["samples"]:
    row, v = rows[s["index"]], {v["name"]: v for v in s["values"]}
    if (v["size"]["value"] != float(row[2]) or v["job"]["text"] != row[1] or v["age"]["missing"] != (row[0] == "") or
            (row[0] and v["age"]["value"] != float(row[0])) or "income" in v or s["classes"][0]["name"] != row[3]):
        wrong.append(s)
check("table_plain", not wrong and len(got["samples"]) == 60, wrong[:1])
test = show("table.cfg", "--split", "test", "--step", "1")["samples"]
check("table_unknown", [(v["text"], v["unknown"]) for s in test for v in s["values"] if v["name"] == "job"] ==
      [("<unknown>", True), ("clerk", False)], test)
PY
python3 tables.py "$gtrain" || fail tables 'a check has failed to run'
gives table_printed 0 out 'clerk' show table.cfg --color never
run show table.cfg --split test --color always
if grep -q $'\e\[[0-9;]*31m<unknown>' "$tmp/out"; then pass unknown_category; else fail unknown_category "$(cat -v "$tmp/out")"; fi
for columns in 40 80; do on_screen table_$columns $columns C table.cfg --color never; done

# ---- columns of texts, several labels, numeric targets of images -----------------------------------------------------------------------
awk 'BEGIN { print "review,stars,label"; for (i = 0; i < 20; i++)
	printf "\"a %s film, which I saw %d times that year\",%d,%s\n", i % 2 ? "good" : "bad", i % 3, i % 5, i % 2 ? "pos" : "neg"
	}' >reviews.csv
cat >reviews.cfg <<'CFG'
schema = 1; name = "reviews";
data = { format = "csv"; train = ["reviews.csv"]; target = "label"; batch = 20; columns = ( { name = "review"; type = "text"; } ); };
model = { inputs = ( { name = "tokens"; } ); layers = ( { type = "embedding_bag"; embedding_dim = 4; }, { type = "linear"; out = 2; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG
cat >list.csv <<'CSV'
path,labels,weight
colors/red/1.png,a|b,1.5
colors/red/2.png,a,2.5
colors/green/2.png,c,3.5
colors/blue/2.png,b|c,0.5
CSV
cat >list.cfg <<'CFG'
schema = 1; name = "list";
data = { format = "list"; train = ["list.csv"]; label_column = "labels"; label_separator = "|"; batch = 4; };
eval = { transforms = ( { type = "resize"; size = [8, 8]; } ); };
model = { input = [3, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 3; } ); };
train = { epochs = 1; loss = "bce"; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG
sed 's/label_column = "labels"; label_separator = "|"/target_columns = ["weight"]/
	s/"bce"/"mse"/; s/out = 3/out = 1/' list.cfg >numbers.cfg
cat >targets.py <<'PY'
from tile import *
import csv
rows = list(csv.DictReader(open("reviews.csv")))
plain = show("reviews.cfg", "--plain", "-n", "20")["samples"]
wrong = [s for s in plain if s["text"] != rows[s["index"]]["review"] or [v["name"] for v in s["values"]] != ["stars"]]
check("plain_text_of_column", len(plain) == 20 and not wrong, wrong[:1])
got = show("reviews.cfg", "-n", "20")["samples"]
wrong = [s for s in got if [t["text"] for t in s["tokens"]][1] != rows[s["index"]]["review"].split()[1]]
check("tokens_of_column", len(got) == 20 and not wrong, wrong[:1])
rows = list(csv.DictReader(open("list.csv")))
got = show("list.cfg")["samples"]
wrong = [s for s in got if [(c["name"], c["share"]) for c in s["classes"]] != [(n, 1) for n in rows[s["index"]]["labels"].split("|")]]
check("several_labels", len(got) == 4 and not wrong, wrong)
got = show("numbers.cfg")["samples"]
want = [float(r["weight"]) for r in rows]
wrong = [s for s in got if [(v["name"], v["value"]) for v in s["targets"]] != [("weight", want[s["index"]])]]
check("numeric_targets", len(got) == 4 and not wrong, wrong)
PY
python3 targets.py "$gtrain" || fail targets 'a check has failed to run'
gives caption_of_labels 0 out 'a, b' show list.cfg --color never
gives caption_of_numbers 0 out 'weight 2.5' show numbers.cfg --color never
tiny_config
gives channels 0 out 'of 5 channels, the first three are shown' show tiny.cfg -s 'model.input=[5,8,8]'

# ---- the samples of a step are those of the run ----------------------------------------------------------------------------------------
# Of a model whose outputs are 0, the loss of a step is the mean of the squared targets of its samples.
awk 'BEGIN { print "x,y"; for (i = 0; i < 44; i++) printf "%.2f,%.3f\n", i * 7 % 44 + 0.5, 1.37 ^ (i / 4) }' >fp.csv
cat >fp.cfg <<'CFG'
schema = 1; name = "fp"; device = "cpu"; threads = 1;
data = { format = "csv"; train = ["fp.csv"]; target = "y"; batch = 8; };
model = { inputs = ( { name = "values"; } ); layers = ( { type = "linear"; out = 1; bias = false; init = "zeros"; } ); };
train = { epochs = 3; loss = "mse"; optimizer = { type = "sgd"; lr = 0.0; }; };
log = { every_steps = 1; };
CFG
cat >steps.py <<'PY'
from tile import *
args = sys.argv[3:]
wrong, steps = [], [json.loads(line) for line in open(sys.argv[2] + "/metrics.jsonl")]
steps = {e["step"]: e["loss"] for e in steps if e["event"] == "train"}
samples = show("fp.cfg", "-n", "1000", *args)["samples"]
for step, loss in steps.items():
    got = [s["targets"][0]["value"] for s in samples if s["step"] == step]
    mean = sum(v * v for v in got) / max(len(got), 1)
    if abs(mean - loss) > 1e-5 * loss:
        wrong.append((step, loss, mean))
check("steps_of_" + sys.argv[2].split("/")[1], len(steps) == 18 - 3 * ("data.drop_last=true" in args) and not wrong, wrong)
PY
# steps_of NAME ARGS...: compares all steps of a run with its samples
steps_of() {
	local name=$1
	shift
	"$gtrain" run fp.cfg -o "runs/$name" -q --no-progress "$@" >out 2>err || fail "steps_of_$name" "$(tail -n 1 err)"
	python3 steps.py "$gtrain" "runs/$name" "$@" || fail "steps_of_$name" 'the check has failed to run'
}
steps_of one
steps_of dropped -s data.drop_last=true
steps_of accumulated -s train.accumulate=2
steps_of unshuffled -s data.shuffle=false
steps_of ranks -s 'parallel={mode="ddp";nproc=2;}'
steps_of torch -s 'data.sampler="torch"'
steps_of threads -s data.prefetch=3
