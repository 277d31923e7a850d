# Sourced by prove.sh: writes the proof from the tables of proof_read.sh and from $work/facts.tsv: write_json and write_page print them.
# shellcheck shell=bash disable=SC2154 # variables of prove.sh
write_awk() { # PROGRAM FILE...
	local program=$1
	shift
	LC_ALL=C awk -F '\t' '
	function quote(s,   part, m, i, out) { # a string of JSON; the tables have neither control characters nor bytes of UTF-8
		m = split(s, part, /\\/)
		out = part[1]
		for (i = 2; i <= m; i++) out = out "\\\\" part[i]
		m = split(out, part, /"/)
		out = part[1]
		for (i = 2; i <= m; i++) out = out "\\\"" part[i]
		return "\"" out "\""
	}
	function number(s) { return s ~ /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$/ ? s : "null" }
	'"$program" "$@"
}

# count_states: PASSED FAILED SKIPPED NOT_RUN: checks that passed, failed and were skipped, and sections and smoke tests that were not run
count_states() {
	LC_ALL=C awk -F '\t' 'FILENAME ~ /sections/ { p += $4; f += $5; k += $6; n += $2 == "not run" || $2 == "interrupted"; next }
		{ p += $3 == "passed"; f += $3 == "failed"; k += $3 == "skipped"; n += $3 == "not run" || $3 == "interrupted" }
		END { print p + 0, f + 0, k + 0, n + 0 }' "$work/sections.tsv" "$work/smokes.tsv"
}

# ---- the file ------------------------------------------------------------------------------------------------------------------------
write_json() {
	local passed failed skipped absent
	read -r passed failed skipped absent < <(count_states)
	printf '{"proof":1,"state":"%s","result":"%s","simulated":%s,"began":"%s","seconds":%d,"budget":%d,\n' "$state" "$(result_word)" \
		"$simulated" "$begun_at" $((SECONDS - start)) "$budget"
	printf '"passed":%d,"failed":%d,"skipped":%d,"not_run":%d,\n"facts":{' "$passed" "$failed" "$skipped" "$absent"
	write_awk '{ printf "%s%s:%s", $1 == group ? "," : (group == "" ? "" : "},\n") quote($1) ":{", quote($2), quote($3); group = $1 }
		END { if (NR) printf "}" }' <(sort -s -t $'\t' -k 1,1 "$work/facts.tsv")
	printf '},\n"sections":['
	write_awk 'FILENAME ~ /lines/ { m = ++n[$1, $2]; text[$1, $2, m] = $3; next }
		function list(section, kind,   i, out) {
			for (i = 1; i <= n[section, kind]; i++)
				out = out (i > 1 ? "," : "") quote(text[section, kind, i])
			return "[" out "]"
		}
		{ printf "%s\n{\"name\":%s,\"what\":%s,\"state\":%s", (FNR > 1 ? "," : ""), quote($1), quote($7), quote($2)
		printf ",\"seconds\":%s,\"passed\":%s,\"failed\":%s,\"skipped\":%s", number($3), number($4), number($5), number($6)
		printf ",\"failures\":%s,\"skips\":%s,\"figures\":%s}", list($1, "failure"), list($1, "skip"), list($1, "figure") }' \
		"$work/lines.tsv" "$work/sections.tsv"
	printf '],\n"smokes":['
	write_smokes
	printf '],\n"worst":['
	write_awk '{ printf "%s\n{\"source\":%s,\"operation\":%s", (NR > 1 ? "," : ""), quote($1), quote($2)
		printf ",\"type\":%s,\"share\":%s,\"where\":%s}", quote($3), number($4), quote($5) }' "$work/worst.tsv"
	printf '],\n"not_started":['
	write_awk '{ printf "%s%s", (NR > 1 ? "," : ""), quote($1) }' "$work/absent"
	printf ']}\n'
}

write_smokes() { # with the lines of gtrain --json, as proof_read.sh has kept them
	local row='' file
	for file in "$work"/smoke/*.row; do
		[ -e "$file" ] || return 0
		[ -z "$row" ] || printf ','
		row=written
		write_awk '{ printf "\n{\"config\":%s,\"precision\":%s,\"state\":%s,\"seconds\":%s,\"why\":%s,\"phases\":[\n", quote($1), quote($2),
			quote($3), number($4), quote($14) }' "$file"
		sed '$!s/$/,/' "${file%.row}.phases"
		printf ']}'
	done
}

# ---- the page ------------------------------------------------------------------------------------------------------------------------
result_word() {
	local passed failed _
	read -r passed failed _ < <(count_states)
	if [ "$failed" != 0 ]; then echo failed
	elif [ "$state" != complete ]; then echo "$state"
	elif [ "$passed" = 0 ]; then echo 'nothing was checked'
	else echo passed; fi
}

heading() { printf '\n%s\n%s\n' "$1" "${1//?/-}"; }

write_facts_text() {
	write_awk '
	{ group[NR] = $1; name[NR] = $2; value[NR] = $3 }
	END {
		for (i = 1; i <= NR; i++)
			printf "%-9s %-32s %s\n", (group[i] == group[i - 1] ? "" : group[i]), name[i], value[i]
	}' "$work/facts.tsv"
}

write_failures() {
	write_awk 'FILENAME ~ /smokes/ { if ($3 == "failed") printf "  smoke test of %s in %s: %s\n", $1, $2, $14; next }
		$2 == "failure" { printf "  %s: %s\n", $1, $3 }' "$work/smokes.tsv" "$work/lines.tsv" |
		sort -s -t : -k 1,1 | cut -c1-400 | head -n 60
}

write_sections() {
	printf '%-13s %-11s %6s %6s %7s %7s  %s\n' section '' passed failed skipped seconds 'what it checks'
	write_awk '
		{ printf "%-13s %-11s %6d %6d %7d %7d  %s\n", $1, $2 == "failed" ? "FAILED" : $2, $4, $5, $6, $3, $7 }' "$work/sections.tsv"
}

write_smoke_table() {
	printf '%-22s %-5s %-11s %5s %6s %6s %7s %8s %9s %9s %5s\n' config type '' batch calls differ absent share losses limit s
	write_awk '
		{ printf "%-22s %-5s %-11s %5s %6s %6s %7s %8s %9s %9s %5s\n", $1, $2, $3 == "failed" ? "FAILED" : $3, $5, $7, $8, $9,
			$10 == "" ? "" : sprintf("%.3g", $10), $11 == "" ? "" : sprintf("%.1e", $11), $12 == "" ? "" : sprintf("%.1e", $12), $4 }' \
		"$work/smokes.tsv"
}

# write_worst SOURCE TYPE...: a line an operation, its worst share in each type, the largest of them first
write_worst() {
	local source=$1
	shift
	LC_ALL=C awk -F '\t' -v source="$source" -v types="$*" '
	function text_of(v) { return v > 1e9 ? "infinite" : sprintf("%.3f", v) }
	$1 == source {
		v = $4 == "inf" ? 1e300 : $4 + 0
		if (!($2 in most)) most[$2] = -1
		if (!(($2, $3) in share) || v > share[$2, $3]) share[$2, $3] = v
		if (v > most[$2]) { most[$2] = v; where[$2] = $3 " " $5 }
	}
	END {
		n = split(types, type, " ")
		for (o in most) {
			line = sprintf("%.3g\t%-22s", most[o], o)
			for (i = 1; i <= n; i++)
				line = line sprintf(" %8s", !((o, type[i]) in share) ? "-" : text_of(share[o, type[i]]))
			print line "  " where[o]
		}
	}' "$work/worst.tsv" | sort -t $'\t' -k 1,1gr -k 2,2 | cut -f 2 >"$work/page.worst"
	[ -s "$work/page.worst" ] || { echo '  nothing was compared'; return; }
	printf '%-22s' operation
	printf ' %8s' "$@"
	printf '  where the largest is\n'
	cat "$work/page.worst"
}

write_skips() {
	write_awk 'FILENAME ~ /lines/ { if ($2 == "skip" && $3 !~ /^the budget of /) { if (++n[$1] <= 4) printf "  %s: %s\n", $1, $3 }; next }
		FILENAME ~ /smokes/ && $3 == "skipped" { printf "  smoke test of %s in %s: %s\n", $1, $2, $14 }
		END { for (s in n) if (n[s] > 4) printf "  %s: %d more\n", s, n[s] - 4 }' "$work/lines.tsv" "$work/smokes.tsv" | cut -c1-300
}

write_absent() {
	write_awk 'FILENAME ~ /sections/ { if ($2 == "not run" || $2 == "interrupted") printf "  section %s: %s\n", $1, $2; next }
		FILENAME ~ /smokes/ {
			if ($3 == "not run" || $3 == "interrupted") printf "  smoke test of %s in %s: %s\n", $1, $2, ($14 ? $14 : $3)
			next
		}
		{ printf "  %s\n", $1 }' "$work/sections.tsv" "$work/smokes.tsv" "$work/absent" | cut -c1-300
}

write_page() {
	local passed failed skipped absent text
	read -r passed failed skipped absent < <(count_states)
	echo "gtrain $commit on $card"
	echo "$begun_at, $((SECONDS - start)) of $budget s"
	[ "$simulated" = false ] || echo 'The card is simulated on the host: this page says nothing about a GPU.'
	echo
	case $(result_word) in
	passed) echo 'RESULT: nothing failed' ;;
	failed) echo 'RESULT: FAILED' ;;
	*) echo "RESULT: $(result_word)" ;;
	esac
	echo "$passed passed, $failed failed, $skipped skipped, $((absent + $(wc -l <"$work/absent"))) not run"
	[ "$state" = complete ] || echo "The run is $state: the page shows what was done until then."
	text=$(write_failures)
	[ -z "$text" ] || { heading Failures; echo "$text"; }
	heading 'Card, libraries, machine'
	write_facts_text
	heading 'Checks'
	write_sections
	heading 'Smoke tests against the CPU'
	echo 'Steps on the card and on the CPU; each operation with the same inputs on both. calls: compared calls; differ: operations that'
	echo 'differ by more than rounding explains; absent: operations that the CPU lacks; share: the worst difference in units of its'
	echo 'tolerance; losses: the largest relative difference of the losses of both runs, and its limit; s: seconds.'
	write_smoke_table
	heading 'Worst differences by operation and type: table of operations'
	echo 'Results and gradients beside references in f64, in units of the tolerance; more than 1 is a failure.'
	write_worst table f32 tf32 bf16 f16
	heading 'Worst differences by operation and type: smoke tests'
	echo 'The card beside the CPU with the same inputs, in units of the tolerance; more than 1 is a failure.'
	write_worst smoke fp32 tf32 bf16 fp16
	heading 'Figures'
	write_awk '$2 == "figure" && $1 != "bench" && $1 != "offers" { printf "  %s: %s\n", $1, $3 }
		$2 == "figure" && $1 == "offers" { n++ }
		END { if (n) printf "  offers: %d lines, which are in the JSON file\n", n }' "$work/lines.tsv" | cut -c1-300
	heading 'Speed'
	text=$(write_awk '$1 == "bench" && $2 == "figure" { print $3 }' "$work/lines.tsv")
	echo "${text:-  not measured}"
	text=$(write_skips)
	[ -z "$text" ] || { heading Skipped; echo "$text"; }
	text=$(write_absent)
	[ -z "$text" ] || { heading 'Not run'; echo "$text"; echo "  More time runs more of it: PROVE_BUDGET=1800 make prove-gpu"; }
}
