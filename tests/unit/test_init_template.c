/* The templates of `gtrain init`: with every combination of conditions they are configs that gtrain reads. */
#include "test.h"
#include "base/arena.h"
#include "conf/conf.h"
#include "setup/init_template.h"
#include <stdlib.h>
#include <string.h>

static const char *const root = "da\"ta", *const targets[] = {"y", "z \"w\""};
static struct gt_err e;

enum { SPLITS, FILES, BAD, COLOR, PRETRAINED, BOTTLENECK, STEM, NUMPY, MODEL, IMAGE_BITS };

static const char model[] = "model = { input = [3, 64, 64]; layers = ( { type = \"flatten\"; }, { type = \"linear\"; out = 7; } ); };";

static char *fill_images(unsigned bits)
{
#define BIT(i) (bits >> (i) & 1)
	char *text = NULL;
	const struct gt_init_value values[] = {
	    GT_TEXT("CONFIG", "images.cfg"),
	    GT_TEXT("RUN", "images"),
	    GT_STRINGS("ROOT", &root, 1),
	    GT_NUMBER("NUMPY", BIT(NUMPY) && !BIT(FILES)),
	    GT_NUMBER("SAMPLES", 100),
	    GT_NUMBER("CLASSES", 7),
	    GT_NUMBER("RAREST", 3),
	    GT_NUMBER("SPLITS", BIT(SPLITS)),
	    GT_NUMBER("VALID", 0),
	    GT_NUMBER("TEST", 12),
	    GT_NUMBER("FILES", BIT(FILES)),
	    GT_NUMBER("SIDE", 300),
	    GT_NUMBER("BAD", BIT(BAD) * (1 + BIT(COLOR))),
	    GT_NUMBER("BATCH", 16),
	    GT_TEXT("MEAN", "0.1, 0.2, 0.3"),
	    GT_TEXT("STD", "0.1, 0.2, 0.3"),
	    GT_NUMBER("COLOR_ARRAY", BIT(COLOR) && !BIT(FILES)),
	    GT_NUMBER("CHANNELS", 3),
	    GT_NUMBER("HEIGHT", 64),
	    GT_NUMBER("WIDTH", 64),
	    GT_STRINGS("PRETRAINED", &root, BIT(PRETRAINED)),
	    GT_TEXT("MODEL", BIT(MODEL) ? model : ""),
	    GT_TEXT("NETWORK", "net"),
	    GT_TEXT("NETWORK_CONFIG", "net.cfg"),
	    GT_NUMBER("BOTTLENECK", BIT(BOTTLENECK)),
	    GT_NUMBER("IMAGENET_STEM", BIT(STEM)),
	    GT_NUMBER("BLOCKS1", 2),
	    GT_NUMBER("BLOCKS2", 3),
	    GT_NUMBER("BLOCKS3", 1),
	    GT_NUMBER("BLOCKS4", 1),
	    GT_NUMBER("WIDTH1", 8),
	    GT_NUMBER("WIDTH2", 16),
	    GT_NUMBER("WIDTH3", 32),
	    GT_NUMBER("WIDTH4", 64),
	    GT_NUMBER("OUT1", 8),
	    GT_NUMBER("OUT2", 16),
	    GT_NUMBER("OUT3", 32),
	    GT_NUMBER("OUT4", 64),
	    GT_NUMBER("EPOCHS", 5),
	    GT_TEXT("LR", "2.0e-3"),
	    GT_TEXT("SPLIT", BIT(SPLITS) ? "test" : "valid"),
	    GT_NUMBER("LOSS", 0),
	    {NULL}};
	CHECK_OK(gt_init_template("images", values, &text, &e), e);
	return text;
}

enum { CODES, VALUES, TEXTS, CLASSES, HEADER, ENCODING, DECIMAL, THOUSANDS, NA, UNTARGETED, ODD, DROPOUT, TABLE_BITS };

static char *fill_table(unsigned bits)
{
	char *text = NULL;
	int parts = BIT(CODES) + BIT(VALUES) + BIT(TEXTS);
	bool words = parts == 1 && BIT(TEXTS) && BIT(CLASSES);
	const struct gt_init_value values[] = {
	    GT_TEXT("CONFIG", "table.cfg"),
	    GT_TEXT("RUN", "table"),
	    GT_STRINGS("PATH", &root, 1),
	    GT_NUMBER("ROWS", 100),
	    GT_NUMBER("NCOLUMNS", 4),
	    GT_NUMBER("NUMBERS", BIT(VALUES)),
	    GT_NUMBER("CODES", BIT(CODES)),
	    GT_NUMBER("DATES", BIT(VALUES)),
	    GT_NUMBER("TEXTS", BIT(TEXTS)),
	    GT_NUMBER("VALUES", BIT(VALUES)),
	    GT_NUMBER("SEVERAL", parts > 1),
	    GT_NUMBER("CLASSES", BIT(CLASSES) * 3),
	    GT_STRINGS("TARGET", targets, BIT(CLASSES) ? 1 : 2),
	    GT_NUMBER("NTARGETS", BIT(CLASSES) ? 1 : 2),
	    GT_NUMBER("SEED", 42),
	    GT_NUMBER("ROWS_EACH", 100),
	    GT_TEXT("COLUMNS", "\tcolumns = ( { name = \"x\"; type = \"continuous\"; } );"),
	    GT_NUMBER("HEADER", BIT(HEADER)),
	    GT_NUMBER("WINDOWS_1252", BIT(ENCODING)),
	    GT_NUMBER("DECIMAL_COMMA", BIT(DECIMAL)),
	    GT_TEXT("THOUSANDS", BIT(THOUSANDS) ? "'" : ""),
	    GT_NUMBER("AMBIGUOUS", BIT(DECIMAL) != BIT(THOUSANDS)),
	    GT_STRINGS("NA", targets, BIT(NA) * 2),
	    GT_NUMBER("MAX_TOKENS", 32),
	    GT_NUMBER("PAIRS", words),
	    GT_NUMBER("HASH_BUCKETS", 1024),
	    GT_NUMBER("SKIPPED", BIT(UNTARGETED) || BIT(ODD)),
	    GT_NUMBER("UNTARGETED", BIT(UNTARGETED) * (1 + BIT(HEADER))),
	    GT_NUMBER("ODD", BIT(ODD) * (1 + BIT(HEADER))),
	    GT_NUMBER("BATCH", 16),
	    GT_NUMBER("WORDS", words),
	    GT_TEXT("SHARE", "0.2"),
	    GT_NUMBER("WIDTH1", 200),
	    GT_NUMBER("WIDTH2", 100),
	    GT_TEXT("DROPOUT", BIT(DROPOUT) ? "0.3" : ""),
	    GT_NUMBER("EPOCHS", 4),
	    GT_NUMBER("TEXT_EPOCHS", 5),
	    GT_TEXT("LR", "5.0e-03"),
	    GT_TEXT("SPLIT", "valid"),
	    GT_NUMBER("LOSS", 1),
	    {NULL}};
	CHECK_OK(gt_init_template("table", values, &text, &e), e);
	return text;
}

static char *fill_text(unsigned bits)
{
	char *text = NULL;
	const struct gt_init_value values[] = {
	    GT_TEXT("CONFIG", "text.cfg"),
	    GT_TEXT("RUN", "text"),
	    GT_STRINGS("ROOT", &root, 1),
	    GT_NUMBER("SAMPLES", 100),
	    GT_NUMBER("CLASSES", 2),
	    GT_NUMBER("SPLITS", BIT(0)),
	    GT_NUMBER("VALID", 10),
	    GT_NUMBER("TEST", 0),
	    GT_NUMBER("MEDIAN", 100),
	    GT_NUMBER("MOST", 1000),
	    GT_NUMBER("BATCH", 8),
	    GT_NUMBER("BAD", BIT(1) * (1 + BIT(2))),
	    GT_NUMBER("MAX_TOKENS", 32),
	    GT_NUMBER("PAIRS", 1),
	    GT_NUMBER("HASH_BUCKETS", 1024),
	    GT_NUMBER("TEXT_EPOCHS", 5),
	    GT_TEXT("SPLIT", "valid"),
	    GT_NUMBER("LOSS", 0),
	    {NULL}};
	CHECK_OK(gt_init_template("text", values, &text, &e), e);
	return text;
}

/* Loads a config, and checks that no sign of the template is left in it. Frees text. */
static void check_config(char *text, const char *name, unsigned bits)
{
	char path[256];
	struct gt_conf *c;
	snprintf(path, sizeof path, "%s/%s.cfg", test_tmpdir(), name);
	FILE *f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
	enum gt_code code = gt_conf_load(path, NULL, 0, &c, &e);
	CHECK_MSG(code == GT_OK, "%s %#x: %s\n%s", name, bits, e.msg, text);
	if (code == GT_OK)
		gt_conf_free(c);
	static const char *const marks[] = {"#if", "#e", "#include", "${", "\\\n"};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		CHECK_MSG(!strstr(text, marks[i]), "%s", text);
	free(text);
}

TEST(images)
{
	for (unsigned bits = 0; bits < 1u << IMAGE_BITS; bits++)
		check_config(fill_images(bits), "images", bits);
}

TEST(table)
{
	for (unsigned bits = 0; bits < 1u << TABLE_BITS; bits++)
		if (bits & 7) /* a part of the model's inputs */
			check_config(fill_table(bits), "table", bits);
}

TEST(text)
{
	for (unsigned bits = 0; bits < 8; bits++)
		check_config(fill_text(bits), "text", bits);
}

TEST(choices)
{
	char *text = NULL, *text1 = NULL;
	struct gt_init_value values[] = {GT_TEXT("CLASSES", ""), {NULL}};
	CHECK(gt_init_template("text_model", values, &text, &e) == GT_OK && strstr(text, "out = ; }"));
	values[0] = (struct gt_init_value)GT_NUMBER("CLASSES", -2);
	CHECK(gt_init_template("text_model", values, &text1, &e) == GT_OK && strstr(text1, "out = -2; }"));
	free(text);
	free(text1);
}

TEST(missing_names)
{
	char *text = NULL;
	const struct gt_init_value values[] = {GT_NUMBER("OTHER", 1), {NULL}};
	CHECK(gt_init_template("text_model", values, &text, &e) == GT_EINTERNAL && !text && strstr(e.msg, "CLASSES"));
	CHECK(gt_init_template("no_such", values, &text, &e) == GT_EINTERNAL && !text && strstr(e.msg, "no_such"));
}

RUN_TESTS()
