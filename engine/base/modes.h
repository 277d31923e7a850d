/* One row for each parallel mode: X(NAME, name, RANKS). These rows generate enum gt_mode, the values of the config key parallel.mode and of
 * --mode, the modes to which the keys of the section parallel apply (conf/schema.c), and the table of strategies (plan/strategy.c).
 *
 *	NAME    the enumerator is GT_MODE_NAME
 *	name    the word of parallel.mode; the row of functions is gt_strategy_name (plan/strategy.h)
 *	RANKS   what a rank is: GT_RANKS_RANKS
 *
 * To add a mode: a row here, and a file in engine/plan that defines gt_strategy_name. Keys of its own: conf/conf.h and conf/schema.c. */
#ifndef GT_BASE_MODES_H
#define GT_BASE_MODES_H

enum gt_mode_ranks {
	GT_RANKS_ONE,      /* there is one rank */
	GT_RANKS_THREADS,  /* the ranks are threads of one process, on one host */
	GT_RANKS_PROCESSES /* each rank is a process, on any host */
};

#define GT_MODES_OF_ONE(X) X(SINGLE, single, ONE)
#define GT_MODES_OF_THREADS(X) X(DP, dp, THREADS)
#define GT_MODES_OF_PROCESSES(X) X(DDP, ddp, PROCESSES) X(ZERO, zero, PROCESSES) X(PIPE, pipe, PROCESSES)
#define GT_MODES_OF_RANKS(X) GT_MODES_OF_THREADS(X) GT_MODES_OF_PROCESSES(X)
#define GT_MODES(X) GT_MODES_OF_ONE(X) GT_MODES_OF_RANKS(X)

enum gt_mode {
#define GT_MODE_NUMBER(NAME, ...) GT_MODE_##NAME,
	GT_MODES(GT_MODE_NUMBER)
#undef GT_MODE_NUMBER
	GT_MODE_COUNT
};

/* Strings "single|dp|…" of the words of all modes, of those with several ranks, and of those whose ranks are processes. */
#define GT_MODE_WORD(NAME, name, ...) "|" #name
#define GT_MODE_WORDS (&(GT_MODES(GT_MODE_WORD))[1])
#define GT_MODE_WORDS_OF_RANKS (&(GT_MODES_OF_RANKS(GT_MODE_WORD))[1])
#define GT_MODE_WORDS_OF_PROCESSES (&(GT_MODES_OF_PROCESSES(GT_MODE_WORD))[1])
/* The same words for a sentence: "single, dp, …". */
#define GT_MODE_FIRST(NAME, name, ...) #name
#define GT_MODE_NEXT(NAME, name, ...) ", " #name
#define GT_MODE_LIST GT_MODES_OF_ONE(GT_MODE_FIRST) GT_MODES_OF_RANKS(GT_MODE_NEXT)

#endif
