# fish completion for gtrain. Made by `gtrain completion fish` from the option tables; do not edit.

# The words before the cursor that are neither options nor arguments of options: the command, then operands.
function __gtrain_words_typed
	set -l skip 0
	for word in (commandline -opc)[2..-1]
		if test $skip = 1
			set skip 0
			continue
		end
		switch $word
			case --color -s --set -o --out --device --init --time-limit --nproc --nnodes --node-rank --master-addr --master-port --token-file --max-restarts --from --world --mode --rank --split --predictions --top --list --text --keep --to --steps --target --pretrained --dir --url
				set skip 1
			case '-*'
			case '*'
				echo $word
		end
	end
end

# Is $argv[1] the command, with (if given) $argv[2] operands after it?
function __gtrain_is
	set -l typed (__gtrain_words_typed)
	test "$typed[1]" = "$argv[1]"; or return
	set -q argv[2]; or return 0
	test (math (count $typed) - 1) -$argv[2] $argv[3]
end

# One word a line, from gtrain itself.
function __gtrain_words
	set -l program (commandline -opc)[1]
	$program completion $argv[1] 2>/dev/null
end

# KEY=VALUE: the keys of the schema, then the values of an enumeration.
function __gtrain_keys
	set -l token (commandline -ct | string replace -r '^(--set=|-s)' '')
	set -l chosen (string split -m 1 = -- $token)
	for line in (__gtrain_words keys)
		set -l key (string split \t -- $line)
		if not string match -q '*=*' -- $token
			printf '%s=\t%s\n' $key[1] $key[3]
		else if test "$key[1]" = "$chosen[1]"
			test "$key[2]" = bool; and set key[2] 'true|false'
			string match -q '*|*' -- $key[2]; and printf "$key[1]=%s\n" (string split '|' -- $key[2])
		end
	end
end

complete -c gtrain -f

complete -c gtrain -l json -d 'print JSON on standard output, one object per line'
complete -c gtrain -s q -l quiet -d 'print only results, warnings and errors'
complete -c gtrain -s v -l verbose -d 'report more details'
complete -c gtrain -l color -x -a 'auto always never' -d 'use of colours: auto, always or never'
complete -c gtrain -l no-progress -d 'print no progress line and no periodic lines'
complete -c gtrain -s h -l help -d 'print this help'
complete -c gtrain -l version -d 'print the version, and how gtrain was built'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a run -d 'train the model that a config file describes'
complete -c gtrain -n '__gtrain_is run' -s s -l set -x -a '(__gtrain_keys)' -d 'set a key of the config, for example train.epochs=3; can be repeated'
complete -c gtrain -n '__gtrain_is run' -s n -l dry-run -d 'do all that a run does before its first step, fail where it would fail, and report as \'gtrain check\' does; train nothing'
complete -c gtrain -n '__gtrain_is run' -s o -l out -x -a '(__fish_complete_directories)' -d 'directory of the run, instead of checkpoint.dir'
complete -c gtrain -n '__gtrain_is run' -l new -d 'if the directory of the run exists, write a new one beside it: DIR-2, DIR-3, ...'
complete -c gtrain -n '__gtrain_is run' -l smoke -d 'test the config: run a few steps, an evaluation, a checkpoint, and a resume that must give the same bits'
complete -c gtrain -n '__gtrain_is run' -l device -x -a '(__gtrain_words devices)' -d 'cpu, cuda or cuda:N, instead of the config\'s device'
complete -c gtrain -n '__gtrain_is run' -l init -r -F -d 'read the initial weights from a safetensors file'
complete -c gtrain -n '__gtrain_is run' -l time-limit -x -d 'write a checkpoint and end after this time, for example 90s, 15m or 1h30m'
complete -c gtrain -n '__gtrain_is run' -l nproc -x -a 'auto' -d 'number of ranks, or auto, instead of parallel.nproc'
complete -c gtrain -n '__gtrain_is run' -l nnodes -x -d 'number of hosts, with --nproc ranks each; start the command on every host'
complete -c gtrain -n '__gtrain_is run' -l node-rank -x -d 'index of this host, from 0'
complete -c gtrain -n '__gtrain_is run' -l master-addr -x -d 'address at which the other hosts reach the first one'
complete -c gtrain -n '__gtrain_is run' -l master-port -x -d 'port on the first host; default: 29500'
complete -c gtrain -n '__gtrain_is run' -l token-file -r -F -d 'file of 64 hexadecimal digits that authenticates ranks on several hosts; no other user may be able to read it'
complete -c gtrain -n '__gtrain_is run' -l max-restarts -x -d 'after a rank is lost, continue from the newest checkpoint, at most N times'
complete -c gtrain -n '__gtrain_is run eq 0' -k -a '(__fish_complete_suffix .cfg; count *.cfg >/dev/null; or __gtrain_words configs)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a resume -d 'continue a run from its newest checkpoint'
complete -c gtrain -n '__gtrain_is resume' -l from -x -a 'latest best' -d 'checkpoint to continue from: latest (the newest one that is not damaged), best, or the number of a step'
complete -c gtrain -n '__gtrain_is resume' -s s -l set -x -a '(__gtrain_keys)' -d 'set a key of the config, for example train.epochs=3; can be repeated'
complete -c gtrain -n '__gtrain_is resume' -l device -x -a '(__gtrain_words devices)' -d 'cpu, cuda or cuda:N, instead of the config\'s device'
complete -c gtrain -n '__gtrain_is resume' -l time-limit -x -d 'write a checkpoint and end after this time, for example 90s, 15m or 1h30m'
complete -c gtrain -n '__gtrain_is resume' -l nproc -x -a 'auto' -d 'number of ranks, or auto, instead of parallel.nproc'
complete -c gtrain -n '__gtrain_is resume' -l nnodes -x -d 'number of hosts, with --nproc ranks each; start the command on every host'
complete -c gtrain -n '__gtrain_is resume' -l node-rank -x -d 'index of this host, from 0'
complete -c gtrain -n '__gtrain_is resume' -l master-addr -x -d 'address at which the other hosts reach the first one'
complete -c gtrain -n '__gtrain_is resume' -l master-port -x -d 'port on the first host; default: 29500'
complete -c gtrain -n '__gtrain_is resume' -l token-file -r -F -d 'file of 64 hexadecimal digits that authenticates ranks on several hosts; no other user may be able to read it'
complete -c gtrain -n '__gtrain_is resume' -l max-restarts -x -d 'after a rank is lost, continue from the newest checkpoint, at most N times'
complete -c gtrain -n '__gtrain_is resume eq 0' -a '(__fish_complete_directories)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a check -d 'show the shapes, parameters, memory, steps and learning rates of a config'
complete -c gtrain -n '__gtrain_is check' -s s -l set -x -a '(__gtrain_keys)' -d 'set a key of the config, for example train.epochs=3; can be repeated'
complete -c gtrain -n '__gtrain_is check' -l device -x -a '(__gtrain_words devices)' -d 'cpu, cuda or cuda:N, instead of the config\'s device'
complete -c gtrain -n '__gtrain_is check' -l world -x -d 'plan for N ranks, instead of parallel.nproc'
complete -c gtrain -n '__gtrain_is check' -l mode -x -a 'single dp ddp zero pipe' -d 'plan for this parallel.mode, instead of the config\'s: single, dp, ddp, zero, pipe'
complete -c gtrain -n '__gtrain_is check' -l data -d 'read all texts or rows, or the headers of all images, and list those that cannot be read'
complete -c gtrain -n '__gtrain_is check' -l verify -d 'as --data, but decode every image completely'
complete -c gtrain -n '__gtrain_is check' -l time -d 'measure some steps on this machine, and show how long an epoch and the run take'
complete -c gtrain -n '__gtrain_is check' -l strict -d 'fail if there is a warning, for example about data or a device that this machine does not have'
complete -c gtrain -n '__gtrain_is check eq 0' -k -a '(__fish_complete_suffix .cfg; count *.cfg >/dev/null; or __gtrain_words configs)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a plan -d 'print the list of steps that a rank executes'
complete -c gtrain -n '__gtrain_is plan' -s s -l set -x -a '(__gtrain_keys)' -d 'set a key of the config, for example train.epochs=3; can be repeated'
complete -c gtrain -n '__gtrain_is plan' -l device -x -a '(__gtrain_words devices)' -d 'cpu, cuda or cuda:N, instead of the config\'s device'
complete -c gtrain -n '__gtrain_is plan' -l world -x -d 'plan for N ranks, instead of parallel.nproc'
complete -c gtrain -n '__gtrain_is plan' -l mode -x -a 'single dp ddp zero pipe' -d 'plan for this parallel.mode, instead of the config\'s: single, dp, ddp, zero, pipe'
complete -c gtrain -n '__gtrain_is plan' -l rank -x -d 'rank whose list of steps is printed; default: 0'
complete -c gtrain -n '__gtrain_is plan eq 0' -k -a '(__fish_complete_suffix .cfg; count *.cfg >/dev/null; or __gtrain_words configs)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a eval -d 'measure the loss and accuracy of a checkpoint'
complete -c gtrain -n '__gtrain_is eval' -l split -x -a 'train valid test' -d 'split to use: train, valid or test; default: test, or valid if the data has no split test'
complete -c gtrain -n '__gtrain_is eval' -l report -d 'also show precision, recall, F1 and ROC AUC of each class, and which classes are confused; for columns of numbers, their errors'
complete -c gtrain -n '__gtrain_is eval' -l csv -d 'with --report, print only the scores of the classes, as CSV'
complete -c gtrain -n '__gtrain_is eval' -l predictions -r -F -d 'write the path, label, prediction, probabilities and loss of each sample to this CSV file'
complete -c gtrain -n '__gtrain_is eval' -s s -l set -x -a '(__gtrain_keys)' -d 'set a key of the config, for example train.epochs=3; can be repeated'
complete -c gtrain -n '__gtrain_is eval' -l device -x -a '(__gtrain_words devices)' -d 'cpu, cuda or cuda:N, instead of the config\'s device'
complete -c gtrain -n '__gtrain_is eval' -l nproc -x -d 'number of ranks that share the samples; default: 1'
complete -c gtrain -n '__gtrain_is eval eq 0' -a '(__fish_complete_directories)'
complete -c gtrain -n '__gtrain_is eval ge 1' -F

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a predict -d 'predict images (PNG, JPEG, WebP, IDX), rows of tables (CSV) or texts with a checkpoint'
complete -c gtrain -n '__gtrain_is predict' -l top -x -d 'number of most likely classes to show, 1 to 10; default: 1'
complete -c gtrain -n '__gtrain_is predict' -l list -r -F -d 'also classify the files that FILE lists, one path on each line; -: standard input; can be repeated'
complete -c gtrain -n '__gtrain_is predict' -l text -x -d 'classify this text with a model of texts; can be repeated'
complete -c gtrain -n '__gtrain_is predict' -l append -d 'with a model of tables, print all columns of the input, and then the prediction'
complete -c gtrain -n '__gtrain_is predict' -l keep -x -d 'the same with these columns only, names with commas between them; can be repeated'
complete -c gtrain -n '__gtrain_is predict' -l csv -d 'print CSV with a header line'
complete -c gtrain -n '__gtrain_is predict' -l device -x -a '(__gtrain_words devices)' -d 'cpu, cuda or cuda:N, instead of the config\'s device'
complete -c gtrain -n '__gtrain_is predict eq 0' -a '(__fish_complete_directories)'
complete -c gtrain -n '__gtrain_is predict ge 1' -F

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a inspect -d 'show the contents of a checkpoint, and verify it'
complete -c gtrain -n '__gtrain_is inspect' -l verify -d 'read all files and verify their digests'
complete -c gtrain -n '__gtrain_is inspect eq 0' -a '(__fish_complete_directories)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a export -d 'write a checkpoint\'s weights as one safetensors file'
complete -c gtrain -n '__gtrain_is export' -s o -l out -r -F -d 'the file to write; -: standard output'
complete -c gtrain -n '__gtrain_is export eq 0' -a '(__fish_complete_directories)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a lr-find -d 'train with growing learning rates and suggest one'
complete -c gtrain -n '__gtrain_is lr-find' -s s -l set -x -a '(__gtrain_keys)' -d 'set a key of the config, for example train.epochs=3; can be repeated'
complete -c gtrain -n '__gtrain_is lr-find' -l from -x -d 'learning rate of the first step; default: 1e-7'
complete -c gtrain -n '__gtrain_is lr-find' -l to -x -d 'learning rate of the last step; default: 10'
complete -c gtrain -n '__gtrain_is lr-find' -l steps -x -d 'number of training steps; default: 100'
complete -c gtrain -n '__gtrain_is lr-find' -l device -x -a '(__gtrain_words devices)' -d 'cpu, cuda or cuda:N, instead of the config\'s device'
complete -c gtrain -n '__gtrain_is lr-find' -l init -r -F -d 'read the initial weights from a safetensors file'
complete -c gtrain -n '__gtrain_is lr-find' -l nproc -x -a 'auto' -d 'number of ranks, or auto, instead of parallel.nproc'
complete -c gtrain -n '__gtrain_is lr-find eq 0' -k -a '(__fish_complete_suffix .cfg; count *.cfg >/dev/null; or __gtrain_words configs)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a bench -d 'measure the time of the training step, kernel by kernel'
complete -c gtrain -n '__gtrain_is bench' -s s -l set -x -a '(__gtrain_keys)' -d 'set a key of the config, for example train.epochs=3; can be repeated'
complete -c gtrain -n '__gtrain_is bench' -l device -x -a '(__gtrain_words devices)' -d 'cpu, cuda or cuda:N, instead of the config\'s device'
complete -c gtrain -n '__gtrain_is bench' -l nproc -x -a 'auto' -d 'number of ranks, or auto, instead of parallel.nproc'
complete -c gtrain -n '__gtrain_is bench' -l steps -x -d 'number of training steps to time; default: 100'
complete -c gtrain -n '__gtrain_is bench eq 0' -k -a '(__fish_complete_suffix .cfg; count *.cfg >/dev/null; or __gtrain_words configs)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a configs -d 'list the configs that come with gtrain, or print one'
complete -c gtrain -n '__gtrain_is configs eq 0' -a '(__gtrain_words configs)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a init -d 'write a config for a folder of images or texts, or for a table'
complete -c gtrain -n '__gtrain_is init' -s o -l out -r -F -d 'file to write; default and -: standard output'
complete -c gtrain -n '__gtrain_is init' -l target -x -d 'of a table: column to predict; can be repeated for several columns of numbers'
complete -c gtrain -n '__gtrain_is init' -l pretrained -r -F -d 'safetensors file with the weights of a ResNet of torchvision to start from'
complete -c gtrain -n '__gtrain_is init eq 0' -F

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a fetch -d 'download a dataset and verify its digests'
complete -c gtrain -n '__gtrain_is fetch' -l dir -x -a '(__fish_complete_directories)' -d 'folder to download to; default: the user\'s cache'
complete -c gtrain -n '__gtrain_is fetch' -l url -x -d 'address to download from, instead of the known mirrors'
complete -c gtrain -n '__gtrain_is fetch eq 0' -a '(__gtrain_words datasets)'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a devices -d 'list the devices on which this machine can train'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a completion -d 'print the completion script for a shell'
complete -c gtrain -n '__gtrain_is completion eq 0' -a 'bash zsh fish'

complete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a help -d 'explain gtrain, a command or a key of a config'
complete -c gtrain -n '__gtrain_is help eq 0' -a run
complete -c gtrain -n '__gtrain_is help eq 0' -a resume
complete -c gtrain -n '__gtrain_is help eq 0' -a check
complete -c gtrain -n '__gtrain_is help eq 0' -a plan
complete -c gtrain -n '__gtrain_is help eq 0' -a eval
complete -c gtrain -n '__gtrain_is help eq 0' -a predict
complete -c gtrain -n '__gtrain_is help eq 0' -a inspect
complete -c gtrain -n '__gtrain_is help eq 0' -a export
complete -c gtrain -n '__gtrain_is help eq 0' -a lr-find
complete -c gtrain -n '__gtrain_is help eq 0' -a bench
complete -c gtrain -n '__gtrain_is help eq 0' -a configs
complete -c gtrain -n '__gtrain_is help eq 0' -a init
complete -c gtrain -n '__gtrain_is help eq 0' -a fetch
complete -c gtrain -n '__gtrain_is help eq 0' -a devices
complete -c gtrain -n '__gtrain_is help eq 0' -a completion
complete -c gtrain -n '__gtrain_is help eq 0' -a help
