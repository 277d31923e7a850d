/* Writes the section of the page about the origin of the results: the config, the checkpoints, the versions and the machine. */
#include "gtrain.h"
#include "page/html.h"
#include "page/page.h"
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

static void put_config(const struct gt_page_facts *p, FILE *f)
{
	gt_html_section(f, "config", "Config");
	fputs("<details><summary>The resolved config</summary>\n<pre tabindex=\"0\"><code>", f);
	if (p->config)
		gt_html_text(f, p->config);
	for (int i = 0; i < p->run.nsettings && !p->config; i++) {
		gt_html_text(f, p->run.setting[i].path);
		fputs(" = ", f);
		gt_html_text(f, p->run.setting[i].value);
		fputc('\n', f);
	}
	fputs("</code></pre></details>\n", f);
	gt_html_section_end(f);
}

static void put_checkpoints(const struct gt_page_facts *p, FILE *f)
{
	char step[GT_HTML_NUMBER], bytes[GT_HTML_NUMBER];
	if (!p->ncheckpoints)
		return;
	gt_html_section(f, "checkpoints", "Checkpoints");
	gt_html_table(f, "Checkpoints", "#Step|#Size||Path");
	for (int i = 0; i < p->ncheckpoints; i++) {
		const struct gt_run_checkpoint *c = &p->checkpoint[i];
		fprintf(f, "<tr><td class=\"n\">%s</td><td class=\"n\">%s</td><td>%s</td>", gt_page_count(step, c->step),
		        gt_page_bytes(bytes, c->bytes), c->best && c->latest ? "best, latest" : c->best ? "best" : c->latest ? "latest" : "");
		fputs("<td class=\"w\">", f);
		gt_html_text(f, c->path);
		fputs("</td></tr>\n", f);
	}
	gt_html_table_end(f);
	gt_html_section_end(f);
}

static void put_row(FILE *f, const char *name, const char *value)
{
	fprintf(f, "<tr><th scope=\"row\">%s</th>", name);
	gt_html_cell(f, value);
	fputs("</tr>\n", f);
}

/* Writes the last modification time of the run's log, in UTC. It does not depend on the current time, so the same run always gives the same
 * page. */
static void put_time(const struct gt_page_facts *p, FILE *f)
{
	char text[64];
	time_t when = (time_t)p->run.changed;
	struct tm tm;
	if (when > 0 && gmtime_r(&when, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm))
		put_row(f, "End of the log", text);
}

static void put_versions(const struct gt_page_facts *p, FILE *f)
{
	struct gt_build_info build;
	struct utsname system;
	char text[512];
	gt_build_info(&build);
	gt_html_section(f, "versions", "Versions and machine");
	gt_html_table(f, "Versions and machine", "What|Value");
	put_time(p, f);
	if (*p->run.started)
		put_row(f, "Run", p->run.started);
	put_row(f, "Page written by", "gtrain " GT_VERSION);
	put_row(f, "Libraries", build.libraries);
	put_row(f, "Processor", build.processor);
	if (!uname(&system)) {
		snprintf(text, sizeof text, "%s %s %s", system.sysname, system.release, system.machine);
		put_row(f, "System", text);
	}
	gt_html_table_end(f);
	gt_html_section_end(f);
}

void gt_page_origin(const struct gt_page_facts *p, FILE *f)
{
	put_config(p, f);
	put_checkpoints(p, f);
	put_versions(p, f);
}
