/* gt_export_torch: writes a directory with model.py, model.safetensors, README.md, for images images.py, for tables and texts data.json,
 * and for texts tokens.py and vocab.txt. The directory has a temporary name until it is complete. */
#include "base/fileio.h"
#include "export/image_text.h"
#include "export/model_card.h"
#include "export/token_text.h"
#include "export/torch_model.h"
#include "store/ckpt_scan.h"
#include "store/data_facts.h"
#include "store/safetensors_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum gt_code copy_weights(const struct gt_export_source *s, const char *dir, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	int fd;
	GT_TRY(gt_path_join(path, dir, "model.safetensors", err));
	GT_TRY(gt_file_create(path, 0666, &fd, err));
	enum gt_code code = gt_st_copy(gt_ckpt_file(s->ckpt, GT_CKPT_MODEL), fd, path, err);
	if (code == GT_OK)
		return gt_file_sync_close(fd, path, err);
	close(fd);
	return code;
}

/* Writes a text as a file of the directory, and frees the text. */
static enum gt_code write_text(const char *dir, const char *name, char *text, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	int fd;
	enum gt_code code = gt_path_join(path, dir, name, err);
	if (code == GT_OK)
		code = gt_file_create(path, 0666, &fd, err);
	if (code == GT_OK) {
		code = gt_file_write(fd, path, text, strlen(text), err);
		if (code == GT_OK)
			code = gt_file_sync_close(fd, path, err);
		else
			close(fd);
	}
	free(text);
	return code;
}

/* Writes the facts of a table or of texts as in a checkpoint, without the list of samples. */
static enum gt_code write_facts(const struct gt_export_source *s, const char *dir, struct gt_err *err)
{
	struct gt_data_facts facts = s->session->data.facts;
	const char *text;
	facts.samples = NULL;
	if (!facts.learned)
		return GT_OK;
	GT_TRY(gt_data_facts_print(&facts, s->arena, &text, err));
	char *copy = text ? strdup(text) : NULL;
	return !text ? GT_OK : copy ? write_text(dir, "data.json", copy, err) : gt_fail_memory(err, strlen(text));
}

/* Writes tokens.py, the tokenizer, and vocab.txt, its vocabulary, if the model takes texts. */
static enum gt_code write_tokens(const struct gt_export_source *s, const char *dir, struct gt_err *err)
{
	char *module, *vocab;
	GT_TRY(gt_token_module(s, &module, &vocab, err));
	enum gt_code code = module ? write_text(dir, "tokens.py", module, err) : GT_OK;
	if (vocab && code == GT_OK)
		return write_text(dir, "vocab.txt", vocab, err);
	free(vocab);
	return code;
}

/* Writes images.py, the preparation of images, if the model has one. */
static enum gt_code write_images(const struct gt_export_source *s, const char *dir, struct gt_err *err)
{
	char *module;
	GT_TRY(gt_image_module(s, true, &module, err));
	return module ? write_text(dir, "images.py", module, err) : GT_OK;
}

static enum gt_code write_files(const struct gt_export_source *s, const char *dir, char *model, struct gt_err *err)
{
	char *card;
	GT_TRY(write_text(dir, "model.py", model, err));
	GT_TRY(gt_model_card(s, &card, err));
	GT_TRY(write_text(dir, "README.md", card, err));
	GT_TRY(write_facts(s, dir, err));
	GT_TRY(write_images(s, dir, err));
	GT_TRY(write_tokens(s, dir, err));
	GT_TRY(copy_weights(s, dir, err));
	return gt_dir_sync(dir, err);
}

/* Renames the complete directory to `path`, which may be an empty directory. */
static enum gt_code rename_directory(const char *tmp, const char *path, struct gt_err *err)
{
	char parent[GT_PATH_SIZE];
	if (!rename(tmp, path))
		return gt_path_parent(parent, path, err) == GT_OK ? gt_dir_sync(parent, err) : GT_ECANTCREAT;
	if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
		return gt_fail(err, GT_ECANTCREAT, "%s: expected the name of a new or empty directory, got an existing file or directory; remove "
		               "it first", path);
	return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot create", path);
}

/* Writes the path without slashes at its end to buf. */
static enum gt_code trim_path(const char *path, char *buf, struct gt_err *err)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	if (n >= GT_PATH_SIZE)
		return gt_fail(err, GT_ECANTCREAT, "%.100s...: this path is too long", path);
	memcpy(buf, path, n);
	buf[n] = '\0';
	return GT_OK;
}

static enum gt_code write_directory(const struct gt_export_source *s, const char *out, struct gt_err *err)
{
	char path[GT_PATH_SIZE], tmp[GT_PATH_SIZE], *model = NULL;
	GT_TRY(trim_path(out, path, err));
	GT_TRY(gt_file_temporary(tmp, path, err));
	GT_TRY(gt_torch_model(s, &model, err));
	if (mkdir(tmp, 0777)) {
		free(model);
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot create", path);
	}
	enum gt_code code = write_files(s, tmp, model, err);
	if (code == GT_OK)
		code = rename_directory(tmp, path, err);
	if (code != GT_OK)
		gt_tree_remove(tmp, NULL);
	return code;
}

enum gt_code gt_export_torch(const struct gt_export_spec *spec, struct gt_err *err)
{
	struct gt_export_source s = {0};
	enum gt_code code = gt_export_source_open(&s, spec->ckpt, err);
	if (code == GT_OK)
		code = write_directory(&s, spec->out, err);
	if (code == GT_OK) {
		gt_export_notes(&s, spec);
		gt_image_note(&s, spec);
	}
	gt_export_source_close(&s);
	return code;
}
