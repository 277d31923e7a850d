/* Preloaded into gtrain: statvfs() reports SMALL_DISK free bytes. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/statvfs.h>

int statvfs(const char *restrict path, struct statvfs *restrict out)
{
	int (*real)(const char *, struct statvfs *) = (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
	const char *bytes = getenv("SMALL_DISK");
	int rc = real(path, out);
	if (!rc && bytes) {
		out->f_frsize = 1;
		out->f_bavail = strtoull(bytes, NULL, 10);
	}
	return rc;
}
