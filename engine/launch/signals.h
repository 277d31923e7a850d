/* Signal handling of a rank: a signal only sets a flag, which the trainer reads between steps. */
#ifndef GT_LAUNCH_SIGNALS_H
#define GT_LAUNCH_SIGNALS_H

/* Installs handlers: SIGINT, SIGTERM, SIGHUP and SIGUSR1 set the flag; a second SIGINT ends the process at once, with the signal's own
 * status. */
void gt_signals_install(void);
void gt_signals_restore(void); /* restores the previous handlers */
int gt_signals_pending(void);  /* the first signal that arrived; 0: none */

#endif
