#!/bin/bash
# gtrain report: the numbers of the page against `gtrain eval --report` and metrics.jsonl, images, texts and rows of mistakes, hostile
# names, missing data, the file, and the page in a browser: script, contrast, width.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
train() { "$gtrain" run "$@" --device cpu -q --no-progress >train.out 2>&1 || fail train "$(tail -n 1 train.out)"; }
tiny_config
train tiny.cfg -o runs/tiny -s train.epochs=3

# ---- usage and files -------------------------------------------------------------------------------------------------------------------
gives no_run 66 err 'none: No such file or directory' report none
gives not_a_run 66 err 'runs: expected the directory of a run, with metrics.jsonl' report runs
gives wrong_split 64 err '--split' report runs/tiny --split best
gives empty_split 66 err 'has no samples' report runs/tiny --split valid -o empty.html
[ -e empty.html ] && fail empty_split_writes_nothing 'a page' || pass empty_split_writes_nothing
gives standard_output 64 err "expected the name of a file, got '-'" report runs/tiny -o -
gives no_directory 73 err 'none/x.html' report runs/tiny -o none/x.html
ln -s /dev/null null.html
gives not_a_file 73 err 'null.html: expected a regular file' report runs/tiny -o null.html
gives other_ending 64 err "expected a file name that ends in .html, got 'page.pdf'" report runs/tiny -o page.pdf
gives no_ending 64 err "expected a file name that ends in .html, got 'runs/page'" report runs/tiny -o runs/page
gives default_file 0 err 'wrote runs/tiny/report.html' report runs/tiny
gives checkpoint_of_a_run 0 err 'wrote a.html' report runs/tiny/latest -o a.html
run report runs/tiny -o b.html -q
if [ "$rc" = 0 ] && [ ! -s out ] && [ ! -s err ] && [ -s b.html ]; then pass quiet; else fail quiet "$(cat err)"; fi
gives json 0 out '"event":"report","path":"b.html","bytes":' report runs/tiny -o b.html --json
cp b.html old.html
(ulimit -f 4; "$gtrain" report runs/tiny -o b.html >out 2>err)
if [ $? = 74 ] && cmp -s b.html old.html && [ -z "$(find . -name 'b.html?*')" ]; then pass no_space_keeps_the_file
else fail no_space_keeps_the_file "$(cat err; ls)"; fi
(cd runs && "$gtrain" report tiny -q) && [ -s runs/tiny/report.html ] && pass other_directory || fail other_directory 'no page'
gives runs_ignore_the_page 0 out complete runs runs

# ---- log.report -------------------------------------------------------------------------------------------------------------------------
# writes NAME RUN ARGS...: the command ends with 0 and says that it wrote the page, which is about all steps of the run
writes() {
	local name=$1 run=$2
	shift 2
	run "$@" --device cpu --no-progress
	if [ "$rc" = 0 ] && grep -q "^wrote $run/report.html" err && grep -q '<span class="badge">complete<' "$run/report.html" 2>err2; then
		pass "$name"
	else
		fail "$name" "$rc $(tail -n 3 err err2)"
	fi
}
writes at_the_end_of_a_run runs/r1 run tiny.cfg -o runs/r1 -s log.report=true
rm runs/r1/report.html
writes at_the_end_of_a_resume runs/r1 resume runs/r1 -s train.epochs=4
writes of_two_ranks runs/r2 run tiny.cfg -o runs/r2 -s log.report=true -s 'parallel.mode="ddp"' --nproc 2
writes of_threads runs/r3 run tiny.cfg -o runs/r3 -s log.report=true -s 'parallel.mode="dp"' --nproc 2
run run tiny.cfg -o runs/r4 --device cpu --no-progress -s log.report=true -s train.epochs=100000 --time-limit 1s
if [ "$rc" = 0 ] && [ ! -e runs/r4/report.html ]; then pass not_at_a_time_limit; else fail not_at_a_time_limit "$rc $(cat err)"; fi
[ ! -e runs/tiny-2/report.html ] && train tiny.cfg -o runs/tiny-2 && [ ! -e runs/tiny-2/report.html ] && pass not_by_default ||
	fail not_by_default 'a page'
mkdir -p runs/r5/report.html/x
run run tiny.cfg -o runs/r5 --device cpu --no-progress -s log.report=true
if grep -q 'warning: log.report: cannot write the page of the run: ' err && [ "$rc" = 0 ] && [ -e runs/r5/latest ]; then
	pass no_page_no_harm
else
	fail no_page_no_harm "$rc $(cat err)"
fi
gives smoke_writes_no_page 0 out ok run tiny.cfg --smoke -s log.report=true --device cpu

# ---- data that is not there, and a run without checkpoints -----------------------------------------------------------------------------
cat >fm.cfg <<'CFG'
schema = 1; name = "images"; device = "cpu"; threads = 1;
data = { format = "folder"; root = "pictures"; batch = 8; valid = 0.5; stratify = true; };
model = { input = [3, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 3; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.0001; }; };
eval = { transforms = ( { type = "resize"; size = [8, 8]; } ); };
log = { every_steps = 1; };
CFG
if ! command -v python3 >/dev/null; then
	skip report_values 'python3 is not installed'
	exit 0
fi
python3 - <<'PY'
import os, struct, zlib
def png(path, w, h, pixel):
    rows = b"".join(b"\0" + bytes(c for x in range(w) for c in pixel(x, y)) for y in range(h))
    chunk = lambda n, d: struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d))
    head = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for k, name in enumerate(("<script>alert(1)", "\"onload=x' &amp;", "plain")):
    os.makedirs("pictures/train/" + name)
    for i in range(16):
        png(f"pictures/train/{name}/{i}.png", 8, 8, lambda x, y: (i * 15, k * 100 + x, y * 30))
PY
train fm.cfg -o runs/images
gives images 0 err wrote report runs/images -o images.html
cp images.html runs/images/report.html
mv pictures moved
gives better_page 73 err 'the new page would have no scores' report runs/images
if cmp -s images.html runs/images/report.html; then pass better_page_kept; else fail better_page_kept 'replaced'; fi
rm runs/images/report.html
gives page_without_scores 0 err 'wrote runs/images/report.html' report runs/images
run report runs/images -o missing.html --json
if [ "$rc" = 0 ] && grep -q 'warning: the page has no scores, no calibration and no mistakes: ' err &&
	grep -q '"split":null.*"missing":\["the page has no scores' out && grep -q 'the page has no scores' missing.html &&
	grep -q 'id="curves"' missing.html && grep -q 'id="layers"' missing.html && ! grep -q 'id="mistakes"' missing.html; then
	pass missing_data
else fail missing_data "$rc $(cat err)"; fi
gives moved_data 0 err 'wrote moved.html' report runs/images -o moved.html -s data.root=moved
grep -q 'id="mistakes"' moved.html && pass moved_data_is_evaluated || fail moved_data_is_evaluated 'no mistakes'
mv moved pictures
cp -r runs/tiny runs/bare
rm -rf runs/bare/step-* runs/bare/latest runs/bare/best
gives no_checkpoints_beside_a_page 73 err "runs/bare/report.html: not replaced" report runs/bare
rm runs/bare/report.html
gives no_checkpoints 0 err 'the page has no scores' report runs/bare
cp -r runs/tiny runs/damaged
for f in runs/damaged/step-*/model.safetensors; do truncate -s 100 "$f"; done
gives damaged_checkpoints 65 err 'every checkpoint is damaged' report runs/damaged

# ---- images that do not fit --------------------------------------------------------------------------------------------------------------
train tiny.cfg -o runs/large -s 'model.input=[3,160,160]' -s data.samples_test=400 -s train.optimizer.lr=1e-9
run report runs/large -o large.html --json
images=$(grep -o '<img ' large.html | wc -l) left=$(grep -c 'The image is left out' large.html) size=$(wc -c <large.html)
if [ "$rc" = 0 ] && [ "$images" -gt 5 ] && [ "$left" -gt 0 ] && [ "$size" -lt 3000000 ] && grep -q "\"images\":$images," out; then
	pass images_that_do_not_fit
else
	fail images_that_do_not_fit "$images images, $left left out, $size bytes"
fi

# ---- texts, tables, numbers, several labels --------------------------------------------------------------------------------------------
for kind in neg '<b>pos'; do
	mkdir -p "texts/train/$kind"
	for i in 1 2 3 4 5 6 7 8; do printf '<script>alert(%d)</script> a film\x07 & more "%s" %s\n' \
		$i "$kind" "$(printf 'so %.0s' $(seq $((i * 37 % 11 + 1))))" >"texts/train/$kind/$i.txt"; done
	truncate -s 1198 "texts/train/$kind/"[234].txt && sed -i 's/\x00/./g' "texts/train/$kind/"[234].txt # all of it is shown
	truncate -s 1300 "texts/train/$kind/"[567].txt && sed -i 's/\x00/./g' "texts/train/$kind/"[567].txt # 1200 bytes are
done
cat >text.cfg <<'CFG'
schema = 1; name = "<i>text"; device = "cpu"; threads = 1;
data = { root = "texts"; format = "text"; batch = 4; valid = 0.5; max_tokens = 40; };
model = { inputs = ( { name = "tokens"; }, { name = "lengths"; } ); layers = (
	{ type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 8; padding_idx = 0; }, { type = "linear"; out = 2; } ); };
train = { epochs = 1; optimizer = { type = "adam"; lr = 0.00001; }; };
CFG
train text.cfg -o runs/text -s train.epochs=2
awk 'BEGIN { print "<u>a,b,y,level,p,q"
	for (i = 1; i <= 120; i++)
		printf "%.2f,%.3f,%.2f,%s,%d,%d\n", \
			i % 7 + i / 100, sin(i), i * 37 % 11 + i / 50, i % 3 ? "high</td>" : "low", i % 2, i % 3 == 1
}' >all.csv
cat >values.cfg <<'CFG'
schema = 1; name = "values"; device = "cpu"; threads = 1;
data = { format = "csv"; train = ["all.csv"]; target = "y"; ignore = ["level", "p", "q"]; batch = 32; valid = 0.2; };
model = { inputs = ( { name = "values"; } ); layers = ( { type = "linear"; out = 1; } ); };
train = { epochs = 1; loss = "mse"; optimizer = { type = "adam"; lr = 0.02; }; };
CFG
sed 's/"y"; ignore = \["level",/"level"; ignore = ["y",/; s/mse/cross_entropy/; s/out = 1/out = 2/' values.cfg >classes.cfg
sed 's/"y"; ignore.*"q"\]/["p", "q"]; drop_last = false/; s/mse/bce/; s/out = 1/out = 2/' values.cfg >labels.cfg
for name in values classes labels; do train $name.cfg -o runs/$name -s train.epochs=2; done
for name in tiny images text values classes labels; do
	run report runs/$name -o $name.html
	if [ "$rc" = 0 ]; then pass "page_of_$name"; else fail "page_of_$name" "$(cat err)"; fi
done

cat >lib.py <<'PY'
import base64, csv, html.parser, json, math, os, re, struct, subprocess, sys, zlib
VOID = {"meta", "img", "br", "hr", "input", "link"}
class Page(html.parser.HTMLParser):
    """All elements of a page in order, each with tag, attributes and text; fails if tags are not balanced."""
    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.open, self.all = [], []
        self.raw = open(path, encoding="utf-8").read()
        self.feed(self.raw)
        self.close()
        assert not self.open, "not closed: " + self.open[-1]["tag"]
    def handle_starttag(self, tag, attrs):
        e = {"tag": tag, "attrs": dict(attrs), "text": "", "ids": [o["attrs"].get("id") for o in self.open]}
        assert len(attrs) == len(e["attrs"]), "an attribute twice"
        self.all.append(e)
        if tag not in VOID:
            self.open.append(e)
    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)
    def handle_endtag(self, tag):
        assert self.open and self.open[-1]["tag"] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
    def handle_data(self, data):
        for e in self.open:
            e["text"] += data
    def section(self, name):
        return [e for e in self.all if name in e["ids"]]
def rows(elements):
    """the texts of the cells of each row"""
    out = []
    for e in elements:
        if e["tag"] == "tr":
            out.append([])
        elif e["tag"] in ("td", "th"):
            out[-1].append(e["text"].replace(",", ""))
    return out
def gtrain_json(*words):
    return json.loads(subprocess.run([sys.argv[1], *words, "--json"], check=True, capture_output=True, text=True).stdout)
def evaluate(run, *more):
    return gtrain_json("eval", run, "--report", *more)
def same(text, value):
    return text == ("" if value is None else f"{value:.4f}")
PY
python() {
	if why=$(cat lib.py - <<<"$2" >code.py && python3 code.py "$gtrain" 2>&1); then pass "$1"; else fail "$1" "$(tail -n 1 <<<"$why")"; fi
}
python pages_are_well_formed_and_load_nothing '
for name in "tiny", "images", "text", "values", "classes", "labels", "missing":
    p = Page(name + ".html")
    assert len(p.raw) < 3e6, name
    scripts = [e for e in p.all if e["tag"] == "script" and e["attrs"].get("type") != "application/json"]
    assert len(scripts) == 1, (name, len(scripts))
    for e in p.all:
        assert e["tag"] not in ("link", "iframe", "object", "embed", "base", "form", "i", "u"), e["tag"]
        for key, value in e["attrs"].items():
            assert not key.startswith("on") and key != "style", (name, key)
            if key in ("src", "href"):
                assert value.startswith(("#", "data:image/png;base64,")), value
    assert not re.search(r"@import|url\(", p.raw)
    assert set(re.findall(r"https?://[^\"<) ]*", p.raw)) <= {"http://www.w3.org/2000/svg"}, name  # a name of a language, not an address
    assert all(ord(c) >= 32 or c in "\n\t" for c in p.raw), name
    ids = [e["attrs"]["id"] for e in p.all if "id" in e["attrs"]]
    assert len(ids) == len(set(ids)), "an id twice"
    assert {e["attrs"]["href"][1:] for e in p.all if e["tag"] == "a"} <= set(ids)
    assert len([e for e in p.all if e["tag"] == "h1"]) == 1'
python policy_is_that_of_the_script '
import hashlib
p = Page("tiny.html")
script = next(e for e in p.all if e["tag"] == "script" and not e["attrs"])["text"]
policy = next(e for e in p.all if e["attrs"].get("http-equiv"))["attrs"]["content"]
assert "default-src \x27none\x27" in policy
assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy'
python scores_are_those_of_eval '
for name in "tiny", "images", "classes", "text":
    e, p = evaluate("runs/" + name), Page(name + ".html")
    table = rows(p.section("classes"))
    r = e["report"]
    for c, row in zip(r["classes"], table[1:]):
        assert row[0] == (c["name"] or str(c["class"])), (row, c)
        assert all(same(t, c[k]) for t, k in zip(row[1:], ("precision", "recall", "f1", "auc"))) and row[5] == str(c["support"]), row
    macro, weighted = table[1 + len(r["classes"])], table[2 + len(r["classes"])]
    assert macro[0] == "Macro average" and all(same(t, r["macro"][k]) for t, k in zip(macro[1:], ("precision", "recall", "f1")))
    assert all(same(t, r["weighted"][k]) for t, k in zip(weighted[1:], ("precision", "recall", "f1")))
    matrix = [[int(t or 0) for t in row[1:]] for row in rows(p.section("matrix"))[1:]]
    assert matrix == r["confusion"], matrix
    marks = dict(re.findall(r"<!-- score (\w+) (\S+) -->", p.raw))
    assert float(marks["loss"]) == e["loss"] and float(marks["acc"]) == e["acc"], marks
    facts = " ".join(x["text"] for x in p.section("summary") if x["tag"] == "div")
    assert "%.4f" % e["acc"] in facts and e["split"] in facts, facts'
python calibration_is_that_of_the_predictions '
for name in "tiny", "classes", "labels":
    subprocess.run([sys.argv[1], "eval", "runs/" + name, "--predictions", "p.csv", "-q"], check=True, capture_output=True)
    table = list(csv.DictReader(open("p.csv")))
    pairs = []
    for row in table:
        ps = {k[12:]: float(v) for k, v in row.items() if k.startswith("probability_")}
        if name == "labels":
            pairs += [(ps[k], row["label_" + k] == "1") for k in ps]
        else:
            pairs.append((max(ps.values()), row["prediction"] == row["label"]))
    bins = [[] for _ in range(15)]
    for p, right in pairs:
        bins[min(14, max(0, math.ceil(p * 15) - 1))].append((p, right))
    ece = sum(abs(sum(p for p, _ in b) - sum(r for _, r in b)) for b in bins) / len(pairs)
    page = Page(name + ".html")
    got = float(next(e for e in page.all if e["attrs"].get("id") == "ece")["text"])
    assert abs(got - ece) < 6e-5, (name, got, ece)  # four digits
    counts = [int(r[1]) for r in rows(page.section("calibration"))[1:]]
    assert counts == [len(b) for b in bins], counts'
python mistakes_are_the_most_confident '
subprocess.run([sys.argv[1], "eval", "runs/tiny", "--predictions", "p.csv", "-q"], check=True, capture_output=True)
wrong = [(max(float(v) for k, v in row.items() if k.startswith("probability_")), row) for row in csv.DictReader(open("p.csv"))
         if row["label"] != row["prediction"]]
wrong.sort(key=lambda w: -w[0])
assert wrong
items = [e["text"] for e in Page("tiny.html").section("mistakes") if e["tag"] == "li"]
assert len(items) == min(24, len(wrong)), len(items)
for text, (p, row) in zip(items, wrong):
    name = "predicted class %s %.4f, true class %s %.4f" % (row["prediction"], p, row["label"], float(row["probability_" + row["label"]]))
    assert name in text and row["path"] in text, (text, name)'
python numbers_are_the_largest_errors '
subprocess.run([sys.argv[1], "eval", "runs/values", "--predictions", "p.csv", "-q"], check=True, capture_output=True)
errors = sorted(csv.DictReader(open("p.csv")), key=lambda r: -abs(float(r["y"]) - float(r["predicted_y"])))
page = Page("values.html")
items = [e["text"] for e in page.section("mistakes") if e["tag"] == "li"]
assert items and errors[0]["path"] in items[0], (items[0], errors[0])
shown = float(re.search(r"predicted ([-\d.e]+), true", items[0])[1])
assert abs(shown - float(errors[0]["predicted_y"])) < 1e-5 * (1 + abs(shown)), items[0]
line = int(errors[0]["path"].rsplit(":", 1)[1])
cells = open("all.csv").read().split("\n")[line - 1].split(",")
first = next(e for e in page.section("mistakes") if e["tag"] == "dl")["text"]
assert [c for c in cells if c not in first] == [] and "<u>a" in first, first
table = rows(page.section("values"))
v = evaluate("runs/values")["report"]["values"][0]
assert table[1][0] == "y" and table[1][1] == "%.6g" % v["mae"] and table[1][2] == "%.6g" % v["rmse"], table'
python images_are_the_pixels_of_the_files '
def pixels(data):
    w, h, depth, color = struct.unpack(">IIBB", data[16:26])
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and depth == 8 and color == 2, color
    at, body = 8, b""
    while at < len(data):
        n, name = struct.unpack(">I4s", data[at:at + 8])
        assert zlib.crc32(data[at + 4:at + 8 + n]) == struct.unpack(">I", data[at + 8 + n:at + 12 + n])[0], name
        body += data[at + 8:at + 8 + n] if name == b"IDAT" else b""
        at += 12 + n
    raw, out = zlib.decompress(body), []
    for y in range(h):
        kind, line = raw[y * (3 * w + 1)], list(raw[y * (3 * w + 1) + 1:(y + 1) * (3 * w + 1)])
        for i in range(3 * w):  # the five filters of PNG
            a, b, c = line[i - 3] if i > 2 else 0, out[-1][i] if out else 0, out[-1][i - 3] if out and i > 2 else 0
            near = min((a, b, c), key=lambda v: abs(a + b - c - v))
            line[i] = (line[i] + (0, a, b, (a + b) // 2, near)[kind]) & 255
        out.append(line)
    return out
page = Page("images.html")
images = [e["attrs"]["src"] for e in page.section("mistakes") if e["tag"] == "img"]
paths = [e["text"] for e in page.section("mistakes") if e["attrs"].get("class") == "from"]
assert len(images) == len(paths) > 5, len(images)
for src, path in zip(images, paths):
    assert pixels(base64.b64decode(src.split(",")[1])) == pixels(open(path, "rb").read()), path'
python texts_are_escaped '
page = Page("text.html")
quotes = [e["text"] for e in page.section("mistakes") if e["tag"] == "blockquote"]
assert quotes and all(q.startswith("<script>alert(") and "</script> a film\ufffd & more" in q for q in quotes), quotes
assert "<b>pos" in [r[0] for r in rows(page.section("classes"))]
for e in page.section("mistakes"):  # texts of different lengths are evaluated in another order than that of their files
    if e["tag"] == "li":
        true = re.search(r"true (neg|<b>pos) ", e["text"])[1]
        assert f"train/{true}/" in e["text"] and f"\"{true}\"" in e["text"], e["text"]
        long = os.path.getsize(re.search(r"texts/train/.*/\d\.txt", e["text"])[0]) > 1200
        assert long == ("\u2026" in e["text"]), (long, e["text"])
subprocess.run([sys.argv[1], "eval", "runs/text", "--predictions", "p.csv", "-q"], check=True, capture_output=True)
table = list(csv.DictReader(open("p.csv")))
assert len(table) > 7 and all("/train/" + r["label"] + "/" in r["path"] for r in table), table
assert [r["path"] for r in table] == sorted((r["path"] for r in table), key=lambda p: (p.split("/")[-2] != "<b>pos", p)), table
assert next(e for e in page.all if e["tag"] == "h1")["text"] == "<i>text"
names = [r[0] for r in rows(Page("images.html").section("classes"))]
assert "<script>alert(1)" in names and "\"onload=x\x27 &amp;" in names, names
assert "high</td>" in [r[0] for r in rows(Page("classes.html").section("classes"))]'
python curves_are_those_of_the_log '
events = [json.loads(l) for l in open("runs/tiny/metrics.jsonl")]
page = Page("tiny.html")
data = [json.loads(e["text"]) for e in page.section("curves") if e["attrs"].get("type") == "application/json"]
assert len(data) == 3, len(data)  # loss, accuracy, learning rate: with four classes, top-5 accuracy is always 1
test = next(l for l in data[0]["lines"] if l["name"] == "test")
want = [e["loss"] for e in events if e["event"] == "eval" and e["split"] == "test"]
assert len(want) == 3 and [float("%.6g" % v) for v in want] == test["y"] and test["x"] == [1, 2, 3], test
box, y = data[0]["box"], data[0]["y"]
paths = [e for e in page.section("curves") if e["tag"] == "path" and e["text"] == "test"]
drawn = [float(p.split()[1]) for p in paths[0]["attrs"]["d"][1:].split("L")]
at = [box[1] + box[3] * (1 - (v - y["low"]) / (y["high"] - y["low"])) for v in test["y"]]
assert all(abs(a - b) < 0.2 for a, b in zip(at, drawn)), (at, drawn)  # drawn to a tenth of a pixel'
python layers_config_and_checkpoints '
page = Page("tiny.html")
check = gtrain_json("check", "tiny.cfg")
table = rows(page.section("layers"))[1:]
assert abs(sum(float(r[6].split()[0]) for r in table if r[6]) - 100) < 0.05 * len(table), table
if table[-1][0] == "other":
    table.pop()
assert [(r[0], r[1], r[3]) for r in table] == [(l["name"], l["type"], str(l["params"])) for l in check["layers"]], table
assert float(table[1][5]) > 0, "no time of the layer"
assert open("runs/tiny/config.cfg").read() in next(e for e in page.section("config") if e["tag"] == "code")["text"]
steps = sorted(int(d[5:]) for d in os.listdir("runs/tiny") if re.fullmatch(r"step-\d+", d))
assert [int(r[0]) for r in rows(page.section("checkpoints"))[1:]] == steps
assert "latest" in rows(page.section("checkpoints"))[-1][2]
command = next(e for e in page.section("repeat") if e["tag"] == "code")["text"]
subprocess.run([sys.argv[1]] + command.split()[1:] + ["-q", "--no-progress", "--device", "cpu"], check=True, capture_output=True)
same = lambda run: open(f"{run}/latest/model.safetensors", "rb").read()
assert same("runs/tiny") == same("runs/tiny-again"), "the command gives other weights"'
# The time of a layer includes the kernels of its parts, such as the convolution of a shortcut. A layer that is computed together with
# another one has no time, instead of 0.
{
	sed '/^model/d' tiny.cfg
	cat <<'CFG'
model = { input = [1, 8, 8]; layers = ( { name = "conv"; type = "conv2d"; out = 4; kernel = 3; padding = 1; },
	{ name = "bn"; type = "batchnorm2d"; }, { name = "relu"; type = "relu"; },
	{ name = "down"; type = "shortcut"; in = "relu"; out = 8; stride = 2; }, { name = "flat"; type = "flatten"; },
	{ name = "fc"; type = "linear"; out = 4; } ); };
CFG
} >parts.cfg
train parts.cfg -o runs/parts -s train.epochs=1
run report runs/parts -o parts.html -q
python times_of_parts '
time = {r[0]: (r[5], r[6]) for r in rows(Page("parts.html").section("layers"))[1:]}
assert float(time["down"][0]) > 0, time
assert time["relu"] == ("", "") and not [t for t in time.values() if t[0] == "0.000"], time'

# ---- in a browser ------------------------------------------------------------------------------------------------------------------------
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
	skip report_in_a_browser 'chromium is not installed'
	exit 0
fi
# visit PAGE WIDTH SCHEME: the page as the browser has it after its scripts, in dom; its console in console
visit() {
	timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$tmp/profile" --window-size="$2",900 \
		--enable-logging=stderr --blink-settings=preferredColorScheme="$3" --virtual-time-budget=4000 --dump-dom \
		"file://$tmp/$1" >dom 2>console
}
# A copy of a page without its policy, with a script that uses the page and writes what it has found into its title.
cat >probe.js <<'JS'
const found = [], light = c => { const v = c.map(x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
	return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
const color = s => s.match(/[\d.]+/g).map(Number), paper = e => { for (; e; e = e.parentElement) {
	const c = color(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
document.querySelectorAll("details").forEach(d => d.open = true);
let texts = 0, least = 99;
for (const e of document.querySelectorAll("body *")) {
	if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()) || !e.getClientRects().length) continue;
	const svg = e.namespaceURI.endsWith("svg"), style = getComputedStyle(e);
	const ground = svg ? color(getComputedStyle(e.closest("svg").querySelector("rect")).fill) : paper(e);
	const a = light(color(svg ? style.fill : style.color)), b = light(ground.slice(0, 3));
	const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
	texts++;
	least = Math.min(least, ratio);
	if (ratio < 4.5) found.push(`contrast ${ratio.toFixed(2)} of ${e.tagName} "${e.textContent.slice(0, 30)}"`);
}
const plot = document.querySelector(".curves .plot"), svg = plot.querySelector("svg"), box = svg.getBoundingClientRect();
if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
plot.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width * 0.98, clientY: box.top + 50}));
const pointer = plot.parentElement.querySelector("output").textContent;
plot.dispatchEvent(new KeyboardEvent("keydown", {key: "Home"}));
plot.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
const key = plot.parentElement.querySelector("output").textContent;
for (const e of document.querySelectorAll(".matrix .d")) {
	if (!e.firstChild) continue;
	const range = document.createRange(), cell = e.getBoundingClientRect();
	range.selectNodeContents(e);
	const text = range.getBoundingClientRect(), frame = Math.max(0, -parseFloat(getComputedStyle(e).outlineOffset));
	const gap = Math.min(text.left - cell.left, cell.right - text.right) - frame;
	if (gap < 6) found.push(`${gap} pixels between a number and its frame`);
}
const small = [...document.querySelectorAll(".plot text")].filter(t => t.getBoundingClientRect().height < 9).length;
if (small) found.push(small + " small letters");
const dark = light(color(getComputedStyle(document.documentElement).backgroundColor)) < 0.1;
document.title = JSON.stringify({found, texts, least, pointer, key, dark, focus: plot.tabIndex});
JS
for name in tiny images text values labels; do
	python3 - $name <<'PY'
import re, sys
page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", open(sys.argv[1] + ".html").read())
open(sys.argv[1] + "_probe.html", "w").write(page.replace("</body>", "<script>" + open("probe.js").read() + "</script></body>"))
PY
done
visit tiny.html 1280 1
if grep -q CONSOLE console || ! grep -q 'aria-label="loss. Arrow keys show the values."' dom; then
	fail no_console_error "$(grep CONSOLE console)"
else
	pass no_console_error
fi
visit text.html 1280 1
if grep -q CONSOLE console; then fail hostile_page "$(grep CONSOLE console)"; else pass hostile_page; fi
for name in tiny images text values labels; do
	for view in '1280 1' '390 0'; do
		# shellcheck disable=SC2086
		visit ${name}_probe.html $view
		cp dom "$name.dom"
		python "browser_${name}_${view// /_}" "
t = json.loads(html.unescape(open('$name.dom').read().split('<title>')[1].split('</title>')[0]))
assert not t['found'], t['found'][:5]
assert t['texts'] > 100 and t['focus'] == 0 and t['dark'] == ('$view' == '390 0'), t
events = [json.loads(l) for l in open('runs/$name/metrics.jsonl')]
epochs = [e for e in events if e['event'] == 'epoch']
n = len(epochs)
assert t['pointer'].startswith('epoch %d: ' % n) and 'train %.5g' % epochs[-1]['loss'] in t['pointer'], t
assert t['key'].startswith('epoch ') and 'train' in t['key'], t"
	done
done
