#!/bin/bash
# .github/workflows/ci.yml, .gitlab-ci.yml and the README's workflow: YAML with the keys that GitHub and GitLab want, whose commands exist
# here.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
ci=$src/.github/workflows/ci.yml lab=$src/.gitlab-ci.yml
awk '/^```/ { block = !block; next } block && /^on: push/ { on = 1 } !block { on = 0 } on' "$src/README.md" >"$tmp/readme.yml"
python=
for p in python3 /usr/bin/python3; do
	if "$p" -c 'import yaml' 2>/dev/null; then python=$p; fi
done
if [ -n "$python" ]; then
	for f in "$ci" "$tmp/readme.yml"; do
		if why=$("$python" - "$f" <<'PY' 2>&1
import sys, yaml
v = yaml.safe_load(open(sys.argv[1]))
assert (True in v or "on" in v) and v["jobs"], "no trigger or no jobs"   # YAML 1.1 reads `on` as true
for name, job in v["jobs"].items():
    assert job["runs-on"] and job["steps"], name
    for s in job["steps"]:
        assert ("run" in s) != ("uses" in s), (name, s)
PY
		); then pass "yaml_$(basename "$f" .yml)"; else fail "yaml_$(basename "$f" .yml)" "$(tail -n 1 <<<"$why")"; fi
	done
	if why=$("$python" - "$lab" <<'PY' 2>&1
import sys, yaml
for name, job in yaml.safe_load(open(sys.argv[1])).items():
    assert job["image"] and all(isinstance(line, str) for line in job["script"] + job["before_script"]), name
PY
	); then pass yaml_gitlab; else fail yaml_gitlab "$(tail -n 1 <<<"$why")"; fi
else
	skip yaml 'python3 has no yaml'
fi
if [ -s "$tmp/readme.yml" ] && [ "$(grep -c . "$tmp/readme.yml")" -le 12 ]; then
	pass readme_short
else
	fail readme_short "$(grep -c . "$tmp/readme.yml") lines"
fi

# Targets of make, and files, that the steps name.
missing=
for t in $(sed 's/#.*//' "$ci" "$lab" | grep -o '\bmake [^|&;]*' | grep -o ' [a-z][a-z-]*' | sort -u) install; do
	grep -q "^$t:" "$src/Makefile" || missing="$missing make $t;"
done
for f in $(sed -n 's/^ *\(run:\|-\) \([a-z]*\/[^ ]*\).*/\2/p' "$ci" "$lab") scripts/deps.sh; do
	[ -x "$src/$f" ] || missing="$missing $f;"
done
if [ -z "$missing" ]; then pass commands_exist; else fail commands_exist "not here:$missing"; fi
for o in smoke device; do
	"$gtrain" run -h | grep -q -- " --$o" || fail "option_$o" 'the workflows use it, and gtrain run has it not'
done
