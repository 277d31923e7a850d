# Sourced by prove.sh: what the card, its driver, the libraries and the machine are. write_facts prints lines GROUP<tab>NAME<tab>VALUE.
# Nothing here identifies a person or a machine: no host name, no user, no serial number, no UUID.
# shellcheck shell=bash disable=SC2154 # variables of prove.sh
fact() { # GROUP NAME VALUE: a line, if there is a value
	[ -z "$3" ] || [ "$3" = '[N/A]' ] || printf '%s\t%s\t%s\n' "$1" "$2" "$3"
}

# find_tool NAME: a program of the CUDA toolkit, on PATH or where the toolkit is installed; nothing if it is not there
find_tool() {
	command -v "$1" || compgen -G "/usr/local/cuda/bin/$1" || compgen -G "/usr/local/cuda-*/bin/$1" | tail -n 1
}

# query_card GROUP ADDRESS FIELD...: fields of nvidia-smi. A driver that does not know one of them rejects all, so they are then asked one
# by one.
query_card() {
	local group=$1 address=$2 row field
	shift 2
	row=$(nvidia-smi --id="$address" --query-gpu="$(IFS=,; echo "$*")" --format=csv,noheader 2>/dev/null) || row=
	for field; do
		if [ -n "$row" ]; then
			fact "$group" "$field" "$(sed 's/,.*//; s/^ *//; s/ *$//' <<<"$row")"
			row=${row#*,}
		else
			fact "$group" "$field" "$(nvidia-smi --id="$address" --query-gpu="$field" --format=csv,noheader 2>/dev/null |
				head -n 1 | grep -v 'not a valid field')"
		fi
	done
}

# query_state GROUP ADDRESS: what changes while the card works
query_state() {
	command -v nvidia-smi >/dev/null || return 0
	query_card "$1" "$2" clocks.sm clocks.mem temperature.gpu power.draw pstate memory.used \
		ecc.errors.uncorrected.volatile.total clocks_throttle_reasons.active
}

write_libraries() { # paths and names of libraries, for tool_versions
	local names=() name
	if [ "$simulated" = true ]; then
		names=("$build"/lib/gtrain/lib{cublasLt,cudnn,nccl}.so.0)
	else
		while read -r _ name; do case $name in /*) names+=("$name") ;; esac; done <<<"$cuda_libs"
	fi
	[ ${#names[@]} = 0 ] || "$build/tests/gpu/tool_versions" "${names[@]}" 2>/dev/null |
		while read -r name version; do fact libraries "$name" "$version"; done
}

write_tool() { # NAME PATTERN: the version of a tool of CUDA; PATTERN: of sed, finds it
	local tool version
	tool=$(find_tool "$1")
	[ -z "$tool" ] || version=$("$tool" --version 2>/dev/null | sed -n "$2" | head -n 1)
	[ -n "$tool" ] || version='not installed'
	fact libraries "$1" "$version"
}

# write_facts ROW ADDRESS: ROW is the card's line of `gtrain devices --json`, ADDRESS its index for nvidia-smi
write_facts() {
	local row=$1 address=$2 tool
	fact gtrain commit "$commit"
	"$GTRAIN" --version 2>/dev/null | awk '/^[a-z]/ { name = $1; sub(/^[a-z]+ */, "") } { sub(/^ +/, ""); text[name] = text[name] " " $0 }
		END { for (n in text) if (n == "compiler" || n == "cuda" || n == "libraries") print "gtrain\t" n "\t" substr(text[n], 2) }'
	fact card name "$card"
	fact card detail "$(sed -n 's/.*"detail":"\([^"]*\)".*/\1/p' <<<"$row")"
	fact card memory "$(sed -n 's/.*"bytes":\([0-9]*\).*/\1/p' <<<"$row" | awk '{ printf "%.0f MiB", $1 / 1048576 }')"
	if command -v nvidia-smi >/dev/null; then
		query_card card "$address" driver_version vbios_version memory.total clocks.max.sm clocks.max.mem clocks.applications.graphics \
			ecc.mode.current power.limit power.default_limit persistence_mode compute_mode mig.mode.current pcie.link.gen.current \
			pcie.link.width.current
	else
		fact card nvidia-smi 'not installed'
	fi
	write_libraries
	write_tool nvcc 's/.*release [^,]*, V\([0-9.]*\).*/\1/p'
	write_tool compute-sanitizer 's/.*Version \([0-9.]*\).*/\1/p'
	tool=$("$torch_python" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null)
	fact libraries PyTorch "${tool:-not installed}"
	fact machine processor "$("$GTRAIN" devices --json 2>/dev/null | sed -n 's/.*"id":"cpu".*"name":"\([^"]*\)".*/\1/p')"
	fact machine memory "$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
	fact machine system "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1, /p' /etc/os-release 2>/dev/null)Linux $(uname -r)"
	fact machine 'C library' "$(getconf GNU_LIBC_VERSION 2>/dev/null)"
}
