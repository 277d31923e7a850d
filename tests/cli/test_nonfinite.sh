#!/bin/bash
# tests/run: beside others
# Evaluations and predictions whose outputs are NaN or infinite: status 3, and the first operation of which they come.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
{
	echo a,b,c,y
	for i in $(seq 60); do
		echo "$((i % 7)),$((i % 5)),$((i % 3)),$([ $((i % 2)) = 0 ] && echo yes || echo no)"
	done
} >train.csv
head -n 41 train.csv >fine.csv
# The numbers are finite, but their weighted sum exceeds the range of f32.
{ head -n 31 train.csv; echo 1e38,1e38,-1e38,yes; echo 1,2,1,no; } >huge.csv
cat >net.cfg <<'CFG'
schema = 1;
name = "net";
device = "cpu";
data = { format = "csv"; train = ["train.csv"]; test = ["fine.csv"]; target = "y"; batch = 8;
	columns = ( { name = "a"; type = "continuous"; }, { name = "b"; type = "continuous"; }, { name = "c"; type = "continuous"; },
		{ name = "y"; type = "target"; } ); };
model = { inputs = ( { name = "values"; } ); layers = ( { name = "first"; type = "linear"; out = 16; init_std = 4.0; },
	{ name = "act"; type = "gelu"; }, { name = "last"; type = "linear"; out = 2; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.001; }; };
checkpoint = { dir = "left"; best = { metric = "test/loss"; }; };
CFG
why='the output of first (linear) is not finite, first for sample 30'

gives fine 0 out 'test accuracy' run net.cfg -o good
gives run_names_the_operation 3 err "diverged at or before step 8: evaluation of the split test: $why" \
	run net.cfg -o bad -s 'data.test=["huge.csv"]'
if grep -q '"status":"ok"' bad/metrics.jsonl; then
	fail run_is_no_success 'metrics.jsonl says that the run ended well'
else
	pass run_is_no_success
fi
gives run_watching_f1 3 err "$why" run net.cfg -o f1 -s 'data.test=["huge.csv"]' -s 'checkpoint.best.metric="test/f1"'
gives eval_names_the_operation 3 err "evaluation of the split test: $why" eval good -s 'data.test=["huge.csv"]'
gives eval_report_names_the_operation 3 err "$why" eval good --report -s 'data.test=["huge.csv"]'
gives eval_of_two_stages 3 err "$why" eval good --nproc 2 -s parallel.mode=pipe -s 'data.test=["huge.csv"]'
gives eval_of_two_ranks 3 err "$why" eval good --nproc 2 -s parallel.mode=ddp -s 'data.test=["huge.csv"]'

gives predict_names_row_and_operation 3 err \
	'1 of the predictions are not finite; the first of these predictions is for huge.csv, sample 30: the output of first (linear) is' \
	predict good huge.csv
if [ "$(wc -l <out)" = 33 ] && [ "$(sed -n 32p out)" = huge.csv,30,,nan,nan ] && ! sed 32d out | grep -q nan; then
	pass predict_writes_all_rows
else
	fail predict_writes_all_rows "$(sed -n 32p out)"
fi
gives predict_json 3 out '"index":30,"scaled":false,"class":null,"name":null,"probability":null,"top":[]' predict good huge.csv --json
gives predict_top 3 out 'huge.csv,30,,,nan,,,' predict good huge.csv --top 2
gives predict_of_finite_rows 0 out 'fine.csv,39,' predict good fine.csv
