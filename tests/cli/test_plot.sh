#!/bin/bash
# gtrain plot: values against metrics.jsonl, averages, axes, the terminal, SVG and PNG files, runs that go on, hostile names and logs.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
tiny_config
sed -i 's/samples = 256/samples = 256; valid = 0.25/; s/classes = 4/classes = 8/; s/out = 4/out = 8/' tiny.cfg # more than five: top5
train() { "$gtrain" run tiny.cfg --device cpu -q --no-progress "$@" >train.out 2>&1 || fail train "$(tail -n 1 train.out)"; }
mkdir runs
train -o runs/a -s train.epochs=5
train -o runs/b -s train.epochs=3 -s train.optimizer.lr=0.1 -s 'train.schedule={type="cosine";}'
before=$(find runs -type f -printf '%p %s %T@\n' | sort | sha256sum)

# ---- usage and missing files -----------------------------------------------------------------------------------------------------------
gives no_run 66 err 'none: No such file or directory' plot none
gives not_a_run 66 err 'runs: expected the directory of a run, with metrics.jsonl' plot runs
gives wrong_ending 64 err "--out: expected a file name that ends in .svg or .png, got 'x.pdf'" plot runs/a -o x.pdf
gives no_ending 64 err 'ends in .svg or .png' plot runs/a -o svg
gives ending_of_directory 64 err 'ends in .svg or .png' plot runs/a -o x.svg/y
gives wrong_score 64 err "unknown score 'los'; expected one of: loss, acc, " plot runs/a --score los
gives score_of_no_run 64 err 'no run has logged any value of mae' plot runs/a --score mae
gives smooth_one 64 err '--smooth: expected a number > 0 and < 1, got 1' plot runs/a --smooth 1
gives wrong_x 64 err '--x' plot runs/a --x time
gives follow_a_file 64 err '--follow and --out cannot be combined' plot runs/a --follow -o x.svg
if command -v python3 >/dev/null; then
	TERM=dumb python3 "$src/tests/cli/on_terminal.py" 80 "$gtrain" plot runs/a --follow >dumb.json
	grep -q '"status": 64' dumb.json && grep -q 'the variable TERM is' dumb.json && ! grep -q 'u001b' dumb.json && pass follow_dumb ||
		fail follow_dumb "$(cat dumb.json)"
fi
gives follow_a_pipe 64 err '--follow: expected a terminal as standard output' plot runs/a --follow
gives no_directory 73 err 'none/x.svg' plot runs/a -o none/x.svg
gives checkpoint_of_a_run 0 out 'loss by epoch' plot runs/a/latest

# ---- the terminal ----------------------------------------------------------------------------------------------------------------------
# on_screen NAME COLUMNS LOCALE ARGS...: no line is wider than the terminal; ASCII in the locale C; escape sequences with colours only
on_screen() {
	local name=$1 columns=$2 locale=$3 bad
	shift 3
	COLUMNS=$columns LC_ALL=$locale "$gtrain" plot "$@" >out 2>err || fail "$name" "$(cat err)"
	sed 's/\x1b\[[0-9;]*m//g' out >plain
	bad=$(LC_ALL=C.UTF-8 awk -v n="$columns" '{ gsub(/[\200-\277]/, ""); if (length($0) > n) { print "wide: " $0; exit } }' plain)
	[[ $locale = C ]] && LC_ALL=C grep -q '[^ -~]' plain && bad='not ASCII'
	[[ $* = *never* ]] && grep -q $'\e' out && bad='escape sequences without colours'
	[[ $* = *always* ]] && ! grep -q $'\e\[0;94m' out && bad='no colours'
	[ "$(grep -c '^ *[└+]' plain)" = 4 ] || bad="$(grep -c '^ *[└+]' plain) axes"
	if [ -z "$bad" ]; then pass "$name"; else fail "$name" "$bad"; fi
}
for columns in 30 40 80 200; do
	for locale in C.UTF-8 C; do
		on_screen "terminal_${columns}_$locale" $columns $locale runs/a --color never
		on_screen "colours_${columns}_$locale" $columns $locale runs/a --color always
	done
	on_screen "two_runs_$columns" $columns C.UTF-8 runs/a runs/b --color always
done
on_screen nine_runs 80 C.UTF-8 runs/a runs/b runs/a runs/b runs/a runs/b runs/a runs/b runs/a --color always
if grep -q '^.*a a.*b b.*c a' plain; then pass nine_letters; else fail nine_letters "$(head -n 2 plain)"; fi
gives nine_runs_in_a_file 0 err 'more runs than colours' plot runs/a runs/b runs/a runs/b runs/a runs/b runs/a runs/b runs/a -o nine.svg
gives legend 0 out 'a train  b valid  c test' plot runs/a --color never
run plot runs/a --color never --score acc
if [ "$(grep -c ' by epoch$' "$tmp/out")" = 1 ] && grep -q '│.*a.*b' "$tmp/out"; then pass letters_of_lines
else fail letters_of_lines "$(cat "$tmp/out")"; fi
gives logarithmic 0 out 'loss by step, logarithmic' plot runs/a --color never --log --x step
"$gtrain" plot runs/a 2>err | head -n 1 >/dev/null
if [ "${PIPESTATUS[0]}" -le 141 ] && [ ! -s err ]; then pass closed_pipe; else fail closed_pipe "$(cat err)"; fi
"$gtrain" plot runs/a >/dev/full 2>err
if [ $? = 74 ]; then pass full_disk; else fail full_disk "$(cat err)"; fi

# ---- files -----------------------------------------------------------------------------------------------------------------------------
gives svg 0 err 'wrote a.svg' plot runs/a -o a.svg
gives png 0 err 'wrote a.png' plot runs/a -o a.png
run plot runs/a runs/b --log --smooth 0.8 -o two.SVG -q
if [ "$rc" = 0 ] && [ ! -s "$tmp/out" ] && [ ! -s "$tmp/err" ]; then pass quiet_svg; else fail quiet_svg "$(cat "$tmp/err")"; fi
cp a.svg old.svg
(ulimit -f 1; "$gtrain" plot runs/a runs/b -o old.svg 2>err)
if [ $? = 74 ] && cmp -s a.svg old.svg && [ -z "$(find . -name 'old.svg?*')" ]; then pass no_space_keeps_the_file
else fail no_space_keeps_the_file "$(cat err; ls)"; fi
mkdir -p alone/bin alone/lib/gtrain
cp "$gtrain" alone/bin
cp "${gtrain%/bin/gtrain}/lib/gtrain/view.so" alone/lib/gtrain
alone/bin/gtrain plot runs/a -o alone.png 2>err
if [ $? = 69 ] && grep -q "Debian's package libcairo2" err && [ ! -e alone.png ]; then pass no_plugin; else fail no_plugin "$(cat err)"; fi
echo damaged >alone/lib/gtrain/draw.so
alone/bin/gtrain plot runs/a -o alone.png 2>err
if [ $? = 69 ] && grep -q "libcairo2.*draw cannot be loaded" err; then pass damaged_plugin; else fail damaged_plugin "$(cat err)"; fi
if alone/bin/gtrain plot runs/a -o alone.svg -q && cmp -s a.svg alone.svg; then pass svg_without_plugin
else fail svg_without_plugin 'differs'; fi
name=$'<b>&"\e[31m\xff'
cp -r runs/b "$name"
run plot "$name" runs/a -o hostile.svg
gives hostile_name_on_terminal 0 out '<b>&"?[31m?' plot "$name" runs/a --color never
if grep -q $'\e' "$tmp/out"; then fail no_control_characters 'an escape sequence'; else pass no_control_characters; fi

(cd runs/a && "$gtrain" plot . -o "$tmp/here.svg" -q)
if grep -q ">$tmp/runs/a<" here.svg; then pass title_of_the_working_directory
else fail title_of_the_working_directory "$(grep -o 'font-size="16"[^/]*' here.svg)"; fi
# values and steps at the limits of doubles, epochs that go back, members of other types
mkdir wild
{
	echo '{"event":"start","step":0,"steps":9007199254740992,"epochs":1e15,"time":1}'
	echo '{"event":"train","step":1,"epoch":1,"loss":1.7e308,"acc":5e-324,"lr":0,"time":1}'
	echo '{"event":"train","step":2,"epoch":9e15,"loss":-1.7e308,"acc":-1,"top5":"x","lr":[1],"time":1}'
	echo '{"event":"epoch","step":3,"epoch":900719925474099,"loss":0,"acc":1e-310,"time":1}'
	echo '{"event":"epoch","step":4,"epoch":1,"loss":{},"acc":1e-300,"time":1}'
	echo '{"event":"eval","step":9007199254740992,"epoch":-1,"split":"test","loss":1e999,"acc":2,"time":1}'
	echo '{"event":"eval","step":5,"split":7,"loss":1,"time":1}'
	echo '{"event":"train","step":6,"epoch":1,"loss":1e-300,"lr":1e300,"time":1}'
} >wild/metrics.jsonl
for options in '' '--log' '--x step' '--log --x step --smooth 0.99'; do
	for where in '--color never' '--color always' '-o wild.svg' '-o wild.png' --json; do
		# shellcheck disable=SC2086
		timeout 20 "$gtrain" plot wild runs/a $options $where >out 2>err
		code=$?
		if [ $code != 0 ]; then bad="$options $where: status $code: $(cat err)"; fi
	done
done
if [ -z "${bad-}" ]; then pass wild_values; else fail wild_values "$bad"; fi
if ! command -v python3 >/dev/null; then
	skip plot_values 'python3 is not installed'
	exit 0
fi
# python NAME CODE: passes if CODE runs
cat >lib.py <<'PY'
import json, math, re, struct, subprocess, sys, zlib
import xml.etree.ElementTree as xml
def log(run):
    return [json.loads(l) for l in open(run + "/metrics.jsonl")]
def plot(*args):
    out = subprocess.run([sys.argv[1], "plot", *args, "--json"], check=True, capture_output=True, text=True).stdout
    return [json.loads(l) for l in out.splitlines()]
def series(run, score, split, event):
    return next(s for s in run["series"] if (s["score"], s["split"], s["event"]) == (score, split, event))
SVG = "{http://www.w3.org/2000/svg}"
def svg(path):
    root = xml.parse(path).getroot()
    assert root.tag == SVG + "svg", root.tag
    assert not {e.tag for e in root.iter()} - {SVG + t for t in ("svg", "style", "rect", "path", "title", "circle", "text")}
    return root
def screen(*args):
    return json.loads(subprocess.run(["python3", "screen.py", *args], capture_output=True, text=True, check=True).stdout)
def lines(root, name):
    """the points of the paths with this title, one list for each panel"""
    return [[tuple(map(float, p.split())) for p in e.get("d")[1:].split("L")] for e in root.iter(SVG + "path")
            if e.findtext(SVG + "title") == name and not e.get("opacity")]
def proportional(a, b):
    """whether b = m * a + c, as far as a tenth of a pixel shows"""
    m = (b[-1] - b[0]) / (a[-1] - a[0])
    return all(abs(b[0] + m * (x - a[0]) - y) <= 0.11 for x, y in zip(a, b))
PY
python() {
	if why=$(cat lib.py - <<<"$2" >code.py && python3 code.py "$gtrain" 2>&1); then pass "$1"; else fail "$1" "$(tail -n 1 <<<"$why")"; fi
}
python values_are_those_of_the_log '
r, events = plot("runs/a")[0], log("runs/a")
assert r["path"] == "runs/a" and r["state"] == "complete" and r["damaged_lines"] == 0
count = 0
for s in r["series"]:
    mine = [e for e in events if e["event"] == s["event"] and e.get("split", "train") == s["split"]]
    assert [(p["step"], p["value"]) for p in s["points"]] == [(e["step"], e[s["score"]]) for e in mine], s["score"]
    assert s["values"] == len(mine) and s["missing"] == 0
    count += 1
assert count == 3 * 4 + 1, count
steps = series(r, "loss", "train", "train")["points"]
assert len(steps) == 30 and all(abs(p["epoch"] - p["step"] / 6) < 1e-8 for p in steps)
assert [p["epoch"] for p in series(r, "acc", "valid", "eval")["points"]] == [1, 2, 3, 4, 5]'
python averages_are_those_of_tensorboard '
points = series(plot("runs/a", "--smooth", "0.9")[0], "loss", "train", "train")["points"]
last = 0
for i, p in enumerate(points):
    last = last * 0.9 + 0.1 * p["value"]
    assert abs(p["smooth"] - last / (1 - 0.9 ** (i + 1))) < 1e-12, i  # sums of 30 doubles
assert all(p["smooth"] == p["value"] for p in series(plot("runs/a")[0], "loss", "train", "train")["points"])'
python svg_has_the_values '
root = svg("a.svg")
texts = [e.text for e in root.iter(SVG + "text")]
for t in "runs/a", "train", "valid", "test", "loss", "accuracy", "top-5 accuracy", "learning rate", "epoch":
    assert t in texts, t
assert "prefers-color-scheme:dark" in root.findtext(SVG + "style")
got = lines(root, "test")
want = [[e[k] for e in log("runs/a") if e["event"] == "eval" and e["split"] == "test"] for k in ("loss", "acc")]
assert len(got) == 3 and len(lines(root, "train")) == 4, len(got)
for w, g in zip(want, got):
    assert proportional([1, 2, 3, 4, 5], [x for x, y in g]) and proportional(w, [y for x, y in g]), (w, g)
assert got[0][0][1] < got[0][-1][1] and got[1][0][1] > got[1][-1][1]  # the loss falls, the accuracy rises'
python svg_with_log_axes '
root = svg("two.SVG")
texts = [e.text for e in root.iter(SVG + "text")]
assert {"a", "b", "loss (logarithmic)", "learning rate (logarithmic)", "accuracy"} <= set(texts), texts
got, rate = lines(root, "b, test")[0], [e["lr"] for e in log("runs/b") if e["event"] == "train"]
want = [math.log(e["loss"]) for e in log("runs/b") if e["event"] == "eval" and e["split"] == "test"]
assert proportional(want, [y for x, y in got])
assert proportional([math.log(v) for v in rate], [y for x, y in lines(root, "b, train")[3]])
smooth = [math.log(p["smooth"]) for p in series(plot("runs/b", "--smooth", "0.8")[0], "loss", "train", "train")["points"]]
assert proportional(smooth, [y for x, y in lines(root, "b, train")[0]])
dash = {e.findtext(SVG + "title"): e.get("stroke-dasharray") for e in root.iter(SVG + "path") if not e.get("opacity")}
assert len({dash["a, train"], dash["a, valid"], dash["a, test"]}) == 3
color = {e.findtext(SVG + "title"): e.get("class") for e in root.iter(SVG + "path")}
assert color["a, train"] == color["a, test"] != color["b, test"]'
python hostile_svg '
assert "<b>&\"?[31m?" in [e.text for e in svg("hostile.svg").iter(SVG + "text")]'
python png_has_the_lines '
data = open("a.png", "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
w, h, depth, color = struct.unpack(">IIBB", data[16:26])
assert (w, h, depth) == (2080, 1380, 8) and color in (2, 6), (w, h, depth, color)
at, body = 8, b""
while at < len(data):
    n, kind = struct.unpack(">I4s", data[at:at + 8])
    body += data[at + 8:at + 8 + n] if kind == b"IDAT" else b""
    at += 12 + n
raw, size = zlib.decompress(body), 3 if color == 2 else 4
rows, above = [], bytearray(w * size)
for y in range(h):
    kind, row = raw[y * (w * size + 1)], bytearray(raw[y * (w * size + 1) + 1:(y + 1) * (w * size + 1)])
    for i in range(len(row)):
        a, b, c = row[i - size] if i >= size else 0, above[i], above[i - size] if i >= size else 0
        p = a + b - c
        near = a if abs(p - a) <= abs(p - b) and abs(p - a) <= abs(p - c) else b if abs(p - b) <= abs(p - c) else c
        row[i] = (row[i] + [0, a, b, (a + b) // 2, near][kind]) & 255
    rows.append(row)
    above = row
def count(rgb, y0, y1, x0, x1):
    return sum(rows[y][x * size:x * size + 3] == bytes(rgb) for y in range(y0, y1) for x in range(x0, x1))
# each dot has a radius of 6 pixels: the test loss has its five, and in the line many more pixels
for rgb, least in (((0, 0x72, 0xb2), 500), ((0xd5, 0x5e, 0), 500), ((0, 0x9e, 0x73), 500)):
    got = count(rgb, 150, 700, 0, 1040)
    assert got > least, (rgb, got)
assert count((255, 255, 255), 0, 20, 0, w) == 20 * w and count((0x1f, 0x23, 0x28), 20, 80, 30, 400) > 50'
after=$(find runs -type f -printf '%p %s %T@\n' | sort | sha256sum)
if [ "$before" = "$after" ]; then pass changes_nothing; else fail changes_nothing 'files differ'; fi

# ---- logs: long, damaged, not finite, without a known epoch, resumed ---------------------------------------------------------------------
mkdir long
python3 - <<'PY'
with open("long/metrics.jsonl", "w") as f:
    f.write('{"event":"start","step":0,"steps":0,"epochs":0,"time":1}\n')
    for i in range(1, 300001):
        loss = 1e3 if i == 123457 else 1e-3 if i == 200001 else 2 / i ** 0.1 + i % 7 * 0.01
        f.write(f'{{"event":"train","step":{i},"epoch":1,"loss":{loss!r},"lr":0.1,"time":1}}\n')
PY
cp runs/a/config.cfg long
python long_log_keeps_its_peaks '
s = series(plot("long")[0], "loss", "train", "train")
assert s["values"] == 300000 and 512 <= len(s["points"]) <= 2048, len(s["points"])
value = {p["step"]: p["value"] for p in s["points"]}
assert value[123457] == 1e3 and value[200001] == 1e-3
assert all(p["epoch"] is None for p in s["points"])'
gives steps_without_epochs 0 out 'loss by step' plot long --color never
gives epochs_not_known 64 err 'long: the length of an epoch is unknown before the first epoch ends' plot long --x epoch
if /usr/bin/time -v true 2>/dev/null; then
	/usr/bin/time -f %M "$gtrain" plot long -o long.svg -q 2>memory
	if [ "$(tail -n 1 memory)" -lt 30000 ]; then pass bounded_memory; else fail bounded_memory "$(cat memory) KiB"; fi
else
	skip bounded_memory 'GNU time is not installed'
fi
cp -r runs/a bad
sed -i '3s/.*/nonsense/; 5s/"loss":[^,]*/"loss":null/; 6s/"loss":[^,]*/"loss":null/' bad/metrics.jsonl
printf '{"event":"tra' >>bad/metrics.jsonl
gives damaged_lines 0 err 'bad/metrics.jsonl: 1 line cannot be read and is left out' plot bad -o bad.svg
gives losses_not_finite 0 err 'bad: 2 losses are not finite; the plot leaves gaps there' plot bad -o bad.svg --smooth 0.5 --x step
python line_is_interrupted '
got = lines(svg("bad.svg"), "train")
assert [len(l) for l in got[:2]] == [2, 25], [len(l) for l in got]'
: >empty.jsonl
mkdir empty && cp empty.jsonl empty/metrics.jsonl && cp runs/a/config.cfg empty
gives empty_log 66 err 'empty: no values have been logged yet' plot empty
gives empty_log_json 0 out '"series":[]' plot empty --json
"$gtrain" run tiny.cfg --device cpu -q --no-progress -o resumed -s train.epochs=2 >train.out 2>&1
"$gtrain" resume resumed -s train.epochs=4 -q --no-progress >train.out 2>&1 || fail resume "$(tail -n 1 train.out)"
python epochs_of_a_resumed_run '
r = plot("resumed")[0]
assert all(abs(p["epoch"] - p["step"] / 6) < 1e-8 for p in series(r, "loss", "train", "train")["points"])
assert [p["epoch"] for p in series(r, "loss", "test", "eval")["points"]] == [1, 2, 3, 4]'

# the curve of a schedule, although few steps are logged
train -o stairs -s train.epochs=9 -s log.every_steps=1000 -s 'train.schedule={ type = "step"; step_size = 3; gamma = 0.1; }'
python curve_of_a_schedule '
points = [(p["step"], p["value"]) for p in series(plot("stairs")[0], "lr", "train", "train")["points"]]
per_epoch = [e for e in log("stairs") if e["event"] == "epoch"][0]["step"]
def drawn(step):
    (a, u), (b, v) = next((p, q) for p, q in zip(points, points[1:]) if p[0] <= step <= q[0])
    return u + (v - u) * (step - a) / (b - a)
for step in range(1, 9 * per_epoch + 1):
    rate = 0.01 * 0.1 ** ((step - 1) // per_epoch // 3)
    assert abs(drawn(step) - rate) <= 0.0001, (step, drawn(step), rate)
assert len(points) <= 7, points'

# ---- a run that goes on ----------------------------------------------------------------------------------------------------------------
# Runs a command on a terminal of 24 rows and COLUMNS that shows only what fits. When the command has printed TEXT, SIGINT ends it (WHAT is
# "interrupt"), or the shell command WHAT is executed. TEXT "FRAMES": a second picture is on the screen. Kills the command after 120
# seconds, and prints the status, the number of frames, and what is on the screen in the end.
cat >screen.py <<'PY'
import os, pty, re, select, signal, struct, subprocess, sys, fcntl, termios, time, json
text, what, columns, command = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)
raw, start = b"", time.monotonic()
while True:
    if time.monotonic() - start > 120:
        os.kill(pid, signal.SIGKILL)
    if what and (re.search(rb"\x1b\[\d+A", raw) if text == "FRAMES" else text.encode() in raw):
        if what == "interrupt":
            os.kill(pid, signal.SIGINT)
        else:
            subprocess.run(what, shell=True, check=True)
        what = ""
    if not select.select([fd], [], [], 0.05)[0]:
        continue
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    raw += part
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
rows, y, top, frames = [""], 0, 0, 0
for m in re.finditer(r"\x1b\[(\d*)[;\d]*([A-Za-z])|\r|\n|[^\x1b\r\n]+", raw.decode()):
    if m.group(0) == "\n":
        y += 1
        rows += [""] * (y + 1 - len(rows))
        top = max(top, y - 23)
    elif m.group(2) == "A":
        y = max(top, y - int(m.group(1)))
        frames += 1
    elif m.group(2) == "J":
        rows = rows[:y] + [""]
    elif m.group(0) != "\r" and not m.group(2):
        rows[y] += m.group(0)
print(json.dumps({"status": status, "frames": frames + 1, "rows": rows, "widest": max(map(len, rows))}))
PY
slow() { # a run that goes on until it gets a signal
	"$gtrain" run tiny.cfg --device cpu -q --no-progress -s train.steps=100000000 -s log.every_steps=50 -s train.eval_every_epochs=100 \
		-s checkpoint.every_epochs=1000000 -o "$1" >train.out 2>&1 &
	pid=$!
	wait_for lines "$1/metrics.jsonl" 3
}
slow going
export pid
# shellcheck disable=SC2016
python follow_ends_with_the_run '
got = screen("FRAMES", "kill -TERM $pid", "80", sys.argv[1], "plot", "going", "-f", "--score", "loss", "--score", "acc")
assert got["status"] == 0 and got["frames"] >= 2, got
text = [r for r in got["rows"] if r.strip()]
assert text[0].startswith("going: signal 15") and len(text) <= 23, text
assert sum("by epoch" in r for r in text) == 2 and got["widest"] <= 80'
wait $pid
# shellcheck disable=SC2016
python follow_waits_for_the_run '
train = "\"$GTRAIN\" run tiny.cfg --device cpu -q --no-progress -s train.epochs=3 -o later >train.out 2>&1 </dev/null &"
got = screen("waiting until", train, "80", sys.argv[1], "plot", "later", "-f", "--score", "loss")
text = [r for r in got["rows"] if r.strip()]
assert got["status"] == 0 and text[0] == "waiting until a run starts in later; Ctrl-C ends this", got
assert text[1].startswith("later: complete") and any("by epoch" in r for r in text), text'
python follow_waits_until_ctrl_c '
got = screen("Ctrl-C ends this", "interrupt", "80", sys.argv[1], "plot", "never", "-f")
assert got["status"] == -2 and [r for r in got["rows"] if r.strip()] == ["waiting until a run starts in never; Ctrl-C ends this"], got
got = screen("", "", "80", sys.argv[1], "plot", "tiny.cfg", "-f")
assert got["status"] == 66, got'
slow going2
python follow_ends_by_a_signal '
got = screen("FRAMES", "interrupt", "40", sys.argv[1], "plot", "going2", "--follow")
assert got["status"] == -2 and got["rows"][0].startswith("going2: running; not shown: ") and got["widest"] <= 40, got'
kill -TERM $pid
wait $pid

# ---- the learning-rate finder ------------------------------------------------------------------------------------------------------------
gives lr_find_wrong_ending 64 err '--out: expected a file name that ends in .svg or .png' lr-find tiny.cfg -o lr.pdf
gives lr_find_no_directory 73 err 'none/lr.svg: No such file or directory' lr-find tiny.cfg -o none/lr.svg
run lr-find tiny.cfg --device cpu --steps 60 --nproc 2 -s 'parallel.mode="ddp"' -o lr2.svg -q
if [ "$rc" = 0 ] && [ -s lr2.svg ]; then pass lr_find_on_two_ranks; else fail lr_find_on_two_ranks "$(cat "$tmp/err")"; fi
run lr-find tiny.cfg --device cpu --steps 60 -o lr.svg --json
cp "$tmp/out" lr.json
python lr_find_marks '
c = json.loads(open("lr.json").read())
root = svg("lr.svg")
texts = [e.text for e in root.iter(SVG + "text")]
for name, lr in c["suggestions"].items():
    assert f"{name} {lr:.3g}" in texts, (name, texts)
got = lines(root, "smoothed loss")[0]
assert proportional([math.log(p["lr"]) for p in c["curve"]], [x for x, y in got])
marks = [e for e in root.iter(SVG + "path") if e.get("stroke-dasharray")]
rates = [c["curve"][0]["lr"], *c["suggestions"].values(), c["curve"][-1]["lr"]]
places = [got[0][0], *(float(e.get("d")[1:].split()[0]) for e in marks), got[-1][0]]
assert len(marks) == 3 and proportional([math.log(v) for v in rates], places), places
# a text is on the side where it crosses fewer of the other marks, if it fits on both sides
at = dict(zip(c["suggestions"], places[1:-1]))
def crossed(name, left, w):
    low, high = (at[name] - 6 - w, at[name]) if left else (at[name], at[name] + 6 + w)
    return sum(low < x < high for other, x in at.items() if other != name)
for e in root.iter(SVG + "text"):
    name = e.text.split()[0]
    if name not in at or not places[0] < at[name] - 100 or not at[name] + 100 < places[-1]:
        continue
    left, w = e.get("text-anchor") == "end", 6 * len(e.text)
    assert crossed(name, left, w) <= crossed(name, not left, w), (e.text, left, at)'
