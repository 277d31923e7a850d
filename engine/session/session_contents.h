/* The content hashes of a session's images, and when the session keeps an index of them (data.index). */
#ifndef GT_SESSION_SESSION_CONTENTS_H
#define GT_SESSION_SESSION_CONTENTS_H

#include "session/session_data.h"

/* Sets `content` of the marks of d if `hashed` is set, d has image files, and they were not only probed. Writes a note like
 * gt_session_files.index_note to `note` unless it has one. */
void gt_session_hash_images(const struct gt_conf *c, bool hashed, struct gt_dataset *d, char *note, size_t size);

#endif
