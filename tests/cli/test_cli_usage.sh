#!/bin/bash
# Wrong usage: status 64, nothing on stdout, one line that says what, one that says where help is.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
tiny_config
cfg=$tmp/tiny.cfg

# wrong NAME TEXT ARGS...
wrong() {
	local name=$1 text=$2
	shift 2
	gives "$name" 64 err "$text" "$@"
	[ -s "$tmp/out" ] && fail "${name}_stdout" "wrote to stdout"
	[ "$(wc -l <"$tmp/err")" = 2 ] || fail "${name}_lines" "$(wc -l <"$tmp/err") lines on stderr, not 2"
	grep -q "^try 'gtrain .*-h'$" "$tmp/err" || fail "${name}_hint" 'no hint to the help'
}

wrong unknown_command "unknown command 'frobnicate'" frobnicate
wrong near_command "unknown command 'rnu'; did you mean 'run'?" rnu "$cfg"
wrong near_command2 "did you mean 'inspect'?" insepct x
wrong near_foreign "unknown command 'trian'; did you mean 'run'?" trian "$cfg"
wrong prefix_command "did you mean 'completion'?" compl
wrong forgotten_command "did you mean 'gtrain run $cfg'?" "$cfg"
wrong unknown_option "unknown option '--frobnicate'" run "$cfg" --frobnicate
wrong near_option "unknown option '--devcie'; did you mean '--device'?" run "$cfg" --devcie=cpu
wrong near_global "did you mean '--json'?" devices --jsn
wrong near_before "did you mean '--verbose'?" --verbos run "$cfg"
wrong key_as_option "did you mean '--set train.epochs=...'?" run "$cfg" --epochs 3
wrong key_as_option_dash "did you mean '--set train.label_smoothing=...'?" run "$cfg" --label-smoothing=0.1
wrong one_dash "long options begin with two dashes" run "$cfg" -json
wrong short "unknown option '-z'" run "$cfg" -z
wrong no_argument '--set: expected KEY=VALUE after it' run "$cfg" --set
wrong no_argument_short '-s: expected KEY=VALUE after it' run "$cfg" -s
wrong empty_argument '--out: expected DIR, got nothing' run "$cfg" --out=
option wrong flag_argument '--dry-run takes no value' run "$cfg" --dry-run=yes
wrong choice '--color: expected auto|always|never' --color=green devices
wrong choice_split "--split: expected train|valid|test, got 'tset'" eval x --split tset
wrong number '--rank: expected an integer from 0' plan "$cfg" --rank -1
wrong number_tail '--world: expected an integer from 1' check "$cfg" --world 2x
wrong number_zero '--world: expected an integer from 1' check "$cfg" --world 0
wrong number_huge '--steps: expected an integer' bench "$cfg" --steps 99999999999999999999
wrong nproc ', or auto' run "$cfg" --nproc many
for d in 1x 0 -5 1h30 30m1h inf nan 0x10 '' ' 5s' 5ms 1e400; do
	wrong "duration_${d// /_}" '--time-limit: expected' run "$cfg" --time-limit "$d"
done
wrong from '--from: expected latest, best or the number of a step' resume "$tmp" --from newest
wrong rank_of_world '--rank 2: expected a rank from 0 to 1' plan "$cfg" --world 2 --rank 2
wrong required 'expected --out FILE' export x
wrong too_few 'too few operands; usage: gtrain run CFG' run
wrong too_many "unexpected operand 'b'" run a b
wrong too_many_none "unexpected operand 'x'" devices x
wrong predict_few 'expected a FILE, --list or --text, got none' predict x
wrong shell "expected bash, zsh, fish, vim, vscode or json-schema, got 'csh'" completion csh
wrong dataset "unknown dataset or weights 'cifar11'; did you mean 'cifar10" fetch cifar11
wrong dataset_abbreviated "unknown dataset or weights 'fmnist'; did you mean 'fashion-mnist'" fetch fmnist
wrong dataset_other "unknown dataset or weights 'kmnist'; known datasets" fetch kmnist
wrong dataset_far 'known datasets' fetch imagenet-22k
wrong weights "did you mean 'resnet18'?" fetch resnet19
wrong weights_far 'known weights: resnet18, resnet34, ' fetch inception
wrong after_dashes "unexpected operand '--json'" check "$cfg" -- --json
for command in run 'run -n' 'run --nproc=2 -s parallel.mode=ddp' bench lr-find; do # the device null once ended runs by a segmentation fault
	# shellcheck disable=SC2086 # words
	wrong "null_$command" 'expected a device that computes, such as cpu, got "null"' $command "$cfg" --device null
done

gives data_name 0 err 'did you mean "fashion-mnist"?' check "$cfg" -s data='{ name = "fashonmnist"; batch = 32; }'

# What is right: both forms of values, options anywhere, bundled letters, operands after --.
gives equals 0 out 'tiny' check --set=train.epochs=3 "$cfg"
gives bundled 0 out 'tiny' check -qv "$cfg"
gives letter_joined 0 out '24' check "$cfg" -strain.epochs=3
gives after_operand 0 out '24' check "$cfg" -s train.epochs=3
gives dashes 0 out 'tiny' check -- "$cfg"
gives global_first 0 out '"name":"tiny"' --json check "$cfg"
gives last_set_wins 0 out '40 ' check "$cfg" -s train.epochs=3 -s train.epochs=5
