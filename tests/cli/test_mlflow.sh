#!/bin/bash
# Runs at an MLflow server: what it gets, a resumed run, a server that is slow, dies, answers nonsense or loses answers, credentials,
# hostile files; and MLflow itself, if MLFLOW_PYTHON names a python3 that has it. No failure of a server may cost training time or a
# metric.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
python=$(command -v python3) || { skip mlflow 'python3 is not installed'; exit 0; }
cd "$tmp" || exit 1
unset MLFLOW_TRACKING_TOKEN MLFLOW_TRACKING_USERNAME MLFLOW_TRACKING_PASSWORD http_proxy https_proxy all_proxy
tiny_config
end_servers() { # those that still run
	local p
	for p in $(jobs -p); do kill -9 "$p"; done
} 2>/dev/null
trap 'end_servers; rm -rf "$tmp"' EXIT

# serve DIR [PORT]: starts the server with the home DIR; its address in $uri, its process in $server
serve() {
	mkdir -p "$1"
	rm -f "$1/port"
	"$python" "$src/tests/cli/fake_mlflow.py" "$@" 2>>"$1/log" &
	server=$!
	wait_for [ -s "$1/port" ]
	uri=http://127.0.0.1:$(cat "$1/port")
}
stop() { kill -9 "$server"; wait "$server" 2>/dev/null; }
mode() { if [ -n "$2" ]; then echo "$2" >"$1/mode"; else rm -f "$1/mode"; fi; }
train() { # OUT ARGS...
	local out=$1
	shift
	run run tiny.cfg --device cpu -q --no-progress -o "$out" -s "log.mlflow.uri=$uri" "$@"
}
# complete NAME HOME RUN [N]: the server has run N (default: the only one) with every value of the log of RUN, once, and its state
cat >complete.py <<'PY'
import json, sys
home, run, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
runs = list(json.load(open(home + "/runs.json"))["runs"].values())
r = runs[number]
scores = ["loss", "acc", "top5"]
expected, status = set(), "FAILED"
for e in map(json.loads, open(run + "/metrics.jsonl")):
    group = {"train": "train", "epoch": "train_epoch"}.get(e["event"], e.get("split"))
    if group:
        for k in scores + (["lr", "samples_per_s"] if group == "train" else []):
            if e[k] is not None:  # top5 of four classes
                expected.add((f"{group}/{k}", e["step"], round(1000 * e["time"]), e[k]))
    if e["event"] == "end":
        status = "FINISHED" if e["status"] in ("ok", "early stop") else "FAILED" if "code" in e else "KILLED"
        if "best" in e:
            b = e["best"]
            expected.add(("best/" + b["metric"], b["step"], round(1000 * e["time"]), b["value"]))
got = [tuple(m) for m in r["metrics"]]
assert len(set(got)) == len(got), "a metric arrived twice"
assert expected <= set(got), f"{len(expected - set(got))} of {len(expected)} values are missing: {sorted(expected - set(got))[:3]}"
if len(sys.argv) < 5:
    assert len(got) == len(expected), f"{len(set(got) - expected)} values too many: {sorted(set(got) - expected)[:3]}"
assert r["info"]["status"] == status, r["info"]
assert r["params"]["train.optimizer.lr"] == "0.01" and r["params"]["train.optimizer.type"] == "sgd", r["params"]
assert not any(k.startswith(("log.", "checkpoint.")) for k in r["params"])
PY
complete() {
	local name=$1 why
	shift
	if why=$("$python" complete.py "$1" "$2" "${3:-0}" ${4:+"$4"} 2>&1); then pass "$name"
	else fail "$name" "$(tail -n 1 <<<"$why") $(cat err)"; fi
}
ask() { # HOME EXPRESSION: a Python expression about the last run r and all runs
	"$python" -c "import json, sys
runs = list(json.load(open(sys.argv[1] + '/runs.json'))['runs'].values()); r = runs[-1]
print(($2))" "$1"
}
check() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got '$2', expected '$3'; $(cat err)"; fi; }

# ---- a run, and its continuation --------------------------------------------------------------------------------------------------------
serve a
train a/run -s 'checkpoint.best.metric="test/acc"' -s 'log.mlflow.experiment="my first & last/experiment"'
complete run a a/run
check silent "$(cat err)" ''
check name "$(ask a 'r["info"]["run_name"], r["tags"]["mlflow.note.content"][:5]')" "('tiny (run)', 'tiny:')"
check files "$(ask a 'sorted(r["files"])')" "['config.cfg', 'model/config.cfg', 'model/model.safetensors']"
check model_bytes "$(ask a 'r["files"]["model/model.safetensors"]')" "$(stat -c %s a/run/best/model.safetensors)"
run resume a/run -q --no-progress -s train.epochs=4
complete resumed a a/run 0 more
check same_run "$(ask a 'len(runs), r["params"]["train.epochs"], r["tags"]["changed.train.epochs"]')" "(1, '2', '4')"
requests=$(wc -l <a/requests)
gives track_again 0 err 'a/run: sent 0 events; http://127.0.0.1' track a/run
check nothing_again "$(($(wc -l <a/requests) - requests))" 2 # the run's parameters, and the tag of the changed one
gives track_json 0 out '"sent":0,"left":0,"complete":true}' track a/run --json
check going_back "$(run resume a/run --from 16 -q --no-progress; echo "$rc")" 0
complete going_back_log a a/run 0 more
train a/ranks --nproc 2 -s 'parallel.mode="ddp"'
complete ranks a a/ranks 1
train a/threads --nproc 2 -s 'parallel.mode="dp"'
complete threads a a/threads 2
train a/failed -s train.optimizer.lr=1e38 -s train.epochs=50
check failed "$rc $(ask a 'r["info"]["status"]')" '3 FAILED'
run run tiny.cfg --device cpu -q --no-progress -o a/later
gives later 0 err 'a/later: sent 2' track a/later a/run -s "log.mlflow.uri=$uri"
complete later_run a a/later 4
gives no_server 78 err 'log.mlflow.uri: expected the address of an MLflow server, got ""; add -s log.mlflow.uri=' track a/later
gives one_of_two 66 err 'nothing: expected the directory of a run' track nothing a/run
run run tiny.cfg --smoke --device cpu -s "log.mlflow.uri=$uri"
check not_by_smoke "$rc $(ask a 'len(runs)')" '0 5'

# ---- servers that are away, slow, or wrong ----------------------------------------------------------------------------------------------
missed='did not get [0-9]* events: .*; .gtrain track [a-z/0-9_=]*\( -s log.mlflow.uri=[^ ]*\)*. sends these events'
( # beside the next tests, because an attempt waits some seconds for the next
	mkdir hostile && cd hostile || exit 1
	tmp=$PWD
	cp ../tiny.cfg ../complete.py .
	trap end_servers EXIT
	for m in status=500 status=503 text=garbage text=list text=deep text=nul text=types text=path text=long text=empty; do
		name=${m/=/_}
		serve "b$name"
		mode "b$name" "$m"
		run run tiny.cfg --device cpu -q --no-progress -o "b$name/run"
		run track "b$name/run" -s "log.mlflow.uri=$uri" # several attempts
		if [ "$rc" = 74 ] && grep -q "$missed" err &&
			grep -qF " -s log.mlflow.uri=$uri\`" err && ! grep -q $'\x1b\|\xc2\x9b\|\xe2\x80\xae' err; then pass "$name"
		else fail "$name" "status $rc: $(cat err)"; fi
		mode "b$name" ''
		run track "b$name/run" -s "log.mlflow.uri=$uri"
		complete "${name}_later" "b$name" "b$name/run"
		stop
	done
) 2>/dev/null &
hostile=$!
for m in status=401 status=404 status=302; do
	serve "c$m"
	mode "c$m" $m
	train "c$m/run"
	if [ "$rc" = 0 ] && grep -q "$missed" err; then pass "refused_${m/=/_}"; else fail "refused_${m/=/_}" "status $rc: $(cat err)"; fi
	stop
done
uri=http://127.0.0.1:1
start=$SECONDS
train d/run
if [ "$rc" = 0 ] && grep -q "$missed" err && [ $((SECONDS - start)) -lt 40 ]; then pass away; else fail away "status $rc: $(cat err)"; fi
serve d
run track d/run -s "log.mlflow.uri=$uri"
complete away_later d d/run

# a reply that is lost: no second run, no second metric
for lost in runs/create runs/log-batch experiments/create; do
	serve "e$lost"
	mode "e$lost" "lose=$lost"
	train "e$lost/run"
	complete "lost_${lost//\//_}" "e$lost" "e$lost/run"
	check "one_run_after_lost_${lost//\//_}" "$(ask "e$lost" 'len(runs)')" 1
	stop
done

# killed in the middle of a run, and back before its end
serve f
port=$(cat f/port)
slowly=(-s train.eval_every_epochs=100 -s checkpoint.every_epochs=0 -s log.every_steps=2000)
long=(-s data.samples=25600 -s train.epochs=500 "${slowly[@]}")
train f/run "${long[@]}" &
training=$!
wait_for grep -qs log-batch f/requests
stop
sleep 3
serve f "$port"
wait $training
complete killed_in_the_middle f f/run
wait $hostile

# credentials: a token, a user and a password; never in a file or a message
serve g
mode g 'auth=Bearer_sesame-token'
MLFLOW_TRACKING_TOKEN=sesame-token train g/token
complete token g g/token
mode g "auth=Basic_$(printf 'me:sesame-word' | base64)"
MLFLOW_TRACKING_USERNAME=me MLFLOW_TRACKING_PASSWORD=sesame-word train g/basic
complete password g g/basic 1
MLFLOW_TRACKING_TOKEN=sesame-wrong train g/wrong
if [ "$rc" = 0 ] && grep -q 'status 401' err && ! grep -rq sesame g/token g/basic g/wrong err; then pass secrets
else fail secrets "$(grep -rl sesame g err) $(cat err)"; fi
mode g 'artifacts=s3://bucket'
train g/s3
complete other_store g g/s3 2
if grep -q 'MLflow stores the files of this run at s3://bucket/' err; then pass other_store_said
else fail other_store_said "$(cat err)"; fi

# hostile files in the run directory, and a run that the server no longer has
train g/state
for text in '{}' 'x' '{"uri":7}' '{"run_id":"../../x"}'; do
	echo "$text" >g/state/mlflow.json
	run track g/state
	if [ "$rc" = 65 ] && grep -q 'mlflow.json.*remove the file' err; then pass "state $text"
	else fail "state $text" "status $rc: $(cat err)"; fi
done
rm g/state/mlflow.json
run track g/state
sed -i 's/"run_id":"[0-9a-f]*"/"run_id":"ffff"/' g/state/mlflow.json
gives deleted 74 err 'the server no longer has the run ffff; remove g/state/mlflow.json' track g/state
printf '{"event":"train","step":1,"loss":1' >>g/token/metrics.jsonl
sed -i '3s/.*/nonsense \x1b[31m/' g/token/metrics.jsonl
rm g/token/mlflow.json
gives damaged_log 0 err 'g/token: sent 2' track g/token
stop
bad() { # NAME URI TEXT
	run check tiny.cfg -s "log.mlflow.uri=\"$2\""
	if [ "$rc" = 78 ] && grep -qF "$3" err; then pass "$1"; else fail "$1" "status $rc: $(cat err)"; fi
}
bad scheme ftp://host 'log.mlflow.uri: expected an address such as "http://127.0.0.1:5000", got "ftp://host"'
bad no_host http:// 'expected an address such as'
bad user http://u:p@host/x 'expected an address without user and password'
run run tiny.cfg -q --device cpu -s log.mlflow.uri=http://h -s 'checkpoint.dir=""'
if [ "$rc" = 78 ] && grep -q 'log.mlflow.uri: expected "" without checkpoint.dir' err; then pass no_directory
else fail no_directory "status $rc: $(cat err)"; fi

# a run that is killed: the process beside it sends the rest and ends
serve h
endless=(-s train.epochs=1000000 -s train.eval_every_epochs=0 -s checkpoint.every_epochs=0 -s log.every_steps=1000)
"$gtrain" run tiny.cfg --device cpu -q --no-progress -o h/run -s "log.mlflow.uri=$uri" "${endless[@]}" &
pid=$!
wait_for grep -qs log-batch h/requests
kill -9 $pid
wait $pid 2>/dev/null
wait_for none_of_ours 'track --follow.* h/run'
complete killed_run h h/run
stop

# ---- ten seconds an answer: the time of training is that of a run without a server ------------------------------------------------------
seconds() { tail -n 1 "$1/metrics.jsonl" | sed 's/.*"seconds":\([0-9.e+-]*\).*/\1/'; }
for n in 1 2 3; do # on a loaded machine, either run may be the slower one
	serve i$n
	mode i$n sleep=10
	run run tiny.cfg --device cpu -q --no-progress -o i$n/alone "${long[@]}"
	train i$n/run "${long[@]}"
	alone=$(seconds i$n/alone) with=$(seconds i$n/run)
	[ "$rc" != 0 ] || awk -v a="$alone" -v b="$with" 'BEGIN { exit b < 1.3 * a + 0.5 }' || break
	[ $n = 3 ] || stop
done
echo "# 10 s an answer: training took $with s, $alone s without a server"
if [ "$rc" = 0 ] && awk -v a="$alone" -v b="$with" 'BEGIN { exit !(b < 1.3 * a + 0.5) }'; then pass slow_server
else fail slow_server "$with s with the server, $alone s without: $(cat err)"; fi
mode "i$n" ''
run track "i$n/run"
complete slow_server_later "i$n" "i$n/run"
stop

# ---- MLflow itself: killed in the middle of a run, and back before its end ---------------------------------------------------------------
if [ -z "${MLFLOW_PYTHON-}" ]; then
	skip real_mlflow 'MLFLOW_PYTHON names no python3 with the package mlflow'
	exit 0
fi
cat >real.py <<'PY'
import json, sys, urllib.parse, urllib.request
uri, run = sys.argv[1:]
state = json.load(open(run + "/mlflow.json"))
def get(call, **query):
    return json.load(urllib.request.urlopen(f"{uri}/api/2.0/mlflow/{call}?{urllib.parse.urlencode(query)}"))
r = get("runs/get", run_id=state["run_id"])["run"]
assert r["info"]["status"] == "FINISHED" and r["info"]["run_name"].startswith("tiny ("), r["info"]
assert {"key": "train.optimizer.lr", "value": "0.01"} in r["data"]["params"]
expected, got = {}, {}
for e in map(json.loads, open(run + "/metrics.jsonl")):
    group = {"train": "train", "epoch": "train_epoch"}.get(e["event"], e.get("split"))
    for k in ("loss", "acc") if group else ():
        expected.setdefault(f"{group}/{k}", []).append((e["step"], e[k]))
for k in expected:
    token = {}
    while token is not None:
        page = get("metrics/get-history", run_id=state["run_id"], metric_key=k, max_results=20000, **token)
        got.setdefault(k, []).extend((m["step"], m["value"]) for m in page["metrics"])
        token = {"page_token": page["next_page_token"]} if page.get("next_page_token") else None
for k in expected:
    assert sorted(got[k]) == sorted(expected[k]), f"{k}: {len(got[k])} values, expected {len(expected[k])}"
files = {f["path"] for f in get("artifacts/list", run_id=state["run_id"], path="model")["files"]}
assert files == {"model/model.safetensors", "model/config.cfg"}, files
print(sum(map(len, got.values())))
PY
mkdir real
export MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false
real() { # PORT: MLflow's server, with its workers in a session of their own
	(cd real && exec setsid "$MLFLOW_PYTHON" -m mlflow server --host 127.0.0.1 --port "$1" --backend-store-uri sqlite:///m.db \
		--artifacts-destination ./files --workers 1) >>real/log 2>&1 &
	server=$!
	for _ in $(seq 600); do if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then break; fi; sleep 0.1; done
}
stop_real() {
	kill -9 -- -$server
	wait $server 2>/dev/null || true # its status is that of the signal
}
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
real "$port"
uri=http://127.0.0.1:$port
run run tiny.cfg --device cpu -q --no-progress -o real/alone "${long[@]}"
train real/run "${long[@]}" &
training=$!
for _ in $(seq 500); do if grep -q '"offset":[1-9]' real/run/mlflow.json 2>/dev/null; then break; fi; sleep 0.02; done
stop_real
real "$port"
wait $training
echo "# MLflow killed in the middle: training took $(seconds real/run) s, $(seconds real/alone) s without a server"
run track real/run
if why=$("$python" real.py "$uri" real/run 2>&1); then pass real_mlflow; echo "# MLflow has all $why values of loss and acc"
else fail real_mlflow "$(tail -n 1 <<<"$why") $(cat err)"; fi
stop_real
