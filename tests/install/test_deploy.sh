#!/bin/bash
# deploy/: slurm.sh and start.sh with a simulated scheduler (a job that is preempted continues and ends with the weights of a run that was
# not), the Kubernetes Job, the steps of the Containerfiles, and debian/*.install against make install.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
deploy=$src/deploy

# ---- Slurm ------------------------------------------------------------------------------------------------------------------------------
mkdir "$tmp/bin"
ln -s "$gtrain" "$tmp/bin/gtrain"
cat >"$tmp/bin/srun" <<'SH'
#!/bin/bash
# two tasks of one node; as Slurm's, it forwards SIGTERM and ends with the largest status of its tasks
export SLURM_NTASKS=2 SLURM_STEP_NODELIST=localhost SLURM_JOB_ID=$SLURM_JOB_ID SLURM_STEP_ID=0
for i in 0 1; do SLURM_PROCID=$i SLURM_LOCALID=$i SLURM_STEP_TASKS_PER_NODE=2 "$@" >>"task$i.out" 2>&1 & task[i]=$!; done
trap 'kill -TERM ${task[@]}' TERM
most=0
for i in 0 1; do
	while :; do wait ${task[i]}; rc=$?; kill -0 ${task[i]} 2>/dev/null || break; done
	[ $rc -gt $most ] && most=$rc
done
exit $most
SH
cat >"$tmp/bin/scontrol" <<'SH'
#!/bin/bash
case $1 in
show) echo "JobId=$3 JobName=gtrain"; echo "   Command=$DEPLOY/slurm.sh run.cfg run" ;;
requeue) echo "$2" >>requeued ;;
esac
SH
chmod +x "$tmp/bin/srun" "$tmp/bin/scontrol"
cat >"$tmp/run.cfg" <<'CFG'
schema = 1;
name = "tiny";
reproducible = "world";
data = { name = "synthetic"; batch = 32; classes = 4; samples = 4096; samples_test = 64; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 256; }, { type = "relu"; },
	{ type = "linear"; out = 4; } ); };
train = { epochs = 12; optimizer = { type = "adam"; lr = 0.001; }; };
parallel = { mode = "ddp"; };
log = { every_steps = 1; };
CFG
cp "$deploy/slurm.sh" "$tmp/spooled" # Slurm executes a copy
job() { cd "$tmp" && PATH="$tmp/bin:$PATH" DEPLOY=$deploy SLURM_JOB_ID=77 exec bash spooled run.cfg run -s threads=1; }
saved_or_over() { [ -e "$tmp/run/latest" ] || ! kill -0 "$pid" 2>/dev/null; }
for epochs in 12 48 192 768 3072 12288; do # a job that was over before the signal is too short for this machine
	rm -rf "$tmp/run"
	sed -i "s/epochs = [0-9]*/epochs = $epochs/" "$tmp/run.cfg"
	(job) >"$tmp/out" 2>&1 &
	pid=$!
	wait_for saved_or_over
	kill -TERM $pid 2>/dev/null
	wait $pid
	rc=$?
	[ $rc = 0 ] || break
done
if [ "$rc" = 143 ] && [ "$(cat "$tmp/requeued" 2>/dev/null)" = 77 ] && [ -e "$tmp/run/latest" ]; then pass preempted_job_is_requeued
else fail preempted_job_is_requeued "status $rc; $(cat "$tmp/out" "$tmp/task0.out" 2>/dev/null | tail -n 3)"; fi
(job) >"$tmp/out" 2>&1
rc=$?
(cd "$tmp" && "$gtrain" run run.cfg --nproc 2 -s threads=1 --out whole -q --no-progress) >"$tmp/out2" 2>&1
a=$(cd "$tmp/run/latest" && sha256sum <model.safetensors) b=$(cd "$tmp/whole/latest" && sha256sum <model.safetensors)
if [ $rc = 0 ] && [ "$(wc -l <"$tmp/requeued")" = 1 ] && [ "$a" = "$b" ]; then pass requeued_job_ends_with_the_same_weights
else fail requeued_job_ends_with_the_same_weights "status $rc; $(tail -n 2 "$tmp/task0.out" "$tmp/out2" 2>/dev/null)"; fi
(job) >"$tmp/out" 2>&1
rc=$?
if [ $rc = 0 ] && [ "$(wc -l <"$tmp/requeued")" = 1 ]; then pass complete_run_again; else fail complete_run_again "status $rc"; fi
sed -i 's/"adam"/"adamm"/' "$tmp/run.cfg"
rm -rf "$tmp/run"
(job) >"$tmp/out" 2>&1
rc=$?
if [ $rc = 78 ] && [ "$(wc -l <"$tmp/requeued")" = 1 ]; then pass wrong_config_is_not_requeued
else fail wrong_config_is_not_requeued "status $rc"; fi

# ---- Kubernetes -------------------------------------------------------------------------------------------------------------------------
python=
for p in "${KUBERNETES_PYTHON:-python3}" /usr/bin/python3; do
	if "$p" -c 'import yaml' 2>/dev/null; then python=$p; break; fi
done
if [ -z "$python" ]; then
	skip kubernetes 'python3 has no yaml'
else
	if why=$("$python" - "$deploy/kubernetes.yaml" "$src/man/gtrain.1" <<'PY' 2>&1
import re, sys, yaml
service, job = yaml.safe_load_all(open(sys.argv[1]))
spec = job["spec"]
pod = spec["template"]["spec"]
rank, = pod["containers"]
env = {e["name"]: e.get("value") for e in rank["env"]}
manual = open(sys.argv[2]).read()
for name in env:
    assert re.search(r"\b%s\b" % name, manual), "the manual does not have " + name
assert int(env["WORLD_SIZE"]) == spec["completions"] == spec["parallelism"]
assert env["MASTER_ADDR"] == "%s-0.%s" % (job["metadata"]["name"], pod["subdomain"]) and service["metadata"]["name"] == pod["subdomain"]
assert service["spec"]["selector"]["job-name"] == job["metadata"]["name"]
assert {v["name"] for v in rank["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
codes = spec["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"]
text = manual.split(".Sh EXIT STATUS")[1].split(".Sh EXAMPLES")[0]
for code in codes:
    assert re.search(r"^\.It Li? ?%d$|^\.It %d$" % (code, code), text, re.M), "the manual does not have status %d" % code
assert 75 not in codes and 0 not in codes
PY
	); then pass kubernetes; else fail kubernetes "$(tail -n 1 <<<"$why")"; fi
	if ! "$python" -c 'import kubernetes_validate' 2>/dev/null; then
		skip kubernetes_schema 'python3 has no kubernetes-validate (set KUBERNETES_PYTHON)'
	elif why=$("$python" - "$deploy/kubernetes.yaml" <<'PY' 2>&1
import sys, yaml, kubernetes_validate
for d in yaml.safe_load_all(open(sys.argv[1])):
    kubernetes_validate.validate(d, kubernetes_validate.latest_version(), strict=True)
PY
	); then pass kubernetes_schema; else fail kubernetes_schema "$(tail -n 1 <<<"$why")"; fi
fi

# ---- Containerfile and Debian packages --------------------------------------------------------------------------------------------------
for file in Containerfile Containerfile.cuda; do
	missing=
	for t in $(sed -n 's/^RUN//p' "$deploy/$file" | grep -o '\bmake [a-z][a-z-]*$' | cut -d' ' -f2); do
		grep -q "^$t:" "$src/Makefile" || missing="$missing make $t"
	done
	for p in $(grep -o '/packages/[a-z-]*_' "$deploy/$file" | sed 's,/packages/,,; s/_//'); do
		grep -q "^Package: $p\$" "$src/debian/control" || missing="$missing package $p"
	done
	if [ -z "$missing" ]; then pass "$file"; else fail "$file" "not here:$missing"; fi
done

# each file that make install writes is in exactly one package, but for plugins that the build did not make
if ! make --no-print-directory -C "$src" BUILD="${GTRAIN_BUILD:-$src/build}" install DESTDIR="$tmp/dest" prefix=/usr >"$tmp/out" 2>&1; then
	fail packages_have_all_files "$(tail -n 2 "$tmp/out")"
else
	why=
	while read -r f; do
		n=0
		for list in "$src"/debian/*.install; do
			while read -r pattern; do
				# shellcheck disable=SC2254
				case $f in $pattern | $pattern/*) n=$((n + 1)) ;; esac
			done <"$list"
		done
		[ $n = 1 ] || why="$why $f ($n)"
	done < <(cd "$tmp/dest" && find . -type f | sed 's,^\./,,')
	if [ -z "$why" ]; then pass packages_have_all_files; else fail packages_have_all_files "in so many packages:$why"; fi
fi
