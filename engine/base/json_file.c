#include "base/json_file.h"
#include "base/fileio.h"

enum gt_code gt_json_save(struct gt_json *j, const char *dir, const char *name, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	const char *text;
	enum gt_code code = gt_json_finish(j, &text, err);
	gt_json_line(j);
	if (code == GT_OK)
		code = gt_path_join(path, dir, name, err);
	if (code == GT_OK)
		code = gt_file_replace(path, 0666, j->text, j->len, err);
	gt_json_free(j);
	return code;
}
