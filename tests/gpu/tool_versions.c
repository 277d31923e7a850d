/* tool_versions LIBRARY...: prints the version of each library of CUDA (cuBLASLt, cuDNN, NCCL), as the library itself reports it:
 *
 *     cuDNN 9.13.0
 *
 * LIBRARY is a path, or a name for the loader. prove.sh runs it with the libraries that gtrain opens. A library that cannot be loaded gets
 * a line with the reason. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static void print_version(const char *name, size_t v) /* all three encode the version in the same way */
{
	printf("%s %zu.%zu.%zu\n", name, v / 10000, v / 100 % 100, v % 100);
}

/* Returns the function as an object pointer is converted to a function pointer without a warning. */
static void *find_function(void *library, const char *name, void *function)
{
	void *p = dlsym(library, name);
	*(void **)function = p;
	return p;
}

static void print_library(const char *path)
{
	size_t (*version)(void);
	int (*nccl)(int *);
	int number = 0;
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!library)
		printf("%s cannot be loaded: %s\n", path, dlerror());
	else if (find_function(library, "cublasLtGetVersion", &version))
		print_version("cuBLASLt", version());
	else if (find_function(library, "cudnnGetVersion", &version))
		print_version("cuDNN", version());
	else if (find_function(library, "ncclGetVersion", &nccl) && nccl(&number) == 0)
		print_version("NCCL", (size_t)number);
	else
		printf("%s has no version\n", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	/* It stays open: unloading one of these libraries is not supported. */
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		print_library(argv[i]);
	return 0;
}
