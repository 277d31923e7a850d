#include "page/html.h"
#include "base/json.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Returns whether the UTF-8 character of n bytes at s is a control character or a mark that changes the direction of text. */
static int is_hidden(const unsigned char *s, int n)
{
	if (n == 1)
		return (*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f;
	if (n == 2)
		return s[0] == 0xc2 && s[1] < 0xa0;
	return n == 3 && s[0] == 0xe2 && ((s[1] == 0x80 && (s[2] >= 0xaa || s[2] == 0x8e || s[2] == 0x8f) && s[2] <= 0xae) ||
	                                  (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

/* Writes the first character of s, escaped for HTML. Returns the number of its bytes in s. */
static int put_character(FILE *f, const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	int n = gt_utf8_length(u, strnlen(s, 4));
	if (!n || is_hidden(u, n)) {
		fputs("\xef\xbf\xbd", f);
		return n ? n : 1;
	}
	switch (*s) {
	case '<': fputs("&lt;", f); break;
	case '>': fputs("&gt;", f); break;
	case '&': fputs("&amp;", f); break;
	case '"': fputs("&quot;", f); break;
	case '\'': fputs("&#39;", f); break;
	default: fwrite(s, 1, (size_t)n, f);
	}
	return n;
}

void gt_html_text(FILE *f, const char *text)
{
	while (*text)
		text += put_character(f, text);
}

void gt_html_short(FILE *f, const char *text, int most)
{
	for (; *text && most > 0; most--)
		text += put_character(f, *text == '\n' ? " " : text);
	if (*text)
		fputs("…", f);
}

void gt_html_section(FILE *f, const char *id, const char *title)
{
	fprintf(f, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s</h2>\n", id, id, id, title);
}

void gt_html_section_end(FILE *f)
{
	fputs("</section>\n", f);
}

void gt_html_table(FILE *f, const char *name, const char *head)
{
	fprintf(f, "<div class=\"wide\" role=\"region\" aria-label=\"%s\" tabindex=\"0\"><table>\n<thead><tr>", name);
	for (const char *p = head;;) {
		size_t n = strcspn(p, "|");
		int number = *p == '#';
		fprintf(f, "<th scope=\"col\"%s>%.*s</th>", number ? " class=\"n\"" : "", (int)n - number, p + number);
		if (!p[n])
			break;
		p += n + 1;
	}
	fputs("</tr></thead>\n<tbody>\n", f);
}

void gt_html_table_end(FILE *f)
{
	fputs("</tbody></table></div>\n", f);
}

void gt_html_head_cell(FILE *f, const char *text)
{
	fputs("<th scope=\"row\">", f);
	gt_html_text(f, text);
	fputs("</th>", f);
}

void gt_html_cell(FILE *f, const char *text)
{
	fputs("<td>", f);
	gt_html_text(f, text);
	fputs("</td>", f);
}

void gt_html_number(FILE *f, double value, int decimals)
{
	if (isnan(value))
		fputs("<td class=\"n\"></td>", f);
	else
		fprintf(f, "<td class=\"n\">%.*f</td>", decimals, value);
}

void gt_html_count(FILE *f, int64_t n)
{
	char buf[GT_HTML_NUMBER];
	fprintf(f, "<td class=\"n\">%s</td>", gt_page_count(buf, n));
}

/* ---- numbers as text --------------------------------------------------------------------------------------------------------------- */
const char *gt_page_count(char *buf, int64_t n)
{
	char plain[32];
	int len = snprintf(plain, sizeof plain, "%" PRId64, n), to = 0;
	for (int i = 0; i < len; i++) {
		buf[to++] = plain[i];
		if (i + 1 < len && (len - i - 1) % 3 == 0 && plain[i] != '-')
			buf[to++] = ',';
	}
	buf[to] = '\0';
	return buf;
}

const char *gt_page_bytes(char *buf, uint64_t n)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)n;
	int i = 0;
	for (; v >= 1024 && i < 4; i++)
		v /= 1024;
	snprintf(buf, GT_HTML_NUMBER, i ? "%.2f %s" : "%.0f %s", v, unit[i]);
	return buf;
}

const char *gt_page_seconds(char *buf, double s)
{
	if (s < 60)
		snprintf(buf, GT_HTML_NUMBER, "%.1f s", s);
	else if (s < 3600)
		snprintf(buf, GT_HTML_NUMBER, "%d min %02d s", (int)s / 60, (int)s % 60);
	else
		snprintf(buf, GT_HTML_NUMBER, "%.0f h %02d min", floor(s / 3600), (int)fmod(s, 3600) / 60);
	return buf;
}

const char *gt_page_value(char *buf, double v)
{
	double size = fabs(v);
	if (isnan(v))
		*buf = '\0';
	else
		snprintf(buf, GT_HTML_NUMBER, size != 0 && (size < 0.001 || size >= 1e6) ? "%.3e" : size >= 100 ? "%.1f" : "%.4f", v);
	return buf;
}
