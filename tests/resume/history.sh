# Shared by the tests that go over a run's history; sourced. What a run directory must look like, whatever was done to it.
# shellcheck shell=bash

steps_in() { # the checkpoints of a run directory, oldest first
	find "$1" -maxdepth 1 -name 'step-????????' -printf '%f\n' | sort | sed 's/step-0*//'
}
name_of() { printf 'step-%08d' "$1"; }
member() { # CHECKPOINT KEY: a whole number of its manifest's first level
	grep -o "\"$2\":[0-9]*" "$1/manifest.json" | head -n 1 | cut -d: -f2
}
best_step() { sed -n 's/.*"best":{"value":[^,]*,"step":\([0-9]*\).*/\1/p' "$1/manifest.json"; }
best_value() { sed -n 's/.*"best":{"value":\([^,]*\),.*/\1/p' "$1/manifest.json"; }
# What a checkpoint is, to the last bit: its manifest, which has the digests of its files.
identity() { sha256sum <"$1/manifest.json" | cut -c1-16; }

# identities DIR: "<step> <identity>" of every checkpoint in it and in its histories
identities() {
	local d
	find "$1" -maxdepth 2 -name 'step-????????' | while read -r d; do echo "$((10#${d##*step-})) $(identity "$d")"; done | sort
}

# numbers KEY FILE EVENT: "<step> <value>" of the lines of an event
numbers() { sed -n "/\"event\":\"$3\"/s/.*\"step\":\\([0-9]*\\),.*\"$1\":\\([^,}]*\\).*/\\1 \\2/p" "$2"; }

# sound DIR: prints what is wrong with it; nothing if all is right. It must hold one line of checkpoints, links, metrics and config of that
# line and no left-overs.
sound() {
	local dir=$1 s serial last=0 newest='' link wrong f
	for s in $(steps_in "$dir"); do
		"$GTRAIN" inspect --verify "$dir/$(name_of "$s")" >/dev/null 2>&1 || echo "step $s does not verify;"
		serial=$(member "$dir/$(name_of "$s")" serial)
		[ "$serial" -gt "$last" ] || echo "step $s has the serial $serial, an earlier one $last;"
		last=$serial newest=$s
	done
	[ -n "$newest" ] || { echo "no checkpoint;"; return; }
	link=$(readlink "$dir/latest")
	[ "$link" = "$(name_of "$newest")" ] || echo "latest is $link, the newest is $newest;"
	link=$(readlink "$dir/best")
	s=$(best_step "$dir/latest")
	if [ -n "$s" ]; then
		[ "$link" = "$(name_of "$s")" ] || echo "best is ${link:-nothing}, the manifest calls $s the best;"
		[ -e "$dir/best/manifest.json" ] || echo "the best checkpoint is gone;"
		# The best is the best of this line, and the value is its own.
		wrong=$(numbers acc "$dir/metrics.jsonl" eval | awk -v n="$newest" -v s="$s" -v v="$(best_value "$dir/latest")" '
			$1 > n { next }
			$1 == s && ($2 - v > 1e-6 || v - $2 > 1e-6) { print "step " s " has accuracy " $2 ", its record " v ";" }
			$2 > m + 1e-9 { m = $2; at = $1 }
			END { if (at != s) print "the best accuracy is that of step " at ", best is " s ";" }')
		echo -n "$wrong"
	else
		[ -z "$link" ] || echo "best is $link, the manifest calls none the best;"
	fi
	# Every step once, in order, without a gap, up to the last that was trained.
	wrong=$(numbers loss "$dir/metrics.jsonl" train | awk -v n="$newest" '$1 != ++k { print "step " $1 " stands where " k " should;";
		exit } END { if (k < n) print "steps end at " k ";" }')
	echo -n "$wrong"
	wrong=$(grep -cv '^{"event":"[a-z]*","step":[0-9]*[,}].*}$' "$dir/metrics.jsonl")
	[ "$wrong" = 0 ] || echo "$wrong lines of metrics.jsonl are no events;"
	wrong=$(find "$dir" -maxdepth 2 \( -name '*.tmp-*' -o -name '*.old-*' -o -name '*.prev-*' -o -name 'next-*' \) -printf '%f ')
	[ -z "$wrong" ] || echo "left over: $wrong;"
	file=$(printf %o $((0666 & ~$(umask)))) folder=$(printf %o $((0777 & ~$(umask)))) lock=$(printf %o $((0660 & ~$(umask))))
	wrong=$(find "$dir" \( -name .lock ! -perm "$lock" -o -type f ! -name .lock ! -perm "$file" -o -type d ! -perm "$folder" \) \
		-printf '%P %m ')
	[ -z "$wrong" ] || echo "modes: $wrong;"
	for f in metrics.jsonl config.cfg; do
		[ -f "$dir/$f" ] && [ ! -L "$dir/$f" ] || echo "$f is missing;"
	done
	"$GTRAIN" eval "$dir" >/dev/null 2>&1 || echo "eval fails;"
}
