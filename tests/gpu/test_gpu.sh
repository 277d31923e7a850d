#!/bin/bash
# tests/run: beside others
# shellcheck disable=SC2016 # it reads the text of other scripts
# What must work on the day there is a GPU, as far as it goes without one: check.sh through all of its sections on the host's CUDA runtime,
# bench.sh on the CPU, the folder of make gpu-folder in an empty environment.
set -u
here=$GTRAIN_SRC/tests/gpu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ok() { # NAME WHY: ok where WHY is empty
	if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $2"; fi
}

# ---- check.sh ----------------------------------------------------------------------------------------------------------------------------
sim=$GTRAIN_BUILD/cudasim
if [ ! -e "$sim/lib/gtrain/cuda.so" ]; then
	echo 'skip check_dry_run: built without a C++ compiler'
elif grep -q __asan_init "$sim/lib/gtrain/cuda.so"; then
	echo 'skip check_dry_run: the coroutines of cudasim and AddressSanitizer cannot be combined'
else
	# The folder of the simulated build, in a root that has the machine's programs and libraries, and nothing of this tree: no sources, no
	# build, no home, no toolkit. Without the right to make such a root: in an empty environment.
	root=$tmp/root folder=$tmp/simulated why=
	"$here/folder.sh" "$sim" "$folder" >"$tmp/out" 2>&1 || why="folder.sh: status $?: $(tail -n 1 "$tmp/out")"
	mkdir "$root"
	cat >"$tmp/alone.sh" <<'ALONE'
set -e
root=$1 folder=$2
shift 2
mount -t tmpfs none "$root"
mkdir "$root"/{usr,etc,dev,proc,tmp,gpu}
for d in bin sbin lib lib32 lib64; do
	if [ -L "/$d" ]; then cp -d "/$d" "$root/$d"
	elif [ -d "/$d" ]; then mkdir "$root/$d" && mount --rbind "/$d" "$root/$d"; fi
done
for d in usr etc dev proc; do mount --rbind "/$d" "$root/$d"; done
mount -t tmpfs none "$root/usr/local"
mount --bind "$folder" "$root/gpu"
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp CHECK_TINY=1 CHECK_LOG=/tmp/log CHECK_BUDGET=500 CHECK_IN_ROOT=1 "$@"
ALONE
	how=root unshare=(unshare -m)
	[ "$(id -u)" = 0 ] || unshare=(unshare -r -m)
	"${unshare[@]}" bash "$tmp/alone.sh" "$root" "$folder" /bin/sh -c 'test ! -e "$0" && test -x /gpu/tests/gpu/check.sh' "$GTRAIN_SRC" \
		>"$tmp/out" 2>&1 || how=environment
	if [ $how = root ]; then
		"${unshare[@]}" bash "$tmp/alone.sh" "$root" "$folder" /gpu/tests/gpu/check.sh >"$tmp/out" 2>&1
	else
		echo "# no root of its own: $(tail -n 1 "$tmp/out")"
		env -i PATH=/usr/bin:/bin HOME="$tmp" CHECK_TINY=1 CHECK_LOG="$tmp/log" CHECK_BUDGET=500 "$folder/tests/gpu/check.sh" >"$tmp/out" \
			2>&1
	fi
	rc=$?
	read -r passed _ failed _ skipped _ < <(tail -n 1 "$tmp/out")
	[ $rc = 0 ] || why="$why status $rc: $(grep -m 3 '^not ok' "$tmp/out" | tr '\n' ' ')$(tail -n 1 "$tmp/out")"
	[ -n "$why" ] || grep -Eq '^[0-9]+ passed, 0 failed, [0-9]+ skipped$' "$tmp/out" || why="no closing line: $(tail -n 1 "$tmp/out")"
	for s in offers table nan operations updates device nccl precision fmnist resume signals recompute memory sanitizer ranks; do
		grep -Eq "^$s +[0-9]+ passed +0 failed" "$tmp/out" || why="$why section $s is missing"
	done
	[ "${passed:-0}" -ge 60 ] || why="$why only ${passed:-0} passed"
	ok "folder_alone_in_an_empty_$how" "$why"
	echo "# the folder's check on the simulator, in an empty $how: ${passed:-?} passed, ${failed:-?} failed, ${skipped:-?} skipped," \
		"$(grep -Ec '^[a-z0-9]+ +[0-9]+ passed +0 failed' "$tmp/out") sections"

	# A proof (prove.sh) from the same folder, in the same place: test_prove.sh has the rest.
	few=(PROVE_CHECKS='offers device' PROVE_CONFIGS=tutorial_mlp_sgd PROVE_BENCH='' PROVE_BUDGET=300)
	if [ $how = root ]; then
		"${unshare[@]}" bash "$tmp/alone.sh" "$root" "$folder" OUT=/tmp "${few[@]}" \
			/bin/sh -c '/gpu/tests/gpu/prove.sh >&2; rc=$?; cat /tmp/gpu-proof-*.txt; exit $rc' >"$tmp/page" 2>"$tmp/out"
		rc=$?
	else
		mkdir "$tmp/proof"
		env -i PATH=/usr/bin:/bin HOME="$tmp" OUT="$tmp/proof" "${few[@]}" "$folder/tests/gpu/prove.sh" >"$tmp/out" 2>&1
		rc=$?
		cat "$tmp"/proof/gpu-proof-*.txt >"$tmp/page"
	fi
	why=
	[ $rc = 0 ] || why="status $rc: $(tail -n 1 "$tmp/out")"
	for s in '^RESULT: nothing failed$' '^device +passed ' '^tutorial_mlp_sgd +fp32 +passed '; do
		grep -Eq "$s" "$tmp/page" || why="$why the page lacks $s"
	done
	ok "folder_proves_in_an_empty_$how" "$why"

	# What check.sh and the scripts that it runs name is in the folder.
	why='' names=0
	while IFS=: read -r file name; do
		case $name in
		# of a source tree; of the simulator's own tests
		'$src/build' | '$GTRAIN_BUILD/cudasim' | '$GTRAIN_BUILD/tests/par/tool_same') continue ;;
		'$build/tests/cuda/dnn_plans') continue ;;                                               # of a build for GPUs, below
		'$here/'* | '$(dirname "$0")/'*) path=${file%/*}/${name#'$(dirname "$0")/'} && path=${path/'$here/'/} ;;
		*) path=${name#*/} ;;
		esac
		names=$((names + 1))
		compgen -G "$folder/$path" >/dev/null || why="$why ${file##*/} names $path;"
	done < <(cd "$folder" && grep -o \
		'\($\(build\|src\|here\|GTRAIN_SRC\|GTRAIN_BUILD\)\|$(dirname "$0")\)/[A-Za-z0-9_.][A-Za-z0-9_./-]*[A-Za-z0-9_]' \
		tests/gpu/{check,bench,prove,proof_facts}.sh tests/cudasim/*.sh tests/parity/*.sh)
	[ $names -ge 25 ] || why="$why only $names names were found"
	ok folder_has_what_its_scripts_name "$why"

	"$here/check.sh" --list >"$tmp/out"
	rc=$? why=
	[ $rc = 0 ] && [ "$(grep -c 'at most *[0-9]* s' "$tmp/out")" -ge 25 ] || why="status $rc: $(tail -n 1 "$tmp/out")"
	while read -r s _; do grep -q "^| .$s. |" "$here/README.md" || why="$why README.md has no section $s"; done <"$tmp/out"
	"$here/check.sh" "$sim" no-such-section >"$tmp/out" 2>&1
	rc=$?
	[ $rc = 64 ] && grep -q 'no section is called no-such-section' "$tmp/out" || why="$why status $rc of an unknown section"
	ok check_lists_its_sections "$why"

	"$sim/tests/gpu/tool_table" >"$tmp/out" 2>&1
	rc=$? why=
	[ $rc = 0 ] && ! grep -q '^not ok' "$tmp/out" && [ "$(grep -c '^ok ' "$tmp/out")" -ge 620 ] ||
		why="status $rc, $(grep -c '^ok ' "$tmp/out") cases: $(grep -m 1 '^not ok' "$tmp/out" || tail -n 1 "$tmp/out")"
	ok table_in_four_precisions "$why"
	grep '^# ' "$tmp/out"

	# A check that fails must be seen, and one that hangs must end.
	mkdir -p "$tmp/bad/tests/ops"
	cp -r "$sim/bin" "$sim/lib" "$tmp/bad"
	printf '#!/bin/sh\necho "ok a"\necho "not ok b: made up"\nexit 1\n' >"$tmp/bad/tests/ops/test_ops"
	chmod +x "$tmp/bad/tests/ops/test_ops"
	CHECK_TINY=1 CHECK_LOG=$tmp/log2 "$here/check.sh" "$tmp/bad" operations >"$tmp/out" 2>&1
	rc=$? why=
	[ $rc = 1 ] && grep -q '^not ok b: made up' "$tmp/out" && grep -q '^1 passed, 1 failed, 0 skipped$' "$tmp/out" ||
		why="status $rc: $(tail -n 1 "$tmp/out")"
	ok check_shows_a_failure "$why"
	printf '#!/bin/bash\ntrap "" TERM\n(trap "" TERM; exec sleep 1234.5) &\nwait\n' >"$tmp/bad/tests/ops/test_ops"
	CHECK_TINY=1 CHECK_LOG=$tmp/log2 CHECK_BUDGET=20 "$here/check.sh" "$tmp/bad" operations >"$tmp/out" 2>&1
	rc=$? why=
	[ $rc = 1 ] && grep -q '^skip operations: the budget of 20 s was used up after' "$tmp/out" || why="status $rc: $(tail -n 1 "$tmp/out")"
	pgrep -f 'sleep 1234[.]5' >/dev/null && why="$why a process was left behind"
	ok check_ends_what_hangs "$why"
fi

# Without a GPU: one line, and nothing that looks like a pass.
if "$GTRAIN" devices --json 2>/dev/null | grep '"backend":"cuda"' | grep -q '"usable":true'; then
	echo 'skip check_without_a_gpu: there is one'
else
	CHECK_LOG=$tmp/log "$here/check.sh" "$GTRAIN_BUILD" >"$tmp/out" 2>&1
	rc=$? why=
	[ $rc = 0 ] && grep -q '^skip check-gpu: no usable GPU: .' "$tmp/out" &&
		[ "$(tail -n 1 "$tmp/out")" = '0 passed, 0 failed, 1 skipped' ] || why="status $rc: $(tail -n 1 "$tmp/out")"
	CHECK_GPU=required CHECK_LOG=$tmp/log "$here/check.sh" "$GTRAIN_BUILD" >"$tmp/out" 2>&1
	rc=$?
	[ $rc = 69 ] || why="$why with CHECK_GPU=required: status $rc"
	ok check_without_a_gpu "$why"
fi

# ---- bench.sh: gtrain alone, on the CPU --------------------------------------------------------------------------------------------------
TORCH_PYTHON=${GTRAIN_TORCH_PYTHON:-/nonexistent} BENCH_DEVICE=cpu BENCH_TINY=1 BENCH_ROUNDS=1 BENCH_OUT=$tmp/table "$here/bench.sh" \
	"$GTRAIN_BUILD" >"$tmp/out" 2>&1
rc=$? why=
[ $rc = 0 ] || why="status $rc: $(tail -n 1 "$tmp/out")"
for what in '^| MLP-32, .* | [0-9.]* ms | ' '^| ResNet-20, batch 8, bf16 | [0-9,]*/s | ' '^gtrain check: [0-9.]* ms' \
	'^exec to the first trained step of the MLP: [0-9.]* s' '^Accuracy gate: ' \
	'^Slowest kernels of ResNet-20' '^Slowest kernels of MLP-32'; do
	[ -n "$why" ] || grep -q "$what" "$tmp/table" || why="the table has no $what"
done
[ -n "$why" ] || [ "$(grep -c '| conv2d' "$tmp/table")" -ge 3 ] || why='the profile has no convolutions'
ok bench_dry_run "$why"

# ---- the folder --------------------------------------------------------------------------------------------------------------------------
if [ ! -e "$GTRAIN_BUILD/lib/gtrain/cuda.so" ]; then
	echo 'skip gpu_folder: built without CUDA'
	exit 0
fi
"$here/folder.sh" "$GTRAIN_BUILD" "$tmp/first" >"$tmp/out" 2>&1
rc=$? why=
bytes=$(du -sb "$tmp/first" 2>/dev/null | cut -f1)
[ $rc = 0 ] && [ "${bytes:-0}" -lt $((51 << 20)) ] && [ "${bytes:-0}" -gt $((10 << 20)) ] ||
	why="status $rc, ${bytes:-no} bytes: $(tail -n 1 "$tmp/out")"
ok gpu_folder_below_51_mib "$why"
why=
for p in tests/cuda/dnn_plans tests/cudasim/tool_{joins,conv,nccl} tests/cudasim/fast_clock.{c,so}; do
	case $p in *.c | *.so) ;; *) [ -e "$GTRAIN_BUILD/$p" ] || continue ;; esac
	[ -e "$tmp/first/$p" ] || why="$why $p"
done
ok gpu_folder_is_whole "${why:+missing:$why}"
echo "# gpu-folder: $((${bytes:-0} >> 20)) MiB, glibc $(cat "$tmp/first/GLIBC")"
mkdir "$tmp/a place" && mv "$tmp/first" "$tmp/a place/moved"
moved="$tmp/a place/moved"
# Nothing of this machine but its shell: the environment is empty, and the libraries must be the folder's.
for loader in host bundled; do
	why=
	env -i GTRAIN_LOADER=$loader PATH=/usr/bin:/bin "$moved/bin/gtrain" run "$moved/tests/resume/resume.cfg" --device cpu -q \
		--no-progress -o "$tmp/$loader" >"$tmp/out" 2>&1 ||
		why="status $?: $(tail -n 1 "$tmp/out")"
	env -i GTRAIN_LOADER=$loader PATH=/usr/bin:/bin "$moved/bin/gtrain" devices >"$tmp/out" 2>&1
	grep -q '^cuda' "$tmp/out" && ! grep -q 'cannot be loaded' "$tmp/out" || why="$why devices: $(tail -n 1 "$tmp/out")"
	env -i GTRAIN_LOADER=$loader GTRAIN_SRC="$moved" PATH=/usr/bin:/bin "$moved/tests/ops/test_ops" -b cpu linear >"$tmp/out" 2>&1
	[ "$(grep -c '^ok ' "$tmp/out")" -ge 30 ] && ! grep -q '^not ok' "$tmp/out" || why="$why test_ops: $(tail -n 1 "$tmp/out")"
	ok "gpu_folder_runs_with_its_libraries_and_the_${loader}_c_library" "$why"
done
"$GTRAIN" run "$GTRAIN_SRC/tests/resume/resume.cfg" --device cpu -q --no-progress -o "$tmp/here" >"$tmp/out" 2>&1
why=
for loader in host bundled; do
	cmp -s "$tmp/here/latest/model.safetensors" "$tmp/$loader/latest/model.safetensors" || why="$why $loader"
done
ok gpu_folder_trains_to_the_same_bits "$why"
GTRAIN_LOADER=bundled strace -f -e trace=open,openat -o "$tmp/trace" "$moved/bin/gtrain" check "$moved/configs/lenet.cfg" --device cpu \
	>"$tmp/out" 2>&1
why=$(sed -n '/libexec/,$p' "$tmp/trace" | grep -v ENOENT | grep -o '"[^"]*\.so[^"]*"' | grep -v "\"$moved/\|ld.so.cache" | sort -u |
	tr '\n' ' ')
[ -s "$tmp/trace" ] && grep -q "$moved/lib/dep/libdnnl.so." "$tmp/trace" || why="no trace: $(tail -n 1 "$tmp/out")"
ok gpu_folder_opens_no_library_of_the_machine "$why"
env -i PATH=/usr/bin:/bin "$moved/tests/gpu/check.sh" >"$tmp/out" 2>&1
rc=$? why=
[ $rc = 0 ] && grep -Eq '^(skip check-gpu: no usable GPU: .|[0-9]+ passed, 0 failed)' "$tmp/out" ||
	why="status $rc: $(tail -n 1 "$tmp/out")"
ok gpu_folder_has_its_check "$why"
