#!/bin/bash
# The commands of gtrain-tutorial(7), in its order, in a directory with the data that it speaks of. Runs are shortened to two epochs.
# shellcheck disable=SC2015
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || { skip tutorial 'python3 is not installed'; exit 0; }
here=$(cd "$(dirname "$0")" && pwd)
cd "$tmp" || exit 1
python3 "$here/make_images.py" photos 15 32 daisy rose tulip && python3 "$here/make_images.py" some 1 32 one two
mkdir new && mv some/one/0.png new/one.png && mv some/two/0.png new/two.png
python3 - <<'PY'
import os, random
r = random.Random(1)
rows = [(n := r.randint(1, 7), n * 22 + r.randint(0, 30), r.choice(["Ulm", "Bonn", "Jena"])) for _ in range(120)]
open("houses.csv", "w").write("rooms,area,town,price\n" + "".join(f"{n},{a},{t},{a * 2000 + r.randint(0, 9999)}\n" for n, a, t in rows))
open("offers.csv", "w").write("rooms,area,town\n4,100,Ulm\n2,50,Jena\n")
for name, words in {"good": "fine great lovely", "bad": "dull awful boring"}.items():
    os.makedirs("reviews/" + name)
    for i in range(20):
        open(f"reviews/{name}/{i}.txt", "w").write("the film was " + " ".join(r.choices(words.split(), k=6)))
PY

fashion=
for dir in "${GTRAIN_DATA:-/nowhere}" "${XDG_CACHE_HOME:-$HOME/.cache}/gtrain" /usr/share/datasets; do
	[ -d "$dir/fashion-mnist" ] && fashion=$dir
done
gtrain() {
	local more=()
	case $1:${2-} in
	run:fmnist_mlp) more=(-s data.limit=2000 -s train.epochs=2) ;;
	run:* | sweep:*) more=(-s train.epochs=2 --device cpu) ;;
	lr-find:*) more=(--steps 12 --device cpu) ;;
	esac
	"$gtrain" "$@" "${more[@]}"
}

n=0 last=
while IFS= read -r line; do
	n=$((n + 1))
	name=$(tr -cs 'a-z0-9\n' _ <<<"$line")
	if [[ $line == *fmnist?mlp* && $line != *configs* && -z $fashion ]]; then
		skip "$name" 'FashionMNIST is not installed'
		continue
	fi
	(eval "$line") >"$tmp/out" 2>"$tmp/err" </dev/null && [ -s "$tmp/out" -o -s "$tmp/err" ] && pass "$name" ||
		fail "$name" "$line: status $?: $(tail -n 2 "$tmp/err")"
	last=$line
done < <(sed -n 's/^\$ //p' "$src/man/gtrain-tutorial.7")
[ "$n" -ge 20 ] && [ -n "$last" ] && pass commands || fail commands "$n commands in the page"
