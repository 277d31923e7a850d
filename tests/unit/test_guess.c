/* The rule of "did you mean" (base/guess.h). */
#include "base/guess.h"
#include "test.h"
#include <string.h>

struct guess_case {
	const char *word, *want; /* want: NULL if no candidate may be suggested */
};

static void check_cases(const struct guess_case *cases, int ncases, const char *const *names, int n)
{
	for (int i = 0; i < ncases; i++) {
		const char *got = gt_guess_nearest(cases[i].word, names, n), *want = cases[i].want;
		CHECK_MSG(got && want ? !strcmp(got, want) : got == want, "'%s': %s, not %s", cases[i].word, got ? got : "nothing",
		          want ? want : "nothing");
	}
}

#define CHECK_CASES(cases, names) check_cases(cases, (int)(sizeof cases / sizeof *cases), names, (int)(sizeof names / sizeof *names))

TEST(commands)
{
	static const char *const names[] = {"run", "resume", "check", "plan", "eval", "predict", "inspect", "export", "train"};
	static const struct guess_case cases[] = {
	    {"rnu", "run"}, {"RUNN", "run"}, {"chekc", "check"}, {"insepct", "inspect"}, {"trian", "train"}, {"resmue", "resume"},
	    {"pred", "predict"}, {"evaluate", "eval"}, {"plam", "plan"}, {"frobnicate", NULL}, {"x", NULL}, {"zzz", NULL}, {"pl", NULL},
	    {"", NULL},
	};
	CHECK_CASES(cases, names);
}

TEST(configs)
{
	static const char *const names[] = {"pets", "lenet", "mnist_ddp", "resnet18"};
	static const struct guess_case cases[] = {
	    {"photos", NULL}, {"pet", "pets"}, {"pest", "pets"}, {"mnist_dpd", "mnist_ddp"}, {"resnet18_mine", "resnet18"}, {"planets", NULL},
	};
	CHECK_CASES(cases, names);
}

TEST(order_of_similar_words)
{
	static const char *const names[] = {"adam", "adamw", "padding_mode", "padding", "bce", "dice"};
	static const struct guess_case cases[] = {
	    {"adamww", "adamw"}, /* one error is less than a beginning */
	    {"pad", "padding"},  /* the beginning to which fewer bytes are added */
	    {"pading", "padding"}, {"bce", "bce"}, {"bice", "bce"}, /* the first of two with one error */
	};
	CHECK_CASES(cases, names);
}

TEST(long_words)
{
	static const char *const names[] = {"run", "a"};
	char word[200];
	memset(word, 'a', sizeof word - 1);
	word[sizeof word - 1] = '\0';
	CHECK(!gt_guess_nearest(word, names, 2));
	word[64] = '\0';
	const char *const itself[] = {word};
	CHECK(!gt_guess_nearest(word, itself, 1));
	word[63] = '\0';
	CHECK(gt_guess_nearest(word, itself, 1) == word);
}

RUN_TESTS()
