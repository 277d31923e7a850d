# Wrong configs, one fault each: what `gtrain check` (or another command) must say of it. Sourced by test_wrong_config.sh, and by whoever
# wants the score of another binary. `wrong` is defined by who sources it:
#
#   wrong NAME LINE STATUS EXPECTATION REMEDY EDIT [ARGS...]
#
# EDIT is a sed script that puts the fault into $base. The message must begin with the file and LINE (0: none), and hold EXPECTATION (what
# is expected, or what is wrong) and REMEDY (what to write instead, or what to do). ARGS: instead of `check FILE`, with FILE as %.
# shellcheck shell=bash disable=SC2016,SC2154

# One key a line, so that every fault has a line of its own.
base_config() {
	cat <<'CFG'
schema = 1;
name = "tiny";
device = "cpu";
precision = "fp32";
seed = 1;
data = {
	name = "synthetic";
	root = "";
	batch = 32;
	eval_batch = 0;
	classes = 4;
	samples = 256;
	samples_test = 64;
	mean = [0.5];
	std = [0.25];
};
model = {
	input = [1, 8, 8];
	layers = (
		{ name = "conv"; type = "conv2d"; out = 4; kernel = 3; padding = 1; },
		{ name = "bn"; type = "batchnorm2d"; },
		{ name = "act"; type = "relu"; },
		{ name = "flat"; type = "flatten"; },
		{ name = "fc"; type = "linear"; out = 4; }
	);
};
train = {
	epochs = 2;
	loss = "cross_entropy";
	optimizer = {
		type = "sgd";
		lr = 0.1;
	};
	schedule = { type = "constant"; };
};
parallel = { mode = "single"; };
checkpoint = { dir = "RUN"; keep = 3; };
CFG
}

wrong_configs() {
	# the text
	wrong "no equals sign" 5 78 'expected `=`' 'got 1' '5s/=//'
	wrong "bracket left open" 37 78 'never closed' 'expected a `}`' '37s/ };//'
	wrong "string left open" 2 78 'expected a closing "' 'before the end of the line' '2s/";/;/'
	wrong "word without quotes" 2 78 'expected a value, got tiny' 'write a string in "quotes"' '2s/"//g'
	wrong "key twice" 5 78 'expected each key of a group once' 'remove one of them' '5s/$/ seed = 2;/'
	wrong "number too large" 5 78 'expected an integer' 'to 9223372036854775807' '5s/1/99999999999999999999/'
	wrong "include of nothing" 5 78 '@include' 'No such file' '5s/.*/@include "nothing.cfg"/'
	# devices and words of other programs
	wrong "device gpu" 3 78 'expected "auto", "cpu"' 'did you mean "cuda"' '3s/"cpu"/"gpu"/'
	wrong "device index" 3 78 'expected "auto", "cpu"' '"cuda:0"' '3s/"cpu"/"cuda:a"/'
	wrong "float32" 4 78 'expected "fp32"' 'did you mean "fp32"' '4s/fp32/float32/'
	wrong "bfloat16" 4 78 'expected "fp32"' 'did you mean "bf16"' '4s/fp32/bfloat16/'
	wrong "half" 4 78 'expected "fp32"' 'did you mean "fp16"' '4s/fp32/half/'
	wrong "batch_size" 9 78 'unknown key' 'did you mean data.batch?' '9s/batch/batch_size/'
	wrong "learning_rate" 32 78 'unknown key' 'did you mean train.optimizer.lr?' '32s/lr/learning_rate/'
	wrong "num_epochs" 28 78 'unknown key' 'did you mean train.epochs?' '28s/epochs/num_epochs/'
	wrong "in_channels" 20 78 'unknown key' 'leave the key out' '20s/out =/in_channels = 1; out =/'
	wrong "out_channels" 20 78 'unknown key' 'did you mean model.layers[0].out?' '20s/out =/out_channels =/'
	wrong "kernel_size" 20 78 'unknown key' 'did you mean model.layers[0].kernel?' '20s/kernel/kernel_size/'
	wrong "in_features" 24 78 'unknown key' 'leave the key out' '24s/out =/in_features = 256; out =/'
	wrong "out_features" 24 78 'unknown key' 'did you mean model.layers[4].out?' '24s/out =/out_features =/'
	wrong "num_features" 21 78 'unknown key' 'leave the key out' '21s/; }/; num_features = 4; }/'
	wrong "inplace" 22 78 'unknown key' 'leave the key out' '22s/; }/; inplace = true; }/'
	wrong "num_workers" 10 78 'unknown key' 'did you mean data.prefetch?' '10s/eval_batch/num_workers/'
	wrong "transforms" 10 78 'unknown key' 'did you mean data.augment?' '10s/eval_batch/transforms/'
	wrong "criterion" 29 78 'unknown key' 'did you mean train.loss?' '29s/loss/criterion/'
	wrong "scheduler" 34 78 'unknown key' 'did you mean train.schedule?' '34s/schedule/scheduler/'
	wrong "save_dir" 37 78 'unknown key' 'did you mean checkpoint.dir?' '37s/dir/save_dir/'
	wrong "amp" 4 78 'unknown key' 'did you mean precision?' '4s/precision/amp/'
	wrong "CrossEntropyLoss" 29 78 'expected "cross_entropy"' 'did you mean "cross_entropy"' '29s/cross_entropy/CrossEntropyLoss/'
	wrong "StepLR" 34 78 'expected "constant"' 'did you mean "step"' '34s/constant/StepLR/'
	wrong "DistributedDataParallel" 36 78 'expected "single"' 'did you mean "ddp"' '36s/single/DistributedDataParallel/'
	# layers
	wrong "Linear" 24 78 'expected a layer type' 'did you mean "linear"' '24s/"linear"/"Linear"/'
	wrong "dense" 24 78 'expected a layer type' 'did you mean "linear"' '24s/"linear"/"dense"/'
	wrong "a loss as a layer" 22 78 'expected a layer type' 'train.loss = "mse"' '22s/"relu"/"MSELoss"/'
	wrong "layer of no kind" 22 78 'expected a layer type' 'the types are: linear' '22s/"relu"/"quux"/'
	wrong "layer without a type" 22 78 'expected the type of this layer' 'block' '22s/ type = "relu";//'
	wrong "unknown block" 22 78 'expected the name of a block' 'define it in model.blocks' '22s/type = "relu"/block = "res"/'
	wrong "misspelt key" 20 78 'unknown key' 'did you mean model.layers[0].padding?' '20s/padding/pading/'
	wrong "linear without out" 24 78 'expected "out"' 'output features' '24s/ out = 4;//'
	wrong "unknown input of a layer" 22 78 'expected the name of an earlier layer' 'did you mean "conv"' '22s/; }/; in = "convv"; }/'
	wrong "layer's name twice" 22 78 'expected a name that no other layer has' 'again' '22s/"act"/"conv"/'
	wrong "negative out" 24 78 'expected an integer ≥ 1' '-4' '24s/out = 4/out = -4/'
	wrong "text for a number" 24 78 'expected an integer' '"ten"' '24s/out = 4/out = "ten"/'
	# values
	wrong "no batch" 6 78 'expected data.batch or data.batch_per_rank > 0' 'got neither' '9d'
	wrong "batch of 0" 9 78 'expected data.batch or data.batch_per_rank > 0' 'got neither' '9s/32/0/'
	wrong "two batches" 10 78 'expected either data.batch_per_rank or data.batch' 'remove one of them' \
		'10s/eval_batch = 0/batch_per_rank = 8/'
	wrong "accumulate no divisor" 28 78 'expected a divisor of data.batch = 32' 'got 5' '28s/$/ accumulate = 5;/'
	wrong "std of 0" 15 78 'expected an array of numbers > 0' 'got 0' '15s/0.25/0/'
	wrong "three means for one channel" 14 78 'expected 1 number, or one for each of 1 channels' 'got 3' '14s/0.5/0.5, 0.4, 0.3/'
	wrong "optimizer without lr" 30 78 'expected a number ≥ 0' 'got nothing' '32d'
	wrong "betas for sgd" 32 78 'train.optimizer.type = "sgd" does not use this key' '; adam' '32s/$/ betas = [0.9, 0.99];/'
	wrong "nesterov without momentum" 32 78 'expected momentum > 0' 'got 0' '32s/$/ nesterov = true;/'
	wrong "neither epochs nor steps" 27 78 'expected train.epochs or train.steps > 0' 'got neither' '28d'
	wrong "unknown optimizer" 31 78 'expected "sgd", "adam"' 'got "lbfgs"' '31s/sgd/lbfgs/'
	wrong "step schedule without a length" 34 78 'train.schedule.step_size: expected a number > 0' 'got nothing' '34s/constant/step/'
	wrong "best of no split" 37 78 'expected data.valid > 0' 'valid/acc' '37s/keep = 3;/best = { metric = "valid\/acc"; };/'
	wrong "keep of 0" 37 78 'expected an integer ≥ 1' 'got 0' '37s/keep = 3/keep = 0/'
	wrong "nproc beside single" 36 78 'parallel.mode = "single" does not use this key' 'ddp' '36s/;/; nproc = 2;/'
	wrong "a section that is no group" 36 78 'expected a group { }' 'got 5' '36s/{.*}/5/'
	# what only the plan or the data shows
	wrong "too few outputs" 24 78 'expected at least 4 outputs' 'write out = 4' '24s/out = 4/out = 3/'
	wrong "kernel larger than the image" 20 78 'model.layers[0] (conv)' 'expected' '20s/kernel = 3; padding = 1/kernel = 9/'
	wrong "flat input for a convolution" 20 78 'expected an input of [batch, channels, height, width]' 'got [32, 64]' '18s/1, 8, 8/64/'
	wrong "height, width, channels" 18 78 'expected [1, 28, 28]' 'the channels come first' \
		'7s/synthetic/fashion-mnist/; 12,13s/.*//; 18s/1, 8, 8/28, 28, 1/; 11s/4/10/; 20,21s/.*//; 24s/4/10/'
	wrong "statistics of one sample" 22 78 'more than one value per channel' 'data.eval_batch' \
		'10s/0/1/; 21s/, *$/,/; 22s/.*/{ name = "f"; type = "flatten"; }, { type = "batchnorm1d"; track_running_stats = false; },/; 23d'
	wrong "top5 misspelt" 37 78 'expected' '"test/top5"' '37s/keep = 3;/best = { metric = "test\/top"; };/'
	wrong "muon for biases" 31 78 'expected an optimizer that can update conv.bias' 'add a group to train.groups' '31s/sgd/muon/'
	wrong "muon for the biases of a group" 27 78 'train.groups[0].optimizer.type: expected an optimizer that can update fc.bias' \
		'before this group' '27s/$/ groups = ({ match = "fc.*"; optimizer = { type = "muon"; lr = 0.1; }; });/'
	wrong "group that matches nothing" 27 78 'train.groups[0].match: expected patterns that match a parameter' 'got no match' \
		'27s/$/ groups = ({ match = "fd.*"; lr_mul = 0.1; });/'
	# warnings: the run goes on, or another machine could run it; --strict makes them errors
	wrong "no directory" 37 78 'the trained weights are lost' 'write checkpoint = { dir = "runs/tiny"; }' '37s/dir = "RUN"; //' \
		check --strict %
	wrong "batch larger than the data" 9 78 'the training split has 256' 'write a smaller batch' '9s/32/512/' check --strict %
	wrong "mean of bytes" 14 78 'expected a value for pixels in 0..1' 'write 0.4902' '14s/0.5/125.0/' check --strict %
	wrong "std of bytes" 15 78 'expected a value for pixels in 0..1' 'write 0.2471' '15s/0.25/63.0/' check --strict %
	wrong "softmax before cross_entropy" 25 78 'already includes it' 'remove this layer' '24s/$/,/; 25s/^/{ type = "softmax"; }/' \
		check --strict %
	wrong "nll without log_softmax" 24 78 'expects the output of log_softmax' 'train.loss = "cross_entropy"' '29s/cross_entropy/nll/' \
		check --strict %
	wrong "rate of 0" 32 78 'trains nothing' 'write a rate above 0' '32s/0.1/0.0/' check --strict %
	wrong "schedule that ends early" 34 78 'the schedule ends after 1 epoch, so the last 8 of 16 steps have a learning rate of 0' \
		't_max = 0' '34s/constant"/cosine"; t_max = 1.0/' check --strict %
	wrong "schedule that the run does not reach" 34 78 \
		'the schedule lasts 60 epochs, but the run ends after 2 epochs, at a learning rate of' 't_max = 0' \
		'34s/constant"/onecycle"; t_max = 60.0/' check --strict %
	wrong "schedule in steps that the run does not reach" 34 78 'the schedule lasts 100 steps, but the run ends after 16 steps' \
		't_max = 0' '34s/constant"/cosine"; unit = "step"; t_max = 100.0/' check --strict %
	wrong "warm-up longer than the run" 34 78 'the warm-up lasts 5 epochs, but the run ends after 2 epochs' \
		'a shorter warm-up' '34s/constant"/constant"; warmup = 5.0/' check --strict %
	wrong "group whose schedule is cut" 27 78 'train.groups[0].schedule.t_max: the schedule lasts 9 epochs' 't_max = 0' \
		'27s/$/ groups = ({ match = "fc.*"; schedule = { type = "polynomial"; t_max = 9.0; }; });/' check --strict %
	wrong "more memory than there is" 9 78 'training needs' 'lower data.batch, or raise train.accumulate' \
		'9s/32/16777216/; 12s/256/16777216/; 20s/out = 4/out = 512/' check --strict %
	wrong "fp16 on a CPU" 4 78 'fp16" and device "cpu" do not go together' 'use "bf16"' '4s/fp32/fp16/' check --strict %
	wrong "tf32 on a CPU" 4 78 'tf32" and device "cpu" do not go together' 'use "fp32"' '4s/fp32/tf32/' run -n %
	wrong "root that is not there" 8 66 'expected the directory of the data' 'gtrain fetch mnist' \
		'7s/synthetic/mnist/; 8s/""/"nowhere"/; 12,13d' run -n %
	[ -e /usr/share/datasets/cifar100 ] || [ -e /usr/share/datasets/cifar-100 ] ||
		wrong "data that is not here" 7 66 'was not found' 'gtrain fetch cifar100' \
		'7s/synthetic/cifar100/; 12,13s/.*//; 11s/4/100/; 18s/1, 8, 8/3, 32, 32/; 24s/4/100/' run -n %
	wrong "nproc beside single, as an option" 36 78 'parallel.mode = "single" do not go together' 'add -s parallel.mode=ddp' '1s/^//' run \
		-n % --nproc 2
	wrong "directory that cannot be" 37 73 'cannot create directory' 'Not a directory' '37s/RUN/base.cfg\/run/' run -n %
	wrong "device that is absent" 3 69 'expected "auto" or "cpu" on this machine' 'got "cuda"' '3s/cpu/cuda/' run -n %
	wrong "tensorboard without a directory" 38 78 'expected false without checkpoint.dir' 'write a checkpoint.dir' \
		'37s/dir = "RUN"; //; 37s/$/\nlog = { tensorboard = true; };/' run -n %
	wrong "synthetic without samples" 6 78 'expected an integer ≥ 1' 'which synthetic data needs' '12d'
	# what only the plan of all ranks or the data shows
	wrong "zero with muon" 36 78 'parallel.mode = "zero" and the optimizer "muon" do not go together' 'needs whole parameters' \
		'36s/single/zero/; 31s/sgd/muon/' check --world 2 %
	wrong "zero with lamb" 36 78 'parallel.mode = "zero" and the optimizer "lamb" do not go together' 'needs whole parameters' \
		'36s/single/zero/; 31s/sgd/lamb/' check --world 2 %
	wrong "sync_bn in a pipeline" 36 78 'parallel.sync_bn = true and parallel.mode = "pipe" do not go together' 'parallel.mode' \
		'36s/"single";/"pipe"; sync_bn = true;/' check --world 2 %
	wrong "replicas no divisor" 36 78 'expected a divisor of the number of ranks, 3' 'got 2' '36s/"single";/"pipe"; replicas = 2;/' check \
		--world 3 %
	wrong "shards no multiple" 36 78 'expected a multiple of the number of ranks, 2' 'got 1' \
		'5s/$/ reproducible = "world";/; 36s/"single";/"ddp"; shards = 1;/' check --world 2 %
	wrong "batch smaller than the pieces" 9 78 'expected at least 8 (parallel.shards) times 8 (train.accumulate) samples' 'got 32' \
		'5s/$/ reproducible = "world";/; 28s/$/ accumulate = 8;/; 36s/"single";/"ddp"; shards = 8;/' check --world 2 %
	wrong "validation takes all" 15 78 'expected a fraction that leaves training samples' 'of 256' '15s/$/ valid = 0.999;/' run -n %
	wrong "metric of a split without samples" 37 78 'expected a metric of an evaluated split, got "valid/acc"' \
		'the split "valid" has no samples' '15s/$/ valid = 0.001;/; 37s/keep = 3;/keep = 3; best = { metric = "valid\/acc"; };/' run -n %
	wrong "synthetic split without samples" 13 78 'expected 1 to 2147483647 samples' 'got 0' '13s/64/0/' run -n %
}
