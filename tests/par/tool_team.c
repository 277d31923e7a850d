/* Ranks that become a team and work together, however they were started: by this program's own launcher (-n), torchrun, mpirun, srun.
 *   tool_team [-n RANKS [-N HOSTS -R HOST -p PORT]] [-t TIMEOUT] [-f TOKENFILE] [-c RANK] [-d RANK] [-e RANK] [-s STEPS] [-b BYTES]
 *             [-m FILE] [RANK|*:WHAT]...
 * Every rank adds its number to a sum (with -b: to all sums in BYTES bytes) at each of STEPS steps, and at step 3 does what it was told
 * to. Rank 0 makes FILE after its first step, when all ranks have met, and closes with
 * "team how=… world=… sum=… comm=… exchanges=… threads=…"; the launcher with "end code=… rank=… end_s=…" and "why …". */
#include "launch/rendezvous.h"
#include "team/team.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum gt_code act(struct gt_team *t, const char *what, struct gt_err *err)
{
	if (!strcmp(what, "kill") || !strcmp(what, "stop") || !strcmp(what, "segv")) {
		raise(*what == 'k' ? SIGKILL : what[1] == 't' ? SIGSTOP : SIGSEGV);
	} else if (!strcmp(what, "leave")) {
		return gt_fail(err, GT_EIO, "its disk is full");
	} else if (!strcmp(what, "nan")) {
		return gt_fail(err, GT_EDIVERGED, "its loss is not finite");
	} else if (!strcmp(what, "hang")) { /* alive, deaf to signals, and not where the others wait */
		signal(SIGTERM, SIG_IGN);
		gt_rank_phase(t->link, "evaluating", 0);
		for (;;)
			pause();
	} else if (!strcmp(what, "program")) {
		return gt_team_compare(t, "program", t->world.rank ? "two" : "one", err);
	} else if (!strcmp(what, "deaf")) { /* as a rank is, whose handler only sets a flag */
		signal(SIGTERM, SIG_IGN);
	} else {
		return gt_fail(err, GT_EUSAGE, "no behaviour %s", what);
	}
	return GT_OK;
}

/* Every element of `sums` counts the same. */
static enum gt_code be_rank(struct gt_team *t, long steps, size_t sums, const char *met, char **script, struct gt_err *err)
{
	int64_t sum = 0, one, *part = &one;
	if (t->comm && sums > 1) {
		void *memory;
		GT_TRY(t->comm->api->buffer(t->comm, sums * sizeof *part, &memory, err));
		part = memory;
	}
	for (long step = 0; step < steps; step++) {
		for (char **s = script; step == 3 && *s; s++)
			if (**s == '*' || atoi(*s) == t->world.rank)
				GT_TRY(act(t, strchr(*s, ':') ? strchr(*s, ':') + 1 : "", err));
		for (size_t i = 0; i < (t->comm ? sums : 1); i++)
			part[i] = t->world.rank + 1;
		if (t->comm) {
			struct gt_coll x = {.what = "ranks", .in = part, .out = part, .count = sums, .dtype = GT_I64, .op = GT_REDUCE_SUM};
			gt_rank_set_waiting(t->link, true);
			enum gt_code code = t->comm->api->all_reduce(t->comm, &x, err);
			gt_rank_set_waiting(t->link, false);
			GT_TRY(code);
		}
		sum += part[0];
		if (met && step == 0 && !t->world.rank)
			close(open(met, O_CREAT | O_WRONLY, 0600));
		gt_rank_report_progress(t->link, step + 1);
	}
	if (!t->world.rank)
		printf("team how=%s world=%d sum=%lld comm=%s exchanges=%d threads=%d\n", t->world.how, t->world.world, (long long)sum,
		       t->comm ? t->comm->api->name : "none", t->exchanges, t->threads);
	return GT_OK;
}

static void say(void *user, const char *line)
{
	(void)user;
	printf("%s\n", line);
	fflush(stdout);
}

static enum gt_code run(int argc, char **argv, struct gt_rank_link *link, struct gt_err *err)
{
	struct gt_launch_spec launch = {.argv = argv, .timeout_s = 30, .pin = true, .say = say};
	struct gt_world world;
	struct gt_team_spec spec = {.world = &world, .link = link, .timeout_s = 30, .config = "one", .start = "from the beginning"};
	struct gt_team *team;
	struct gt_launch_end end;
	unsigned char token[GT_TOKEN_SIZE];
	long steps = 10, bytes = 8;
	const char *met = NULL;
	int odd_config = -1, odd_start = -1, early = -1;
	for (int o; (o = getopt(argc, argv, "n:t:f:c:d:e:s:b:m:N:R:p:")) != -1;)
		switch (o) {
		case 'n':
			launch.nproc = atoi(optarg);
			break;
		case 't':
			launch.timeout_s = spec.timeout_s = atof(optarg);
			break;
		case 'f':
			spec.token_file = optarg;
			break;
		case 'c': /* has another config */
			odd_config = atoi(optarg);
			break;
		case 'd': /* starts from elsewhere */
			odd_start = atoi(optarg);
			break;
		case 'e': /* fails before the ranks meet */
			early = atoi(optarg);
			break;
		case 'N':
			launch.nnodes = atoi(optarg);
			break;
		case 'R':
			launch.node = launch.node_rank = atoi(optarg);
			break;
		case 'p':
			launch.port = atoi(optarg);
			launch.addr = "127.0.0.1";
			break;
		case 's':
			steps = atol(optarg);
			break;
		case 'b':
			bytes = atol(optarg);
			break;
		case 'm':
			met = optarg;
			break;
		default:
			return gt_fail(err, GT_EUSAGE, "see tool_team.c");
		}
	GT_TRY(gt_team_world(link, &world, err));
	if (world.rank == odd_config)
		spec.config = "two";
	if (world.rank == odd_start)
		spec.start = "from the checkpoint of step 5";
	if (!link && launch.nproc) {
		if (launch.nnodes > 1)
			GT_TRY(gt_token_read(spec.token_file, token, err));
		launch.token = launch.nnodes > 1 ? token : NULL;
		enum gt_code code = gt_launch_run(&launch, &end, err);
		printf("end code=%d rank=%d end_s=%.3f\n", (int)code, end.rank, end.end_s);
		return code;
	}
	if (world.rank == early)
		return gt_fail(err, GT_ENOINPUT, "its data is missing");
	GT_TRY(gt_team_open(&spec, &team, err));
	enum gt_code code = be_rank(team, steps, bytes > 8 ? (size_t)bytes / 8 : 1, met, argv + optind, err);
	gt_team_close(team);
	return code;
}

int main(int argc, char **argv)
{
	struct gt_rank_link *link;
	struct gt_err err = {0};
	enum gt_code code = gt_rank_open(&link, &err);
	if (code == GT_OK)
		code = run(argc, argv, link, &err);
	if (code != GT_OK && link)
		gt_rank_report_error(link, code, err.msg);
	else if (code != GT_OK)
		printf("why %s\n", err.msg);
	gt_rank_close(link);
	return (int)code;
}
