# Sourced by prove.sh: reads what the sections have written, as far as they came, into tables of lines with tabs in $work:
#
#     sections.tsv   NAME STATE SECONDS PASSED FAILED SKIPPED WHAT       STATE: passed, failed, skipped, not run, interrupted
#     lines.tsv      SECTION KIND TEXT                                   KIND: failure, skip, figure
#     smokes.tsv     CONFIG PRECISION STATE SECONDS BATCH OPERATIONS CALLS DIFFER ABSENT SHARE APART LIMIT FILE WHY
#     worst.tsv      SOURCE OPERATION TYPE SHARE WHERE                   SOURCE: table or smoke; SHARE: in units of the tolerance
#
# Folders of this machine are taken out of all texts.
# shellcheck shell=bash disable=SC2154 # variables of prove.sh

# What all readers share. `hide` has the folders, one a line: FOLDER<tab>WORD.
read_common='
function clean(s,   i, k) {
	gsub(/[\001-\037\177]/, " ", s)
	gsub(/[\200-\377]/, "?", s)
	for (i = 1; i <= nhide; i++)
		while ((k = index(s, folder[i])) > 0)
			s = substr(s, 1, k - 1) word[i] substr(s, k + length(folder[i]))
	return s
}
BEGIN {
	OFS = "\t"
	nhide = split(ENVIRON["proof_hide"], hide, "\n")
	for (i = 1; i <= nhide; i++) {
		folder[i] = hide[i]; sub(/\t.*/, "", folder[i])
		word[i] = hide[i]; sub(/.*\t/, "", word[i])
	}
}'
read_awk() { # PROGRAM ARGS...
	local program=$1
	shift
	LC_ALL=C proof_hide=$hide awk "$@" "$read_common$program"
}

# read_checks LIST LOG...: the logs of check.sh, in which a line "== NAME" begins a section. A section of a later log replaces that of an
# earlier one. LIST: the output of check.sh --list.
read_checks() {
	local list=$1 log
	shift
	: >"$work/worst.tsv"
	for log; do echo '== ' && cat "$log"; done 2>/dev/null | read_awk '
	function close_section() {
		if (name == "")
			return
		state[name] = f[name] ? "failed" : over ? "not run" : !ended ? "interrupted" : p[name] ? "passed" : "skipped"
	}
	function open_section(s) {
		close_section()
		name = s
		if (name == "") # the head of a log
			return
		if (!(name in n))
			order[++sections] = name
		n[name] = p[name] = f[name] = k[name] = took[name] = nworst[name] = ended = over = 0
	}
	function note(kind, text) {
		if (index(text, name ": ") == 1) text = substr(text, length(name) + 3)
		line[name, ++n[name]] = name OFS kind OFS clean(text)
	}
	BEGIN {
		while ((getline row < list) > 0) {
			s = row
			sub(/ .*/, "", s)
			sub(/^[^,]*, *[0-9]+ process[^ ]* */, "", row)
			what[s] = row
		}
	}
	/^== / { open_section(substr($0, 4)); next }
	name == "" { next }
	$1 == name && / passed +[0-9]+ failed +[0-9]+ skipped +[0-9]+ s$/ {
		p[name] = $2; f[name] = $4; k[name] = $6; took[name] = $8; ended = 1
		next
	}
	/^not ok / { if (!ended) f[name]++; note("failure", substr($0, 8)) }
	/^ok / { if (!ended) p[name]++ }
	/^skip / {
		if (index($0, "skip " name ": the budget of ") == 1) over = 1
		else if (index($0, "skip " name ": ") == 1) { k[name] = 1; ended = 1 }
		note("skip", substr($0, 6))
	}
	/^# / { note("figure", substr($0, 3)) }
	/^worst / { worst[name, ++nworst[name]] = "table" OFS $2 OFS $3 OFS $5 OFS $7 }
	END {
		close_section()
		for (i = 1; i <= sections; i++) {
			s = order[i]
			print s, state[s], took[s], p[s], f[s], k[s], what[s] > (out "/sections.tsv")
			for (j = 1; j <= n[s]; j++)
				print line[s, j] > (out "/lines.tsv")
			for (j = 1; j <= nworst[s]; j++)
				print worst[s, j] > (out "/worst.tsv")
		}
	}' -v list="$list" -v out="$work"
}

# read_smoke FILE: a smoke test. FILE.json has the lines of gtrain --json, FILE.err what gtrain printed otherwise, FILE.run the words
# CONFIG PRECISION STATUS SECONDS LIMIT CUT: STATUS is "-" while it runs, CUT is 1 if less time was left than a smoke test may take.
# Writes FILE.row, FILE.worst and FILE.lines, which are lines of smokes.tsv, worst.tsv and lines.tsv, and FILE.phases: the complete lines of
# FILE.json.
read_smoke() {
	local file=$1 whole why
	whole=$(wc -l <"$file.json") # a last line without an end was cut
	head -n "$whole" "$file.json" | grep '^{.*}$' | read_awk '{ print clean($0) }' >"$file.phases"
	why=$(grep -v '^gtrain: warning' "$file.err" | tail -n 1)
	: >"$file.worst"
	{ sed 's/^/run /' "$file.run" && echo "why ${why#gtrain: }" && cat "$file.phases"; } | read_awk '
	function field(key,   i, v) { # of the object in this line, the first member with the name
		i = index($0, "\"" key "\":")
		if (!i)
			return ""
		v = substr($0, i + length(key) + 3)
		if (v ~ /^"/) { v = substr(v, 2); sub(/".*/, "", v) } else sub(/[,}].*/, "", v)
		return v
	}
	function note(kind, text) { print "smoke test of " config " in " precision, kind, text > (path ".lines") }
	/^run / { config = $2; given = precision = $3; status = $4; took = $5; limit_s = $6; cut = $7; next }
	/^why / { why = clean(substr($0, 5)); next }
	/"phase":"plan"/ { batch = field("batch"); precision = field("precision") }
	/"phase":"runs"/ { apart = field("worst"); limit = field("limit") }
	/"phase":"operations"/ {
		operations = field("compared"); calls = field("calls"); differ = field("differ"); absent = field("absent")
		most = 0
		m = split($0, row, /\{"operation":/)
		for (i = 2; i <= m; i++) {
			$0 = "\"operation\":" row[i]
			if (field("absent") != "null") {
				note("skip", sprintf("%s of %s: not compared: %s", field("operation"), field("layer"), field("absent")))
				continue
			}
			if (field("differ") + 0) {
				match($0, /"at":\[[^]]*\]/)
				note("failure", sprintf("step %d: %s of %s (%s): worst %.1e of %.1e at %s of %s", field("step"), field("operation"),
					field("layer"), field("kernel"), field("worst"), field("allowed"), substr($0, RSTART + 5, RLENGTH - 5),
					field("operand")))
			}
			share = field("share") == "null" ? 1e300 : field("share") + 0 # null: an infinite difference
			key = field("operation")
			most = share > most ? share : most
			if (!(key in worst) || share > worst[key]) { worst[key] = share; where[key] = config ": " field("layer") }
		}
	}
	END {
		ended = status == 124 || status == 137
		if (ended)
			why = "not through after " limit_s " s"
		if (status == "-") state = "interrupted"
		else if (status == 0) { state = "passed"; why = "" }
		else if (ended && cut) state = "not run"
		else if (status == 69 || why ~ /out of memory on [^ ]*: .* requested/) state = "skipped"
		else if (status == 78 && given != "config") state = "skipped" # this config and this precision cannot be combined
		else state = "failed"
		print config, precision, state, took, batch, operations, calls, differ, absent, most, apart, limit, file, why > (path ".row")
		for (key in worst)
			print "smoke", key, precision, worst[key], where[key] > (path ".worst")
	}' -v path="$file" -v file="${file##*/}"
}

# read_bench: the section bench, from its table and its status
read_bench() {
	local status took why=''
	[ -e "$work/bench.run" ] || return 0
	read -r status took why <"$work/bench.run"
	{ echo "$status $took $why" && cat "$work/bench.md" 2>/dev/null; } | read_awk '
	NR == 1 { status = $1; took = $2; why = $0; sub(/^[^ ]+ [^ ]+ ?/, "", why); next }
	{ figures += /[^ ]/; print "bench", "figure", clean($0) >> (out "/lines.tsv") }
	/^\| .*\/s \||^\| .* ms \|/ { rows++ }
	END {
		state = status == 0 ? "passed" : status == "-" ? "interrupted" : status == "skip" ? "skipped" : "failed"
		if (status == "cut")
			state = "not run"
		if (why != "")
			print "bench", (state == "failed" ? "failure" : "skip"), clean(why) >> (out "/lines.tsv")
		print "bench", state, took, (state == "passed" ? rows : 0), (state == "failed" ? 1 : 0), (state == "skipped" ? 1 : 0),
			"speed beside PyTorch, and the slowest kernels" >> (out "/sections.tsv")
	}' -v out="$work"
}

# read_results: all tables, of what there is now
read_results() {
	: >"$work/sections.tsv"
	: >"$work/lines.tsv"
	read_checks "$work/list" "$work"/check-*.log
	cat "$work"/smoke/*.row >"$work/smokes.tsv" 2>/dev/null
	cat "$work"/smoke/*.worst >>"$work/worst.tsv" 2>/dev/null
	cat "$work"/smoke/*.lines >>"$work/lines.tsv" 2>/dev/null
	read_bench
}
