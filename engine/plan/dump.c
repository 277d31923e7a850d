/* Prints programs as text or JSON. */
#include "plan/program.h"
#include "base/memstream.h"
#include <stdio.h>
#include <stdlib.h>

/* Prints an operand: name, shape, "~8" if its channels are padded to a multiple of 8, and for activations "@" with the byte offset ("@all+"
 * in the arena that all ranks share). An absent operand is "-". */
static void print_operand(FILE *f, const struct gt_plan *p, gt_vid v)
{
	char shape[96];
	if (v < 0) {
		fprintf(f, " -");
		return;
	}
	const struct gt_value *val = &p->graph->values[v];
	fprintf(f, " %s%s", val->name, gt_tdesc_text(&val->desc, shape, sizeof shape));
	if (val->kind == GT_V_INPUT && val->desc.layout.nblk)
		fprintf(f, "~%d", val->desc.layout.blk[0]);
	gt_vid root = p->slot[v].root;
	if (p->graph->values[root].kind == GT_V_ACT && p->slot[root].first >= 0)
		fprintf(f, "@%s%zu", p->slot[root].arena == GT_A_SHARED_ACT ? "all+" : "", p->slot[root].offset + (size_t)p->slot[v].shift);
}

/* Prints a communication step, for example "f32 x 1024, world, gradients+4096 -> …". */
static void print_communication(FILE *f, const struct gt_step *s)
{
	const struct gt_call *c = s->call;
	if (c->comm->kind == GT_COLL_BARRIER) {
		fprintf(f, " %s", gt_group_name(c->comm->group));
		return;
	}
	fprintf(f, " %s x %zu, %s", gt_dtype_name(c->dtype), c->count, gt_group_name(c->comm->group));
	if (s->end)
		fprintf(f, " within the rank");
	else if (c->comm->kind == GT_COMM_SEND || c->comm->kind == GT_COMM_RECV)
		fprintf(f, " %s %d", c->comm->kind == GT_COMM_SEND ? "to" : "from", c->comm->peer);
	if (c->node < 0)
		fprintf(f, ", %s+%zu -> %s+%zu", gt_arena_name(c->from.arena), c->from.offset, gt_arena_name(c->to.arena), c->to.offset);
}

/* Prints one line for each step: its kind; depending on the kind, its micro-batch, call, communication, event or range; and the operands of
 * the call's node. */
enum gt_code gt_prog_text(const struct gt_prog *prog, const char *title, bool json, char **text, size_t *len, struct gt_err *err)
{
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	if (!json)
		fprintf(f, "# %s: %d steps, %lld samples in %d micro-batch%s\n", title, prog->n, (long long)prog->samples, prog->nmicro,
		        prog->nmicro == 1 ? "" : "es");
	if (!json && prog->transforms)
		fprintf(f, "# image transforms in the loading kernel: %s\n", prog->transforms);
	for (int i = 0; i < prog->n; i++) {
		const struct gt_step *s = &prog->step[i];
		const struct gt_node *n = s->plan && s->call && s->call->node >= 0 ? &s->plan->graph->nodes[s->call->node] : NULL;
		if (json) { /* names need no escaping, because the config's checks allow no special characters in them */
			fprintf(f, "{\"program\":\"%s\",\"step\":%d,\"kind\":\"%s\",\"stream\":%d,\"micro\":%d", title, i, gt_step_name(s->kind),
			        s->stream, s->micro);
			if (s->call && s->call->comm)
				fprintf(f, ",\"count\":%zu,\"dtype\":\"%s\",\"group\":\"%s\",\"peer\":%d", s->call->count, gt_dtype_name(s->call->dtype),
				        gt_group_name(s->call->comm->group), s->call->comm->peer);
			if (s->call)
				fprintf(f, ",\"op\":\"%s\",\"layer\":\"%s\",\"flops\":%.0f,\"scratch\":%zu", s->call->op, s->call->layer, s->call->flops,
				        s->call->scratch);
			fprintf(f, "}\n");
			continue;
		}
		fprintf(f, "%4d %-6s", i, gt_step_name(s->kind));
		if (s->kind == GT_STEP_BIND || s->kind == GT_STEP_PASS)
			fprintf(f, " micro-batch %d", s->micro);
		if (s->kind == GT_STEP_LOAD)
			fprintf(f, " micro-batch %d, %lld samples", s->micro, (long long)(s->plan->graph->batch / s->plan->graph->views));
		if (s->call)
			fprintf(f, " %-14s %-18s", s->call->op, s->call->layer);
		if (s->call && s->call->comm)
			print_communication(f, s);
		if (s->kind == GT_STEP_LAUNCH && s->stream)
			fprintf(f, "stream %d", s->stream);
		if (s->kind == GT_STEP_RECORD || s->kind == GT_STEP_WAIT)
			fprintf(f, " event %d, stream %d", s->event, s->stream);
		if (s->kind == GT_STEP_CLEAR)
			fprintf(f, " %s+%zu, %zu bytes", gt_arena_name(s->range.arena), s->range.offset, s->bytes);
		if (n) {
			for (int k = 0; k < n->nin; k++)
				print_operand(f, s->plan, n->in[k]);
			fprintf(f, " ->");
			for (int k = 0; k < n->nout; k++)
				print_operand(f, s->plan, n->out[k]);
			gt_vid first = n->nout ? gt_node_first_output(n) : -1;
			if (n->backward && (s->plan->accumulate || (first >= 0 && gt_graph_grad_adds(s->plan->graph, s->call->node, first))))
				fprintf(f, " (gradients added)");
		}
		fprintf(f, "\n");
	}
	return gt_memstream_close(f, &m, text, len, err);
}
