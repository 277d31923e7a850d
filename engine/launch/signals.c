#include "launch/signals.h"
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
#define NWATCHED (sizeof watched / sizeof *watched)

static volatile sig_atomic_t pending; /* a signal handler can write only to a global variable */
static struct sigaction before[NWATCHED];

static void on_signal(int sig)
{
	if (pending == SIGINT && sig == SIGINT) {
		signal(SIGINT, SIG_DFL);
		raise(SIGINT);
		return;
	}
	if (!pending)
		pending = sig;
}

void gt_signals_install(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigemptyset(&sa.sa_mask);
	pending = 0;
	for (size_t i = 0; i < NWATCHED; i++) {
		sigaction(watched[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN) /* a signal that was ignored at the start stays ignored, such as SIGHUP under nohup */
			sigaction(watched[i], &sa, NULL);
	}
}

void gt_signals_restore(void)
{
	for (size_t i = 0; i < NWATCHED; i++)
		sigaction(watched[i], &before[i], NULL);
}

int gt_signals_pending(void)
{
	return pending;
}
