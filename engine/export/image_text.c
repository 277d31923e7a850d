#include "export/image_text.h"
#include "base/memstream.h"
#include "image/transform.h"
#include "session/session_data.h"
#include <inttypes.h>
#include <string.h>

/* ---- the parts of images.py after its constants ------------------------------------------------------------------------------------- */
static const char steps[] =
    "\n"
    "\n"
    "def resized(size, shape):\n"
    "    \"\"\"The height and width of an image with the height and width `shape` after a resize to `size`.\"\"\"\n"
    "    if len(size) == 2:\n"
    "        return tuple(size)\n"
    "    short = min(shape)\n"
    "    return tuple(size[0] if n == short else size[0] * n // short for n in shape)\n"
    "\n"
    "\n"
    "def decode(path):\n"
    "    \"\"\"An upright image, its height and width in the file, and the box of its pixels. A JPEG that is much larger than\n"
    "    the result of the first step is decoded with a half, a quarter or an eighth of its height and width, so that the box\n"
    "    can end within a pixel.\"\"\"\n"
    "    image = Image.open(path)\n"
    "    turn = image.getexif().get(0x0112, 1)\n"
    "    shape = image.size if turn > 4 else image.size[::-1]\n"
    "    box = (0, 0, *image.size)\n"
    "    if STEPS[0][0] == \"resize\" and image.format == \"JPEG\":\n"
    "        size = resized(STEPS[0][1], shape)\n"
    "        draft = image.draft(None, size if turn > 4 else size[::-1])\n"
    "        box = draft[1] if draft else box\n"
    "    width, height = (box[3], box[2]) if turn > 4 else box[2:]\n"
    "    image = ImageOps.exif_transpose(image)\n"
    "    if image.mode[0] == \"I\":  # 16 bits: the high byte\n"
    "        image = Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))\n"
    "    x = image.width - width if turn in (2, 3, 6, 7) else 0\n"
    "    y = image.height - height if turn in (3, 4, 7, 8) else 0\n"
    "    return image.convert(MODE), shape, (x, y, x + width, y + height)\n"
    "\n"
    "\n"
    "def prepare(path):\n"
    "    \"\"\"The pixels of an image: uint8 [channels, height, width].\"\"\"\n"
    "    image, shape, box = decode(path)\n"
    "    for kind, size, interpolation in STEPS:\n"
    "        if kind == \"resize\":\n"
    "            shape = resized(size, shape)\n"
    "            image = image.resize(shape[::-1], getattr(Image.Resampling, interpolation.upper()), box)\n"
    "        else:\n"
    "            size = tuple(size) if len(size) == 2 else (size[0], size[0])\n"
    "            top, left = (round((n - c) / 2) if c <= n else -((c - n) // 2) for n, c in zip(shape, size))\n"
    "            image, shape = image.crop((left, top, left + size[1], top + size[0])), size\n"
    "        box = None\n"
    "    assert shape == SIZE, f\"{path}: expected {SIZE} pixels (height, width) after the transforms, got {shape}\"\n"
    "    return np.asarray(image).reshape(*SIZE, -1).transpose(2, 0, 1)\n";

static const char normalized[] =
    "\n"
    "\n"
    "def batch(paths):\n"
    "    \"\"\"The input of the model for a list of image files: float32 [images, channels, height, width].\"\"\"\n"
    "    pixels = np.stack([prepare(path) for path in paths]).astype(np.float32) / np.float32(255)\n"
    "    mean, std = (np.array(v, np.float32).reshape(-1, 1, 1) for v in (MEAN, STD))\n"
    "    return (pixels - mean) / std\n";

static const char raw[] =
    "\n"
    "\n"
    "def batch(paths):\n"
    "    \"\"\"The input of the model for a list of image files: uint8 [images, channels, height, width]. The model normalises\n"
    "    the pixels.\"\"\"\n"
    "    return np.stack([prepare(path) for path in paths])\n";

/* ---- the transforms ----------------------------------------------------------------------------------------------------------------- */
static const char *const interpolations[] = {
    [GT_INTERP_NEAREST] = "nearest", [GT_INTERP_BILINEAR] = "bilinear", [GT_INTERP_BICUBIC] = "bicubic"};

bool gt_image_files(const struct gt_export_source *s)
{
	int64_t c = s->conf->model.input[0];
	return c == 1 || c == 3;
}

/* Returns the transforms of a prediction. Without any, it scales images that have another size (datasets/read_image.c); `scale` receives
 * this transform. */
static struct gt_transform_list list_transforms(const struct gt_export_source *s, struct gt_transform *scale)
{
	const int64_t *in = s->conf->model.input;
	struct gt_transform_list list = s->session->data.eval_list;
	*scale = (struct gt_transform){.type = GT_TF_RESIZE, .size = {in[1], in[2]}, .interpolation = GT_INTERP_BILINEAR};
	return list.n ? list : (struct gt_transform_list){scale, 1};
}

static bool is_fixed(const struct gt_transform *t)
{
	return t->type == GT_TF_RESIZE || t->type == GT_TF_CENTER_CROP;
}

bool gt_image_fixed(const struct gt_export_source *s)
{
	struct gt_transform scale;
	struct gt_transform_list list = list_transforms(s, &scale);
	int i = 0;
	while (i < list.n && is_fixed(&list.t[i]))
		i++;
	return i == list.n;
}

void gt_image_note(const struct gt_export_source *s, const struct gt_export_spec *spec)
{
	if (spec->note && gt_image_files(s) && !gt_image_fixed(s))
		spec->note(spec->user, "the export has no images.py, because eval.transforms has other transforms than resize and center_crop");
}

void gt_image_json(const struct gt_export_source *s, struct gt_json *j)
{
	const int64_t *in = s->conf->model.input;
	struct gt_transform scale;
	struct gt_transform_list list = list_transforms(s, &scale);
	char word[32];
	gt_json_object(j, NULL);
	gt_json_string(j, "channels", in[0] == 1 ? "L" : "RGB");
	gt_json_array(j, "size");
	gt_json_int(j, NULL, in[1]);
	gt_json_int(j, NULL, in[2]);
	gt_json_end(j);
	gt_json_array(j, "transforms");
	for (int i = 0; i < list.n; i++) {
		const struct gt_transform *t = &list.t[i];
		gt_json_object(j, NULL);
		gt_json_string(j, "type", gt_transform_word(t->type, word));
		if (is_fixed(t))
			gt_json_array(j, "size");
		for (int k = 0; k < 2 && is_fixed(t); k++)
			if (t->size[k])
				gt_json_int(j, NULL, t->size[k]);
		if (is_fixed(t))
			gt_json_end(j);
		if (t->type == GT_TF_RESIZE)
			gt_json_add(j, GT_STR("interpolation", interpolations[t->interpolation]), GT_BOOL("antialias", true));
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
}

/* ---- the module --------------------------------------------------------------------------------------------------------------------- */
static void write_numbers(FILE *f, const struct gt_floats *v, double if_empty)
{
	fprintf(f, "[%.9g", v->n ? v->v[0] : if_empty);
	for (int i = 1; i < v->n; i++)
		fprintf(f, ", %.9g", v->v[i]);
	fputc(']', f);
}

static void write_step(FILE *f, const struct gt_transform *t)
{
	char word[32];
	fprintf(f, "(\"%s\", [%" PRId64, gt_transform_word(t->type, word), t->size[0]);
	if (t->size[1])
		fprintf(f, ", %" PRId64, t->size[1]);
	fprintf(f, "], \"%s\")", t->type == GT_TF_RESIZE ? interpolations[t->interpolation] : "");
}

static void write_module(FILE *f, const struct gt_export_source *s, struct gt_transform_list list, bool normalize)
{
	const int64_t *in = s->conf->model.input;
	fprintf(f, "\"\"\"The images of the model, as `gtrain predict` prepares them. This file needs Pillow and NumPy.\n\n"
	           "    from images import batch\n    input = batch([\"a.jpg\", \"b.png\"])\n\"\"\"\n"
	           "import numpy as np\nfrom PIL import Image, ImageOps\n\n"
	           "MODE, SIZE = \"%s\", (%" PRId64 ", %" PRId64 ")  # Pillow's mode; height and width\n"
	           "STEPS = [", in[0] == 1 ? "L" : "RGB", in[1], in[2]);
	for (int i = 0; i < list.n; i++) {
		fputs(i ? ", " : "", f);
		write_step(f, &list.t[i]);
	}
	fputs("]\n", f);
	if (normalize) {
		fputs("MEAN, STD = ", f);
		write_numbers(f, &s->conf->data.mean, 0);
		fputs(", ", f);
		write_numbers(f, &s->conf->data.std, 1);
		fputs("  # of pixels divided by 255\n", f);
	}
	fputs(steps, f);
	fputs(normalize ? normalized : raw, f);
}

enum gt_code gt_image_module(const struct gt_export_source *s, bool normalize, char **module, struct gt_err *err)
{
	struct gt_transform scale;
	struct gt_transform_list list = list_transforms(s, &scale);
	struct gt_memstream m;
	*module = NULL;
	if (!gt_image_files(s) || !gt_image_fixed(s))
		return GT_OK;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	write_module(f, s, list, normalize);
	return gt_memstream_close(f, &m, module, NULL, err);
}
