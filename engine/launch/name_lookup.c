#include "launch/name_lookup.h"
#include "launch/world.h"
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The thread and the caller leave in any order: the one that leaves last frees the memory. */
struct gt_name_lookup {
	_Atomic int state; /* RUNS ... */
	char name[GT_ADDR_SIZE];
	struct addrinfo *list; /* in state ENDED */
};
enum { RUNS, ENDED, STOPPED };

static void free_lookup(struct gt_name_lookup *l)
{
	if (l->list)
		freeaddrinfo(l->list);
	free(l);
}

static void *run_lookup(void *arg)
{
	struct gt_name_lookup *l = arg;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	if (getaddrinfo(l->name, NULL, &hints, &l->list))
		l->list = NULL;
	if (atomic_exchange(&l->state, ENDED) == STOPPED)
		free_lookup(l);
	return NULL;
}

struct gt_name_lookup *gt_name_lookup_start(const char *name)
{
	struct gt_name_lookup *l = calloc(1, sizeof *l);
	sigset_t all, old;
	pthread_t thread;
	if (!l)
		return NULL;
	snprintf(l->name, sizeof l->name, "%s", name);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int error = pthread_create(&thread, NULL, run_lookup, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error) {
		free(l);
		return NULL;
	}
	pthread_detach(thread);
	return l;
}

bool gt_name_lookup_done(struct gt_name_lookup *l, struct addrinfo **list)
{
	if (atomic_load(&l->state) != ENDED)
		return false;
	*list = l->list;
	l->list = NULL;
	return true;
}

void gt_name_lookup_stop(struct gt_name_lookup *l)
{
	if (l && atomic_exchange(&l->state, STOPPED) == ENDED)
		free_lookup(l);
}
