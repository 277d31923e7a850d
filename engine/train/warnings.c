#include "train/warnings.h"
#include "base/bytes.h"
#include "base/fileio.h"
#include "base/plugin.h"
#include "base/shell_word.h"
#include "exec/device.h"
#include "fitted.h"
#include "gtrain.h"
#include "ir/op.h"
#include "omp_threads.h"
#include "session/lr_schedule.h"
#include "skipped.h"
#include "store/ckpt.h"
#include "store/safetensors.h"
#include "table/parse_cell.h"
#include "team/team.h"
#include "train/pretrained.h"
#include "train/rare_classes.h"
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct list {
	const struct gt_session *s;
	const struct gt_conf *c;
	const char *dir;
	struct gt_problems *out;
	struct gt_err *err;
};

/* ---- what the config and the plan say ------------------------------------------------------------------------------------------ */

/* Adds a warning with file and line of the config key `path`. */
static enum gt_code add_warning(const struct list *l, const char *path, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static enum gt_code add_warning(const struct list *l, const char *path, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	struct gt_err e;
	gt_conf_refuse(l->c, path, &e, "%s", text);
	e.code = GT_OK;
	return gt_problems_add(l->out, &e) == GT_OK ? GT_OK : gt_fail_memory(l->err, 0);
}

static enum gt_code warn_no_directory(const struct list *l)
{
	if (!l->dir || *l->dir)
		return GT_OK;
	return add_warning(
	    l, "checkpoint.dir",
	    "no directory is set, so the trained weights are lost at the end; write checkpoint = { dir = \"runs/%.60s\"; }; or use -o "
	    "runs/%.60s",
	    l->c->name, l->c->name);
}

static enum gt_code warn_large_batch(const struct list *l)
{
	const struct gt_session *s = l->s;
	const char *key = l->c->data.batch_per_rank && !l->c->data.batch ? "data.batch_per_rank" : "data.batch";
	if (s->data.view[GT_TRAIN].n <= 0 || s->batch.size <= s->data.view[GT_TRAIN].n)
		return GT_OK;
	return add_warning(l, key,
	                   "a step takes %lld samples, but the training split has %lld, so every step is a whole epoch; write a smaller batch",
	                   (long long)s->batch.size, (long long)s->data.view[GT_TRAIN].n);
}

/* Warns of a mean or std above 1, which was computed for bytes: pixels are divided by 255 first. */
static enum gt_code warn_above_one(const struct list *l, const char *key, const struct gt_floats *f)
{
	for (int i = 0; i < f->n; i++)
		if (fabs(f->v[i]) > 1)
			return add_warning(l, key, "expected a value for pixels in 0..1, because pixels are divided by 255 first, got %g; write %.4g",
			                   f->v[i], f->v[i] / 255);
	return GT_OK;
}

static enum gt_code warn_byte_moments(const struct list *l)
{
	GT_TRY(warn_above_one(l, "data.mean", &l->c->data.mean));
	return warn_above_one(l, "data.std", &l->c->data.std);
}

/* Warns if the last layer does not give what the loss expects: logits, or log-probabilities (log_softmax). */
static enum gt_code warn_last_layer(const struct list *l)
{
	const struct gt_model_spec *m = &l->c->model;
	const struct gt_layer_spec *last = m->nlayers ? &m->layers[m->nlayers - 1] : NULL;
	const char *type = last ? gt_op_name(last->op) : "", *loss = l->c->train.loss;
	enum gt_loss_output output = gt_loss_find(loss)->output;
	bool soft = !strcmp(type, "softmax"), log_soft = !strcmp(type, "log_softmax");
	struct gt_err e;
	if (!last || !(output == GT_OUTPUT_LOG_PROBABILITIES ? !log_soft : output == GT_OUTPUT_LOGITS && (soft || log_soft)))
		return GT_OK;
	if (output == GT_OUTPUT_LOG_PROBABILITIES)
		gt_fail(&e, GT_OK,
		        "train.loss = \"%s\" expects the output of log_softmax, but the last layer is %s; add { type = \"log_softmax\"; } or "
		        "write train.loss = \"cross_entropy\"",
		        loss, type);
	else
		gt_fail(&e, GT_OK, "%s before train.loss = \"%s\", but this loss already includes it; remove this layer%s", type, loss,
		        log_soft ? ", or write train.loss = \"nll\"" : "");
	gt_conf_at_layer(l->c, m->nlayers - 1, &e);
	return gt_problems_add(l->out, &e) == GT_OK ? GT_OK : gt_fail_memory(l->err, 0);
}

/* The columns of a table that the model does not read. */
struct unread {
	char columns[400], inputs[128]; /* names of the columns, and of the inputs that the model would have to declare to read them */
	int n;
};

/* Adds the table columns from which a field of the batch is computed. */
static void add_unread(struct unread *u, const struct gt_table_facts *t, const struct gt_field *f)
{
	enum gt_column_type type = f->ragged ? GT_COLUMN_TEXT : f->dtype == GT_I32 ? GT_COLUMN_CATEGORICAL : GT_COLUMN_CONTINUOUS;
	char name[GT_CELL_SHOWN];
	for (int k = 0; k < t->ncolumns; k++) {
		size_t n = strlen(u->columns);
		bool date = type == GT_COLUMN_CONTINUOUS && t->column[k].type == GT_COLUMN_DATE;
		if ((date || t->column[k].type == type) && u->n++ < 4)
			snprintf(u->columns + n, sizeof u->columns - n, "%s\"%s\"", n ? ", " : "", gt_cell_shown(t->column[k].name, name));
	}
	size_t n = strlen(u->inputs);
	snprintf(u->inputs + n, sizeof u->inputs - n, "%s{ name = \"%s\"; }%s", n ? ", " : "", f->name,
	         f->ragged ? ", { name = \"lengths\"; }" : "");
}

/* Warns of columns of a table that the model does not read. */
static enum gt_code warn_unread_columns(const struct list *l)
{
	const struct gt_dataset *d = &l->s->data.files->like;
	const struct gt_model_spec *m = &l->c->model;
	struct unread u = {0};
	bool table = l->s->data.files->learned && l->s->data.files->learned->table.ncolumns;
	for (int k = 0; k < d->nfields && table; k++) {
		int i = 0;
		while (i < m->ninputs && strcmp(m->inputs[i].name, d->field[k].name))
			i++;
		if (i == m->ninputs && d->field[k].width) /* a field with width 0 has the lengths of texts and is no input of its own */
			add_unread(&u, &l->s->data.files->learned->table, &d->field[k]);
	}
	if (!u.n)
		return GT_OK;
	char more[32] = "";
	if (u.n > 4)
		snprintf(more, sizeof more, " and %d more", u.n - 4);
	return add_warning(l, "model.inputs", "the model does not read the column%s %s%s; add %s, or list %s in data.ignore",
	                   u.n == 1 ? "" : "s", u.columns, more, u.inputs, u.n == 1 ? "it" : "them");
}

static enum gt_code warn_zero_rate(const struct list *l)
{
	if (l->c->train.optimizer.lr > 0 || l->c->train.ngroups)
		return GT_OK;
	return add_warning(l, "train.optimizer.lr", "a learning rate of 0 trains nothing; write a rate above 0, for example 0.1 or 1.0e-3");
}

/* Warns of steps with almost no effect because the schedule has ended, for example in a run that was resumed for more epochs. */
static enum gt_code warn_ended_schedule(const struct list *l)
{
	const struct gt_conf_train *t = &l->c->train;
	const struct gt_batch_partition *b = &l->s->batch;
	bool epochs = t->schedule.unit == GT_UNIT_EPOCH;
	double length = t->schedule.warmup + t->schedule.t_max, end = length * (epochs ? (double)b->steps_per_epoch : 1);
	if (t->schedule.t_max <= 0 || t->optimizer.lr <= 0 || b->steps_per_epoch <= 0 || (double)b->steps < end + 1)
		return GT_OK;
	double rate = gt_schedule_lr(t, b->steps - 1, b->steps, b->steps_per_epoch);
	if (rate > 1e-3 * t->optimizer.lr)
		return GT_OK;
	return add_warning(l, "train.schedule.t_max",
	                   "the schedule ends after %g %s%s, so the last %.0f of %lld steps have a learning rate of %.3g; "
	                   "write t_max = 0 for a schedule until the end of the run",
	                   length, epochs ? "epoch" : "step", length == 1 ? "" : "s", (double)b->steps - ceil(end), (long long)b->steps, rate);
}

#define TRIAL 10 /* a run with fewer train.steps is a trial, such as a smoke test */

/* Warns of a schedule that is longer than the run, for example t_max = 60 with train.epochs = 3: the learning rate then ends too high, or
 * never rises. path: the schedule. lr: the rate of its optimizer. */
static enum gt_code warn_cut_schedule(const struct list *l, const char *path, const struct gt_conf_schedule *s, double lr)
{
	const struct gt_conf_train *t = &l->c->train;
	const struct gt_batch_partition *b = &l->s->batch;
	bool epochs = s->unit == GT_UNIT_EPOCH;
	/* steps of an epoch are not known without the data, but the epochs of the run are */
	double unit = b->steps_per_epoch > 0 ? (double)b->steps_per_epoch : t->steps > 0 ? 0 : 1;
	double run = b->steps_per_epoch > 0 ? (double)b->steps : t->steps > 0 ? (double)t->steps : (double)t->epochs;
	double warm = s->warmup * (epochs ? unit : 1), length = s->t_max * (epochs ? unit : 1);
	char key[96], rate[64] = "", lasts[64], ends[64];
	if (t->steps > 0 && t->steps < TRIAL)
		return GT_OK;
	if (lr <= 0 || !(unit > 0) || !(run > 0) || (!epochs && b->steps_per_epoch <= 0 && !t->steps) || warm + length <= 1.05 * run + 1)
		return GT_OK;
	bool warms = warm > run;
	snprintf(key, sizeof key, "%s.%s", path, warms ? "warmup" : "t_max");
	if (b->steps_per_epoch > 0)
		snprintf(rate, sizeof rate, ", at a learning rate of %.3g of %g",
		         gt_schedule_rate(s, lr, b->steps - 1, b->steps, b->steps_per_epoch), lr);
	snprintf(lasts, sizeof lasts, "%g %s", s->warmup + (warms ? 0 : s->t_max), epochs ? "epochs" : "steps");
	if (t->steps > 0 || !epochs)
		snprintf(ends, sizeof ends, "%lld steps", (long long)(t->steps > 0 ? t->steps : b->steps));
	else
		snprintf(ends, sizeof ends, "%lld epoch%s", (long long)t->epochs, t->epochs == 1 ? "" : "s");
	return add_warning(l, key, "the %s lasts %s, but the run ends after %s%s; %s", warms ? "warm-up" : "schedule", lasts, ends, rate,
	                   warms ? "write a shorter warm-up" : "write t_max = 0 for a schedule until the end of the run");
}

static enum gt_code warn_cut_schedules(const struct list *l)
{
	const struct gt_conf_train *t = &l->c->train;
	char path[64];
	GT_TRY(warn_cut_schedule(l, "train.schedule", &t->schedule, t->optimizer.lr));
	for (int i = 0; i < t->ngroups; i++) {
		snprintf(path, sizeof path, "train.groups[%d].schedule", i);
		if (t->group[i].own_schedule && !t->group[i].frozen)
			GT_TRY(warn_cut_schedule(l, path, &t->group[i].schedule, t->group[i].optimizer.lr));
	}
	return GT_OK;
}

/* Returns whether the optimizer leaves those rows of an embedding table unchanged that have no gradient. */
static bool updates_rows(const struct gt_conf_train *t, const struct gt_param *p)
{
	const struct gt_conf_optimizer *o = p->group < 0 ? &t->optimizer : &t->group[p->group].optimizer;
	return o->type == GT_OPT_SGD && o->momentum == 0 && o->weight_decay == 0;
}

/* Warns of embedding tables of which one rank would update only the rows that occur in a batch, but several ranks update all rows. */
static enum gt_code warn_whole_tables(const struct list *l)
{
	const struct gt_session *s = l->s;
	const struct gt_graph *g = s->space->layout.first;
	for (int i = 0; g && i < g->nnodes && s->at.ndata > 1 && !gt_space_factored(s->space); i++) {
		const struct gt_node *n = &g->nodes[i];
		if ((n->op->code != GT_OP_EMBEDDING_DW && n->op->code != GT_OP_EMBEDDING_BAG_DW) || gt_node_operand(n, "dw") < 0)
			continue;
		const struct gt_param *w = &g->params[g->values[gt_node_operand(n, "dw")].param];
		int64_t rows = gt_node_desc(g, n, "dw")->dim[0], named = s->at.ndata * gt_tdesc_count(gt_node_desc(g, n, "tokens"));
		if (rows > 4 * named && updates_rows(&l->c->train, w))
			return add_warning(
			    l, "parallel.mode",
			    "at each step, %d ranks add up the gradient of all %lld rows of %s, of which a batch uses at most %lld; one rank updates "
			    "only the used rows, and is probably faster; write parallel.mode = \"single\"",
			    s->at.ndata, (long long)rows, w->name, (long long)named);
	}
	return GT_OK;
}

/* Returns the number of processors that this process may use; with several ranks, which may divide processors, the machine's number. */
static int num_processors(int world)
{
	cpu_set_t set;
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return world < 2 && !sched_getaffinity(0, sizeof set, &set) ? CPU_COUNT(&set) : (int)n;
}

/* Warns of a number of threads that the CPU backend cannot use, or that exceeds the number of processors. */
static enum gt_code warn_too_many_threads(const struct list *l)
{
	const char *variable = getenv("OMP_NUM_THREADS");
	int have = num_processors(l->s->at.world), n = l->c->threads > 0 ? (int)l->c->threads : gt_omp_threads(variable);
	char source[96];
	bool cpu = !strcmp(l->s->family, "cpu") || (!strcmp(l->s->family, "null") && gt_device_choice(l->c->device) < 1);
	if (!cpu || (!l->c->threads && (!variable || l->c->reproducible == GT_REPRO_WORLD)))
		return GT_OK;
	if (!n)
		return add_warning(l, "threads",
		                   "expected a number from 1 to %d in the variable OMP_NUM_THREADS, got \"%.40s\", which is ignored; unset the "
		                   "variable", GT_MAX_THREADS, variable);
	snprintf(source, sizeof source, "%s%s%.40s", l->c->threads > 0 ? "" : "OMP_NUM_THREADS", l->c->threads > 0 ? "" : "=",
	         l->c->threads > 0 ? "threads" : variable);
	if (n <= have || have < 1)
		return GT_OK;
	return add_warning(l, "threads", "%s: %d threads are more than the %d processor%s; more threads than processors make a run slower",
	                   source, n, have, have == 1 ? "" : "s");
}

/* Returns the free memory of this machine, or of the container of this process if that is less, in bytes; 0: unknown. */
static uint64_t free_host_memory(void)
{
	char line[128];
	unsigned long long kib = 0, limit = 0, used = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
		;
	if (f)
		fclose(f);
	if ((f = fopen("/sys/fs/cgroup/memory.max", "re"))) { /* the file contains "max" if the container has no limit */
		if (fscanf(f, "%llu", &limit) != 1)
			limit = 0;
		fclose(f);
	}
	if (limit && (f = fopen("/sys/fs/cgroup/memory.current", "re"))) {
		if (fscanf(f, "%llu", &used) != 1)
			used = 0;
		fclose(f);
	}
	uint64_t free = kib * 1024;
	return limit && limit > used && (!free || limit - used < free) ? limit - used : free;
}

static enum gt_code warn_low_memory(const struct list *l)
{
	const struct gt_session *s = l->s;
	const struct gt_space *p = s->space;
	bool gpu = !strcmp(s->family, "cuda");
	uint64_t need = 0, have = gpu ? s->device.info.bytes : free_host_memory();
	int most = 0;
	char needs[GT_BYTES_TEXT], of[GT_BYTES_TEXT], has[GT_BYTES_TEXT];
	for (int i = 0; i < GT_A_COUNT; i++) {
		need += p->memory.bytes[i];
		most = p->memory.bytes[i] > p->memory.bytes[most] ? i : most;
	}
	if (!have || need <= have)
		return GT_OK;
	bool samples = most == GT_A_ACT || most == GT_A_SCRATCH;
	return add_warning(l, "data.batch", "training needs %s (%s for %s), but %s has %s free; %s", gt_bytes_text(needs, sizeof needs, need),
	                   gt_bytes_text(of, sizeof of, p->memory.bytes[most]), gt_arena_name((enum gt_arena_id)most),
	                   gpu ? "the GPU" : "this machine", gt_bytes_text(has, sizeof has, have),
	                   samples ? "lower data.batch, or raise train.accumulate"
	                    : "use a smaller model, or divide it over ranks with parallel.mode = \"zero\" or \"pipe\"");
}

/* The condition is the same as in open_exec of session_open.c. */
static enum gt_code warn_no_graphs_in_dp(const struct list *l)
{
	const struct gt_session *s = l->s;
	if (s->strategy->ranks != GT_RANKS_THREADS || s->at.world == 1 || strcmp(s->family, "cuda") || !l->c->cuda_graphs ||
	    l->c->parallel.host_staged)
		return GT_OK;
	return add_warning(l, "parallel.mode",
	                   "dp runs on several GPUs without CUDA graphs, because CUDA graphs of several GPUs in one process can deadlock; use "
	                   "parallel.mode = \"ddp\", or set cuda_graphs = false");
}

/* Warns of folders of the training split that do not become classes because they contain no files. */
static enum gt_code warn_left_out(const struct list *l)
{
	const struct gt_dataset *d = &l->s->data.files->set[GT_TRAIN];
	return !*d->left_out ? GT_OK : add_warning(l, "data.root", "these folders of the training split have no %s and are not classes: %s",
	                                           d->encoded ? "images" : "texts", d->left_out);
}

static enum gt_code warn_rare_classes(const struct list *l)
{
	char text[1024];
	GT_TRY(gt_rare_classes(l->s, text, sizeof text, l->err));
	return !*text ? GT_OK : add_warning(l, *l->c->data.root ? "data.root" : "data", "%s", text);
}

/* Says why the index of the data was made again, or why there is none. */
static enum gt_code warn_index(const struct list *l)
{
	const char *note = l->s->data.files->index_note;
	return !*note ? GT_OK : add_warning(l, "data.index", "%s", note);
}

enum gt_code gt_warnings(const struct gt_session *s, const char *dir, struct gt_problems *out, struct gt_err *err)
{
	static enum gt_code (*const each[])(const struct list *l) = {
	    warn_no_directory,     warn_large_batch,    warn_byte_moments,   warn_last_layer, warn_unread_columns,
	    warn_zero_rate,        warn_ended_schedule, warn_cut_schedules,  warn_left_out,   warn_rare_classes,
	    warn_whole_tables,     warn_too_many_threads, warn_low_memory,     warn_no_graphs_in_dp,
	    warn_index};
	struct list l = {s, s->conf, dir, out, err};
	for (size_t i = 0; i < sizeof each / sizeof *each; i++)
		GT_TRY(each[i](&l));
	return GT_OK;
}

struct skips {
	struct gt_problems *out;
	bool full; /* out of memory */
};

static void add_skipped(void *user, const char *why)
{
	struct skips *to = user;
	struct gt_err e;
	gt_fail(&e, GT_OK, "skips %s", why);
	to->full |= gt_problems_add(to->out, &e) != GT_OK;
}

enum gt_code gt_warn_skipped(const struct gt_session *s, struct gt_problems *out, struct gt_err *err)
{
	struct skips to = {.out = out};
	if (s->data.files->skipped)
		gt_skipped_report(s->data.files->skipped, add_skipped, NULL, &to);
	return to.full ? gt_fail_memory(err, 0) : GT_OK;
}

/* ---- missing on this machine ------------------------------------------------------------------------------------------------------- */

enum gt_code gt_refuse_used(const char *dir, struct gt_err *err)
{
	struct gt_ckpt *c;
	char word[GT_PATH_SIZE];
	enum gt_code code = gt_ckpt_open(dir, "latest", false, NULL, NULL, &c, NULL);
	if (code == GT_ENOINPUT)
		return GT_OK;
	if (code == GT_OK)
		gt_ckpt_close(c);
	return gt_fail(err, GT_ECANTCREAT,
	               "%s: the directory contains the checkpoints of another run; continue it with `gtrain resume %s`, or use another "
	               "directory with --new or --out DIR",
	               dir, gt_shell_word(dir, word, sizeof word));
}

enum gt_code gt_run_new_dir(const struct gt_conf *c, const char *out, int nnodes, struct gt_arena *a, const char **dir, struct gt_err *err)
{
	const char *base = out ? out : c->checkpoint.dir;
	struct gt_world w;
	struct stat st;
	GT_TRY(gt_team_world(NULL, &w, err));
	if (nnodes > 1 || w.world > 1)
		return gt_fail(err, GT_EUSAGE, "--new: expected a single process, which chooses the directory, got %s; write --out DIR",
		               nnodes > 1 ? "several hosts" : "ranks that another program started");
	if (!*base)
		return gt_fail(err, GT_EUSAGE, "--new: expected a directory in checkpoint.dir or --out, got none");
	size_t n = strlen(base);
	while (n > 1 && base[n - 1] == '/')
		n--;
	*dir = base;
	for (int i = 2; !lstat(*dir, &st); i++)
		GT_NEW_STR(*dir, gt_arena_printf(a, "%.*s-%d", (int)n, base, i), err);
	return GT_OK;
}

enum gt_code gt_at_directory(const struct gt_conf *c, const char *dir, enum gt_code code, struct gt_err *err)
{
	if (code == GT_OK || !err || dir != c->checkpoint.dir)
		return code;
	struct gt_err said = *err;
	gt_conf_refuse(c, "checkpoint.dir", err, "%s", said.msg);
	return err->code = code;
}

static enum gt_code require_plugin(const struct gt_conf *c, const char *key, const char *name, const char *does, struct gt_err *err)
{
	if (gt_plugin_installed(name))
		return GT_OK;
	gt_conf_refuse(c, key, err, "the plugin %s.so, which %s, is not installed", name, does);
	return err ? (err->code = GT_EUNAVAILABLE) : GT_EUNAVAILABLE;
}

enum gt_code gt_check_logs(const struct gt_conf *c, const char *dir, struct gt_err *err)
{
	if (!*dir && c->log.tensorboard)
		return gt_conf_refuse(c, "log.tensorboard", err,
		                      "expected false without checkpoint.dir, which would contain its files, got true; write a checkpoint.dir");
	if (!*dir && *c->log.mlflow.uri)
		return gt_conf_refuse(c, "log.mlflow.uri", err, "expected \"\" without checkpoint.dir, because MLflow gets the run from the files "
		                      "in this directory; write a checkpoint.dir");
	if (*c->log.mlflow.uri)
		GT_TRY(require_plugin(c, "log.mlflow.uri", "mlflow", "sends runs to MLflow", err));
	return c->log.report ? require_plugin(c, "log.report", "view", "writes the page of a run", err) : GT_OK;
}

enum gt_code gt_machine_lacks(struct gt_conf *c, const char *device, const char *data_note, struct gt_devinfo *info,
                              struct gt_problems *out, struct gt_err *err)
{
	struct gt_err e = {0};
	const char *dir = c->checkpoint.dir;
	struct gt_dev_opts opts = {.threads = 1};
	struct gt_device dev;
	enum gt_dtype compute;
	enum gt_code code = *dir ? gt_ckpt_dir_check(dir, &e) : GT_OK;
	if (code == GT_OK && *dir)
		code = gt_refuse_used(dir, &e);
	if (gt_at_directory(c, dir, code, &e) != GT_OK)
		GT_TRY(gt_problems_add(out, &e));
	if (gt_check_logs(c, dir, &e) != GT_OK)
		GT_TRY(gt_problems_add(out, &e));
	*info = (struct gt_devinfo){0};
	code = gt_device_for(c, device ? device : c->device, &opts, &dev, &e);
	if (code == GT_OK) {
		*info = dev.info;
		code = gt_compute_dtype(c, dev.be->name, &compute, &e);
		gt_device_close(&dev);
	}
	if (code != GT_OK)
		GT_TRY(gt_problems_add(out, &e));
	struct gt_st_file *f;
	code = *c->pretrained.file ? gt_pretrained_open(c, &f, &e) : GT_OK;
	if (code == GT_OK && *c->pretrained.file)
		gt_st_close(f);
	if (code != GT_OK)
		GT_TRY(gt_problems_add(out, &e));
	if (data_note) {
		gt_fail(&e, GT_ENOINPUT, "%s", data_note);
		GT_TRY(gt_problems_add(out, &e));
	}
	(void)err;
	return GT_OK;
}
