/* Chooses how to execute a list of launches: with all threads of the team, or with one thread.
 *
 * N threads are faster if each has its own core. On a core that another process also uses, a thread of the team waits for its turn, and all
 * other threads wait for it at the next barrier: two threads beside one busy loop took 1.2 to 1.8 times as long as one thread. The choice
 * therefore follows measurements: the time of whole executions of the list, in windows of 20 ms. A list that all threads execute tries one
 * thread when that promises not to be slower. A list that one thread executes tries all threads again and again, at growing intervals,
 * because nothing else shows that the cores are free. */
#ifndef GT_CPU_TEAM_CHOICE_H
#define GT_CPU_TEAM_CHOICE_H

#include <stdbool.h>

/* The state for one list; all zero at first. */
struct gt_team_choice {
	bool one;         /* one thread makes the next execution */
	bool warm, trial; /* warm: a first window has passed; trial: the current window is a trial of the other way */
	int walks;        /* number of executions in the current window */
	double seconds;   /* their time */
	int windows;      /* number of windows since the last trial */
	int wait;         /* number of windows between trials */
	double mean[2];   /* seconds of one execution by all threads and by one thread, in the last window; 0: not measured */
	double before;    /* mean[one] at the last trial */
};

/* Reports that an execution of the list, in the way that c->one selects, took `seconds`. */
void gt_team_walked(struct gt_team_choice *c, double seconds);

#endif
