#!/bin/bash
# scripts/check-deps.sh passes on a small tree that keeps its rules, and refuses each violation that is planted there, by the file's name.
# scripts/check-changed.sh finds the tests of what differs.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
command -v git >/dev/null || { skip check_deps 'git is not installed'; exit; }

# tree: $tmp/tree, which keeps all rules: includes downwards, own headers, a diamond, 20 documents and 20 comments that name a file, and
# 20 static functions
tree() {
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/"{scripts,engine/base,engine/plan,kernels/cuda,datasets,cli}
	cd "$tmp/tree" || exit 1
	cp "$src/scripts/check-deps.sh" scripts/
	echo 'struct gt_low {' >engine/base/low.h
	echo '#include "base/low.h"' | tee engine/base/low.c engine/plan/left.h engine/plan/right.h kernels/k.h >/dev/null
	printf '#include "plan/left.h"\n#include "plan/right.h"\n' >engine/plan/top.c
	printf '#include "k.h"\n' | tee kernels/k.c kernels/cuda/k_gpu.cu >/dev/null
	for i in {1..20}; do
		echo 'See engine/base/low.h.' >"doc$i.md"
		echo '/* low.h has the struct, base/low.h too. */' >>engine/base/low.c
		printf 'static int get_part%d(void)\n{\n\treturn part(%d);\n}\n' "$i" "$i" >>engine/base/low.c
	done
	git init -q . && git add -A
}
check() {
	scripts/check-deps.sh >"$tmp/out" 2>&1
	rc=$?
}
# refused NAME MESSAGE: the check fails with the message, a regular expression, and with no other line
refused() {
	check
	if [ $rc = 1 ] && grep -q "$2" "$tmp/out" && [ "$(wc -l <"$tmp/out")" = 1 ]; then pass "$1"
	else fail "$1" "status $rc: $(cat "$tmp/out")"; fi
	tree
}

tree
check
if [ $rc = 0 ] && grep -q '^check-deps: includes run one way$' "$tmp/out"; then
	pass clean_tree
else
	fail clean_tree "status $rc: $(cat "$tmp/out")"
fi

echo '#include "plan/right.h"' >>engine/plan/left.h
echo '#include "plan/left.h"' >engine/plan/right.c
refused cycle_of_two '^include cycle: .*engine/plan/left -> .*engine/plan/\(left\|right\)$'

echo '#include "b.h"' >kernels/a.c
echo '#include "c.h"' >kernels/b.h
echo '#include "a.h"' >kernels/c.h
echo >kernels/a.h
refused cycle_of_three '^include cycle: .*kernels/[a-z/]* -> kernels/[a-z/]* -> kernels/[a-z/]* -> kernels/[a-z/]*$'

echo '#include "plan/left.h"' >engine/base/up.c
refused upwards '^engine/base/up.c: includes "plan/left.h"; engine/base may only include: base$'

mkdir kernels/gloo
echo '#include "cuda/k_own.h"' | tee kernels/gloo/link.c >kernels/cuda/k_two.cu
echo >kernels/cuda/k_own.h
refused sibling '^kernels/gloo/link.c: includes "cuda/k_own.h"; kernels/gloo may only include: base kernels gloo$'

echo '#include <zlib.h>' >cli/pack.c
refused vendor 'cli/pack.c: includes a header of zlib'

echo >datasets/low.c
refused name_twice 'duplicate file names: low.c$'

echo 'struct gt_low {' >>engine/plan/right.h
refused struct_twice 'structs defined twice: struct gt_low'

echo 'See engine/base/high.h.' >doc1.md
refused file_missing '^doc1.md: names engine/base/high.h, which does not exist$'

printf '/* As\n * high.h says. */\n' >>kernels/k.h
refused comment_names_missing '^kernels/k.h:3: names high.h, which does not exist$'

printf '%s\n' 'static int (*table[])(void) = {part(1)};' 'static const int count = part(2);' 'static inline int gt_part(void)' >kernels/k.h
refused one_word '^kernels/k.h:3: the name of the static function gt_part has one word; name it by verb and object$'

printf 'template <int N> static __device__ void N(part)(int i)\nstatic __global__ void __launch_bounds__(32) part(int i)\n' >kernels/k.cuh
refused one_word_device '^kernels/k.cuh:2: the name of the static function part has one word; name it by verb and object$'

printf '\t%136s\n' x >>doc1.md
printf '%138s\303\274%s\n' x y >>doc1.md
printf 'x\t%137s\n' x >>doc2.md
refused too_long '^doc2.md:2: the line has 141 columns; at most 140 are allowed$'

mkdir -p tests/unit && echo >tests/unit/test_low.c
printf '%s unit/low\n' engine/base/ engine/plan/ kernels/ kernels/cuda/ datasets/ >tests/rooms.txt
refused room_without_tests '^tests/rooms.txt: has no row for cli/$'

mkdir -p tests/unit && echo >tests/unit/test_low.c
printf '%s unit/low\n' engine/base/ engine/plan/ kernels/ kernels/cuda/ datasets/ cli/ cli/main.c\ unit/high >tests/rooms.txt
refused test_missing '^tests/rooms.txt: the row of cli/main.c names unit/high, which does not exist$'

# make check-changed: the row with the longest path, globs, a changed test itself, and nothing twice
cp "$src/scripts/check-changed.sh" scripts/
mkdir -p tests/{unit,cli}
touch tests/unit/test_{low,plan}.c tests/cli/test_{one,two}.sh
printf '%s\n' '# table' 'engine/ unit/low' 'engine/plan/ unit/plan cli/*.sh' >tests/rooms.txt
git add -A && git -c user.name=x -c user.email=x@x commit -qm tree
selects() { # NAME EXPECTED ARGS...
	local name=$1 want=$2 got
	shift 2
	got=$(scripts/check-changed.sh b "$@" 2>&1 | paste -sd' ')
	if [ "$got" = "$want" ]; then pass "changed_$name"; else fail "changed_$name" "$got"; fi
}
selects nothing ''
echo >>engine/base/low.c
selects room b/tests/unit/test_low
echo >>engine/plan/top.c
selects longest 'b/tests/unit/test_low b/tests/unit/test_plan tests/cli/test_one.sh tests/cli/test_two.sh'
git add -A && git -c user.name=x -c user.email=x@x commit -qm more
echo >tests/unit/test_new.c
selects test 'b/tests/unit/test_new'
selects since 'b/tests/unit/test_low b/tests/unit/test_new b/tests/unit/test_plan tests/cli/test_one.sh tests/cli/test_two.sh' HEAD~1
