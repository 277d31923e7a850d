#include "base/guess.h"
#include <ctype.h>
#include <limits.h>
#include <string.h>

enum { MOST = 63, ERROR = 64 }; /* maximum bytes of a word; the score of one typing error */

/* Returns the optimal string alignment distance of two lower-case words. */
static int count_errors(const char *a, int na, const char *b, int nb)
{
	int d[3][MOST + 1];
	for (int j = 0; j <= nb; j++)
		d[0][j] = j;
	for (int i = 1; i <= na; i++) {
		int *row = d[i % 3], *up = d[(i + 2) % 3], *up2 = d[(i + 1) % 3];
		row[0] = i;
		for (int j = 1; j <= nb; j++) {
			int least = up[j - 1] + (a[i - 1] != b[j - 1]);
			least = up[j] + 1 < least ? up[j] + 1 : least;
			least = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < least)
				least = up2[j - 2] + 1;
			row[j] = least;
		}
	}
	return d[na % 3][nb];
}

/* Copies a word in lower case. Returns its length; -1: it is too long. */
static int copy_lower(char out[MOST + 1], const char *word)
{
	size_t n = strlen(word);
	for (size_t i = 0; i < n && i < MOST; i++)
		out[i] = (char)tolower((unsigned char)word[i]);
	return n <= MOST ? (int)n : -1;
}

struct gt_guess gt_guess_open(const char *word)
{
	return (struct gt_guess){.word = word, .score = INT_MAX};
}

void gt_guess_try(struct gt_guess *g, const char *candidate)
{
	char a[MOST + 1], b[MOST + 1];
	int na = copy_lower(a, g->word), nb = copy_lower(b, candidate), shorter = na < nb ? na : nb, score = INT_MAX;
	if (shorter < 0)
		return;
	int errors = count_errors(a, na, b, nb), few = (shorter + 1) / 3;
	if (errors <= few && errors <= 3)
		score = errors * ERROR;
	if (shorter >= 3 && !memcmp(a, b, (size_t)shorter)) {
		int begins = ERROR + ERROR / 2 + (na + nb - 2 * shorter) / 2; /* 1.5 to 2 typing errors, by the number of bytes that follow */
		score = begins < score ? begins : score;
	}
	if (score < g->score) {
		g->score = score;
		g->best = candidate;
	}
}

const char *gt_guess_nearest(const char *word, const char *const *candidates, int n)
{
	struct gt_guess g = gt_guess_open(word);
	for (int i = 0; i < n; i++)
		gt_guess_try(&g, candidates[i]);
	return g.best;
}
