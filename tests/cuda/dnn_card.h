/* GPUs that are only described to cuDNN, which then makes plans for them. */
#ifndef GT_TESTS_DNN_CARD_H
#define GT_TESTS_DNN_CARD_H

#include "cuda/cudnn_lib.h"

enum dnn_card { DNN_H200, DNN_A100, DNN_CARDS, DNN_B200 = DNN_CARDS, DNN_ALL_CARDS }; /* convolutions are tried on DNN_CARDS cards */
extern const char *const dnn_card_name[DNN_ALL_CARDS];

/* Closes cuDNN of dev, and opens it for the card, with a cache in the test's folder. false: skips the test with cuDNN's reason. */
bool dnn_card_open(struct gt_dev *dev, enum dnn_card card);

#endif
