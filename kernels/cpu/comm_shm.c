/* The shared-memory communicator between the ranks of one host: its segment, its members, and the table of functions. comm_shm.h explains
 * the protocol. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "cpu/comm_shm.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x31206d6873207467ull /* the text "gt shm 1" */
#define PAGE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)
#define SPIN_FREE 2000 /* maximum turns of a spin: about 30 to 80 µs, longer than ranks with equal work usually wait for each other */
#define SPIN_SHARED 32 /* maximum turns of a spin if ranks share cores: the awaited rank may need this core */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* ---- memory in the segment ---------------------------------------------------------------------------------------------------------- */
struct group_place {
	size_t pair, stage, bytes; /* offsets of pairs and stages from the start of the group's memory, and its size, in bytes */
};

static struct group_place place_group(int world)
{
	struct group_place p;
	p.pair = round_up((size_t)world * sizeof(struct shm_slot), PAGE);
	p.stage = p.pair + round_up((size_t)world * (size_t)world * sizeof(struct shm_pair), PAGE);
	p.bytes = p.stage + (size_t)world * 2 * GT_SHM_HALF;
	return p;
}

static void use_group(struct shm_comm *c, uint64_t off)
{
	struct group_place p = place_group(c->pub.world);
	c->slot = (struct shm_slot *)gt_shm_at(c->root, off);
	c->pair = (struct shm_pair *)gt_shm_at(c->root, off + p.pair);
	c->stage = gt_shm_at(c->root, off + p.stage);
	c->pair_bytes = c->root->pair_bytes;
}

static int allocate_pages(int fd, size_t at, size_t bytes)
{
	int rc;
	do
		rc = fallocate(fd, 0, (off_t)at, (off_t)bytes);
	while (rc && errno == EINTR);
	return rc;
}

enum gt_code gt_shm_alloc(struct shm_root *r, size_t bytes, uint64_t *off, struct gt_err *err)
{
	uint64_t *end = &r->head->end, old = __atomic_load_n(end, __ATOMIC_RELAXED), at;
	size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
	do {
		at = round_up(old, align);
		if (bytes > r->reserve || at > r->reserve - bytes)
			return gt_fail(err, GT_EFAIL, "the ranks need %zu bytes of shared memory, which is more than this machine has", bytes);
	} while (!__atomic_compare_exchange_n(end, &old, round_up(at + bytes, PAGE), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (allocate_pages(r->fd, at, round_up(bytes, PAGE)))
		return gt_fail_shared(err, bytes, errno);
	*off = at;
	return GT_OK;
}

static enum gt_code allocate_buffer(struct gt_comm *pub, size_t bytes, void **out, struct gt_err *err)
{
	struct shm_comm *c = (struct shm_comm *)pub;
	uint64_t off;
	*out = NULL;
	if (gt_shm_is_broken(c))
		return gt_shm_broken(c, err);
	GT_TRY(gt_shm_alloc(c->root, bytes ? bytes : 1, &off, err));
	*out = gt_shm_at(c->root, off);
	return GT_OK;
}

/* ---- create ------------------------------------------------------------------------------------------------------------------ */
static enum gt_code create_segment(int world, struct gt_comm_boot *out, struct gt_err *err)
{
	*out = (struct gt_comm_boot){.fd = -1};
	if (world < 1 || world > GT_COMM_RANKS)
		return gt_fail(err, GT_EUNAVAILABLE, "communication in shared memory: expected 1 to %d ranks on one host, got %d",
		               GT_COMM_RANKS, world);
	size_t group = round_up(sizeof(struct shm_head), PAGE), end = group + place_group(world).bytes;
	struct shm_head h = {.magic = MAGIC, .abi = GT_COMM_ABI, .world = (uint32_t)world, .end = end};
	if (getrandom(&h.token, sizeof h.token, 0) != sizeof h.token)
		return gt_fail_errno(err, GT_EFAIL, errno, "getrandom");
	int fd = memfd_create("gtrain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return gt_fail_errno(err, GT_EFAIL, errno, "memfd_create");
	/* Seal the file against shrinking, so that mapped memory stays valid. */
	if (fchmod(fd, 0600) || allocate_pages(fd, 0, end) || pwrite(fd, &h, sizeof h, 0) != sizeof h ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL)) {
		int e = errno;
		close(fd);
		return gt_fail_shared(err, end, e);
	}
	out->fd = fd;
	snprintf(out->id, sizeof out->id, "shm %d %d %016llx", (int)getpid(), fd, (unsigned long long)h.token);
	return GT_OK;
}

/* ---- open -------------------------------------------------------------------------------------------------------------------- */
static enum gt_code open_segment(struct shm_root *r, const struct gt_comm_boot *boot, struct gt_err *err)
{
	int pid, fd;
	unsigned long long token;
	if (sscanf(boot->id, "shm %d %d %llx", &pid, &fd, &token) != 3)
		return gt_fail(err, GT_EPEER, "expected the boot record of a shared-memory group, got \"%.100s\"", boot->id);
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
	r->fd = boot->fd >= 0 ? fcntl(boot->fd, F_DUPFD_CLOEXEC, 3) : open(path, O_RDWR | O_CLOEXEC);
	if (r->fd < 0)
		return gt_fail_errno(err, GT_EPEER, errno, "cannot open the group's shared memory (%s)", boot->fd >= 0 ? "inherited" : path);
	struct shm_head h;
	if (pread(r->fd, &h, sizeof h, 0) != sizeof h || h.magic != MAGIC || h.token != token)
		return gt_fail(err, GT_EPEER, "the group's shared memory does not belong to the boot record \"%s\"", boot->id);
	if (h.abi != GT_COMM_ABI || (int)h.world != r->world)
		return gt_fail(err, GT_EPEER,
		               "the group was created for %u ranks by version %u of the communicator, but this rank expects %d ranks and version "
		               "%d",
		               h.world,
		               h.abi, r->world, GT_COMM_ABI);
	/* Reserves address space for all memory that the machine could have: the file grows, but the mapping never moves. */
	r->reserve = round_up((size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE), HUGE_PAGE) + ((size_t)1 << 30);
	void *base = mmap(NULL, r->reserve, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, r->fd, 0);
	if (base == MAP_FAILED)
		return gt_fail(
		    err, GT_EFAIL,
		    "rank %d cannot reserve %zu bytes of address space for shared memory (the machine's memory plus 1 GiB): %s; raise the limit "
		    "(ulimit -v unlimited)",
		    r->rank, r->reserve, strerror(errno));
	madvise(base, r->reserve, MADV_DONTDUMP);
	r->head = base;
	return GT_OK;
}

/* Waits until every rank has opened the group, then opens a pidfd of each rank's process. A pidfd becomes readable when its process has
 * ended, and it never refers to another process. */
static enum gt_code await_ranks(struct shm_comm *c, struct gt_err *err)
{
	struct shm_root *r = c->root;
	struct shm_member *own = &r->head->member[r->rank];
	uint32_t absent = SHM_ABSENT;
	if (!__atomic_compare_exchange_n(&own->state, &absent, SHM_COMING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return gt_fail(err, GT_EPEER, "another process has already joined as rank %d of the group %s", r->rank, c->pub.name);
	own->pid = getpid();
	if (sched_getaffinity(0, sizeof own->cpus, (cpu_set_t *)own->cpus))
		memset(own->cpus, 0xff, sizeof own->cpus); /* more processors than cpu_set_t holds: assume enough for every rank */
	__atomic_store_n(&own->state, SHM_THERE, __ATOMIC_RELEASE);
	double deadline = gt_clock() + r->timeout_s;
	for (int i = 0; i < r->world;) {
		struct shm_member *m = &r->head->member[i];
		if (gt_shm_is_broken(c))
			return gt_shm_broken(c, err);
		if (__atomic_load_n(&m->state, __ATOMIC_ACQUIRE) == SHM_THERE) {
			if (i != r->rank && (r->pidfd[i] = (int)syscall(SYS_pidfd_open, m->pid, 0)) < 0) {
				if (errno != ESRCH)
					return gt_shm_break(c, err,
					                    "rank %d cannot watch the process of rank %d: pidfd_open: %s (ranks need Linux 5.3 or later)",
					                    r->rank, i, strerror(errno));
				r->pidfd[i] = -2;
			}
			i++;
			continue;
		}
		for (int k = 0; k < i; k++) {
			if (gt_shm_dead(r, k))
				return gt_shm_break(c, err, "rank %d died before all ranks had opened the group %s", k, c->pub.name);
		}
		if (gt_clock() > deadline)
			return gt_shm_break(c, err, "rank %d has not opened the group %s after %g s", i, c->pub.name, r->timeout_s);
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
	return GT_OK;
}

static int spin_limit(const struct shm_root *r)
{
	int cores = 0;
	for (size_t k = 0; k < sizeof r->head->member[0].cpus / sizeof r->head->member[0].cpus[0]; k++) {
		uint64_t any = 0;
		for (int i = 0; i < r->world; i++)
			any |= r->head->member[i].cpus[k];
		cores += __builtin_popcountll(any);
	}
	return cores >= r->world ? SPIN_FREE : SPIN_SHARED;
}

static void close_group(struct gt_comm *pub)
{
	struct shm_comm *c = (struct shm_comm *)pub;
	if (!c)
		return;
	struct shm_root *r = c->root;
	if (r && r->head && c->slot)
		/* a rank that waits for this one sees the flag within one slice (SLICE_MS) of its sleep */
		__atomic_store_n(&c->slot[pub->rank].left, 1, __ATOMIC_RELEASE);
	if (r && c->owns_root) {
		for (int i = 0; i < r->world; i++) {
			if (r->pidfd[i] >= 0)
				close(r->pidfd[i]);
		}
		if (r->head)
			munmap(r->head, r->reserve);
		if (r->fd >= 0)
			close(r->fd);
		free(r);
	}
	free(c);
}

__attribute__((visibility("default"))) extern const struct gt_comm_api gt_comm_shm;

static enum gt_code open_root(struct shm_comm *c, const struct gt_comm_spec *spec, struct gt_err *err)
{
	struct shm_root *r = c->root = calloc(1, sizeof *r);
	if (!r)
		return gt_fail(err, GT_EFAIL, "out of memory");
	c->owns_root = true;
	r->fd = -1;
	r->rank = spec->rank;
	r->world = spec->world;
	r->timeout_s = spec->timeout_s;
	r->pair_bytes = round_up(spec->pair_bytes ? spec->pair_bytes : (size_t)1 << 20, PAGE);
	for (int i = 0; i < GT_COMM_RANKS; i++) {
		r->pidfd[i] = -1;
		c->member[i] = i;
	}
	GT_TRY(open_segment(r, spec->boot, err));
	GT_TRY(await_ranks(c, err));
	c->spin = r->spin = spin_limit(r);
	use_group(c, round_up(sizeof(struct shm_head), PAGE));
	/* Collective call #0 makes sure that no rank continues, and perhaps ends, before all ranks have opened the pidfds of all other ranks.
	 * It also compares the sizes of the rings, which must be equal. */
	c->seq = UINT32_MAX;
	uint64_t pair[GT_COMM_RANKS], mine = r->pair_bytes;
	struct gt_coll x = {.what = "open", .in = &mine, .out = pair, .count = 1, .dtype = GT_I64};
	GT_TRY(gt_shm_coll(&c->pub, GT_COLL_ALL_GATHER, &x, err));
	for (int i = 1; i < r->world; i++) {
		if (pair[i] != pair[0])
			return gt_shm_break(c, err, "rank %d opens the group %s with send buffers of %llu bytes, but rank 0 uses %llu", i, c->pub.name,
			                    (unsigned long long)pair[i], (unsigned long long)pair[0]);
	}
	return GT_OK;
}

static enum gt_code open_comm(const struct gt_comm_spec *spec, struct gt_comm **out, struct gt_err *err)
{
	*out = NULL;
	if (spec->world < 1 || spec->world > GT_COMM_RANKS || spec->rank < 0 || spec->rank >= spec->world || !spec->boot ||
	    !(spec->timeout_s > 0))
		return gt_fail(err, GT_EINTERNAL, "cannot open a communicator with these arguments: rank %d of %d, timeout %g s",
		               spec->rank, spec->world,
		               spec->timeout_s);
	struct shm_comm *c = calloc(1, sizeof *c);
	if (!c)
		return gt_fail(err, GT_EFAIL, "out of memory");
	c->pub = (struct gt_comm){.api = &gt_comm_shm, .rank = spec->rank, .world = spec->world};
	snprintf(c->pub.name, sizeof c->pub.name, "%s", spec->name ? spec->name : "world");
	enum gt_code code = open_root(c, spec, err);
	if (code != GT_OK) {
		close_group(&c->pub);
		return code;
	}
	*out = &c->pub;
	return GT_OK;
}

/* ---- split ------------------------------------------------------------------------------------------------------------------- */
static enum gt_code split_group(struct gt_comm *pub, const char *name, int color, int key, struct gt_comm **out, struct gt_err *err)
{
	struct shm_comm *c = (struct shm_comm *)pub;
	struct gt_split_request mine = {color < 0 ? -1 : color, key, 0}, request[GT_COMM_RANKS];
	int64_t off = 0, offs[GT_COMM_RANKS];
	int of[GT_COMM_RANKS] = {0};
	*out = NULL;
	struct gt_coll x = {.what = "split", .in = &mine, .out = request, .count = sizeof mine, .dtype = GT_U8};
	GT_TRY(gt_shm_coll(&c->pub, GT_COLL_ALL_GATHER, &x, err));
	struct shm_comm *s = calloc(1, sizeof *s);
	struct gt_err bad = {0};
	if (!s)
		off = gt_fail(&bad, GT_EFAIL, "out of memory");
	if (s && color >= 0) {
		s->pub.api = &gt_comm_shm;
		s->root = c->root;
		s->spin = c->root->spin;
		snprintf(s->pub.name, sizeof s->pub.name, "%s", name ? name : "split");
		s->pub.world = gt_split_members(request, pub->rank, pub->world, of, &s->pub.rank);
		for (int i = 0; i < s->pub.world; i++)
			s->member[i] = c->member[of[i]];
		uint64_t at;
		if (of[0] == pub->rank && gt_shm_alloc(c->root, place_group(s->pub.world).bytes, &at, &bad) == GT_OK)
			off = (int64_t)at;
	}
	enum gt_code code = GT_OK;
	if (bad.code) { /* the other members wait for this rank, so the failure breaks the whole group */
		gt_shm_break(c, NULL, "rank %d: split of %s: %.900s", c->member[pub->rank], pub->name, bad.msg);
		code = gt_fail(err, bad.code, "%s", bad.msg);
	} else {
		x = (struct gt_coll){.what = "memory of the split group", .in = &off, .out = offs, .count = 1, .dtype = GT_I64};
		code = gt_shm_coll(&c->pub, GT_COLL_ALL_GATHER, &x, err);
	}
	if (code != GT_OK || color < 0) {
		free(s);
		return code;
	}
	use_group(s, (uint64_t)offs[of[0]]);
	*out = &s->pub;
	return GT_OK;
}

/* ---- table of functions ------------------------------------------------------------------------------------------------------------- */
GT_COLLECTIVE_FUNCTIONS(gt_shm_coll)

static void give_up(struct gt_comm *c, const char *why)
{
	struct shm_comm *s = (struct shm_comm *)c;
	gt_shm_break(s, NULL, "rank %d gave up: %.900s", s->member[c->rank], why ? why : "no reason given");
}

static enum gt_code check_group(struct gt_comm *c, struct gt_err *err)
{
	struct shm_comm *s = (struct shm_comm *)c;
	/* a rank that closed the group has finished normally, so the end of its process is no failure */
	for (int i = 0; i < c->world && !gt_shm_is_broken(s); i++)
		if (gt_shm_dead(s->root, s->member[i]) && !__atomic_load_n(&s->slot[i].left, __ATOMIC_ACQUIRE))
			return gt_shm_break(s, err, "rank %d has died", s->member[i]);
	return gt_shm_is_broken(s) ? gt_shm_broken(s, err) : GT_OK;
}

static void set_send_buffer(struct gt_comm *c, size_t pair_bytes)
{
	((struct shm_comm *)c)->root->pair_bytes = round_up(pair_bytes, PAGE);
}

/* Rank 0's answer to all ranks, which must return the same error if there is no memory. */
struct shared_buffer {
	uint64_t off;      /* offset of the buffer in the segment */
	struct gt_err why; /* why there is no buffer; code GT_OK: there is one */
};

static enum gt_code share_buffer(struct gt_comm *pub, size_t bytes, void **out, struct gt_err *err)
{
	struct shm_comm *c = (struct shm_comm *)pub;
	struct shared_buffer b = {0};
	struct gt_coll x = {.what = "shared buffer", .in = &b, .out = &b, .count = sizeof b, .dtype = GT_U8};
	*out = NULL;
	if (pub->rank == 0)
		gt_shm_alloc(c->root, bytes ? bytes : 1, &b.off, &b.why);
	GT_TRY(broadcast(pub, &x, err));
	if (b.why.code != GT_OK)
		return gt_fail(err, b.why.code, "%s", b.why.msg);
	*out = gt_shm_at(c->root, b.off);
	return GT_OK;
}

static double set_timeout(struct gt_comm *c, double timeout_s)
{
	double *now = &((struct shm_comm *)c)->root->timeout_s, was = *now;
	*now = timeout_s;
	return was;
}

const struct gt_comm_api gt_comm_shm = {
    .abi = GT_COMM_ABI,
    .name = "shm",
    .host_memory = true,
    .fixed_tree = true,
    .max_world = GT_COMM_RANKS,
    .create = create_segment,
    .open = open_comm,
    .close = close_group,
    .split = split_group,
    .buffer = allocate_buffer,
    GT_COLLECTIVE_MEMBERS,
    .exchange = gt_shm_exchange,
    .abort = give_up,
    .check = check_group,
    .set_timeout = set_timeout,
    .set_send_buffer = set_send_buffer,
    .common = share_buffer,
};
