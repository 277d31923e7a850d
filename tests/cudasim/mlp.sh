# shellcheck shell=bash
# Sourced by the tests of the kernel for whole windows of a multilayer perceptron (mlp.steps): a small net, runs of it on the host's CUDA
# runtime, and comparisons of two runs. Sets tmp.
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_needed "$(basename "$0" .sh)"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
head='schema = 1; name = "net"; seed = 3; reproducible = "run"; log = { every_steps = 1; };'
data='name = "synthetic"; batch = 32; classes = 4; samples = 500; samples_test = 64;' # 16 steps an epoch, the last one of 20 samples
net() { # INPUT OUT...: a flatten, linear layers and relus
	local i=$1 list='{ type = "flatten"; }' n=1
	shift
	for out in "$@"; do
		list="$list, { name = \"fc$n\"; type = \"linear\"; out = $out; }"
		[ $n = $# ] || list="$list, { type = \"relu\"; }"
		n=$((n + 1))
	done
	echo "model = { input = $i; layers = ( $list ); };"
}
echo "$head data = { $data }; $(net '[3, 4, 4]' 22 13 4) train = { epochs = 12; optimizer = { type = \"sgd\"; lr = 0.05; };
	schedule = { type = \"cosine\"; }; };" >"$tmp/net.cfg"
losses() { sed -nE 's/.*"event":"(train|eval)","step":([0-9]+).*"loss":([^,}]+).*/\1 \2 \3/p' "$1/metrics.jsonl"; }
digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" 2>/dev/null | sha256sum | cut -d' ' -f1; }
train() { # DIR CONFIG ARGS...
	local dir=$1 cfg=$2
	shift 2
	rm -rf "$dir"
	"$sim/bin/gtrain" run "$tmp/$cfg.cfg" --device cuda --no-progress -o "$dir" "$@" >"$dir.out" 2>&1
	echo $? >"$dir.rc"
}
ok() { # NAME WHY: ok where WHY is empty
	if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $2"; fi
}
ended() { [ "$(cat "$1.rc" "$2.rc")" = $'0\n0' ] || echo "status $(cat "$1.rc" "$2.rc" | tr '\n' ' '): $(tail -qn 1 "$1.out" "$2.out")"; }
same() { # NAME A B: the same bits
	local why
	why=$(ended "$2" "$3")
	[ -n "$why" ] || cmp -s <(losses "$2") <(losses "$3") || why="the curves differ: $(diff <(losses "$2") <(losses "$3") | sed -n 2p)"
	[ -n "$why" ] || [ "$(digest "$2")" = "$(digest "$3")" ] || why='the weights differ'
	ok "$1" "$why"
}
numbers() { # DIR: the weights
	local f=$1/latest/model.safetensors skip
	skip=$(od -An -tu8 -N8 "$f")
	od -An -v -w4 -tf4 -j$((8 + skip)) "$f"
}
# close NAME A B LOSS WEIGHT: at most these differences; what is compared is neither empty nor equal to the last bit, or A is not the kernel
close() {
	local why
	rm -f "$tmp/loss" "$tmp/weight"
	why=$(ended "$2" "$3")
	[ -n "$why" ] || why=$(paste -d' ' <(losses "$2") <(losses "$3") | awk -v most="$4" '{ d = $3 - $6; if (d < 0) d = -d
		if (d > m) m = d; n++ }
		END { printf "# %d losses, worst difference %.3g\n", n, m >"/dev/stderr"
		if (n < 4 || !(m <= most)) print "losses differ by " m }' \
		2>"$tmp/loss")
	[ -n "$why" ] || why=$(paste -d' ' <(numbers "$2") <(numbers "$3") | awk -v most="$5" '{ d = $1 - $2; if (d < 0) d = -d
		if (d > m) m = d; n++ }
		END { printf "# %d weights, worst difference %.3g\n", n, m >"/dev/stderr"
		if (n < 50 || !(m <= most)) print "weights differ by " m
		if (m == 0) print "equal bits: is it the same kernel?" }' 2>"$tmp/weight")
	ok "$1" "$why"
	cat "$tmp/loss" "$tmp/weight" 2>/dev/null | sed "s/#/# $1:/"
}
diverges() { # NAME SAYS ARGS...
	local name=$1 says=$2 why=
	shift 2
	for k in true false; do
		CUDASIM_SMS=3 train "$tmp/$name-$k" net -s window_kernel=$k -s window=64 -s checkpoint.every_steps=1 "$@"
		[ "$(cat "$tmp/$name-$k.rc")" = 3 ] || why="$why status $(cat "$tmp/$name-$k.rc")"
		grep -q "$says" "$tmp/$name-$k.out" || why="$why $(grep gtrain "$tmp/$name-$k.out" | tail -n 1)"
	done
	cmp -s <(grep diverged "$tmp/$name-true.out") <(grep diverged "$tmp/$name-false.out") || why="$why other words than the list"
	cmp -s <(losses "$tmp/$name-true" | wc -l) <(losses "$tmp/$name-false" | wc -l) || why="$why other steps than the list"
	ok "diverges_$name" "$why"
}
