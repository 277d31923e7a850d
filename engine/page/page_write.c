/* gt_page_write of gtrain_page.h: writes the frame of the page, and its parts in their order. */
#include "base/fileio.h"
#include "base/memstream.h"
#include "base/sha256.h"
#include "page/html.h"
#include "page/page.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAME_BYTES 4096 /* maximum size of the page's frame, without the style sheet and the script */

/* One part of the page, as HTML text in memory. */
struct piece {
	char *text;
	size_t n;
};

static enum gt_code write_before(const struct gt_page_facts *p, FILE *f, struct gt_err *err)
{
	gt_page_summary(p, f);
	GT_TRY(gt_page_curves(p, f, err));
	gt_page_classes(p, f);
	return gt_page_calibration(p, f, err);
}

static enum gt_code write_after(const struct gt_page_facts *p, FILE *f, struct gt_err *err)
{
	GT_TRY(gt_page_layers(p, f, err));
	gt_page_origin(p, f);
	return GT_OK;
}

static enum gt_code make_piece(const struct gt_page_facts *p,
                               enum gt_code (*write)(const struct gt_page_facts *p, FILE *f, struct gt_err *err), struct piece *out,
                               struct gt_err *err)
{
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	enum gt_code code = write(p, f, err), closed = gt_memstream_close(f, &m, &out->text, &out->n, err);
	return code ? code : closed;
}

/* ---- the frame --------------------------------------------------------------------------------------------------------------------- */
/* Writes a Content-Security-Policy that allows only this script, and no access to a network, whatever the texts of the page contain. */
static void put_policy(FILE *f)
{
	struct gt_sha256 s;
	unsigned char digest[GT_SHA256_SIZE];
	gt_sha256_start(&s);
	gt_sha256_add(&s, gt_page_js, strlen(gt_page_js));
	gt_sha256_end(&s, digest);
	fputs("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src "
	      "'sha256-", f);
	gt_base64_put(f, digest, sizeof digest);
	fputs("'\">\n", f);
}

static void put_head(const struct gt_page_facts *p, FILE *f)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", f);
	put_policy(f);
	fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<title>", f);
	gt_html_short(f, *p->run.name ? p->run.name : p->run.dir, 80);
	fprintf(f, ": report</title>\n<style>\n%s</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">To the content</a>\n",
	        gt_page_css);
}

/* Writes a link to each section of the page that has a heading. */
static void put_links(const struct piece *piece, int n, FILE *f)
{
	static const char mark[] = "<section id=\"", head[] = "-title\">";
	fputs("<nav aria-label=\"Parts of the page\"><ul>\n", f);
	for (int i = 0; i < n; i++)
		for (const char *at = strstr(piece[i].text, mark); at; at = strstr(at + 1, mark)) {
			const char *id = at + strlen(mark), *title = strstr(strstr(id, "<h2"), head) + strlen(head);
			fprintf(f, "<li><a href=\"#%.*s\">%.*s</a></li>\n", (int)strcspn(id, "\""), id, (int)strcspn(title, "<"), title);
		}
	fputs("</ul></nav>\n", f);
}

static void put_page(const struct gt_page_facts *p, const struct piece *piece, int n, FILE *f)
{
	put_head(p, f);
	put_links(piece, n, f);
	fputs("<main id=\"main\">\n", f);
	for (int i = 0; i < n; i++)
		fwrite(piece[i].text, 1, piece[i].n, f);
	fprintf(f, "</main>\n<footer><p>Written by gtrain %s.</p></footer>\n<script>%s</script>\n</body>\n</html>\n", GT_VERSION, gt_page_js);
}

/* ---- the page ---------------------------------------------------------------------------------------------------------------------- */
static enum gt_code make_mistakes(const struct gt_page_facts *p, size_t most, struct piece *out, struct gt_err *err)
{
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	enum gt_code code = gt_page_mistakes(p, f, most, err), closed = gt_memstream_close(f, &m, &out->text, &out->n, err);
	return code ? code : closed;
}

/* Makes the parts. The images of the worst predictions may use the bytes that the other parts leave, except a quarter, which is for the
 * texts of the predictions. */
static enum gt_code make_pieces(const struct gt_page_facts *p, struct piece piece[3], struct gt_err *err)
{
	GT_TRY(make_piece(p, write_before, &piece[0], err));
	GT_TRY(make_piece(p, write_after, &piece[2], err));
	size_t used = piece[0].n + piece[2].n + strlen(gt_page_css) + strlen(gt_page_js) + FRAME_BYTES;
	size_t left = used < GT_PAGE_BYTES ? GT_PAGE_BYTES - used : 0;
	return make_mistakes(p, left / 4 * 3, &piece[1], err);
}

static enum gt_code write_file(const struct gt_page_facts *p, const struct piece *piece, struct gt_err *err)
{
	struct gt_memstream m;
	char *text;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	put_page(p, piece, 3, f);
	GT_TRY(gt_memstream_close(f, &m, &text, &p->page->bytes, err));
	enum gt_code code = gt_file_replace(p->page->path, 0666, text, p->page->bytes, err);
	free(text);
	return code;
}

static enum gt_code make_page(struct gt_page_facts *p, struct gt_err *err)
{
	struct piece piece[3] = {0};
	enum gt_code code = make_pieces(p, piece, err);
	if (code == GT_OK)
		code = write_file(p, piece, err);
	for (int i = 0; i < 3; i++)
		free(piece[i].text);
	return code;
}

static enum gt_code fill_result(struct gt_page_facts *p, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	const char *out = p->spec->out;
	if (!out) {
		GT_TRY(gt_path_join(path, p->run.dir, "report.html", err));
		out = path;
	}
	GT_NEW_STR(p->page->path, gt_arena_strdup(p->arena, out), err);
	if (!p->eval)
		return GT_OK;
	p->page->samples = p->eval->scores.samples;
	GT_NEW_STR(p->page->split, gt_arena_strdup(p->arena, p->eval->split), err);
	return GT_OK;
}

/* Fails if the new page would have no scores and would replace an earlier page at the default path. */
static enum gt_code keep_better_page(const struct gt_page_facts *p, struct gt_err *err)
{
	struct stat st;
	if (p->spec->out || p->eval || stat(p->page->path, &st))
		return GT_OK;
	return gt_fail(err, GT_ECANTCREAT, "%s: not replaced, because the new page would have no scores; add -o FILE to write the new page to "
	               "another file", p->page->path);
}

/* Fails if the output file cannot be written. The check is made before the evaluation, because an evaluation can take long. */
static enum gt_code check_output(const char *path, struct gt_err *err)
{
	char parent[GT_PATH_SIZE];
	struct stat st;
	GT_TRY(gt_path_parent(parent, path, err));
	if (access(parent, W_OK | X_OK))
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot create", path);
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a regular file", path);
	return GT_OK;
}

enum gt_code gt_page_write(const struct gt_page_spec *spec, struct gt_arena *a, struct gt_page *out, struct gt_err *err)
{
	struct gt_page_facts p = {.spec = spec, .arena = a, .page = out};
	*out = (struct gt_page){0};
	if (spec->out)
		GT_TRY(check_output(spec->out, err));
	GT_TRY(gt_run_refuse_sweep(spec->run, a, err));
	enum gt_code code = gt_page_facts_open(&p, err);
	if (code == GT_OK)
		code = fill_result(&p, err);
	if (code == GT_OK)
		code = keep_better_page(&p, err);
	if (code == GT_OK)
		code = make_page(&p, err);
	gt_page_facts_close(&p);
	return code;
}
