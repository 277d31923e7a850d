/* `gtrain --version`: prints the facts about the build and the machine that a bug report needs. */
#include "cli.h"
#include "gtrain_report.h"
#include <stdio.h>
#include <string.h>

#ifndef GT_COMMIT
#define GT_COMMIT "" /* the commit of the build, from the Makefile; "": built outside git, for example from an archive */
#endif
#ifndef GT_CUDA_VERSIONS
#define GT_CUDA_VERSIONS "" /* versions of CUDA, cuDNN and NCCL at build time, from cuda.mk; "": built without CUDA */
#endif
#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum gt_code gt_cli_version(struct gt_cli *cli, struct gt_err *err)
{
	const char *commit = *GT_COMMIT ? GT_COMMIT : "unknown";
	struct gt_build_info b;
	char parts[64], libraries[sizeof b.libraries + sizeof GT_CUDA_VERSIONS + 2];
	gt_build_info(&b);
	snprintf(libraries, sizeof libraries, "%s%s%s", b.libraries, b.cuda && *GT_CUDA_VERSIONS ? ", " : "", b.cuda ? GT_CUDA_VERSIONS : "");
	snprintf(parts, sizeof parts, "%s%s%s%s%s%s%s", b.cpu ? ", cpu" : "", b.cuda ? ", cuda" : "", b.gloo ? ", gloo" : "",
	         b.fetch ? ", fetch" : "", b.archive ? ", archive" : "", b.draw ? ", draw" : "", b.mlflow ? ", mlflow" : "");
	const char *has = *parts ? parts + 2 : "none";
	if (cli->args.json) {
		struct gt_json *j = &cli->json;
		gt_json_row(j, NULL, GT_STR("version", GT_VERSION), GT_STR("commit", commit), GT_STR("compiler", COMPILER),
		            GT_STR("libraries", libraries), GT_STR("plugins", has), GT_STR("processor", b.processor));
		return gt_out_json(cli, err);
	}
	gt_out(cli, "gtrain %s\n", GT_VERSION);
	const char *const rows[][2] = {
	    {"commit", commit}, {"compiler", COMPILER}, {"libraries", libraries}, {"plugins", has}, {"processor", b.processor}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		gt_out_wrapped(cli, rows[i][0], 11, rows[i][1], 80);
	return GT_OK;
}
