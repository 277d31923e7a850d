#!/bin/bash
# Data that changes after a run: added, removed, renamed and changed samples of a folder, a list, an archive, a table and texts, met by
# eval, resume and predict. No sample that was trained on is measured as valid, and what has changed is counted.
#
# Leaks are counted by the number of samples that are measured. With a copy of each of n samples under another name, 2 v are measured, where
# v samples were held out: a copy of a trained sample would be one more. With all files renamed, v are measured; with all trained samples
# removed, v; with the content of each file replaced by that of another, at most v, and none that was trained on.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1

# ---- data: two classes of 40 samples ---------------------------------------------------------------------------------------------------
dark=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mOQgwIGyhgADlcHgX3rLBkAAAAASUVORK5CYII=
light=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mO4AwUMlDEAvLE3ASmzY08AAAAASUVORK5CYII=
# image CLASS NUMBER: a picture; what follows the end of a PNG file makes its bytes differ
image() { if [ "$1" = dark ]; then echo $dark; else echo $light; fi | base64 -d && printf '%s %05d' "$1" "$2"; }
text() { if [ "$1" = dark ]; then echo "a gloomy night number w$2 of them"; else echo "a sunny day number w$2 of them"; fi; }
mkdir -p folder/dark folder/light texts/dark texts/light
for i in $(seq 10 49); do
	for c in dark light; do
		image $c "$i" >"folder/$c/$i.png"
		text $c "$i" >"texts/$c/$i.txt"
	done
done
echo 'file,label' >folder/list.csv
for c in dark light; do for i in $(seq 10 49); do echo "$c/$i.png,$c"; done; done >>folder/list.csv
{
	echo 'x,y,t'
	for i in $(seq 10 49); do echo "$i.5,-1.25,dark"; echo "$i.5,2.75,light"; done
} >table.csv
tar -cf archive.tar -C folder dark light
cat >images.cfg <<'CFG'
schema = 1;
name = "changed";
seed = 1;
data = { root = "folder"; format = "folder"; batch = 16; valid = 0.25; stratify = true; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 2; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { best = { metric = "valid/acc"; }; };
CFG
sed 's/root = "folder"; format = "folder"/root = "archive.tar"; format = "folder"/' images.cfg >archive.cfg
sed 's/format = "folder"/format = "list"; train = ["list.csv"]/' images.cfg >list.cfg
sed -e 's/root = "folder"; format = "folder"/format = "csv"; train = ["table.csv"]; target = "t"/' \
	-e 's/model = .*/model = { inputs = ( { name = "values"; } ); layers = ( { name = "fc"; type = "linear"; out = 2; } ); };/' \
	images.cfg >table.cfg
sed -e 's/root = "folder"; format = "folder"/root = "texts"; format = "text"/' -e '/^model/d' images.cfg >texts.cfg
cat >>texts.cfg <<'CFG'
model = { inputs = ( { name = "tokens"; }, { name = "lengths"; } );
	layers = ( { type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 4; padding_idx = 0; },
		{ name = "fc"; type = "linear"; out = 2; } ); };
CFG
cp images.cfg folder.cfg
kinds='folder list archive table texts'
declare -A root=([folder]=folder [list]=folder [archive]=archive.tar [table]=table.csv [texts]=texts)

# measure ARGS...: sets $n to the number of samples that eval measures, and $said to the warning or the error
measure() {
	run eval "$@" --json
	said=$(sed 's/^gtrain: //; s/^warning: //' "$tmp/err" | head -n 1)
	n=$(sed -n 's/.*"samples":\([0-9]*\).*/\1/p' "$tmp/out" | head -n 1)
}

# ---- changes: each leaves the data of a kind in new/ -------------------------------------------------------------------------------------
files() { find "$1" -name '*.png' -o -name '*.txt' | sort; }
fresh() { rm -rf new && mkdir new && cp -r folder texts table.csv archive.tar new/; }
pack() { rm -f new/archive.tar && tar -cf new/archive.tar -C new/folder dark light; }
relist() {
	echo 'file,label'
	for f in new/folder/dark/*.png; do echo "dark/${f##*/},dark"; done
	for f in new/folder/light/*.png; do echo "light/${f##*/},light"; done
}
copied() { # a copy of each sample under another name; of each row, the row again
	for f in $(files new/folder) $(files new/texts); do cp "$f" "${f%.*}-copy.${f##*.}"; done
	tail -n +2 table.csv >>new/table.csv
}
renamed() { # every file gets another name; the numbers of rows are written in another way, and their order is another one
	for f in $(files new/folder) $(files new/texts); do mv "$f" "${f%.*}-renamed.${f##*.}"; done
	{ head -n 1 table.csv; tail -n +2 table.csv | sed 's/\.5,/.500,/' | tac; } >new/table.csv
}
removed() { # every second sample
	for f in $(files new/folder | awk 'NR % 2') $(files new/texts | awk 'NR % 2'); do rm "$f"; done
	{ head -n 1 table.csv; tail -n +2 table.csv | awk 'NR % 2'; } >new/table.csv
}
changed() { # every sample of a class gets the content of the next one; every row gets another number
	for c in dark light; do
		for i in $(seq 10 48); do
			cp folder/$c/$((i + 1)).png "new/folder/$c/$i.png"
			cp texts/$c/$((i + 1)).txt "new/texts/$c/$i.txt"
		done
		cp folder/$c/10.png new/folder/$c/49.png
		cp texts/$c/10.txt new/texts/$c/49.txt
	done
	sed 's/\.5,/.75,/' table.csv >new/table.csv
}
added() { # ten new samples of each class
	for c in dark light; do
		for i in $(seq 60 69); do
			image $c "$i" >"new/folder/$c/$i.png"
			text $c "$i" >"new/texts/$c/$i.txt"
		done
	done
	for i in $(seq 60 69); do echo "$i.5,-1.25,dark"; echo "$i.5,2.75,light"; done >>new/table.csv
}

# at KIND: options that name the changed data
at() {
	case $1 in
	table) echo "-s data.train=[\"$PWD/new/table.csv\"]" ;;
	*) echo "-s data.root=$PWD/new/${root[$1]}" ;;
	esac
}

declare -A held
for k in $kinds; do
	"$gtrain" run "$k.cfg" -q -o "run-$k" >/dev/null 2>err || fail "run_$k" "$(head -n 1 err)"
	measure "run-$k" --split valid
	held[$k]=$n
	if [ "${held[$k]}" -gt 8 ] && [ "${held[$k]}" -lt 36 ] && [ -z "$said" ]; then
		pass "unchanged_$k"
	else
		fail "unchanged_$k" "${held[$k]} of 80 samples are held out; said: $said"
	fi
done

# expect NAME GOT WANT SAID PART: compares numbers, and looks for a part in what was said
expect() {
	if [ "$2" != "$3" ]; then
		fail "$1" "measured ${2:-none}, expected $3; said: $4"
	elif ! grep -qF -- "$5" <<<"$4"; then
		fail "$1" "no '$5' in: $4"
	else
		pass "$1"
	fi
}

leaked=0
for change in copied renamed removed changed added; do
	fresh
	$change
	relist >new/folder/list.csv
	pack
	for k in $kinds; do
		v=${held[$k]}
		read -r -a where <<<"$(at "$k")"
		measure "run-$k" --split valid "${where[@]}"
		before=$n
		name=${change}_${k}
		case $change in
		copied)
			expect "$name" "$n" $((2 * v)) "$said" "of the run's 80 samples, 0 are missing and 0 have changed; 80 are new"
			leaked=$((leaked + n - 2 * v)) ;;
		renamed)
			expect "$name" "$n" "$v" "$said" "of the run's 80 samples, 80 are missing and 0 have changed; 80 are new"
			leaked=$((leaked + n - v)) ;;
		removed) # what is left of the samples that were held out
			if [ "$n" -lt "$v" ] && [ "$n" -gt 0 ]; then n=some; fi
			expect "$name" "$n" some "$said" "of the run's 80 samples, 40 are missing and 0 have changed; 0 are new" ;;
		changed) # rows have no name, so that a changed row is a new one
			if [ "$n" -le "$v" ] && [ "$k" != table ]; then n=few; fi
			[ "$k" = table ] && n=few
			want="of the run's 80 samples, 0 are missing and 80 have changed; 0 are new"
			[ "$k" = table ] && want="of the run's 80 samples, 80 are missing and 0 have changed; 80 are new"
			expect "$name" "$n" few "$said" "$want" ;;
		added) # some of the new samples are held out
			if [ "$n" -ge "$v" ] && [ "$n" -lt $((v + 20)) ]; then n='more'; fi
			expect "$name" "$n" more "$said" "of the run's 80 samples, 0 are missing and 0 have changed; 20 are new" ;;
		esac
		# a resumed run says the same, and then measures the same samples, none of which it has trained on
		rm -rf "again-$k" && cp -r "run-$k" "again-$k"
		run resume "again-$k" -q -s train.epochs=3 "${where[@]}"
		text=$(grep -o 'the data has changed since the run read it: of the run.s 80 samples' "$tmp/err" | head -n 1)
		if [ "$rc" = 0 ] && [ -n "$text" ]; then pass "resume_$name"; else fail "resume_$name" "status $rc: $(head -n 2 "$tmp/err")"; fi
		measure "again-$k/latest" --split valid
		if [ "$before" = "$n" ] && [ -z "$said" ]; then
			pass "resume_then_eval_$name"
		else
			fail "resume_then_eval_$name" "$n samples, not $before: $said"
		fi
		case $k in
		table) file=new/table.csv ;;
		texts) file=$(files new/texts | head -n 1) ;;
		*) file=$(files new/folder | head -n 1) ;;
		esac
		gives "predict_$name" 0 out 'dark' predict "run-$k" "$file"
	done
done
echo "# samples trained on and measured as valid: $leaked"
if [ "$leaked" = 0 ]; then pass nothing_leaks; else fail nothing_leaks "$leaked samples"; fi

# a run that was interrupted in an epoch that is now shorter
"$gtrain" run folder.cfg -q -o part -s train.steps=3 >/dev/null 2>&1
fresh
removed
gives shorter_epoch 65 err 'of an epoch, which now has only' resume part -q -s train.steps=0 -s "data.root=$PWD/new/folder"

# every sample that was held out now has the content of one that was trained: there is nothing to measure
fresh
for f in $(files new/folder); do cp "folder/light/$(basename "$f")" "$f"; done
mkdir new/none && cp -r folder/dark folder/light new/none && for f in $(files new/none); do printf x >>"$f"; done
measure run-folder --split valid -s "data.root=$PWD/new/none"
expect all_changed "$n" "${held[folder]}" "$said" "of the run's 80 samples, 0 are missing and 80 have changed; 0 are new"

# a checkpoint of an earlier version has no list: its split is by number, also after a resume
python3 - run-folder/latest old <<'PY' || skip earlier_version 'python3 or libxxhash is missing'
import ctypes, ctypes.util, json, os, re, shutil, sys
of = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0").XXH3_128bits
class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
of.restype, of.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
def digest(b):
    h = of(b, len(b))
    return f"{h.high:016x}{h.low:016x}"
step = os.path.realpath(sys.argv[1])
to = os.path.join(sys.argv[2], os.path.basename(step))
os.makedirs(sys.argv[2])
shutil.copytree(step, to)
data = open(to + "/data.json", "rb").read()
less = re.sub(rb',"samples":\{.*\}\}\n$', b'}\n', data)
assert less != data and json.loads(less)
open(to + "/data.json", "wb").write(less)
text = open(to + "/manifest.json", encoding="ascii").read()
assert digest(data) in text
body = text.replace(digest(data), digest(less)).replace(f'"bytes":{len(data)}', f'"bytes":{len(less)}')
body = body[:-len(',"xxh3":"' + 32 * "0" + '"}\n')]
open(to + "/manifest.json", "w", encoding="ascii").write(f'{body},"xxh3":"{digest(body.encode())}"}}\n')
PY
if [ -d old ]; then
	measure old/step-* --split valid
	expect earlier_version "$n" 20 "$said" 'the checkpoint is of an earlier version, which divided samples by their numbers'
	run resume old -q -s train.epochs=3
	if [ "$rc" = 0 ]; then pass earlier_resumes; else fail earlier_resumes "$(head -n 1 "$tmp/err")"; fi
	measure old/latest --split valid
	if [ "$n" = 20 ] && [ -z "$said" ]; then pass earlier_listed; else fail earlier_listed "$n samples, not 20; said: $said"; fi
	copied
	for c in dark light; do cp folder/$c/*.png new/folder/$c; done
	measure old/latest --split valid -s "data.root=$PWD/new/folder"
	expect earlier_then_copied "$n" 40 "$said" "of the run's 80 samples, 0 are missing"
fi
