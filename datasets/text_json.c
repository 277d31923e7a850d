#include "text_json.h"
#include <stdlib.h>
#include <string.h>

enum gt_code gt_text_json_put(struct gt_json *j, const char *key, const struct gt_text_facts *f, struct gt_err *err)
{
	char *text = NULL;
	size_t n;
	if (f->vocab)
		GT_TRY(gt_vocab_text(f->vocab, &text, &n, err));
	char *whole = text ? realloc(text, n + 1) : NULL;
	if (text && !whole) {
		free(text);
		return gt_fail_memory(err, n);
	}
	gt_json_object(j, key);
	gt_json_int(j, "ids", f->ids);
	if (whole) {
		whole[n] = 0;
		if (gt_vocab_kind_of(f->vocab) == GT_VOCAB_BERT)
			gt_json_string(j, "kind", "bert");
		gt_json_string(j, "vocabulary", whole);
	}
	gt_json_end(j);
	free(whole);
	return GT_OK;
}

enum gt_code gt_text_json_get(const struct gt_json_value *v, const char *path, struct gt_text_facts *out, struct gt_err *err)
{
	const struct gt_json_value *vocab = gt_json_member(v, "vocabulary");
	const char *kind = gt_json_text(gt_json_member(v, "kind")), *text = gt_json_text(vocab);
	if (!gt_json_whole(gt_json_member(v, "ids"), &out->ids) || out->ids < 1 || out->ids >= INT32_MAX)
		return gt_fail(err, GT_EDATA, "%s: expected \"text\" with the number \"ids\" of different tokens", path);
	if (vocab && !text)
		return gt_fail(err, GT_EDATA, "%s: expected \"vocabulary\" to be a text", path);
	if (!vocab)
		return GT_OK;
	enum gt_vocab_kind k = kind && !strcmp(kind, "bert") ? GT_VOCAB_BERT : GT_VOCAB_WORDS;
	if (gt_vocab_parse("vocabulary", text, strlen(text), k, &out->vocab, err) != GT_OK)
		return gt_fail_prefix(err, "%s", path);
	if (out->ids < gt_vocab_size(out->vocab))
		return gt_fail(err, GT_EDATA, "%s: expected \"ids\" to be at least the %d tokens of \"vocabulary\", got %lld", path,
		               gt_vocab_size(out->vocab), (long long)out->ids);
	return GT_OK;
}

enum gt_code gt_text_json_compare(const struct gt_text_facts *ckpt, const struct gt_text_facts *now, const char *where, const char *path,
                                  struct gt_err *err)
{
	int32_t n = ckpt->vocab ? gt_vocab_size(ckpt->vocab) : 0, m = now->vocab ? gt_vocab_size(now->vocab) : 0;
	for (int32_t i = 0; i < n && i < m; i++) {
		size_t a, b;
		const char *p = gt_vocab_token(ckpt->vocab, i, &a), *q = gt_vocab_token(now->vocab, i, &b);
		if (a != b || memcmp(p, q, a))
			return gt_fail(err, GT_EDATA, "%.300s: expected token %d of the vocabulary to be \"%.*s\", as in the checkpoint %.300s, got "
			               "\"%.*s\"", where, i, (int)(a < 80 ? a : 80), p, path,
			               (int)(b < 80 ? b : 80), q);
	}
	if (n != m || ckpt->ids != now->ids)
		return gt_fail(err, GT_EDATA, "%.300s: expected a vocabulary of %d tokens and %lld ids, as in the checkpoint %.300s, got %d and "
		               "%lld", where, n, (long long)ckpt->ids, path, m, (long long)now->ids);
	return GT_OK;
}
