/* What a power cut may leave. The calls of some saves with retention are recorded; a model of a disk replays every prefix of them and then
 * decides what of the unsynced part had reached the platter: file data not at all, cut short, as zeros, or in scattered sectors; each
 * change of a folder on its own, in any order. The model grants less than POSIX file systems do: an fsync of a file saves its data, not
 * its name; an fsync of a folder saves its names, nothing below. A rename is one change. Each state is written out as a real folder and
 * must satisfy the oracle. */
#include "ckpt_fixture.h"
#include "fast_dir.h"
#include "io_hook.h"
#include <dirent.h>
#include <stdlib.h>

#define RANDOM_STATES 10 /* for each prefix, beside the fixed policies; SWEEP=full: */
#define RANDOM_STATES_FULL 40
#define SECTOR 64        /* small, as our files are */

/* ---- recording ------------------------------------------------------------------------------------------------------------ */

enum { MARK_BEGIN = IO_OP_COUNT, MARK_DONE };

struct record {
	int op;
	char path[160], other[160]; /* relative to the run directory; "" is that itself */
	char *data;
	size_t n;
	int64_t step; /* of a mark */
};

static struct record *records;
static int nrecords;
static char root[256];
static bool no_exchange;

static const char *relative(const char *path)
{
	size_t n = strlen(root);
	if (strncmp(path, root, n) || (path[n] && path[n] != '/'))
		return NULL;
	return path[n] ? path + n + 1 : "";
}

static struct record *add(int op)
{
	records = realloc(records, (size_t)(nrecords + 1) * sizeof *records);
	memset(&records[nrecords], 0, sizeof *records);
	records[nrecords].op = op;
	return &records[nrecords++];
}

static void mark(int op, int64_t step)
{
	add(op)->step = step;
}

static int before(struct io_call *c)
{
	return no_exchange && c->op == IO_EXCHANGE ? EINVAL : 0;
}

static void after(const struct io_call *c)
{
	const char *path = relative(c->path), *other = c->op == IO_SYMLINK ? c->other : c->other ? relative(c->other) : "";
	if (!path || !other || c->op == IO_CLOSE || strstr(path, ".lock"))
		return;
	struct record *r = add(c->op);
	snprintf(r->path, sizeof r->path, "%s", path);
	snprintf(r->other, sizeof r->other, "%s", other);
	if (c->op == IO_WRITE) {
		r->n = c->n;
		r->data = malloc(c->n + 1);
		memcpy(r->data, c->data, c->n);
	}
}

/* ---- the disk ------------------------------------------------------------------------------------------------------------- */

enum { FILE_NODE, DIR_NODE, LINK_NODE };

#define NAME 64
#define ENTRIES 64
#define PENDING 128

struct entry {
	char name[NAME];
	int node; /* -1: none */
};

struct change { /* of a folder: up to two names, at once */
	struct entry e[2];
	int n;
};

struct node {
	int kind;
	char *data; /* file: what was written; link: its target */
	size_t len, synced;
	struct entry now[ENTRIES], disk[ENTRIES]; /* folder: what programs see; what is safe */
	struct change pending[PENDING];
	int npending;
};

static struct node *nodes;
static int nnodes;

static int new_node(int kind)
{
	nodes = realloc(nodes, (size_t)(nnodes + 1) * sizeof *nodes);
	struct node *n = &nodes[nnodes];
	memset(n, 0, sizeof *n);
	n->kind = kind;
	for (int i = 0; i < ENTRIES; i++)
		n->now[i].node = n->disk[i].node = -1;
	return nnodes++;
}

static void free_nodes(void)
{
	for (int i = 0; i < nnodes; i++)
		free(nodes[i].data);
	free(nodes);
	nodes = NULL;
	nnodes = 0;
}

static struct entry *slot(struct entry *e, const char *name)
{
	struct entry *empty = NULL;
	for (int i = 0; i < ENTRIES; i++) {
		if (e[i].node >= 0 && !strcmp(e[i].name, name))
			return &e[i];
		if (e[i].node < 0 && !empty)
			empty = &e[i];
	}
	return empty;
}

static int lookup(const char *name, int dir)
{
	struct entry *e = slot(nodes[dir].now, name);
	return e && e->node >= 0 && !strcmp(e->name, name) ? e->node : -1;
}

static void set(struct entry *table, const struct entry *e)
{
	struct entry *s = slot(table, e->name);
	if (!s)
		abort(); /* ENTRIES is too small */
	*s = *e;
}

/* The folder of a path, two levels at most, and the name in it. */
static int folder_of(const char *path, const char **name)
{
	char head[NAME];
	const char *slash = strchr(path, '/');
	*name = slash ? slash + 1 : path;
	if (!slash)
		return 0;
	snprintf(head, sizeof head, "%.*s", (int)(slash - path), path);
	return lookup(head, 0);
}

static int node_of(const char *path)
{
	const char *name;
	int dir = folder_of(path, &name);
	return !*path ? 0 : dir < 0 ? -1 : lookup(name, dir);
}

static struct entry named(const char *name, int node)
{
	struct entry e = {.node = node};
	if (strlen(name) >= sizeof e.name)
		abort();
	strcpy(e.name, name);
	return e;
}

static void change(int dir, struct entry a, const struct entry *b)
{
	struct node *d = &nodes[dir];
	if (d->npending == PENDING)
		abort();
	struct change *c = &d->pending[d->npending++];
	c->n = 0;
	c->e[c->n++] = a;
	if (b)
		c->e[c->n++] = *b;
	for (int i = 0; i < c->n; i++)
		set(d->now, &c->e[i]);
}

static void replay(const struct record *r)
{
	const char *name, *to;
	int dir = folder_of(r->path, &name), node;
	switch (r->op) {
	case IO_CREATE:
	case IO_MKDIR:
	case IO_SYMLINK:
		node = new_node(r->op == IO_MKDIR ? DIR_NODE : r->op == IO_CREATE ? FILE_NODE : LINK_NODE);
		if (r->op == IO_SYMLINK)
			nodes[node].data = strdup(r->other);
		change(dir, named(name, node), NULL);
		break;
	case IO_WRITE: {
		struct node *f = &nodes[node_of(r->path)];
		f->data = realloc(f->data, f->len + r->n + 1);
		memcpy(f->data + f->len, r->data, r->n);
		f->len += r->n;
		break;
	}
	case IO_FSYNC: {
		struct node *f = &nodes[node_of(r->path)];
		f->synced = f->len;
		memcpy(f->disk, f->now, sizeof f->disk);
		f->npending = 0;
		break;
	}
	case IO_UNLINK:
	case IO_RMDIR:
		change(dir, named(name, -1), NULL);
		break;
	case IO_RENAME: /* within one folder, as all of ours */
	case IO_EXCHANGE: {
		if (folder_of(r->other, &to) != dir)
			abort();
		struct entry a = named(name, r->op == IO_EXCHANGE ? node_of(r->other) : -1), b = named(to, node_of(r->path));
		change(dir, a, &b);
		break;
	}
	default:
		break;
	}
}

/* ---- what a crash leaves -------------------------------------------------------------------------------------------------- */

enum policy { ALL, NOTHING, NAMES_ONLY, NAMES_AND_ZEROS, DATA_ONLY, TORN, FIXED_POLICIES };

static unsigned seed;

static unsigned dice(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void crash_folder(const struct node *d, int policy, struct entry *out)
{
	memcpy(out, d->disk, sizeof d->disk);
	if (policy == NOTHING || policy == DATA_ONLY)
		return;
	for (int i = 0; i < d->npending; i++)
		for (int k = policy < FIXED_POLICIES || dice(2) ? 0 : 2; k < d->pending[i].n; k++)
			set(out, &d->pending[i].e[k]);
}

static size_t crash_file(const struct node *f, int policy, char *out)
{
	size_t open = f->len - f->synced, len = f->len;
	int how = policy < FIXED_POLICIES ? policy : (int)dice(FIXED_POLICIES);
	if (f->len)
		memcpy(out, f->data, f->len);
	if (how == NOTHING || how == NAMES_ONLY)
		len = f->synced;
	else if (how == TORN)
		len = f->synced + (policy < FIXED_POLICIES ? open / 2 : dice((unsigned)open + 1));
	else if (how == NAMES_AND_ZEROS)
		for (size_t i = f->synced; i < f->len; i++)
			if (policy < FIXED_POLICIES || (i / SECTOR * 2654435761u + seed) >> 16 & 1)
				out[i] = 0;
	return len;
}

static void materialize(const char *path, int node, int policy)
{
	struct node *n = &nodes[node];
	char sub[512];
	static char data[1 << 16];
	if (n->kind == LINK_NODE) {
		if (symlink(n->data, path))
			abort();
	} else if (n->kind == FILE_NODE) {
		if (n->len > sizeof data)
			abort();
		size_t len = crash_file(n, policy, data);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0 || write(fd, data, len) != (ssize_t)len)
			abort();
		close(fd);
	} else {
		struct entry e[ENTRIES];
		if (mkdir(path, 0700))
			abort();
		crash_folder(n, policy, e);
		for (int i = 0; i < ENTRIES; i++) {
			if (e[i].node < 0)
				continue;
			snprintf(sub, sizeof sub, "%.400s/%.63s", path, e[i].name);
			materialize(sub, e[i].node, policy);
		}
	}
}

static int leftovers(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		n += strstr(e->d_name, ".tmp-") || strstr(e->d_name, ".old-") || strstr(e->d_name, ".prev-");
	if (d)
		closedir(d);
	return n;
}

static int failures;

/* CHECK_MSG that counts. */
#define STATE(cond, ...) ((cond) ? (void)0 : (failures++, test_fail(__FILE__, __LINE__, __VA_ARGS__)))

/* Stronger than the oracle: whatever bears the name of a checkpoint is whole, the old ones that a retention was at too. */
static void check_every_name(const char *dir, const char *what)
{
	char path[512];
	struct gt_ckpt *c;
	struct gt_err e;
	DIR *d = opendir(dir);
	for (struct dirent *i; d && (i = readdir(d));) {
		if (strncmp(i->d_name, "step-", 5) || strchr(i->d_name, '.'))
			continue;
		snprintf(path, sizeof path, "%.200s/%.100s", dir, i->d_name);
		enum gt_code code = gt_ckpt_open(path, "latest", true, NULL, NULL, &c, &e);
		STATE(!code, "%s: %s", what, e.msg);
		if (!code)
			gt_ckpt_close(c);
	}
	if (d)
		closedir(d);
}

static void check_state(const char *dir, int64_t done, int64_t begun, const char *what)
{
	struct gt_ckpt_dir *d;
	struct gt_ckpt *c;
	struct gt_err e;
	char why[2048] = "";
	int64_t found, again;
	check_every_name(dir, what);
	STATE(fix_oracle(dir, done, begun, &found, why, sizeof why), "%s: %s", what, why);
	enum gt_code best = gt_ckpt_open(dir, "best", true, NULL, NULL, &c, &e);
	STATE(!best || (done < 3 && best == GT_ENOINPUT), "%s: best: %s", what, e.msg);
	if (!best)
		gt_ckpt_close(c);
	enum gt_code code = gt_ckpt_dir_open(dir, &d, &e);
	STATE(!code, "%s: %s", what, e.msg);
	if (code)
		return;
	STATE(!leftovers(dir), "%s: %d left over", what, leftovers(dir));
	STATE(fix_oracle(dir, found, found, &again, why, sizeof why), "%s, swept: %s", what, why);
	/* The run that goes on keeps what its newest manifest calls the best. */
	int64_t next = found < 0 ? 1 : found + 1;
	STATE(!fix_save(d, next, &e) && !gt_ckpt_retain(d, 1, &e), "%s: %s", what, e.msg);
	STATE(fix_oracle(dir, next, next, &again, why, sizeof why), "%s, saved again: %s", what, why);
	best = gt_ckpt_open(dir, "best", true, NULL, NULL, &c, &e);
	int64_t best_step = best ? -1 : gt_ckpt_meta(c)->step;
	STATE(next < 3 ? best_step <= 0 : best_step == next - next % 3, "%s: best is %d after step %d", what, (int)best_step, (int)next);
	if (!best)
		gt_ckpt_close(c);
	gt_ckpt_dir_close(d);
}

static void try_prefixes(const char *name)
{
	char dir[256], what[256];
	const char *sweep = getenv("SWEEP");
	int states = 0, policies = FIXED_POLICIES + (sweep && !strcmp(sweep, "full") ? RANDOM_STATES_FULL : RANDOM_STATES);
	failures = 0;
	int64_t done = -1, begun = -1;
	int top = new_node(DIR_NODE);
	for (int k = 0; k <= nrecords; k++) {
		for (int policy = 0; policy < policies; policy++) {
			seed = (unsigned)(k * 1000 + policy);
			snprintf(dir, sizeof dir, "%s/state", fast_dir());
			snprintf(what, sizeof what, "%s, after %d calls, policy %d", name, k, policy);
			materialize(dir, top, policy);
			check_state(dir, done, begun, what);
			if (gt_tree_remove(dir, NULL))
				abort();
			states++;
		}
		if (k == nrecords)
			break;
		if (records[k].op == MARK_BEGIN)
			begun = records[k].step > begun ? records[k].step : begun;
		else if (records[k].op == MARK_DONE)
			done = records[k].step;
		else
			replay(&records[k]);
	}
	printf("# sweep power loss, %s: %d points, %d failures, %d calls\n", name, states, failures, nrecords);
	free_nodes();
	for (int k = 0; k < nrecords; k++)
		free(records[k].data);
	free(records);
	records = NULL;
	nrecords = 0;
}

/* Saves first..last with retention, then the last one again, on a record. */
static void record_run(const char *name, int64_t last)
{
	struct gt_ckpt_dir *d;
	struct gt_err e;
	snprintf(root, sizeof root, "%s/%s", fast_dir(), name);
	CHECK_OK(gt_ckpt_dir_open(root, &d, &e), e);
	if (!d)
		return;
	io_before = before;
	io_after = after;
	for (int64_t s = 1; s <= last + 1; s++) {
		int64_t step = s <= last ? s : last;
		mark(MARK_BEGIN, step);
		CHECK_OK(fix_save(d, step, &e), e);
		mark(MARK_DONE, step);
		CHECK_OK(gt_ckpt_retain(d, 2, &e), e);
	}
	io_before = NULL;
	io_after = NULL;
	gt_ckpt_dir_close(d);
	CHECK(nrecords > 100); /* or the hooks saw nothing */
}

TEST(powerloss_saves_and_retention)
{
	record_run("exchange", 5);
	try_prefixes("saves and retention");
}

TEST(powerloss_without_exchange)
{
	no_exchange = true;
	record_run("rename", 3);
	no_exchange = false;
	try_prefixes("no RENAME_EXCHANGE");
}

RUN_TESTS()
