#include "base/fileio.h"
#include "launch/rendezvous.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int parse_hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

enum gt_code gt_token_read(const char *path, unsigned char token[32], struct gt_err *err)
{
	char text[64];
	struct stat st;
	uint64_t bytes;
	int fd;
	GT_TRY(gt_file_open(path, &fd, &bytes, err));
	enum gt_code code = GT_OK;
	if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 077))
		code = gt_fail(err, GT_EUSAGE, "%s: expected a token file that belongs to you and that no other user can read; use chmod 600",
		               path);
	else if (bytes != 64 && bytes != 65)
		code = gt_fail(err, GT_EUSAGE, "%s: expected a token of 64 hexadecimal digits", path);
	else
		code = gt_file_pread(fd, path, text, 64, 0, err);
	close(fd);
	for (int i = 0; code == GT_OK && i < 32; i++) {
		int hi = parse_hex_digit(text[2 * i]), lo = parse_hex_digit(text[2 * i + 1]);
		if (hi < 0 || lo < 0)
			code = gt_fail(err, GT_EUSAGE, "%s: expected a token of 64 hexadecimal digits", path);
		else
			token[i] = (unsigned char)(hi << 4 | lo);
	}
	explicit_bzero(text, sizeof text);
	return code;
}
