/* Definitions that the public headers of the engine (gtrain*.h) share with rooms below them. */
#ifndef GT_BASE_PUBLIC_H
#define GT_BASE_PUBLIC_H

#include "base/modes.h"
#include "base/scores.h"
#include <stdbool.h>
#include <stdint.h>

/* The version of the program (semantic versioning). Checkpoints contain it, and ranks compare it before they train together. */
#define GT_VERSION "0.1.0"

/* A key of the config, for gt_schema_each. */
struct gt_schema_key {
	const char *path;    /* path of the key: "train.optimizer.lr", "model.layers[].conv2d.kernel" */
	const char *type;    /* type of the value: "int", "float", "bool", "string", "int[]", or "a|b|c" for an enumeration */
	const char *def;     /* default as written in a config, or in words in parentheses; "": the key is required */
	const char *range;   /* allowed values, such as "0.." or "(0, 1]"; "": any value of the type */
	const char *help;    /* text that describes the key; of an enumeration, with its words: "about; a: text; b: text" */
	const char *when;    /* path of another key that decides whether this key applies; "": it always applies */
	const char *is;      /* values of that key with which it applies, "a|b" */
	const char *also;    /* names of the key in PyTorch and other programs, "a|b"; "": none, or the same */
	const char *example; /* a value as written in a config: "0.001", "[128, 256]"; "": none */
};

/* A word that is a value of a key, for gt_schema_words: a layer type, a loss, an optimizer, a parallel mode. */
struct gt_schema_word {
	const char *key;     /* path of the key; of a layer type: "model.layers[].type" */
	const char *word;
	const char *help;    /* meaning of the word; "": the description of the key explains it */
	const char *also;    /* names in PyTorch and other programs, "nn.Conv2d|conv"; "": none, or the same */
};

/* A device, or a backend without devices, for gt_devices. */
struct gt_device_row {
	char backend[16];
	char id[32], name[128], detail[256];
	char native[40];    /* values of the config key `precision` for which the device has arithmetic: "fp32, bf16" */
	uint64_t bytes;     /* size of its memory */
	bool usable;        /* false: name is empty, and detail is the reason why the backend has no device */
};

/* The libraries, the processor and the plugins of this build, for `gtrain --version`. */
struct gt_build_info {
	char libraries[320];  /* libraries and their versions: "oneDNN 2.6.3, zlib 1.2.13, …" */
	char processor[128];  /* the processor as gt_devices names it */
	/* Whether the plugin of a backend, of communication between hosts, of downloads, of packed archives, of PNG files, of MLflow is
	 * installed. */
	bool cpu, cuda, gloo, fetch, archive, draw, mlflow;
};

#endif
