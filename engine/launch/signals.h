/* Signals only set a flag; the trainer looks at it between steps. */
#ifndef GT_LAUNCH_SIGNALS_H
#define GT_LAUNCH_SIGNALS_H

/* SIGINT, SIGTERM, SIGHUP, SIGUSR1 from now on set the flag; a second SIGINT ends the process at once, with the signal's own status. */
void gt_signals_install(void);
void gt_signals_restore(void);
int gt_signals_pending(void); /* 0, or the first signal that came */

#endif
