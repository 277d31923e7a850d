/* Chooses how to execute a list of launches: with all threads of the team, or with one thread.
 *
 * N threads are faster if each has its own core. On a core that another process also uses, a thread of the team waits for its turn, and all
 * other threads wait for it at the next barrier: two threads beside one busy loop took 1.2 to 1.8 times as long as one thread. The choice
 * therefore follows measurements: the time of whole executions of the list, measured for 20 ms at a time (a window). While all threads
 * execute a list, one thread is tried when it is probably not slower. While one thread executes a list, all threads are tried repeatedly,
 * at growing intervals, because nothing else shows that the cores are free. */
#ifndef GT_CPU_TEAM_CHOICE_H
#define GT_CPU_TEAM_CHOICE_H

#include <stdbool.h>

/* The state of the choice for one list of launches; all fields are zero at first. */
struct gt_team_choice {
	bool one;         /* true: one thread executes the list next time; false: all threads execute it */
	bool warm, trial; /* warm: the first window of 20 ms has passed; trial: the current window tries the other choice */
	int walks;        /* number of executions in the current window */
	double seconds;   /* time of the executions in the current window, in seconds */
	int windows;      /* number of windows since the last trial */
	int wait;         /* number of windows from one trial to the next */
	double mean[2];   /* seconds of one execution by all threads and by one thread, in the last window; 0: not measured */
	double before;    /* value of mean[one] at the last trial, in seconds */
};

/* Reports that an execution of the list, with the number of threads that c->one selects, took `seconds`. */
void gt_team_choice_record(struct gt_team_choice *c, double seconds);

#endif
