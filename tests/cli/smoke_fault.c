/* Preloaded into `gtrain run --smoke` by test_smoke.sh; acts in the process of its resume only. SMOKE_FAULT says what goes wrong there:
 *   bits      every forward convolution of oneDNN gives another first value: a backend that is not reproducible
 *   damage    a byte of the checkpoint that is resumed has changed on the disk
 *   die       the process is killed */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DST 17 /* DNNL_ARG_DST */

struct exec_arg { /* dnnl_exec_arg_t */
	int arg;
	void *memory;
};

static bool wrong_bits;

static void damage(const char *dir)
{
	char path[4200], byte;
	snprintf(path, sizeof path, "%s/step-00000004/model.safetensors", dir);
	int fd = open(path, O_RDWR);
	if (fd < 0 || pread(fd, &byte, 1, 2000) != 1)
		abort();
	byte ^= 1;
	if (pwrite(fd, &byte, 1, 2000) != 1)
		abort();
	close(fd);
}

__attribute__((constructor)) static void begin(void)
{
	char line[8192] = "", *dir = line;
	const char *fault = getenv("SMOKE_FAULT");
	int fd = open("/proc/self/cmdline", O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
	close(fd);
	if (!fault || n <= 0 || strcmp(line + strlen(line) + 1, "resume") != 0)
		return;
	for (char *p = line; p < line + n; p += strlen(p) + 1)
		dir = p;
	wrong_bits = !strcmp(fault, "bits");
	if (!strcmp(fault, "damage"))
		damage(dir);
	if (!strcmp(fault, "die"))
		raise(SIGKILL);
}

/* oneDNN comes with a backend that is opened later, out of the reach of RTLD_NEXT, and its soname depends on the release (libdnnl.so.2,
 * libdnnl.so.3.6): it is looked for among the libraries that are loaded. */
static int is_onednn(struct dl_phdr_info *info, size_t size, void *lib)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libdnnl.so"))
		return 0;
	*(void **)lib = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
	return 1;
}

static void *from_onednn(const char *name)
{
	static void *lib;
	if (!lib)
		dl_iterate_phdr(is_onednn, &lib);
	void *f = lib ? dlsym(lib, name) : NULL;
	if (!f)
		abort();
	return f;
}

int dnnl_primitive_execute(const void *primitive, void *stream, int n, const struct exec_arg *args)
{
	int (*execute)(const void *, void *, int, const struct exec_arg *), (*data)(const void *, void **), rc;
	void *p;
	*(void **)&execute = from_onednn("dnnl_primitive_execute");
	*(void **)&data = from_onednn("dnnl_memory_get_data_handle");
	rc = execute(primitive, stream, n, args);
	for (int i = 0; wrong_bits && i < n; i++)
		if (args[i].arg == DST && !data(args[i].memory, &p) && p)
			*(float *)p = *(float *)p * 1.01f + 0.001f;
	return rc;
}
