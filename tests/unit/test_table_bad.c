/* Tables (datasets/table/) that must be refused, each in one sentence that names the place. test_table.c has those that are read. */
#include "skipped.h"
#include "table_files.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A text must be refused with a sentence that contains `what`. */
static void refused(const char *text, const struct gt_table_spec *spec, enum gt_code code, const char *what)
{
	struct gt_data_table t;
	struct gt_table_facts f;
	enum gt_code got = learn_text(text, spec, &t, &f);
	CHECK_MSG(got == code && strstr(e.msg, what), "expected %d \"%s\", got %d \"%s\"", code, what, got, got ? e.msg : "");
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

static void refused_bytes(const char *text, size_t n, enum gt_encoding encoding, const char *what)
{
	struct gt_table_spec s = plain;
	struct gt_data_table t;
	char path[1024];
	s.encoding = encoding;
	put("t.csv", text, n, false);
	snprintf(path, sizeof path, "%s", at("t.csv"));
	enum gt_code got = gt_table_read(&(const char *){path}, 1, &s, &t, &e);
	CHECK_MSG(got == GT_EDATA && strstr(e.msg, what), "expected \"%s\", got %d \"%s\"", what, got, got ? e.msg : "");
	gt_table_free(&t);
}

TEST(bad_files)
{
	const struct gt_table_spec *s = &plain;
	refused("x,y\n1,a\n2\n3,b\n", s, GT_EDATA, "t.csv:3: expected 2 fields, as in line 1, got 1");
	refused("x,y\n1,a\n2,b,c\n", s, GT_EDATA, "t.csv:3: expected 2 fields, as in line 1, got 3");
	refused("x,y\n1,\"a\n2,b\n", s, GT_EDATA, "t.csv:2: a quoted field that begins here has no closing quote");
	refused("x,y\n1,a\"\n2,b\n", s, GT_EDATA, "t.csv:2: expected quotes only around a whole field");
	refused("x,y\n1,\"a\"b\n", s, GT_EDATA, "t.csv:2: expected a delimiter or the end of the line after a closing quote");
	refused("x,y\n1,a\r2,b\r", s, GT_EDATA, "t.csv:2: expected the end of the line after a carriage return");
	refused("x,y\n1,caf\xe9\n2,b\n", s, GT_EDATA, "t.csv:2: column \"y\": expected UTF-8; write data.encoding = \"windows-1252\" if it");
	refused("x,caf\xe9,y\n1,2,3\n", s, GT_EDATA, "t.csv:1: expected column names in UTF-8, got \"caf?\"");
	refused("x,\"a\nb\",y\n1,2,3\n", s, GT_EDATA, "t.csv:1: expected column names without control characters, got \"a?b\"");
	refused_bytes("\xff\xfex\0,\0y\0\n\0001\0,\0\0\xd8\n", 16, GT_UTF_8, "t.csv:2: expected UTF-16, got half a surrogate pair");
	refused_bytes("\xfe\xff\0x\0,\0y\0\n\0", 11, GT_UTF_8, "t.csv: expected UTF-16, got an odd number of bytes");
	refused_bytes("\xfe\xff\0x\0,\0y\0\n\0\0\0,\0a", 16, GT_UTF_8, "t.csv:2: expected text, got a NUL byte");
	refused_bytes("x,y\n1,\x81\n", 8, GT_WINDOWS_1252, "t.csv:2: expected Windows-1252, got the invalid byte 0x81");
	refused("x,y\n1e999,a\n2,b\n", s, GT_EDATA, "t.csv:2: column \"x\": expected a number of a magnitude of at most 3.4e38");
	refused("x,y\n", s, GT_EDATA, "t.csv: expected rows after the header, got none");
	refused("\n\n\r\n", s, GT_EDATA, "t.csv: expected records, got none");
	refused("x,x,y\n1,2,3\n", &(struct gt_table_spec){.header = GT_HEADER_YES}, GT_EDATA, "t.csv:1: expected columns with different names");
	put("t.csv", "x,y\n1,a\0b\n", 10, false);
	char path[1024];
	snprintf(path, sizeof path, "%s", at("t.csv"));
	struct gt_data_table t;
	CHECK(gt_table_read(&(const char *){path}, 1, s, &t, &e) == GT_EDATA && strstr(e.msg, "t.csv:2: expected text, got a NUL byte"));
	CHECK(gt_table_read(&(const char *){"/nonexistent.csv"}, 1, s, &t, &e) == GT_ENOINPUT);
	unlink(path);
	CHECK(!t.column && !t.n);
}

struct texts {
	int n, each;
	char text[4096];
};

static void add_text(void *user, const char *text)
{
	struct texts *t = user;
	t->n++;
	strcat(strcat(t->text, text), "\n");
}

static void count_text(void *user, const char *text)
{
	(void)text;
	((struct texts *)user)->each++;
}

TEST(bad_encodings_change_no_number)
{
	struct gt_data_table t;
	CHECK_OK(read_text("x,y\n0x1A,a\n10,b\n", &plain, &t), e); /* a hexadecimal number is a word */
	CHECK(t.column[0].store == GT_STORE_WORDS);
	gt_table_free(&t);
	refused("x,y\n10,a\n-Inf,b\n", &plain, GT_EDATA, "t.csv:3: column \"x\": expected a finite number, as in 1 of the 2 values");
	CHECK_OK(read_text("x,y\ninf,a\n10,b\nsup,a\n", &plain, &t), e);
	CHECK(t.column[0].store == GT_STORE_WORDS);
	gt_table_free(&t);
	CHECK_OK(read_text("x,y\n1e999,a\nf00,b\n", &plain, &t), e); /* a word, since another one shows that they are words */
	CHECK(t.column[0].store == GT_STORE_WORDS);
	gt_table_free(&t);
	struct gt_table_spec s = plain;
	s.column = (const struct gt_column_spec[]){{"x", GT_COLUMN_CONTINUOUS}};
	s.ncolumns = 1;
	refused("x,y\n1,a\ninf,b\n", &s, GT_EDATA,
	        "t.csv:3: column \"x\": expected a finite number, got \"inf\"; correct it, or write data.on_error = \"skip\"");
	refused("x,y\n1,a\n--,b\n", &s, GT_EDATA, "t.csv:3: column \"x\": expected a number, got \"--\"; correct it, add the word to data.na");
	refused("x,y\n?,a\nNA,b\n", &s, GT_EDATA, "column \"x\": expected numbers, got no value in the training split");
	static const char *const na[] = {"-", "n/a"};
	s.na = na;
	s.nna = 2;
	CHECK_OK(read_text("x,y\n - ,a\nn/a,b\n3,a\n", &s, &t), e);
	CHECK(isnan(t.column[0].number[0]) && isnan(t.column[0].number[1]) && t.column[0].number[2] == 3);
	gt_table_free(&t);
}

TEST(bad_commas)
{
	struct gt_data_table t, u;
	struct gt_table_facts f;
	/* neither words nor numbers, unless another cell or the type decides */
	refused("x;y\n2;a\n0,5;b\n", &plain, GT_EDATA, "t.csv:3: column \"x\": expected a number with a decimal point and without commas, as "
	        "in 1 of the 2 values of the column, got \"0,5\"; write data.decimal = \",\" if the table has");
	refused("x;y\n-1.234,5;a\n3;b\n", &plain, GT_EDATA, "t.csv:2: column \"x\": expected a number with a decimal point");
	refused("x,y\n\"1,234,567\",a\n3,b\n", &plain, GT_EDATA, "t.csv:2: column \"x\": expected a number with a decimal point");
	refused("x;y\n1;1,5\n2;2,5\n", &plain, GT_EDATA, "t.csv:2: column \"y\": expected a number with a decimal point and without commas, as "
	        "in 0 of the 2 values of the column, got \"1,5\"; also in line 3 (\"2,5\")");
	refused("0,5;1,5\n1;2\n", &(struct gt_table_spec){.target = (const char *const[]){"c2"}, .ntarget = 1}, GT_EDATA,
	        "t.csv:1: column \"c1\": expected a number with a decimal point");
	struct gt_table_spec s = plain;
	s.ncolumns = 1;
	s.column = (const struct gt_column_spec[]){{"x", GT_COLUMN_CONTINUOUS}};
	refused("x;y\n0.5;a\n0,5;b\n", &s, GT_EDATA, "t.csv:3: column \"x\": expected a number with a decimal point and without commas, got");
	s.column = (const struct gt_column_spec[]){{"x", GT_COLUMN_CATEGORICAL}};
	CHECK_OK(read_text("x;y\n0,5;a\n1;b\n", &s, &t), e);
	CHECK(t.column[0].words.n == 2 && !strcmp(gt_words_text(&t.column[0].words, 0), "0,5"));
	gt_table_free(&t);
	CHECK_OK(read_text("x;y\n0,5;a\n1;b\nabc;a\n", &plain, &t), e);
	CHECK(t.column[0].store == GT_STORE_WORDS && t.column[0].words.n == 3);
	gt_table_free(&t);
	CHECK_OK(read_text("x;z;y\n1e999;0,5;a\n1;b;b\n", &(struct gt_table_spec){.ncolumns = 1, .target = target_y, .ntarget = 1,
	         .column = (const struct gt_column_spec[]){{"x", GT_COLUMN_IGNORE}}}, &t), e);
	gt_table_free(&t);
	refused("x;z;y\n0,5;1e999;a\nb;1;b\n", &plain, GT_EDATA, "column \"z\": expected a number of a magnitude"); /* its own error */
	CHECK_OK(learn_text("x;y\n0.5;a\n1.5;b\n", &plain, &t, &f), e);
	CHECK(read_as("x\n\"0,5\"\n", &plain, &f, false, &u) == GT_EDATA &&
	      strstr(e.msg, "u.csv:2: column \"x\": expected a number with a decimal point and without commas, got \"0,5\""));
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

/* Writes a table of `good` rows of numbers to buf, whose row `at`, and the rows after it, have the texts of odd in column x. */
static const char *numbers_but(char *buf, int good, int at, const char *const *odd, int nodd)
{
	int n = sprintf(buf, "x,y\n");
	for (int i = 0; i < good + nodd; i++)
		if (i >= at && i < at + nodd)
			n += sprintf(buf + n, "%s,%c\n", odd[i - at], i % 2 ? 'a' : 'b');
		else
			n += sprintf(buf + n, "%d.5,%c\n", i, i % 2 ? 'a' : 'b');
	return buf;
}

TEST(odd_cells)
{
	static char buf[1 << 16];
	struct gt_data_table t;
	struct gt_table_spec s = plain;
	static const char *const odd[] = {"#REF!", "n/a", "--", "1e5x", "kg"};
	for (int i = 0; i < 5; i++) /* in the first row, in the middle, in the last row */
		for (int at = 0; at <= 20; at += 10)
			refused(numbers_but(buf, 20, at, &odd[i], 1), &plain, GT_EDATA,
			        "column \"x\": expected a number, as in 20 of the 21 values of the column, got \"");
	refused(numbers_but(buf, 396, 50, odd, 4), &plain, GT_EDATA,
	        "t.csv:52: column \"x\": expected a number, as in 396 of the 400 values of the column, got \"#REF!\"; also in line 53 "
	        "(\"n/a\"), "
	        "line 54 (\"--\") and 1 more; correct it, add the word to data.na if it stands for a missing value, write "
	        "data.on_error = \"skip\" to treat such cells as missing, or give");
	/* more than one in a hundred, or one beside fewer than 20: words */
	CHECK_OK(read_text(numbers_but(buf, 395, 50, odd, 4), &plain, &t), e);
	CHECK(t.column[0].store == GT_STORE_WORDS && t.column[0].words.n == 399);
	gt_table_free(&t);
	CHECK_OK(read_text(numbers_but(buf, 19, 0, odd, 1), &plain, &t), e);
	CHECK(t.column[0].store == GT_STORE_WORDS);
	gt_table_free(&t);
	/* beside few different whole numbers, a word is another category; in a target it is an error */
	for (int k = 0; k < 2; k++) {
		int n = sprintf(buf, "x,y\n");
		for (int i = 0; i < 200; i++)
			n += sprintf(buf + n, "%s,%c\n", i == 90 ? "#REF!" : i % 3 ? "4" : "6", i % 2 ? 'a' : 'b');
		s = plain;
		s.target = k ? (const char *const[]){"x"} : s.target;
		if (k)
			refused(buf, &s, GT_EDATA, "t.csv:92: column \"x\": expected a number, as in 199 of the 200 values of the column, got \"#R");
		else
			CHECK_OK(read_text(buf, &s, &t), e);
		CHECK(k || (t.column[0].store == GT_STORE_WORDS && t.column[0].words.n == 3));
		if (!k)
			gt_table_free(&t);
	}
	s = plain;
	/* a number with leading zeros makes the others codes, not errors */
	CHECK_OK(read_text(numbers_but(buf, 100, 10, (const char *const[]){"007"}, 1), &plain, &t), e);
	CHECK(t.column[0].store == GT_STORE_WORDS);
	gt_table_free(&t);
	/* rows that are skipped: the cells are missing, a target of this kind is left out */
	CHECK_OK(gt_skipped_open(&s.skipped, &e), e);
	static const char *const infinite[] = {"#REF!", "-inf", "\"12,5\"", "1e999"};
	CHECK_OK(read_text(numbers_but(buf, 396, 0, infinite, 4), &s, &t), e);
	CHECK(t.n == 400 && t.column[0].store == GT_STORE_NUMBERS && isnan(t.column[0].number[0]) && isnan(t.column[0].number[3]));
	CHECK(t.column[0].number[4] == 4.5 && gt_skipped_report(s.skipped, count_text, NULL, &(struct texts){0}) == 4);
	gt_table_free(&t);
	s.target = (const char *const[]){"x"};
	CHECK_OK(read_text(numbers_but(buf, 396, 100, infinite, 4), &s, &t), e);
	CHECK(t.n == 396);
	gt_table_free(&t);
	gt_skipped_close(s.skipped);
	/* many numbers with commas are an error even then: more likely all are written so */
	s = plain;
	CHECK_OK(gt_skipped_open(&s.skipped, &e), e);
	refused("x;y\n1;a\n2,5;b\n3,5;a\n", &s, GT_EDATA, "t.csv:3: column \"x\": expected a number with a decimal point");
	gt_skipped_close(s.skipped);
}

TEST(skipped_rows_are_grouped)
{
	struct gt_data_table t;
	struct gt_table_spec s = plain;
	struct texts got = {0};
	CHECK_OK(gt_skipped_open(&s.skipped, &e), e);
	CHECK_OK(read_text("x,y\n1,\n2,a\n3,\n4\n5,b\n6,\n", &s, &t), e);
	CHECK(gt_skipped_report(s.skipped, add_text, count_text, &got) == 4 && got.each == 4 && got.n == 2);
	CHECK_MSG(strstr(got.text, "3 rows, the first is ") &&
	          strstr(got.text, "t.csv:2: column \"y\": the target is missing\n"), "%s", got.text);
	CHECK_MSG(strstr(got.text, "t.csv:5: expected 2 fields, as in line 1, got 1\n"), "%s", got.text);
	gt_table_free(&t);
	gt_skipped_close(s.skipped);
	/* every row was left out: the reason of the first one */
	CHECK_OK(gt_skipped_open(&s.skipped, &e), e);
	refused("x,y\n1,2,3\n1,\n", &s, GT_EDATA, "expected usable rows, got none in 2 rows; the first error: ");
	CHECK(strstr(e.msg, "t.csv:2: expected 2 fields, as in line 1, got 3"));
	gt_skipped_close(s.skipped);
}

TEST(bad_long_fields)
{
	size_t n = 10 << 20;
	char *text = malloc(n + 64);
	struct gt_data_table t;
	char path[1024];
	snprintf(path, sizeof path, "%s", at("long.csv"));
	for (int quoted = 0; quoted < 2; quoted++) {
		size_t at_byte = (size_t)snprintf(text, 64, "x,y\n1,a\n%s", quoted ? "\"" : "");
		memset(text + at_byte, 'a', n);
		snprintf(text + at_byte + n, 32, "%s,b\n", quoted ? "\"" : "");
		put("long.csv", text, strlen(text), false);
		CHECK(gt_table_read(&(const char *){path}, 1, &plain, &t, &e) == GT_EDATA);
		CHECK_MSG(strstr(e.msg, "long.csv:3: expected fields of at most 1 MiB, got a longer field"), "%s", e.msg);
	}
	free(text);
	unlink(path);
}

TEST(bad_targets)
{
	static const char *const z[] = {"z"};
	static const char *const two[] = {"x", "y"};
	struct gt_table_spec s = {.target = z, .ntarget = 1};
	refused("x,y\n1,a\n2,b\n", &s, GT_ECONFIG, "data.target: expected a column of");
	refused("x,y\n1,a\n2,b\n", &s, GT_ECONFIG, "got \"z\"; its columns are \"x\", \"y\"");
	refused("x,y\n1,a\n2,b\n", &(struct gt_table_spec){0}, GT_ECONFIG, "data.target: expected a column of");
	refused("x,y\n1,a\n2,a\n", &plain, GT_EDATA, "column \"y\": the target is the same in every row of the training split");
	refused("x,y\n1,2.5\n2,2.5\n", &plain, GT_EDATA, "column \"y\": the target is the same in every row of the training split");
	refused("x,y\n1,a\n2,?\n", &plain, GT_EDATA, "t.csv:3: column \"y\": the target is missing; remove the row");
	refused("x,y\n1,a\n1,b\n", &plain, GT_EDATA, "expected at least one column that the model can learn from, got none (\"x\" is "
	                                              "ignored: a single value)");
	char list[1024] = "x,y\n";
	for (int i = 0; i < 30; i++)
		snprintf(list + strlen(list), sizeof list - strlen(list), "%d.png,%s\n", i, i % 2 ? "a" : "b");
	refused(list, &plain, GT_EDATA, "(\"x\" is ignored: words that are all different); if it lists files of images, write data.format = ");
	s = (struct gt_table_spec){.target = two, .ntarget = 2, .task = GT_TASK_CLASSES};
	refused("x,y,k\na,b,c\nd,e,f\n", &s, GT_ECONFIG, "data.target: expected one column of classes, got 2 columns");
	s = (struct gt_table_spec){.target = target_y, .ntarget = 1, .task = GT_TASK_NUMBERS};
	refused("x,y\n1,a\n2,b\n", &s, GT_EDATA, "t.csv:2: column \"y\": expected a number");
}

TEST(bad_specs)
{
	static const char *const xy[] = {"x", "x"};
	struct gt_column_spec c[] = {{"x", GT_COLUMN_CONTINUOUS}, {"x", GT_COLUMN_IGNORE}};
	static const char *const text = "x,y\n1,a\n2,b\n";
	refused(text, &(struct gt_table_spec){.target = xy, .ntarget = 2}, GT_ECONFIG, "data.target: the column \"x\" appears twice");
	refused(text, &(struct gt_table_spec){.target = xy, .ntarget = 1, .ignore = xy, .nignore = 1}, GT_ECONFIG, "is also in data.target");
	refused(text, &(struct gt_table_spec){.column = c, .ncolumns = 2}, GT_ECONFIG, "data.columns: the column \"x\" appears twice");
	refused(text, &(struct gt_table_spec){.column = c, .ncolumns = 1, .target = xy, .ntarget = 1}, GT_ECONFIG, "type \"continuous\"");
	refused(text, &(struct gt_table_spec){.delimiter = '"'}, GT_ECONFIG, "data.delimiter");
	refused(text, &(struct gt_table_spec){.target = target_y, .ntarget = 1, .max_bytes = 1000}, GT_EDATA, "more than the 1000 bytes");
}

TEST(bad_second_file)
{
	struct gt_data_table t;
	char a[1024], b[1024];
	snprintf(a, sizeof a, "%s", at("a.csv"));
	snprintf(b, sizeof b, "%s", at("b.csv"));
	put_text("a.csv", "x,y\n1,a\n");
	put_text("b.csv", "x,z\n1,a\n");
	CHECK(gt_table_read((const char *const[]){a, b}, 2, &plain, &t, &e) == GT_EDATA && strstr(e.msg, "b.csv:1: expected the columns of"));
	CHECK(strstr(e.msg, "got also \"z\""));
	put_text("b.csv", "y\na\n");
	CHECK(gt_table_read((const char *const[]){a, b}, 2, &plain, &t, &e) == GT_EDATA && strstr(e.msg, "\"x\" is missing"));
	put_text("a.csv", "1.5,a\n2.5,b\n");
	put_text("b.csv", "x,z\n1,a\n");
	const struct gt_table_spec second = {.target = (const char *const[]){"c2"}, .ntarget = 1};
	CHECK(gt_table_read((const char *const[]){a, b}, 2, &second, &t, &e) == GT_EDATA &&
	      strstr(e.msg, "b.csv:1: expected a row, because the files before have no header, got a line like a header: \"x\", \"z\""));
}

TEST(bad_predictions)
{
	struct gt_data_table t, u;
	struct gt_table_facts f;
	CHECK_OK(learn_text("x,k,m,y\n1.5,a,u,0\n2.5,b,v,1\n", &plain, &t, &f), e);
	CHECK(read_as("x,y\n1,0\n", &plain, &f, false, &u) == GT_EDATA && strstr(e.msg, "u.csv:1: expected the columns of the training data; "
	                                                                                 "\"k\", \"m\" are missing"));
	CHECK(read_as("x,k,m\n1,a,u\n", &plain, &f, true, &u) == GT_EDATA && strstr(e.msg, "\"y\" is missing"));
	CHECK(read_as("x,k,m\nabc,a,u\n", &plain, &f, false, &u) == GT_EDATA && strstr(e.msg, "u.csv:2: column \"x\": expected a number"));
	CHECK(read_as("x,k,m,y\n1,a,u,2\n", &plain, &f, true, &u) == GT_EDATA &&
	      strstr(e.msg, "u.csv:2: column \"y\": expected a class of the training data, got \"2\""));
	float v[1];
	f.column[0].std = 1e-30;
	CHECK_OK(read_as("x,k,m\n1e38,a,u\n", &plain, &f, false, &u), e);
	CHECK(gt_table_transform(&u, &f, &(struct gt_table_fields){.values = v}, &e) == GT_EDATA &&
	      strstr(e.msg, "u.csv:2: column \"x\": after normalisation, the number"));
	gt_table_free(&u);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	/* without a header: all columns, or all but the target */
	CHECK_OK(learn_text("1.5,a,0\n2.5,b,1\n", &(struct gt_table_spec){.target = (const char *const[]){"c3"}, .ntarget = 1}, &t, &f), e);
	int32_t codes[1];
	CHECK_OK(read_as("2,b\n", &plain, &f, false, &u), e);
	CHECK(gt_table_transform(&u, &f, &(struct gt_table_fields){.codes = codes}, &e) == GT_OK && codes[0] == 3);
	gt_table_free(&u);
	CHECK(read_as("2\n", &plain, &f, false, &u) == GT_EDATA &&
	      strstr(e.msg, "expected 3 fields, as in the training data, or 2 without"));
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

TEST(bad_headers)
{
	struct gt_data_table t, u;
	struct gt_table_facts f;
	struct gt_table_spec s = {.target = (const char *const[]){"c3"}, .ntarget = 1};
	/* a model of a table with numbers, without a header */
	CHECK_OK(learn_text("1.5,a,no\n2.5,b,yes\n", &s, &t, &f), e);
	CHECK(read_as("x,kind,y\n1,a,no\n", &s, &f, false, &u) == GT_EDATA && strstr(e.msg, "u.csv:1: expected a row, because the training "
	                                                                                      "data has no header"));
	CHECK_MSG(strstr(e.msg, "got a line like a header: \"x\", \"kind\", \"y\"; remove the line") && !strstr(e.msg, "or, if"), "%s", e.msg);
	CHECK(read_as("x,kind\n1,a\n", &s, &f, false, &u) == GT_EDATA && strstr(e.msg, "header: \"x\", \"kind\"; remove the line"));
	CHECK(read_as("x,b,y\n1,a,no\n", &s, &f, false, &u) == GT_EDATA && strstr(e.msg, "u.csv:1: column \"c1\": expected a number"));
	CHECK_OK(read_as("?,kind,no\n1,a,no\n", &s, &f, false, &u), e); /* a missing number, a word that is not known, a class */
	gt_table_free(&u);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	/* words only */
	s.header = GT_HEADER_NO;
	CHECK_OK(learn_text("a,p,no\nb,q,yes\na,q,no\n", &s, &t, &f), e);
	CHECK(read_as("x,kind,y\na,p,no\n", &s, &f, true, &u) == GT_EDATA && strstr(e.msg, "\"y\"; remove the line, or, if it is a row, put"));
	CHECK(read_as("x,kind\na,p\n", &s, &f, false, &u) == GT_EDATA && strstr(e.msg, "u.csv:1: expected a row"));
	CHECK_OK(read_as("b,p\nx,kind\n", &s, &f, false, &u), e); /* only the first line can be a header */
	CHECK(u.n == 2 && u.column[0].code[1] == GT_CODE_OTHER);
	gt_table_free(&u);
	CHECK_OK(read_as("x,q\n", &s, &f, false, &u), e); /* a word of the training data */
	gt_table_free(&u);
	CHECK_OK(read_as("x,x\n", &s, &f, false, &u), e); /* columns have different names */
	gt_table_free(&u);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	/* a single column of words: a word that is not known is allowed */
	s.target = (const char *const[]){"c2"};
	CHECK_OK(learn_text("a,1\nb,0\n", &s, &t, &f), e);
	CHECK_OK(read_as("x\n", &s, &f, false, &u), e);
	gt_table_free(&u);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	/* texts have no values that are known, but names that data.columns gives */
	s = (struct gt_table_spec){.column = (const struct gt_column_spec[]){{"review", GT_COLUMN_TEXT}, {"y", GT_COLUMN_TARGET}},
	                           .ncolumns = 2, .target = target_y, .ntarget = 1, .header = GT_HEADER_NO};
	CHECK_OK(learn_text("good,1\nbad,0\n", &s, &t, &f), e);
	CHECK(read_as("review\nbad\n", &s, &f, false, &u) == GT_EDATA && strstr(e.msg, "header: \"review\"; remove the line"));
	CHECK_OK(read_as("nice\n", &s, &f, false, &u), e);
	gt_table_free(&u);
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

TEST(bad_number_of_words)
{
	/* more different words than a column may have: one sentence, and little memory */
	size_t size = 0, n = GT_TABLE_MAX_WORDS + 1;
	char *text = malloc(n * 12 + 64);
	struct gt_data_table t;
	char path[1024];
	size = (size_t)snprintf(text, 64, "x,y\n");
	for (size_t i = 0; i < n; i++)
		size += (size_t)snprintf(text + size, 16, "w%zu,a\n", i);
	put("words.csv", text, size, false);
	free(text);
	snprintf(path, sizeof path, "%s", at("words.csv"));
	struct gt_table_spec s = plain;
	s.column = &(struct gt_column_spec){"x", GT_COLUMN_CATEGORICAL};
	s.ncolumns = 1;
	CHECK(gt_table_read(&(const char *){path}, 1, &s, &t, &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "words.csv:1048578: column \"x\": expected at most 1048576 different values"), "%s", e.msg);
	s = plain;
	s.ignore = (const char *const[]){"x"};
	s.nignore = 1;
	CHECK_OK(gt_table_read(&(const char *){path}, 1, &s, &t, &e), e);
	CHECK(t.n == (int64_t)n && gt_table_bytes(&t) < (6 << 20) + n * sizeof *t.row_id);
	gt_table_free(&t);
	/* a type that is not given: identifiers or texts */
	CHECK_OK(gt_table_read(&(const char *){path}, 1, &plain, &t, &e), e);
	CHECK(t.n == (int64_t)n && t.column[0].store == GT_STORE_TEXT && is_text(&t.column[0].text, 1048576, "w1048576"));
	gt_table_free(&t);
	unlink(path);
}

RUN_TESTS()
