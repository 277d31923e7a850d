#ifndef GT_DATASETS_TABLE_NOTATION_H
#define GT_DATASETS_TABLE_NOTATION_H

/* How the numbers of a table are written. All zero: as in C. */
struct gt_notation {
	char decimal;   /* '.' or ','; 0: '.' */
	char thousands; /* between groups of three digits before it: '.', ',', '\'' (also ’) or ' ' (also spaces that do not break); 0: none */
};

#endif
