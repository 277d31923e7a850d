#include "score/calibration.h"
#include <math.h>

/* Returns the index of the bin of a probability: bin i has the probabilities above i / GT_CALIBRATION_BINS, up to (i + 1) /
 * GT_CALIBRATION_BINS. */
static int find_bin(double p)
{
	int i = (int)ceil(p * GT_CALIBRATION_BINS) - 1;
	return i < 0 ? 0 : i >= GT_CALIBRATION_BINS ? GT_CALIBRATION_BINS - 1 : i;
}

void gt_calibration_add(struct gt_calibration *c, double probability, bool right)
{
	struct gt_calibration_bin *b = &c->bin[find_bin(probability)];
	b->probability += probability; /* a sum; gt_calibration_finish divides it by the number of predictions */
	b->right += right;
	b->n++;
	c->n++;
}

void gt_calibration_finish(struct gt_calibration *c)
{
	double sum = 0;
	for (int i = 0; i < GT_CALIBRATION_BINS; i++) {
		struct gt_calibration_bin *b = &c->bin[i];
		sum += fabs(b->probability - b->right);
		b->probability = b->n ? b->probability / (double)b->n : NAN;
		b->right = b->n ? b->right / (double)b->n : NAN;
	}
	c->ece = c->n ? sum / (double)c->n : NAN;
}
