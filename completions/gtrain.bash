# bash completion for gtrain. Made by `gtrain completion bash` from the option tables; do not edit.

# What the argument of option $2 of command $1 is: sets kind and choices. Fails if it takes none.
_gtrain_argument()
{
	kind='' choices=''
	case $1:$2 in
	:--color) kind='choice' choices='auto always never' ;;
	run:--set | run:-s) kind='key' choices='' ;;
	run:--out | run:-o) kind='dir' choices='' ;;
	run:--device) kind='device' choices='' ;;
	run:--init) kind='file' choices='' ;;
	run:--time-limit) kind='none' choices='' ;;
	run:--nproc) kind='choice' choices='auto' ;;
	run:--nnodes) kind='none' choices='' ;;
	run:--node-rank) kind='none' choices='' ;;
	run:--master-addr) kind='none' choices='' ;;
	run:--master-port) kind='none' choices='' ;;
	run:--token-file) kind='file' choices='' ;;
	run:--max-restarts) kind='none' choices='' ;;
	resume:--from) kind='choice' choices='latest best' ;;
	resume:--set | resume:-s) kind='key' choices='' ;;
	resume:--device) kind='device' choices='' ;;
	resume:--time-limit) kind='none' choices='' ;;
	resume:--nproc) kind='choice' choices='auto' ;;
	resume:--nnodes) kind='none' choices='' ;;
	resume:--node-rank) kind='none' choices='' ;;
	resume:--master-addr) kind='none' choices='' ;;
	resume:--master-port) kind='none' choices='' ;;
	resume:--token-file) kind='file' choices='' ;;
	resume:--max-restarts) kind='none' choices='' ;;
	check:--set | check:-s) kind='key' choices='' ;;
	check:--device) kind='device' choices='' ;;
	check:--world) kind='none' choices='' ;;
	check:--mode) kind='choice' choices='single dp ddp zero pipe' ;;
	plan:--set | plan:-s) kind='key' choices='' ;;
	plan:--device) kind='device' choices='' ;;
	plan:--world) kind='none' choices='' ;;
	plan:--mode) kind='choice' choices='single dp ddp zero pipe' ;;
	plan:--rank) kind='none' choices='' ;;
	eval:--split) kind='choice' choices='train valid test' ;;
	eval:--predictions) kind='file' choices='' ;;
	eval:--set | eval:-s) kind='key' choices='' ;;
	eval:--device) kind='device' choices='' ;;
	eval:--nproc) kind='none' choices='' ;;
	predict:--top) kind='none' choices='' ;;
	predict:--list) kind='file' choices='' ;;
	predict:--text) kind='none' choices='' ;;
	predict:--keep) kind='none' choices='' ;;
	predict:--device) kind='device' choices='' ;;
	export:--out | export:-o) kind='file' choices='' ;;
	lr-find:--set | lr-find:-s) kind='key' choices='' ;;
	lr-find:--from) kind='none' choices='' ;;
	lr-find:--to) kind='none' choices='' ;;
	lr-find:--steps) kind='none' choices='' ;;
	lr-find:--device) kind='device' choices='' ;;
	lr-find:--init) kind='file' choices='' ;;
	lr-find:--nproc) kind='choice' choices='auto' ;;
	bench:--set | bench:-s) kind='key' choices='' ;;
	bench:--device) kind='device' choices='' ;;
	bench:--nproc) kind='choice' choices='auto' ;;
	bench:--steps) kind='none' choices='' ;;
	init:--out | init:-o) kind='file' choices='' ;;
	init:--target) kind='none' choices='' ;;
	init:--pretrained) kind='file' choices='' ;;
	fetch:--dir) kind='dir' choices='' ;;
	fetch:--url) kind='none' choices='' ;;
	esac
	[[ -n $kind ]]
}

# KEY=VALUE: the keys of the schema, then the values of an enumeration.
_gtrain_key()
{
	local key type rest value
	while IFS=$'\t' read -r key type rest; do
		if [[ $2 != *=* ]]; then
			[[ $key == "$2"* ]] && COMPREPLY+=("$key=")
		elif [[ $key == "${2%%=*}" ]]; then
			[[ $type == bool ]] && type='true|false'
			[[ $type == *'|'* ]] || return
			for value in ${type//|/ }; do
				[[ $key=$value == "$2"* ]] && COMPREPLY+=("$key=$value")
			done
		fi
	done < <("$1" completion keys 2>/dev/null)
	[[ $2 == *=* ]] || compopt -o nospace
}

_gtrain()
{
	local line=${COMP_LINE:0:COMP_POINT} word cur prev='' command='' prefix='' tail broken kind='' choices='' options='' i operand=0
	local -a words=()
	# COMP_WORDS is cut at = and :, which stand in our words; so is the text that readline replaces.
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=('')
	word=${words[${#words[@]} - 1]} cur=$word
	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		if [[ ${words[i]} == -?* ]]; then
			if _gtrain_argument "$command" "${words[i]}" || _gtrain_argument '' "${words[i]}"; then
				prev=${words[i]}
				((i++))
				((i < ${#words[@]} - 1)) && prev=''
			fi
		elif [[ -z $command ]]; then
			command=${words[i]}
		else
			((operand++))
		fi
	done
	if [[ -z $prev && $cur == --*=* ]]; then
		prev=${cur%%=*} prefix=$prev= cur=${cur#*=}
	fi
	kind='' choices=''
	local global=' --json --quiet -q --verbose -v --color --no-progress --help -h --version'
	local commands='run resume check plan eval predict inspect export lr-find bench configs init fetch devices completion help'
	case $command in
	'') kind=command choices=$commands ;;
	run)
		options=' --set -s --dry-run -n --out -o --new --smoke --device --init --time-limit --nproc --nnodes --node-rank --master-addr --master-port --token-file --max-restarts'
		((operand)) || kind='config' choices=''
		;;
	resume)
		options=' --from --set -s --device --time-limit --nproc --nnodes --node-rank --master-addr --master-port --token-file --max-restarts'
		((operand)) || kind='checkpoint' choices=''
		;;
	check)
		options=' --set -s --device --world --mode --data --verify --time --strict'
		((operand)) || kind='config' choices=''
		;;
	plan)
		options=' --set -s --device --world --mode --rank'
		((operand)) || kind='config' choices=''
		;;
	eval)
		options=' --split --report --csv --predictions --set -s --device --nproc'
		kind='file'
		((operand)) || kind='checkpoint'
		;;
	predict)
		options=' --top --list --text --append --keep --csv --device'
		kind='file'
		((operand)) || kind='checkpoint'
		;;
	inspect)
		options=' --verify'
		((operand)) || kind='checkpoint' choices=''
		;;
	export)
		options=' --out -o'
		((operand)) || kind='checkpoint' choices=''
		;;
	lr-find)
		options=' --set -s --from --to --steps --device --init --nproc'
		((operand)) || kind='config' choices=''
		;;
	bench)
		options=' --set -s --device --nproc --steps'
		((operand)) || kind='config' choices=''
		;;
	configs)
		options=''
		((operand)) || kind='bundled' choices=''
		;;
	init)
		options=' --out -o --target --pretrained'
		((operand)) || kind='file' choices=''
		;;
	fetch)
		options=' --dir --url'
		((operand)) || kind='dataset' choices=''
		;;
	devices)
		options=''
		;;
	completion)
		options=''
		((operand)) || kind='choice' choices='bash zsh fish'
		;;
	help)
		options=''
		((operand)) || kind=command choices=$commands
		;;
	esac
	if [[ -n $prev ]]; then
		_gtrain_argument "$command" "$prev" || _gtrain_argument '' "$prev" || return
	elif [[ $cur == -* ]]; then
		kind=choice choices="$options$global"
	fi
	COMPREPLY=()
	case $kind in
	config)
		mapfile -t COMPREPLY < <(compgen -f -X '!*.cfg' -- "$cur"; compgen -d -- "$cur")
		compopt -o filenames
		((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -W "$("$1" completion configs 2>/dev/null)" -- "$cur")
		;;
	bundled) mapfile -t COMPREPLY < <(compgen -W "$("$1" completion configs 2>/dev/null)" -- "$cur") ;;
	dir | checkpoint)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		compopt -o filenames
		;;
	file)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		compopt -o filenames
		;;
	key) _gtrain_key "$1" "$cur" ;;
	device) mapfile -t COMPREPLY < <(compgen -W "$("$1" completion devices 2>/dev/null)" -- "$cur") ;;
	dataset) mapfile -t COMPREPLY < <(compgen -W "$("$1" completion datasets 2>/dev/null)" -- "$cur") ;;
	choice | command) mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur") ;;
	esac
	((${#COMPREPLY[@]})) || return
	tail=$word
	for i in = :; do
		[[ $COMP_WORDBREAKS == *"$i"* ]] && tail=${tail##*"$i"}
	done
	broken=${word%"$tail"}
	COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
	COMPREPLY=("${COMPREPLY[@]#"$broken"}")
}
complete -o default -F _gtrain gtrain
