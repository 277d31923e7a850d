/* What a power cut may leave: the calls that change a folder are recorded; a model of a disk replays a prefix of them and then
 * decides what of the unsynced part had reached the platter: file data not at all, cut short, as zeros, or in scattered sectors; each
 * change of a folder on its own, in any order. The model grants less than POSIX file systems do: an fsync of a file saves its data, not
 * its name; an fsync of a folder saves its names, nothing below. A rename is one change,
 * between two folders too. materialize() writes the state out as a real folder. Include in one file of a program only. */
#ifndef GT_TESTS_DISK_MODEL_H
#define GT_TESTS_DISK_MODEL_H

#include "io_hook.h"
#include <dirent.h>
#include <stdlib.h>

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

static inline void mark(int op, int64_t step)
{
	add(op)->step = step;
}

static inline int before(struct io_call *c)
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
	int pair; /* > 0: of a rename from one folder to another; the change of the other folder has the same number */
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
static int nnodes, npairs;

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
	nnodes = npairs = 0;
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

static void change(int dir, struct entry a, const struct entry *b, int pair)
{
	struct node *d = &nodes[dir];
	if (d->npending == PENDING)
		abort();
	struct change *c = &d->pending[d->npending++];
	c->n = 0;
	c->pair = pair;
	c->e[c->n++] = a;
	if (b)
		c->e[c->n++] = *b;
	for (int i = 0; i < c->n; i++)
		set(d->now, &c->e[i]);
}

/* A rename between two folders is one change: it is safe in both once one of them is synced, with what came before it. */
static void settle_pair(int pair, const struct node *synced)
{
	for (int i = 0; i < nnodes; i++) {
		struct node *d = &nodes[i];
		int last = -1;
		for (int k = 0; k < d->npending && d != synced; k++)
			last = d->pending[k].pair == pair ? k : last;
		for (int k = 0; k <= last; k++)
			for (int e = 0; e < d->pending[k].n; e++)
				set(d->disk, &d->pending[k].e[e]);
		memmove(d->pending, d->pending + last + 1, (size_t)(d->npending - last - 1) * sizeof *d->pending);
		d->npending -= last + 1;
	}
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
		change(dir, named(name, node), NULL, 0);
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
		for (int i = 0; i < f->npending; i++)
			if (f->pending[i].pair)
				settle_pair(f->pending[i].pair, f);
		f->npending = 0;
		break;
	}
	case IO_UNLINK:
	case IO_RMDIR:
		change(dir, named(name, -1), NULL, 0);
		break;
	case IO_RENAME:
	case IO_EXCHANGE: {
		int into = folder_of(r->other, &to), there = node_of(r->other);
		bool exchange = r->op == IO_EXCHANGE && there >= 0; /* else RENAME_NOREPLACE */
		if (into < 0 || (exchange && into != dir))
			abort();
		struct entry a = named(name, exchange ? there : -1), b = named(to, node_of(r->path));
		if (into == dir) {
			change(dir, a, &b, 0);
		} else {
			change(dir, a, NULL, ++npairs);
			change(into, b, NULL, npairs);
		}
		break;
	}
	default:
		break;
	}
}

/* ---- what a crash leaves -------------------------------------------------------------------------------------------------- */

enum policy { ALL, NOTHING, NAMES_ONLY, NAMES_AND_ZEROS, DATA_ONLY, TORN, FIXED_POLICIES };

static unsigned seed, crash; /* crash: as seed, and the same throughout one state */

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
	for (int i = 0; i < d->npending; i++) {
		const struct change *c = &d->pending[i];
		bool safe = policy < FIXED_POLICIES || (c->pair ? ((unsigned)c->pair * 2654435761u ^ crash) >> 13 & 1 : dice(2) == 1);
		for (int k = 0; k < c->n && safe; k++)
			set(out, &c->e[k]);
	}
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

/* The state after the calls replayed so far, at path. */
static inline void lose_power(const char *path, int top, int k, int policy)
{
	seed = crash = (unsigned)(k * 1000 + policy);
	materialize(path, top, policy);
}

static inline void forget_records(void)
{
	free_nodes();
	for (int k = 0; k < nrecords; k++)
		free(records[k].data);
	free(records);
	records = NULL;
	nrecords = 0;
}

#endif
