/* gt_onnx_write: writes an ONNX model to a file. The lengths of all messages are computed before the first byte is written, so that only
 * one parameter at a time is in memory. */
#include "base/fileio.h"
#include "base/public.h"
#include "export/onnx_model.h"
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MODEL_IR = 1, MODEL_PRODUCER, MODEL_PRODUCER_VERSION, MODEL_GRAPH = 7, MODEL_OPSET };
enum { GRAPH_NAME = 2, GRAPH_INITIALIZER = 5 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE, TENSOR_NAME = 8, TENSOR_RAW };

/* Encoded parts of the file that are made when it is written. The other parts are in struct gt_onnx, and the values of the initializers are
 * read one after the other. */
struct parts {
	struct gt_pb head;    /* ModelProto up to the length of the graph */
	struct gt_pb name;    /* the name of the graph */
	struct gt_pb *tensor; /* [ntensors] encoded fields of each initializer that precede its values; malloc'ed */
	struct gt_pb opset;
	uint64_t bytes;       /* length of the file */
	bool no_memory;
};

/* Begins a TensorProto: all fields but the values, and the head of the values. */
static void encode_tensor(const struct gt_onnx_tensor *t, struct gt_pb *out)
{
	struct gt_pb m = {0};
	for (int i = 0; i < t->rank; i++)
		gt_pb_int(&m, TENSOR_DIMS, t->dim[i]);
	gt_pb_int(&m, TENSOR_TYPE, t->type);
	gt_pb_string(&m, TENSOR_NAME, t->name);
	gt_pb_head(&m, TENSOR_RAW, t->bytes);
	gt_pb_head(out, GRAPH_INITIALIZER, m.n + t->bytes);
	gt_pb_join(out, &m);
}

static void encode_model(const struct gt_onnx *m, struct parts *p)
{
	uint64_t graph;
	gt_pb_string(&p->name, GRAPH_NAME, m->source->conf->name);
	graph = p->name.n + m->nodes.n + m->inputs.n + m->outputs.n;
	for (int i = 0; i < m->ntensors; i++) {
		encode_tensor(&m->tensor[i], &p->tensor[i]);
		graph += p->tensor[i].n + m->tensor[i].bytes;
		p->no_memory |= p->tensor[i].no_memory;
	}
	struct gt_pb opset = {0};
	gt_pb_string(&opset, 1, ""); /* domain "": the standard operators of ONNX */
	gt_pb_int(&opset, 2, GT_ONNX_OPSET);
	gt_pb_message(&p->opset, MODEL_OPSET, &opset);
	gt_pb_int(&p->head, MODEL_IR, GT_ONNX_IR);
	gt_pb_string(&p->head, MODEL_PRODUCER, "gtrain");
	gt_pb_string(&p->head, MODEL_PRODUCER_VERSION, GT_VERSION);
	gt_pb_head(&p->head, MODEL_GRAPH, graph);
	p->bytes = p->head.n + graph + p->opset.n + m->meta.n;
	p->no_memory |= p->name.no_memory | p->opset.no_memory | p->head.no_memory | m->nodes.no_memory | m->inputs.no_memory |
	                m->outputs.no_memory | m->meta.no_memory;
}

/* ---- writing ---------------------------------------------------------------------------------------------------------------------- */
struct file {
	int fd;
	const char *path;
};

static enum gt_code write_part(const struct file *f, const struct gt_pb *m, struct gt_err *err)
{
	return gt_file_write(f->fd, f->path, m->data, m->n, err);
}

static enum gt_code write_values(const struct file *f, const struct gt_onnx *m, const struct gt_onnx_tensor *t, struct gt_err *err)
{
	if (t->data)
		return gt_file_write(f->fd, f->path, t->data, t->bytes, err);
	void *buf = malloc(t->bytes);
	if (!buf)
		return gt_fail_memory(err, t->bytes);
	enum gt_code code = gt_export_param_read(m->source, t->param, buf, err);
	if (code == GT_OK)
		code = gt_file_write(f->fd, f->path, buf, t->bytes, err);
	free(buf);
	return code;
}

static enum gt_code write_model(const struct file *f, const struct gt_onnx *m, const struct parts *p, struct gt_err *err)
{
	GT_TRY(write_part(f, &p->head, err));
	GT_TRY(write_part(f, &m->nodes, err));
	GT_TRY(write_part(f, &p->name, err));
	for (int i = 0; i < m->ntensors; i++) {
		GT_TRY(write_part(f, &p->tensor[i], err));
		GT_TRY(write_values(f, m, &m->tensor[i], err));
	}
	GT_TRY(write_part(f, &m->inputs, err));
	GT_TRY(write_part(f, &m->outputs, err));
	GT_TRY(write_part(f, &p->opset, err));
	return write_part(f, &m->meta, err);
}

static enum gt_code write_file(const struct gt_onnx *m, const struct parts *p, const char *path, struct gt_err *err)
{
	char tmp[GT_PATH_SIZE];
	struct file f = {.path = tmp};
	struct stat st;
	if (p->no_memory)
		return gt_fail_memory(err, 0);
	if (p->bytes > INT_MAX)
		return gt_fail(err, GT_EFAIL, "%s: expected a model of at most 2 GiB, the limit of an ONNX file, got %.1f GiB",
		               path, (double)p->bytes / (1 << 30));
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a regular file", path);
	/* mode 0666 less the umask, because other users may read an export */
	GT_TRY(gt_file_create_temporary(tmp, path, 0666, &f.fd, err));
	return gt_file_commit(write_model(&f, m, p, err), f.fd, tmp, path, err);
}

enum gt_code gt_onnx_write(struct gt_onnx *m, const char *path, struct gt_err *err)
{
	struct parts p = {0};
	if (m->code != GT_OK)
		return gt_fail_copy(err, &m->err);
	GT_CALLOC(p.tensor, m->ntensors, err);
	encode_model(m, &p);
	enum gt_code code = write_file(m, &p, path, err);
	for (int i = 0; i < m->ntensors; i++)
		gt_pb_free(&p.tensor[i]);
	free(p.tensor);
	gt_pb_free(&p.head);
	gt_pb_free(&p.name);
	gt_pb_free(&p.opset);
	return code;
}
