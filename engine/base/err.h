/* Errors. A function that can fail returns enum gt_code and takes a struct gt_err as its last argument; whoever detects the
 * failure fills it once with gt_fail(), everybody above forwards with GT_TRY(). Only cli/ prints an error or exits.
 * `err` may be NULL where the caller wants only the code. */
#ifndef GT_BASE_ERR_H
#define GT_BASE_ERR_H

/* The process exit codes (gtrain(1), EXIT STATUS): sysexits.h where it has one. X(name, value, what it means) */
#define GT_CODES(X)                                                  \
	X(GT_OK, 0, "ok")                                                \
	X(GT_EFAIL, 1, "failed")                                         \
	X(GT_EDIVERGED, 3, "diverged: NaN or infinity")                  \
	X(GT_EUSAGE, 64, "wrong usage")                                  \
	X(GT_EDATA, 65, "bad data or checkpoint")                        \
	X(GT_ENOINPUT, 66, "missing input")                              \
	X(GT_EUNAVAILABLE, 69, "no such backend or device")              \
	X(GT_EINTERNAL, 70, "internal error")                            \
	X(GT_ECANTCREAT, 73, "cannot create output")                     \
	X(GT_EIO, 74, "input/output error")                              \
	X(GT_EPEER, 75, "peer or rendezvous lost")                       \
	X(GT_ECONFIG, 78, "configuration error")

enum gt_code {
#define GT_X(name, value, text) name = value,
	GT_CODES(GT_X)
#undef GT_X
};

struct gt_err {
	enum gt_code code;
	char msg[1024]; /* one line, no newline, no leading program name */
	int line;       /* of a config: the line that msg names; 0: none */
	int subject;    /* leading bytes of msg that name file, line and key; 0: msg names no key */
};

/* Fills err (if any) and returns code, so that `return gt_fail(err, GT_EDATA, "…", …);` is the whole idiom. */
enum gt_code gt_fail(struct gt_err *err, enum gt_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "text: " before the message that is there: where a caller knows the file or layer and the callee did not. */
enum gt_code gt_fail_prefix(struct gt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The text of a code, for messages and the manual's table. */
const char *gt_code_text(enum gt_code code);

#define GT_TRY(expr)                       \
	do {                                   \
		enum gt_code gt_try_code = (expr); \
		if (gt_try_code != GT_OK)          \
			return gt_try_code;            \
	} while (0)

#endif
