/* Finds the known word that a user probably meant by an unknown word. Every "did you mean" of a message uses this rule.
 *
 *     struct gt_guess g = gt_guess_open("trian");
 *     for each candidate: gt_guess_try(&g, candidate);
 *     if (g.best) ... "did you mean \"%s\"?", g.best
 *
 * The rule ignores case. A typing error is an insertion, a deletion, a replacement or a swap of two adjacent bytes. A candidate is similar
 * to the word if at most min(3, (n + 1) / 3) typing errors separate them, where n is the length of the shorter one. A candidate is also
 * similar if one of the two, of at least 3 bytes, is a prefix of the other ("bat" and "batch_size" for "batch"); a prefix ranks between one
 * and two typing errors. Of equally similar candidates, the first is best. */
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
