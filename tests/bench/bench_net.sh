#!/bin/bash
# All-reduce and training between two hosts: two network namespaces that a veth pair joins, with a token bucket of 1 or 10 Gbit/s at both
# ends. Prints the bus bandwidth, 2 (n - 1) / n * bytes / seconds, of gtrain's all-reduce and of gloo's own ring, in alternation; then, for
# a training, the step time and the share of communication that overlaps with computation. Needs root, ip, tc, a C++ compiler and gloo.
# Usage: bench_net.sh [BUILD [train]]    train: only the training
#        BASE=GTRAIN: another build of the program, which trains in alternation with this one
set -eu
build=$(realpath "${1:-build}")
here=$(dirname "$(realpath "$0")")
dir=$(mktemp -d)
a=gtnet-a$$ b=gtnet-b$$
clean() {
	ip netns del "$a" 2>/dev/null || true
	ip netns del "$b" 2>/dev/null || true
	rm -rf "$dir"
}
trap clean EXIT
c++ -std=c++17 -O2 "$here/gloo_ring.cc" -lgloo -pthread -o "$dir/ring"
for n in "$a" "$b"; do
	ip netns add "$n"
	ip -n "$n" link set lo up
done
ip link add va netns "$a" type veth peer name vb netns "$b"
ip -n "$a" addr add 10.78.0.1/24 dev va
ip -n "$b" addr add 10.78.0.2/24 dev vb
ip -n "$a" link set va up
ip -n "$b" link set vb up
limit() { # gbit/s; 0: no limit
	for v in "$a va" "$b vb"; do
		tc -n "${v% *}" qdisc del dev "${v#* }" root 2>/dev/null || true
		[ "$1" = 0 ] || tc -n "${v% *}" qdisc add dev "${v#* }" root tbf rate "$1gbit" burst 256kb latency 50ms
	done
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
quietest() { sort -g | head -n 1; }

if [ "${2:-}" != train ] && command -v iperf3 >/dev/null; then
	ip netns exec "$b" iperf3 -s >/dev/null & server=$!
	sleep 0.5
	for rate in 1 10 0; do
		limit $rate
		ip netns exec "$a" iperf3 -c 10.78.0.2 -t 3 -f m --bidir |
			awk -v r="$rate" '/receiver/ { for (i = 1; i <= NF; i++) if ($i == "Mbits/sec") s = s " " $(i - 1) }
				END { print "one TCP connection, both directions at once, " (r ? r " Gbit/s" : "no limit") ":" s " Mbit/s" }'
	done
	kill $server
fi

rates="1 10"
[ "${2:-}" != train ] || rates=''
for rate in $rates; do
	limit "$rate"
	for mib in 1 4 16 64; do
		bytes=$((mib << 20)) times=$((rate * 128 / mib))
		[ "$rate" = 10 ] && times=$((times / 2))
		[ $times -ge 4 ] || times=4
		: >"$dir/own"
		: >"$dir/ring.out"
		for i in 1 2 3 4 5; do
			"$build/tests/bench/bench_net" $bytes $times "$a=10.78.0.1" "$b=10.78.0.2" >>"$dir/own"
			mkdir "$dir/store$rate.$mib.$i"
			ip netns exec "$b" "$dir/ring" 1 2 10.78.0.2 "$dir/store$rate.$mib.$i" $bytes $times &
			ip netns exec "$a" "$dir/ring" 0 2 10.78.0.1 "$dir/store$rate.$mib.$i" $bytes $times >>"$dir/ring.out"
			wait $!
		done
		awk -v r="$rate" -v m=$mib -v own="$(median <"$dir/own")" -v ring="$(median <"$dir/ring.out")" \
			-v best="$(quietest <"$dir/own")" -v ring_best="$(quietest <"$dir/ring.out")" '
			function percent(s) { return sprintf("%.1f %%", 100 * m * 1048576 * 8 / 1e9 / s / r) }
			END { print r " Gbit/s, " m " MiB: gtrain " percent(own) " of the link (best run " percent(best) "), ring of gloo " \
				percent(ring) " (best run " percent(ring_best) ")" }' </dev/null
	done
done

# ---- a training ----------------------------------------------------------------------------------------------------------------------
cat >"$dir/net.cfg" <<'CFG'
schema = 1;
name = "net";
seed = 1;
threads = 1;
data = { name = "fashion-mnist"; batch = 512; };
model = { input = [1, 28, 28]; layers = (
	{ type = "flatten"; }, { type = "linear"; out = 1024; }, { type = "relu"; }, { type = "linear"; out = 1024; },
	{ type = "relu"; }, { type = "linear"; out = 1024; }, { type = "relu"; }, { type = "linear"; out = 10; } ); };
train = { steps = 25; eval_every_epochs = 0; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
parallel = { mode = "ddp"; bucket_mb = 2.0; };
log = { every_steps = 1; };
CFG
umask 077
od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$dir/token"
export OMP_NUM_THREADS=1
host() { # namespace, number, program, options; a PID namespace of its own, so that the ranks do not share memory
	local netns=$1 node=$2 program=$3
	shift 3
	ip netns exec "$netns" unshare -p -f --mount-proc "$program" run "$dir/net.cfg" -v --no-progress --nproc 1 --nnodes 2 \
		--node-rank "$node" --master-addr 10.78.0.1 --token-file "$dir/token" -o "$dir/run.$node" "$@" >"$dir/log.$node" 2>&1
}
train() { # name, program, options
	local name=$1
	shift
	rm -rf "$dir"/run.*
	host "$b" 1 "$@" &
	host "$a" 0 "$@" || { cat "$dir"/log.*; exit 1; }
	wait $!
	sed -n 's/.*"event":"train".*"time":\([0-9.]*\).*/\1/p' "$dir/run.0/metrics.jsonl" |
		awk 'NR > 6 { print $1 - last } { last = $1 }' | median >>"$dir/step.$name"
	grep -o 'communication takes.*' "$dir/log.0" >>"$dir/overlap.$name" || true
}
limit 1
for i in 1 2 3 4 5; do
	[ -z "${BASE:-}" ] || train base "$BASE"
	train f32 "$build/bin/gtrain"
	train bf16 "$build/bin/gtrain" -s parallel.compress=bf16
done
for name in base f32 bf16; do
	[ -e "$dir/step.$name" ] || continue
	echo "training at 1 Gbit/s, $name: $(median <"$dir/step.$name") s a step (best run $(quietest <"$dir/step.$name"))"
	sort "$dir/overlap.$name" 2>/dev/null | sed 's/^/    /'
done
