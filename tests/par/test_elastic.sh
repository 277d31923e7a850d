#!/bin/bash
# Elastic runs (--nnodes MIN:MAX): a host is lost for good, the run goes on with fewer hosts; a new host joins. The loss curve is that of an
# uninterrupted run, and every sample is seen once an epoch: each row of the table `count` has a weight of its own, which every visit
# multiplies by 0.9999, so that the weights at the end are the numbers of visits.
# Hosts are launchers on 127.0.0.1. With ELASTIC_KILLS=N, hosts are network namespaces (iproute2, veth, gloo), N of them are lost, half by
# SIGKILL and half by a cut cable, and up to four take part; ELASTIC_CFG names another config for the curve,
# and ELASTIC_PARTS one of the two parts, count and curve. The net of the curve has no relu, because rounding would flip units at 0.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
if [ -n "${ELASTIC_KILLS:-}" ] && [ -z "${ELASTIC_INSIDE:-}" ]; then # networks and mounts of this test end with it
	ELASTIC_INSIDE=1 exec unshare -n -m "$0"
fi
kills=${ELASTIC_KILLS:-0} here=$GTRAIN_BUILD/tests/par
cd "$tmp" || exit 1
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >token)
(echo id,y; for i in $(seq 500); do echo "r$i,$((i % 2))e-6"; done) >rows.csv # 502 rows with those of missing and of unknown ids
{
	header='{"row.0.weight":{"dtype":"F32","shape":[502,1],"data_offsets":[0,2008]}}'
	printf '%b%s' "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0" "$header"
	for i in $(seq 502); do printf '\0\0\200?'; done
} >ones.safetensors
cat >count.cfg <<'CFG'
schema = 1;
name = "count";
seed = 3;
threads = 1;
data = { name = "rows"; format = "csv"; train = ["rows.csv"]; target = "y"; batch = 20;
	columns = ( { name = "id"; type = "categorical"; }, { name = "y"; type = "target"; } ); };
model = { inputs = ( { name = "codes"; } ); layers = ( { name = "row"; type = "embeddings"; in = "codes"; embedding_dim = [1]; } ); };
train = { epochs = 1000000; loss = "mse"; optimizer = { type = "sgd"; lr = 0.001; }; };
parallel = { mode = "ddp"; timeout = 2.0; };
checkpoint = { dir = "unused"; every_epochs = 0; every_steps = 300; keep = 2; };
log = { every_steps = 100; };
CFG
cat >curve.cfg <<'CFG'
schema = 1;
name = "curve";
seed = 3;
threads = 1;
data = { name = "synthetic"; samples = 2048; samples_test = 64; batch = 60; classes = 10; };
model = { input = [1, 12, 12]; layers = ( { type = "conv2d"; out = 8; kernel = 3; padding = 1; }, { type = "tanh"; }, { type = "flatten"; },
	{ type = "linear"; out = 64; }, { type = "tanh"; }, { type = "dropout"; p = 0.3; }, { type = "linear"; out = 10; } ); };
train = { epochs = 1000000; eval_every_epochs = 1000000; optimizer = { type = "sgd"; lr = 0.0002; momentum = 0.9; }; };
parallel = { mode = "ddp"; timeout = 2.0; };
checkpoint = { dir = "unused"; every_epochs = 0; every_steps = 300; keep = 2; };
log = { every_steps = 1; };
CFG
[ -z "${ELASTIC_CFG:-}" ] || cp "$ELASTIC_CFG" curve.cfg

# ---- hosts --------------------------------------------------------------------------------------------------------------------
most=2 addr=127.0.0.1 declare_nets=''
if [ "$kills" != 0 ]; then
	[ -e "$GTRAIN_BUILD/lib/gtrain/gloo.so" ] || { skip elastic "built without gloo (libgloo-dev)"; exit 0; }
	mount -t tmpfs none /run && mkdir /run/netns && ip link set lo up && ip link add bridge0 type bridge && ip link set bridge0 up ||
		{ skip elastic "no network namespaces, bridges or iproute2"; exit 0; }
	most=4 addr=10.78.0.1 declare_nets=1
fi
# plug HOST: a network of its own, unless hosts are launchers of one machine
plug() {
	[ -n "$declare_nets" ] || return 0
	ip netns del "h$1" 2>/dev/null
	ip link del "v$1" 2>/dev/null
	ip netns add "h$1" && ip link add "v$1" type veth peer name eth0 netns "h$1" && ip link set "v$1" master bridge0 up &&
		ip -n "h$1" addr add "10.78.0.$(($1 + 1))/24" dev eth0 && ip -n "h$1" link set eth0 up && ip -n "h$1" link set lo up
}
# host R COMMAND...: gtrain COMMAND on host R, in the background; its output is added to R.out
declare -A pid
host() {
	local r=$1 in=()
	shift
	# ranks of hosts with process tables of their own do not share memory
	# shellcheck disable=SC2016
	[ -z "$declare_nets" ] || in=(ip netns exec "h$r" unshare -p -f --mount-proc sh -c '"$@"; exit $?' sh)
	GTRAIN_TEST_MARK=$mark ELASTIC_HOST=$r timeout --foreground 1800 "${in[@]}" "$gtrain" "$@" --nproc "${per:-1}" \
		--nnodes "${nodes:-1:$most}" --node-rank "$r" --master-addr $addr --master-port "$port" --token-file token --no-progress \
		>>"$r.out" 2>&1 &
	pid[$r]=$!
}
# lose R: SIGKILL to all processes of the host
lose() {
	local all
	# shellcheck disable=SC2046
	while all=$(grep -lzs "^ELASTIC_HOST=$1$" $(marked) /dev/null | sed 's,/proc/\([0-9]*\)/.*,\1,') && [ -n "$all" ]; do
		kill -KILL $all 2>/dev/null
		sleep 0.05
	done
	wait "${pid[$1]}" 2>/dev/null
	unset "pid[$1]"
}
# ended R: waits for the end of host R, and sets rc to its status
ended() {
	wait "${pid[$1]}"
	rc=$?
	unset "pid[$1]"
}
# await PATTERN [N [R]]: until host R (0) has printed N (1) lines of this pattern, a minute at most
await() {
	local _
	for _ in $(seq 1200); do
		[ "$(grep -c -- "$1" "${3:-0}.out" 2>/dev/null)" -ge "${2:-1}" ] && return
		sleep 0.05
	done
	return 1
}
formations() { grep -c ' hosts\?, [0-9]* ranks\?, from ' 0.out; }
checkpoint() { # the newest one in d
	readlink d/latest 2>/dev/null
}
await_checkpoint() { # a newer one than $1
	local _
	for _ in $(seq 1200); do
		[ -n "$(checkpoint)" ] && [ "$(checkpoint)" != "$1" ] && return
		sleep 0.05
	done
	return 1
}
# processes launcher|ranks R: of host R
processes() {
	local p kind
	# shellcheck disable=SC2046
	grep -lzs "^ELASTIC_HOST=$2$" $(marked) /dev/null | sed 's,/proc/\([0-9]*\)/.*,\1,' | while read -r p; do
		[ "/proc/$p/exe" -ef "$gtrain" ] || continue
		kind=launcher
		! grep -qz '^GTRAIN_RANK=' "/proc/$p/environ" || kind=ranks
		[ $kind != "$1" ] || echo "$p"
	done
}
# stop: SIGTERM to host 0 ends the run on all hosts; their statuses, in the order of their numbers
stop() {
	local r codes=''
	# shellcheck disable=SC2046
	kill -TERM $(processes launcher 0)
	for r in $(printf '%s\n' "${!pid[@]}" | sort -n); do
		wait "${pid[$r]}"
		codes+="$? "
		unset "pid[$r]"
	done
	echo "$codes" >codes
}

# visits DIR: the numbers of visits of the rows, each once: "VISITS ROWS"
visits() {
	tail -c 2008 "$1/latest/model.safetensors" | od -An -v -tf4 -w4 | awk '{ k = log($1) / log(0.9999); if (k > 0.5) printf "%.0f\n", k }' |
		sort -n | uniq -c | awk '{ print $2, $1 }'
}
# judge NAME CFG OPTIONS...: the run in d is the uninterrupted one of as many epochs on two ranks of one host
judge() {
	local name=$1 cfg=$2 epochs got rest
	shift 2
	rest=$(left)
	[ -z "$rest" ]
	check "${name}_nothing_left" $? "$rest"
	epochs=$(grep -o '"epoch":[0-9]*' d/metrics.jsonl | tail -n 1 | tr -dc 0-9) # a killed rank may have cut the last line
	epochs=$((${epochs:-0} + 1))
	"$gtrain" resume d -s "train.epochs=$epochs" --nproc 2 --no-progress >end.out 2>&1 &&
		"$gtrain" run "$cfg" "$@" -s "train.epochs=$epochs" --nproc 2 -o whole --no-progress >>end.out 2>&1
	check "${name}_ends" $? "$(tail -n 3 end.out)"
	if [ "$cfg" = count.cfg ]; then
		got=$(visits d)
		[ "$got" = "$epochs 500" ]
		check "${name}_samples" $? "expected $epochs visits of 500 rows, got (visits, rows): $got"
		cmp -s d/latest/model.safetensors whole/latest/model.safetensors
		check "${name}_weights" $? "the weights differ from those of the uninterrupted run"
		got="$got, samples seen twice or never: $(visits d | awk -v e="$epochs" '$1 != e { n += $2 } END { print n + 0 }')"
	else
		got=$("$here/tool_same" -l "${CURVE_LIMIT:-1e-5}" whole d)
		check "${name}_curve" $? "$got"
	fi
	echo "# elastic: $name: $epochs epochs, $(formations) attempts, $(grep -c 'is lost' 0.out) losses: $got"
	rm -rf d whole ./?.out
}
check() {
	if [ "$2" = 0 ]; then pass "elastic_$1"; else fail "elastic_$1" "$3"; fi
}

# Hosts that cannot take part: the run goes on without them.
try_strangers() {
	local before
	before=$(formations)
	host 1 run count.cfg -o d "${init[@]}" -s train.optimizer.lr=0.002
	ended 1
	[ $rc = 64 ] && grep -q '^gtrain: host 0 refuses this host: its config or its version of gtrain differs' 1.out
	check refuses_config $? "$rc $(cat 1.out)"
	: >1.out
	nodes=1:3 host 1 run count.cfg -o d "${init[@]}"
	ended 1
	[ $rc = 64 ] && grep -q '^gtrain: host 0 refuses this host: its --nnodes differs .* the maximum is 2' 1.out
	check refuses_maximum $? "$rc $(cat 1.out)"
	: >1.out
	per=2 host 1 run count.cfg -o d "${init[@]}"
	ended 1
	[ $rc = 64 ] && grep -q '^gtrain: host 0 refuses this host: it has 2 ranks, but host 0 has 1' 1.out
	check refuses_ranks $? "$rc $(cat 1.out)"
	: >1.out
	[ "$(formations)" = "$before" ]
	check refused_hosts_disturb_nobody $? "$(cat 0.out)"
	host 1 run count.cfg -o elsewhere "${init[@]}"
	ended 1
	[ $rc = 66 ] && grep -q '^gtrain: elsewhere: there is no checkpoint of step [0-9]*, from which host 0 continues' 1.out
	check needs_shared_directory $? "$rc $(cat 1.out)"
	: >1.out
	await 'host 1 (.*) has left; 1 host, 1 rank' && await_checkpoint "$(checkpoint)"
	check goes_on_without_it $? "$(grep -v ^epoch 0.out)"
	want='2 1 1 2 '
}
# Host 0 is lost: the other one waits for a new launcher of host 0, which resumes the run.
lose_host0() {
	lose 0
	: >0.out
	host 0 resume d
	await '^host 1 (.*) joins; 2 hosts, 2 ranks, from the checkpoint of step [0-9]' && await_checkpoint "$(checkpoint)"
	check host0_comes_back $? "$(cat 0.out 1.out)"
	want='2 1 1 2 2 '
}

# ---- one loss and one join ----------------------------------------------------------------------------------------------------
if [ "$kills" = 0 ]; then
	for cfg in count curve; do
		init=()
		[ $cfg = curve ] || init=(--init ones.safetensors)
		want='2 1 2 '
		host 0 run "$cfg.cfg" -o d "${init[@]}" --max-restarts 1
		host 1 run "$cfg.cfg" -o d "${init[@]}"
		await_checkpoint ''
		lose 1
		await '^host 1 (.*) is lost; 1 host, 1 ranks\?, from the checkpoint of step [0-9]'
		check ${cfg}_goes_on $? "$(cat 0.out)"
		await_checkpoint "$(checkpoint)"
		[ $cfg = curve ] || try_strangers
		before=$(formations)
		host 1 run "$cfg.cfg" -o d "${init[@]}"
		await ' hosts\?, [0-9]* ranks\?, from ' $((before + 1)) && grep ' ranks\?, from ' 0.out | tail -n 1 |
			grep -q '^host 1 (.*) joins; 2 hosts, 2 ranks, from the checkpoint of step [0-9]'
		check ${cfg}_joins $? "$(cat 0.out)"
		await_checkpoint "$(checkpoint)"
		if [ $cfg = count ]; then
			lose_host0
		else # the signal arrives during the back-off after a failure of host 0
			# shellcheck disable=SC2046
			kill -KILL $(processes ranks 0)
			await 'restart 1 of 1'
			want+='(2 )?' # a loaded machine may restart the ranks before the signal
		fi
		stop
		[ "$(cat codes)" = '143 143 ' ]
		check ${cfg}_stopped $? "$(cat codes; tail -n 2 ?.out)"
		if [ $cfg = count ]; then # ranks of a later attempt also print the options of the hosts
			again="--nproc 1 --nnodes 1:2 --master-addr $addr --master-port $port --token-file token"
			grep -q "^ended early .* resume d $again\` continues" 0.out
			check how_to_continue $? "$(cat 0.out)"
		fi
		[[ $(grep -o '"ranks":[0-9]*' d/metrics.jsonl | tr -dc '0-9\n' | tr '\n' ' ') =~ ^$want$ ]]
		check ${cfg}_ranks $? "$(grep -o '"ranks":[0-9]*' d/metrics.jsonl | tr '\n' ' ')"
		judge $cfg $cfg.cfg "${init[@]}"
	done
	exit
fi

# ---- many losses --------------------------------------------------------------------------------------------------------------
RANDOM=29
for cfg in ${ELASTIC_PARTS:-count curve}; do
	init=()
	[ $cfg = curve ] || init=(--init ones.safetensors)
	for r in 0 1 2 3; do plug $r && host $r run "$cfg.cfg" -o d "${init[@]}"; done
	await_checkpoint ''
	there=(1 2 3) bad=''
	for ((i = 0; i < kills; i++)); do
		sleep "$((RANDOM % 2)).$((RANDOM % 10))"
		k=$((RANDOM % ${#there[@]})) before=$(formations)
		r=${there[k]}
		there=("${there[@]:0:k}" "${there[@]:k+1}")
		if ((i % 2)); then ip link set "v$r" down; else lose "$r"; fi
		await ' hosts\?, [0-9]* ranks\?, from ' $((before + 1)) || bad="no attempt after the loss $i: $(tail -n 3 0.out)"
		((i % 2)) && lose "$r"
		if ((i % 3 == 2)); then # a host for each that was lost
			before=$(grep -c "$most hosts, " 0.out)
			for r in 1 2 3; do
				[ -n "${pid[$r]:-}" ] || { plug "$r" && host "$r" run "$cfg.cfg" -o d "${init[@]}"; }
			done
			there=(1 2 3)
			# a host that has failed before its attempt had a checkpoint waits some seconds
			await "$most hosts, " $((before + 1)) || bad="no attempt after the loss $i with new hosts: $(tail -n 3 0.out)"
		fi
		[ -z "$bad" ] || break
	done
	[ -z "$bad" ]
	check ${cfg}_kills $? "$bad"
	await_checkpoint "$(checkpoint)"
	stop
	[[ $(cat codes) =~ ^(143 )+$ ]]
	check ${cfg}_stopped $? "$(cat codes; tail -n 2 ?.out)"
	echo "# elastic: $cfg: hosts of each attempt: $(grep -o '[0-9]* hosts\?, [0-9]* ranks\?, from' 0.out | cut -d ' ' -f 1 | tr '\n' ' ')"
	judge "${cfg}_$kills" $cfg.cfg "${init[@]}"
done
