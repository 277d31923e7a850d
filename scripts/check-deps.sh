#!/bin/bash
# Checks that includes between rooms and between files run one way, and that only one room includes the headers of a vendor. Rooms: see
# CONTRIBUTING.md, "The rooms".
set -u
fail=0
# room folder | rooms it may include, as the first path element of an include (or a bare kernels/ or datasets/ header)
rules='
engine/base:base
kernels:base kernels
kernels/cpu:base kernels cpu
kernels/cuda:base kernels cuda
kernels/gloo:base kernels gloo
kernels/null:base kernels null
datasets:base datasets image table text
datasets/table:base datasets table text
datasets/image:base kernels image
datasets/text:base text
engine/ir:base kernels ir
engine/conf:base kernels datasets image table text ir conf
engine/plan:base kernels ir conf plan
engine/store:base kernels datasets image table text store
engine/launch:base launch
engine/exec:base kernels datasets image table text conf plan launch exec
engine/against:base kernels exec against
engine/team:base kernels launch exec team
engine/session:base kernels datasets image table text ir conf plan store exec against team session
engine/score:base kernels ir conf plan store exec team session score gtrain
engine/track:base conf launch track gtrain
engine/track/mlflow:base track
engine/train:base kernels datasets image table text ir conf plan store launch exec team session score track train gtrain
engine/report:base kernels datasets image table text ir conf plan store launch exec team session train report gtrain
engine/use:base kernels datasets image table text ir conf store exec session score train use gtrain
engine/setup:base kernels datasets image table text ir conf store exec session train setup gtrain
engine/view:base kernels datasets conf store view gtrain
engine/view/draw:base view gtrain draw
engine/export:base kernels datasets image table text ir conf plan store session train export gtrain
engine/sweep:base conf store launch sweep gtrain
engine/page:base image page gtrain
cli:base gtrain cli
'
room_of() { # the room an include names
	case $1 in
	base/* | ir/* | conf/* | plan/* | store/* | launch/* | exec/* | against/* | team/* | session/* | score/* | train/* | report/* | \
	use/* | setup/* | view/* | export/* | track/* | sweep/* | page/*)
		echo "${1%%/*}" ;;
	image/* | table/* | text/* | cpu/* | cuda/* | gloo/* | null/*) echo "${1%%/*}" ;;
	gtrain.h | gtrain_*.h) echo gtrain ;;
	*)
		if [ -e "kernels/$1" ]; then echo kernels
		elif [ -e "datasets/$1" ]; then echo datasets
		else echo local; fi ;;
	esac
}
while IFS=: read -r dir allowed; do
	if [ -z "$dir" ] || [ ! -d "$dir" ]; then continue; fi
	inner=() # rooms inside this one, which have rules of their own
	while IFS=: read -r other _; do [[ $other == "$dir"/* ]] && inner+=(-not -path "$other/*"); done <<<"$rules"
	while IFS=: read -r file inc; do
		room=$(room_of "$inc")
		[ "$room" = local ] && continue
		case " $allowed " in *" $room "*) ;; *) echo "$file: includes \"$inc\"; $dir may only include: $allowed"; fail=1 ;; esac
	done < <(find "$dir" "${inner[@]}" \( \
		-name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cc' -o -name '*.hh' \) -print0 |
		xargs -0 -r grep -H '^#include "' | sed 's/#include "\(.*\)".*/\1/')
done <<<"$rules"
vendor() { # header pattern, folders it may appear in
	while read -r file; do
		for home in $2; do [[ $file == "$home"/* ]] && continue 2; done
		echo "$file: includes a header of $1 outside ${2// / and }/"
		fail=1
	done < <(grep -rlE "^#include <($1)" --include='*.[ch]' --include='*.cu' --include='*.cuh' --include='*.cc' \
		--include='*.hh' base engine cli kernels datasets 2>/dev/null)
}
vendor 'libconfig' engine/conf
vendor '(oneapi/)?dnnl' kernels/cpu
vendor 'cuda|cudnn|cublas|nccl' kernels/cuda
vendor 'gloo' kernels/gloo
vendor 'zlib|libdeflate' datasets
vendor 'curl' 'datasets/fetch engine/track/mlflow'
vendor 'archive' datasets/archive
vendor 'png|jpeglib|jerror|webp' datasets/image
vendor 'utf8proc' datasets/text
vendor 'cairo' engine/view/draw
# Includes between files have no cycle. A node is a file without its extension, so that x.c and x.h are one; every edge that closes a cycle
# is reported with the whole cycle.
sources=$(find engine kernels cli datasets -regex '.*\.\(c\|h\|cu\|cuh\|cc\|hh\|inc\)')
cycles=$(awk '
function stem(f) { sub(/\.[a-z]+$/, "", f); return f }
function visit(v, way,   n, next_of, i, w) {
	state[v] = 1
	way = way v " -> "
	n = split(edges[v], next_of, " ")
	for (i = 1; i <= n; i++) {
		w = next_of[i]
		if (state[w] == 1)
			print "include cycle: " substr(way, index(way, w " -> ")) w
		else if (!state[w])
			visit(w, way)
	}
	state[v] = 2
}
NR == FNR { have[$1] = 1; next }
{
	folder = $1
	sub(/\/[^\/]*$/, "/", folder)
	n = split(folder " engine/ kernels/ datasets/", root, " ")
	for (i = 1; i <= n; i++)
		if ((root[i] $2) in have)
			break
	a = stem($1)
	b = stem(root[i] $2)
	if (i <= n && a != b && !seen[a, b]++)
		edges[a] = edges[a] " " b
}
END { for (v in edges) if (!state[v]) visit(v, "") }' <(echo "$sources") \
	<(echo "$sources" | xargs grep -H '^#include "' | sed 's/:#include "\([^"]*\)".*/ \1/'))
if [ -n "$cycles" ]; then echo "$cycles"; fail=1; fi
dup=$(git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' '*.cc' '*.hh' 2>/dev/null | sed 's,.*/,,' | sort | uniq -d)
if [ -n "$dup" ]; then echo "duplicate file names: $dup"; fail=1; fi
# A struct has one definition, except for the structs behind the handles of a backend, which each backend defines.
dup=$(git grep --untracked -hoE '^struct [a-z_0-9]+ \{' -- 'engine/*.h' 'kernels/*.h' 'datasets/*.h' 'cli/*.h' |
	grep -vE ' gt_(dev|kernel) ' | sort | uniq -d)
if [ -n "$dup" ]; then echo "structs defined twice: $dup"; fail=1; fi
# Every file that a document names exists. Names may begin in engine/ or kernels/, as in an include; build/ and runs/ are made by users.
names=0
while IFS=: read -r doc name; do
	case $name in build/* | runs/*) continue ;; esac
	names=$((names + 1))
	[ -e "$name" ] || [ -e "engine/$name" ] || [ -e "kernels/$name" ] || { echo "$doc: names $name, which does not exist"; fail=1; }
done < <(git ls-files -co --exclude-standard '*.md' 'man/*' | grep -v '^CHANGELOG\|RESULTS' |
	xargs grep -oHE '(^|[^A-Za-z0-9_./$)*<>-])[a-z][a-z0-9_]*(/[A-Za-z0-9_.-]+)+\.(c|h|cu|cuh|cc|hh|inc|sh|py|cfg|md|mk|txt|[157])\b' |
	sed -E 's/:[^A-Za-z0-9_]/:/' | sort -u)
if [ $names -lt 20 ]; then echo "check-deps: found only $names names of files in the documents"; fail=1; fi
declare -A there
while read -r name; do there[$name]=1; done < <(git ls-files -co --exclude-standard | sed 's,.*/,,')
# Every file that a comment of the sources names exists, except files of other projects and files that a run writes.
names=0
# shellcheck disable=SC2016
while IFS=: read -r at line name; do
	case $name in torch/* | aten/* | libImaging/* | Resample.c | sysexits.h | model.py | tokens.py | images.py) continue ;; esac
	names=$((names + 1))
	case $name in
	*/*) [ -e "$name" ] || [ -e "engine/$name" ] || [ -e "kernels/$name" ] || [ -e "tests/$name" ] ;;
	*) [ -n "${there[$name]-}" ] ;;
	esac || { echo "$at:$line: names $name, which does not exist"; fail=1; }
done < <(git ls-files -co --exclude-standard -z '*.c' '*.h' '*.cu' '*.cuh' '*.cc' '*.hh' '*.inc' | xargs -0 awk '
	FNR == 1 { inside = 0 }
	{
		text = ""
		for (rest = $0; rest != "";) {
			if (!inside) {
				if (!(at = index(rest, "/*"))) break
				rest = substr(rest, at + 2)
				inside = 1
			}
			if (!(at = index(rest, "*/"))) {
				text = text " " rest
				break
			}
			text = text " " substr(rest, 1, at - 1)
			rest = substr(rest, at + 2)
			inside = 0
		}
		while (match(text, /[A-Za-z][A-Za-z0-9_\/]*\.(cuh|cu|cc|c|hh|h|inc|sh|py|mk|md)/)) {
			name = substr(text, RSTART, RLENGTH)
			next_char = substr(text, RSTART + RLENGTH, 1)
			before = RSTART > 1 ? substr(text, RSTART - 1, 1) : ""
			text = substr(text, RSTART + RLENGTH)
			if (next_char !~ /[A-Za-z0-9_(]/ && before !~ /[<.\/*-]/) print FILENAME ":" FNR ":" name
		}
	}')
if [ $names -lt 20 ]; then echo "check-deps: found only $names names of files in comments"; fail=1; fi
# The name of a static function has at least two words, such as is_multiple. A name that a macro makes, as N(gemm), is left out, since the
# macro adds a word. one_word: established terms; CUDA's own word for starting a kernel is launch.
one_word=' gt_clock launch '
functions=0
# shellcheck disable=SC2016
while IFS= read -r line; do
	case $line in
	functions*) functions=$((functions + ${line#functions})) ;;
	*) echo "$line"; fail=1 ;;
	esac
done < <(git ls-files -coz --exclude-standard -- engine datasets kernels cli |
	grep -zE '\.(c|h|cu|cuh|cc|hh|inc)$' | xargs -0 -r awk -v one_word="$one_word" '
	/^(template *<[^()]*> *)?((inline|__[a-z_]+__) )*static / {
		rest = $0
		while (match(rest, /[A-Za-z_][A-Za-z0-9_]*\(/)) {
			name = substr(rest, RSTART, RLENGTH - 1)
			before = substr(rest, 1, RSTART - 1)
			rest = substr(rest, RSTART + RLENGTH)
			if (before ~ /[=;]/) break
			if (name ~ /^__/ || name ~ /^[A-Z][A-Z0-9_]*$/) continue
			functions++
			word = name
			sub(/^gt_/, "", word)
			if (word !~ /[A-Za-z0-9]_+[A-Za-z0-9]/ && !index(one_word, " " name " "))
				print FILENAME ":" FNR ": the name of the static function " name " has one word; name it by verb and object"
			break
		}
	}
	END { print "functions" functions + 0 }')
if [ $functions -lt 20 ]; then echo "check-deps: found only $functions static functions"; fail=1; fi
# A line has at most 140 columns; a tab stop is 4 columns wide, a UTF-8 character one. Data and generated files have no limit.
files=0
# shellcheck disable=SC2016
while IFS= read -r line; do
	case $line in
	files*) files=$((files + ${line#files})) ;;
	*) echo "$line"; fail=1 ;;
	esac
done < <(git grep --untracked -lIz '' -- ':!tests/corpus' ':!tests/golden/*.txt' ':!tests/golden/*/*' |
	LC_ALL=C xargs -0 awk -v max=140 '
	FNR == 1 { files++ }
	length($0) * 4 > max {
		text = $0
		gsub(/[\200-\277]/, "", text)
		columns = length(text)
		if (index(text, "\t")) {
			n = split(text, part, "\t")
			columns = length(part[1])
			for (i = 2; i <= n; i++) columns += 4 - columns % 4 + length(part[i])
		}
		if (columns > max) print FILENAME ":" FNR ": the line has " columns " columns; at most " max " are allowed"
	}
	END { print "files" files }')
if [ $files -lt 20 ]; then echo "check-deps: measured the lines of only $files files"; fail=1; fi
# The table of make check-changed has a row for every room, and its tests exist.
while IFS=: read -r dir _; do
	if [ -z "$dir" ] || [ ! -d "$dir" ] || [ ! -e tests/rooms.txt ]; then continue; fi
	grep -q "^$dir/ " tests/rooms.txt || { echo "tests/rooms.txt: has no row for $dir/"; fail=1; }
done <<<"$rules"
while read -r path word; do
	# shellcheck disable=SC2086
	compgen -G "tests/${word%/*}/test_${word##*/}" >/dev/null || compgen -G "tests/${word%/*}/test_${word##*/}.c" >/dev/null ||
		{ echo "tests/rooms.txt: the row of $path names $word, which does not exist"; fail=1; }
done < <(sed '/^#/d' tests/rooms.txt 2>/dev/null | awk '{ for (i = 2; i <= NF; i++) print $1, $i }')
[ $fail = 0 ] && echo "check-deps: includes run one way"
exit $fail
