/* Errors. A function that can fail returns enum gt_code and takes a struct gt_err as its last argument. The function that detects the
 * failure fills it once with gt_fail(); its callers return the code with GT_TRY(). Only cli/ prints an error or exits.
 *
 *     if (!f)
 *         return gt_fail_errno(err, GT_ENOINPUT, errno, "%s: cannot open", path);
 *     GT_TRY(read_header(f, &header, err));
 *
 * err may be NULL if the caller needs only the code. */
#ifndef GT_BASE_ERR_H
#define GT_BASE_ERR_H

/* The exit codes of the process (gtrain(1), EXIT STATUS), with the values of sysexits.h if it has the code. X(name, value, meaning) */
#define GT_CODES(X)                                                  \
	X(GT_OK, 0, "ok")                                                \
	X(GT_EFAIL, 1, "failed")                                         \
	X(GT_EDIVERGED, 3, "diverged: NaN or infinity")                  \
	X(GT_EDIFFERS, 4, "results differ from the CPU's")               \
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
	int sys_errno;  /* errno of the system call that failed; 0: no system call failed, or its errno is unknown */
	int line;       /* line of the config that msg names; 0: msg names no line */
	int subject;    /* number of leading bytes of msg that name file, line and key; 0: msg names no key */
};

/* Fills err, if it is not NULL, and returns code: `return gt_fail(err, GT_EDATA, "…", …);`. */
enum gt_code gt_fail(struct gt_err *err, enum gt_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: also sets err->sys_errno, and puts ": " and the text of this errno after the message. */
enum gt_code gt_fail_errno(struct gt_err *err, enum gt_code code, int sys_errno, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "text: " before the message in err, for callers that know the file or the layer of an error. Returns its code. */
enum gt_code gt_fail_prefix(struct gt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "; text" after the message in err, for callers that know what the user can do. If there is no room for both, the end of the message
 * is lost. Returns the code of err. */
enum gt_code gt_fail_suffix(struct gt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Copies the error `from` to err, if it is not NULL, and returns its code. */
static inline enum gt_code gt_fail_copy(struct gt_err *err, const struct gt_err *from)
{
	if (err)
		*err = *from;
	return from->code;
}

/* If code is `from`, returns `to` and sets it in err; else returns code. For a caller that knows a more precise code. */
static inline enum gt_code gt_code_replace(enum gt_code code, enum gt_code from, enum gt_code to, struct gt_err *err)
{
	if (code == from && err)
		err->code = to;
	return code == from ? to : code;
}

/* Returns the code for a failed call on a file. number: errno. GT_EFAIL: the process or the machine lacks descriptors or memory, so the
 * file may be correct. All other failures: `otherwise`. */
enum gt_code gt_errno_code(int number, enum gt_code otherwise);

/* Returns the meaning of a code, for messages and the table in the manual. */
const char *gt_code_text(enum gt_code code);

#define GT_TRY(expr)                       \
	do {                                   \
		enum gt_code gt_try_code = (expr); \
		if (gt_try_code != GT_OK)          \
			return gt_try_code;            \
	} while (0)

#endif
