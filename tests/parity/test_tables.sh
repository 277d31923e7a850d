#!/bin/bash
# Tables against pandas (tables.py). $PANDAS_PYTHON: a Python with pandas and numpy (python3). $GTRAIN_TABLES: a folder of CSV files to
# compare as well.
set -u
python=${PANDAS_PYTHON:-python3}
if ! "$python" -c 'import pandas, numpy' 2>/dev/null; then
	echo "skip tables: $python has no pandas (set PANDAS_PYTHON)"
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tables=${GTRAIN_TABLES-$GTRAIN_SRC/../shared/data/tables}
nice "$python" "$GTRAIN_SRC/tests/parity/tables.py" "$GTRAIN_BUILD/tests/parity/tool_columns" "$tmp" "$tables" >"$tmp/log" 2>&1 ||
	echo "not ok tables: $(tail -n 1 "$tmp/log")"
grep -E '^(ok|not ok|# )' "$tmp/log"
