/* The word that a user probably meant: the rule of every "did you mean".
 *
 *     struct gt_guess g = gt_guess_open("trian");
 *     for each candidate: gt_guess_try(&g, candidate);
 *     if (g.best) ... "did you mean \"%s\"?", g.best
 *
 * The rule, without regard to case: a candidate is similar if the word becomes it by few typing errors, each an insertion, a deletion, a
 * replacement or a swap of two neighbouring bytes. With n bytes in the shorter of both, (n + 1) / 3 errors are few, but at most 3. A
 * candidate is also similar if it begins with the word, or the word with it, and the beginning has at least 3 bytes ("bat" and
 * "batch_size" for "batch"); that is worse than one typing error and better than two. Of equally similar candidates, the first is best. */
#ifndef GT_BASE_GUESS_H
#define GT_BASE_GUESS_H

struct gt_guess {
	const char *word;
	const char *best; /* the most similar candidate until now; NULL: none is similar */
	int score;        /* how far best is from word, in 64ths of a typing error */
};

struct gt_guess gt_guess_open(const char *word);
/* Compares the word with a candidate, whose string is not copied. Words of more than 63 bytes are similar to nothing. */
void gt_guess_try(struct gt_guess *g, const char *candidate);
/* Returns the most similar of n candidates, or NULL. */
const char *gt_guess_nearest(const char *word, const char *const *candidates, int n);

#endif
