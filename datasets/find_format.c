#include "folder.h"
#include "format.h"
#include <string.h>

const struct gt_format *const gt_formats[] = {
#define X(name) &gt_format_##name,
	GT_FORMATS(X)
#undef X
	NULL,
};

const struct gt_format *gt_format_find(const char *word)
{
	for (int i = 0; word && gt_formats[i]; i++)
		if (!strcmp(gt_formats[i]->name, word))
			return gt_formats[i];
	return NULL;
}

enum gt_content gt_format_content(const char *word)
{
	const struct gt_format *f = gt_format_find(word);
	return f ? f->content : GT_CONTENT_UNKNOWN;
}

const struct gt_folder_kind *gt_format_input(const char *word)
{
	const struct gt_format *f = gt_format_find(word);
	return f && f->input ? f->input : &gt_folder_images;
}
