/* Who walks a list of launches: all threads of the team, or one of them alone.
 *
 * On cores of their own, N threads are the faster. On a core that another process uses too, a thread of the team waits for its turn, and
 * all others wait for it at the next barrier: two threads beside one busy loop took 1.2 to 1.8 times as long as one thread. What is faster
 * is therefore measured, by the time of whole walks, in windows of 20 ms. A list walked by all tries one thread when that promises to be
 * no slower; a list walked by one tries all again and again, ever more seldom, since nothing else shows that the cores are free. */
#ifndef GT_CPU_TEAM_CHOICE_H
#define GT_CPU_TEAM_CHOICE_H

#include <stdbool.h>

/* Of one list; all zero at first. */
struct gt_team_choice {
	bool one;         /* the next walk is for one thread */
	bool warm, trial; /* a first window has passed; this one is a trial */
	int walks;        /* in this window, */
	double seconds;   /* and their time */
	int windows;      /* since the last trial, */
	int wait;         /* and how many there are to be before the next */
	double mean[2];   /* seconds of a walk by all and by one, in the last window; 0: not measured */
	double before;    /* mean[one] at the last trial */
};

/* A walk as c->one says took so many seconds. */
void gt_team_walked(struct gt_team_choice *c, double seconds);

#endif
