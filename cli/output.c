#include "status_line.h"
#include "base/json_read.h"
#include "base/shell_word.h"
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void gt_output_init(struct gt_cli *cli)
{
	/* Sets only the character set from the locale, so that numbers always have a decimal point. */
	setlocale(LC_CTYPE, "");
	cli->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	cli->terminal_out = isatty(STDOUT_FILENO);
}

void gt_output_style(struct gt_cli *cli)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	bool dumb = !term || !*term || strcmp(term, "dumb") == 0;
	bool plain = dumb || (no_color && *no_color); /* NO_COLOR (no-color.org) must be set and not empty */
	const char *when = cli->args.color ? cli->args.color : "auto";
	bool always = strcmp(when, "always") == 0, automatic = strcmp(when, "auto") == 0;
	cli->color_out = always || (automatic && !plain && isatty(STDOUT_FILENO));
	cli->color_err = always || (automatic && !plain && isatty(STDERR_FILENO));
	cli->animate = !dumb && !cli->args.no_progress && !cli->args.quiet && isatty(STDERR_FILENO);
}

static void check_out(struct gt_cli *cli, bool failed)
{
	if (failed && !cli->out_errno)
		cli->out_errno = errno ? errno : EIO;
}

void gt_out(struct gt_cli *cli, const char *fmt, ...)
{
	va_list ap;
	if (cli->out_errno)
		return;
	gt_status_erase(cli); /* erases the status line on stderr, because stdout may be the same terminal */
	va_start(ap, fmt);
	errno = 0;
	int n = vprintf(fmt, ap);
	check_out(cli, n < 0);
	va_end(ap);
}

bool gt_out_bytes(struct gt_cli *cli, const void *data, size_t n)
{
	if (cli->out_errno)
		return false;
	errno = 0;
	check_out(cli, fwrite(data, 1, n, stdout) < n);
	return !cli->out_errno;
}

void gt_out_line(struct gt_cli *cli, const char *line)
{
	if (cli->out_errno)
		return;
	gt_status_erase(cli);
	errno = 0;
	bool failed = fputs(line, stdout) == EOF || fputc('\n', stdout) == EOF || fflush(stdout) == EOF;
	check_out(cli, failed);
}

enum gt_code gt_out_json(struct gt_cli *cli, struct gt_err *err)
{
	const char *line;
	GT_TRY(gt_json_finish(&cli->json, &line, err));
	gt_out_line(cli, line);
	gt_json_reset(&cli->json);
	return GT_OK;
}

enum gt_code gt_out_facts(struct gt_cli *cli, const struct gt_json_value **out, struct gt_err *err)
{
	const char *line;
	GT_TRY(gt_json_finish(&cli->json, &line, err));
	GT_TRY(gt_json_parse(line, strlen(line), "the report", GT_JSON_READ_DEPTH, SIZE_MAX, cli->arena, out, err));
	gt_json_reset(&cli->json);
	return GT_OK;
}

/* Returns the length of the character at s in bytes. Sets *harmless to false for control characters (ASCII and U+0080 to U+009F), for
 * characters that end a line or change the text direction (U+2028 to U+202E, U+2066 to U+2069), and for bytes that are not UTF-8. */
static int next_character(const char *s, bool *harmless)
{
	const unsigned char *c = (const unsigned char *)s;
	int n = gt_utf8_length(c, strnlen(s, 4));
	bool c1 = n == 2 && c[0] == 0xc2 && c[1] < 0xa0;
	bool embeds = n == 3 && c[0] == 0xe2 &&
	              ((c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) || (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
	*harmless = n > 0 && *c >= 0x20 && *c != 0x7f && !c1 && !embeds;
	return n > 0 ? n : 1;
}

void gt_out_csv(struct gt_cli *cli, const char *text)
{
	bool quotes = text[strcspn(text, ",\"\r\n")] != 0;
	gt_out(cli, "%s", quotes ? "\"" : "");
	for (int n; *text; text += n) {
		bool harmless;
		n = next_character(text, &harmless);
		if (cli->terminal_out && !harmless)
			gt_out(cli, "?");
		else
			gt_out(cli, *text == '"' ? "\"\"" : "%.*s", n, text);
	}
	gt_out(cli, "%s", quotes ? "\"" : "");
}

int gt_out_columns(void)
{
	const char *given = getenv("COLUMNS");
	struct winsize ws;
	long n = given ? strtol(given, NULL, 10) : 0;
	if (n > 0 && n < 10000)
		return (int)n;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 1 ? ws.ws_col : 80;
}

bool gt_out_terminal(void)
{
	const char *given = getenv("COLUMNS");
	return (given && strtol(given, NULL, 10) > 0) || isatty(STDOUT_FILENO);
}

void gt_out_flush(struct gt_cli *cli)
{
	if (cli->out_errno)
		return;
	errno = 0;
	check_out(cli, fflush(stdout) == EOF);
}

enum gt_code gt_out_finish(struct gt_cli *cli, struct gt_err *err)
{
	gt_out_flush(cli);
	if (cli->out_errno)
		return gt_fail_errno(err, GT_EIO, cli->out_errno, "cannot write standard output");
	return GT_OK;
}

const char *gt_cli_printable(const char *s, char *buf, size_t size)
{
	size_t to = 0;
	for (int n; *s; s += n) {
		bool harmless;
		n = next_character(s, &harmless);
		if (to + (harmless ? (size_t)n : 1) >= size)
			break;
		if (harmless)
			memmove(buf + to, s, (size_t)n); /* memmove, because buf can be s */
		else
			buf[to] = '?';
		to += harmless ? (size_t)n : 1;
	}
	buf[to] = '\0';
	return buf;
}

const char *gt_cli_program(const struct gt_cli *cli, char *buf, size_t size)
{
	const char *typed = cli->argv && cli->argv[0] ? cli->argv[0] : "";
	return gt_shell_word(strchr(typed, '/') ? typed : "gtrain", buf, size);
}

/* Writes a line with one system call, so that lines of several processes are not mixed. */
static void put_err(struct gt_cli *cli, const char *prefix, const char *text)
{
	char clean[2048], line[2304];
	gt_cli_printable(text, clean, sizeof clean);
	gt_status_erase(cli);
	int n = snprintf(line, sizeof line, "%s%s\n", prefix, clean);
	if (n > 0 && fwrite(line, 1, (size_t)n, stderr) == (size_t)n)
		fflush(stderr);
}

void gt_cli_note(struct gt_cli *cli, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	put_err(cli, "", text);
}

void gt_cli_note_words(struct gt_cli *cli, const char *text)
{
	int columns = gt_status_columns();
	char line[2048];
	while (columns && gt_text_width(text) > columns) {
		size_t n = 0; /* number of bytes up to the last space at which the line fits the width */
		for (size_t i = 0, at = 0; text[i] && at <= (size_t)columns; i++) {
			if (text[i] == ' ' && i)
				n = i;
			at += ((unsigned char)text[i] & 0xc0) != 0x80;
		}
		if (!n || n >= sizeof line)
			break;
		snprintf(line, sizeof line, "%.*s", (int)n, text);
		put_err(cli, "", line);
		text += n + 1;
	}
	put_err(cli, "", text);
}

void gt_cli_warn(struct gt_cli *cli, const char *text)
{
	char prefix[64];
	snprintf(prefix, sizeof prefix, "gtrain: %swarning:%s ", gt_style(cli->color_err, GT_STYLE_YELLOW),
	         gt_style(cli->color_err, GT_STYLE_NONE));
	put_err(cli, prefix, text);
}

void gt_cli_complain(struct gt_cli *cli, const char *text)
{
	char prefix[64];
	snprintf(prefix, sizeof prefix, "%sgtrain:%s ", gt_style(cli->color_err, GT_STYLE_RED), gt_style(cli->color_err, GT_STYLE_NONE));
	put_err(cli, prefix, text);
}

const char *gt_style(bool color, enum gt_style s)
{
	static const char *const escape[] = {"\033[0m", "\033[1m", "\033[2m", "\033[1;31m", "\033[33m", "\033[32m"};
	return color ? escape[s] : "";
}
