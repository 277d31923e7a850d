/* Tables (datasets/table/): reading CSV files into columns, types and statistics of columns, and the inputs of a model. The expected
 * numbers are worked out by hand. Tables that must be refused: test_table_bad.c. */
#include "base/arena.h"
#include "base/json.h"
#include "base/json_read.h"
#include "csv.h"
#include "table/parse_cell.h"
#include "table/table_facts.h"
#include "table_files.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells ---------------------------------------------------------------------------------------------------------------------- */
static enum gt_number_kind cell(const char *s, double *v)
{
	return gt_cell_number(s, strlen(s), v);
}

TEST(cells_are_numbers_or_words)
{
	static const char *const numbers[] = {"0", "-0", "1", "+1.5", ".5", "5.", "1e3", "1E-3", "-2.5e+10", "0.1",
	                                      "123456789012345678901234567890",
	                                      "3.4028234663852886e38", "1e-999", "9007199254740993", "0.30000000000000004", "1e22", "1e23",
	                                      "2.2250738585072011e-308", "8.5e-23", "179769313486231570e3"};
	static const char *const words[] = {"", "-", ".", "e5", "1e", "1e+", "0x1A", "inf", "-inf", "infinity", "1,5", "1 2", "1.2.3", "12a",
	                                    "--1",
	                                    "Infinity", "1_000"};
	static const char *const out[] = {"1e999", "-1e999", "3.5e38", "1e39"};
	double v;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		CHECK_MSG(cell(numbers[i], &v) == GT_CELL_NUMBER, "%s", numbers[i]);
		CHECK_MSG(v == strtod(numbers[i], NULL), "%s: %.17g", numbers[i], v); /* the nearest double, as glibc's strtod gives it */
	}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		CHECK_MSG(cell(words[i], &v) == GT_CELL_WORD, "%s", words[i]);
	for (size_t i = 0; i < sizeof out / sizeof *out; i++)
		CHECK_MSG(cell(out[i], &v) == GT_CELL_RANGE, "%s", out[i]);
	CHECK(cell("007", &v) == GT_CELL_CODE && v == 7);
	CHECK(cell("-01", &v) == GT_CELL_CODE && v == -1);
	CHECK(cell("00.5", &v) == GT_CELL_NUMBER && v == 0.5);
}

TEST(cells_in_a_notation)
{
	static const struct {
		struct gt_notation n;
		const char *text;
		double v; /* NAN: no number */
	} c[] = {{{',', 0}, "47,34", 47.34},     {{',', 0}, "-0,5", -0.5},         {{',', 0}, "12", 12},           {{',', 0}, "1.5", NAN},
	         {{',', 0}, "1,5e3", 1500},      {{',', '.'}, "1.234,5", 1234.5},  {{',', '.'}, "1.234.567", 1234567},
	         {{',', '.'}, "1234,5", 1234.5}, {{',', '.'}, "12.34", NAN},       {{',', '.'}, "1.2345", NAN},   {{',', '.'}, "1234.567", NAN},
	         {{0, ','}, "1,234.50", 1234.5}, {{0, ','}, "12,34", NAN},         {{'.', ','}, ".5", 0.5},       {{'.', ','}, ",500", NAN},
	         {{',', ' '}, "12 345,6", 12345.6},
	         {{',', ' '}, "12\xc2\xa0" "345,6", 12345.6}, {{',', ' '}, "12\xe2\x80\xaf" "345", 12345},
	         {{'.', '\''}, "1'234.5", 1234.5}, {{'.', '\''}, "1\xe2\x80\x99" "234", 1234},  {{',', '.'}, "18.05.2023", NAN},
	         {{',', 0}, "1,2,3", NAN},       {{',', 0}, ",", NAN},             {{',', 0}, "-", NAN},         {{',', '.'}, "1.234,5.6", NAN},
	         {{',', 0}, "", NAN},            {{',', 0}, "1,5x", NAN},          {{',', '.'}, "1.", NAN},       {{0, 0}, "1.5", 1.5}};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		double v = NAN;
		enum gt_number_kind got = gt_cell_parse(&c[i].n, c[i].text, strlen(c[i].text), &v);
		CHECK_MSG((got == GT_CELL_WORD) == isnan(c[i].v), "%s: %d", c[i].text, got);
		CHECK_MSG(got == GT_CELL_WORD || v == c[i].v, "%s: %.17g", c[i].text, v);
	}
	char digits[300]; /* a text that is longer than a number is a word, as in a notation without commas it would be out of range */
	memset(digits, '9', sizeof digits - 1);
	digits[sizeof digits - 1] = 0;
	CHECK(gt_cell_parse(&(struct gt_notation){',', 0}, digits, strlen(digits), &(double){0}) == GT_CELL_WORD);
}

TEST(dates)
{
	enum { Y = 1 << GT_DATE_YMD, D = 1 << GT_DATE_DMY, M = 1 << GT_DATE_MDY };
	static const struct {
		const char *text;
		unsigned orders;
		double seconds; /* `date -u -d TEXT +%s` of coreutils, in the first of the orders */
	} c[] = {{"1970-01-01", Y, 0},
	         {"2023-05-18", Y, 1684368000},
	         {"2023/05/18", Y, 1684368000},
	         {"2023.5.18", Y, 1684368000},
	         {"18.05.2023", D, 1684368000},
	         {"18/05/2023", D, 1684368000},
	         {"05/18/2023", M, 1684368000},
	         {"05-18-2023", M, 1684368000},
	         {"05.18.2023", 0, 0}, /* points are not used in this order */
	         {"05/04/2023", D | M, 1680652800},
	         {"5.4.2023", D, 1680652800},
	         {"2024-02-29", Y, 1709164800},
	         {"2023-02-29", 0, 0},
	         {"1900-02-29", 0, 0},
	         {"2000-02-29", Y, 951782400},
	         {"0001-01-01", Y, -62135596800},
	         {"9999-12-31", Y, 253402214400},
	         {"1969-12-31 23:59:59", Y, -1},
	         {"2023-05-18T12:30:15", Y, 1684413015},
	         {"2023-05-18 12:30:15.25", Y, 1684413015.25},
	         {"2023-05-18T12:30:15Z", Y, 1684413015},
	         {"2023-05-18T14:30:15+02:00", Y, 1684413015},
	         {"2023-05-18T11:00:15-0130", Y, 1684413015},
	         {"05/18/2023 12:30 PM", M, 1684413000},
	         {"05/18/2023 12:30 am", M, 1684369800},
	         {"05/18/2023 13:30 PM", 0, 0},
	         {"2023-05-18 24:00", 0, 0},
	         {"2023-05-18 12:3", 0, 0},
	         {"2023-05-18x", 0, 0},
	         {"2023-05/18", 0, 0},
	         {"2023-13-01", 0, 0},
	         {"2023-00-01", 0, 0},
	         {"0000-01-01", 0, 0},
	         {"18.05.23", 0, 0},
	         {"192.168.10.1", 0, 0},
	         {"2023-05-18-01", 0, 0},
	         {"20230518", 0, 0},
	         {"", 0, 0}};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		double v = 0;
		unsigned got = gt_date_orders(c[i].text, strlen(c[i].text));
		CHECK_MSG(got == c[i].orders, "%s: %u", c[i].text, got);
		int order = got & Y ? GT_DATE_YMD : got & D ? GT_DATE_DMY : GT_DATE_MDY;
		CHECK_MSG(gt_date_parse(c[i].text, strlen(c[i].text), (enum gt_date_order)order, &v) == (got != 0), "%s", c[i].text);
		CHECK_MSG(!got || v == c[i].seconds, "%s: %.17g", c[i].text, v);
	}
	static const double want[][1 + GT_DATE_PARTS] = {{0, 1970, 1, 1, 3, 1, 1, 0, 0, 0},
	                                                 {1709164800 + 43200, 2024, 2, 29, 3, 60, 0, 1, 19782.5, 0.5},
	                                                 {-1, 1969, 12, 31, 2, 365, 0, 1, -1 / 86400.0, 86399 / 86400.0},
	                                                 {1735603200, 2024, 12, 31, 1, 366, 0, 1, 20088, 0}};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		double part[GT_DATE_PARTS];
		gt_date_parts(want[i][0], part);
		for (int k = 0; k < GT_DATE_PARTS; k++)
			CHECK_MSG(fabs(part[k] - want[i][k + 1]) < 1e-9, "%.0f: %s: %.17g", want[i][0], gt_date_part_names[k], part[k]);
	}
	/* each day of 400 years has the parts of the date that was written */
	for (int64_t day = 0; day < 146097; day++) {
		double part[GT_DATE_PARTS], back;
		char text[64];
		gt_date_parts((double)day * 86400, part);
		snprintf(text, sizeof text, "%04d-%02d-%02d", (int)part[0], (int)part[1], (int)part[2]);
		if (!gt_date_parse(text, strlen(text), GT_DATE_YMD, &back) || back != (double)day * 86400)
			CHECK_MSG(false, "%s", text);
	}
}

TEST(keys)
{
	static const struct {
		const char *name;
		int first, step; /* of the numbers 1 ... 30; 7: in another order; 0: some twice */
		enum gt_column_type want;
	} c[] = {{"k", 5, 1, GT_COLUMN_IGNORE},          {"k", 0, 2, GT_COLUMN_CONTINUOUS},    {"id", 0, 2, GT_COLUMN_IGNORE},
	         {"userId", 0, 7, GT_COLUMN_IGNORE},     {"User_ID", 0, 7, GT_COLUMN_IGNORE},  {"No", 9, -3, GT_COLUMN_IGNORE},
	         {"paid", 0, 7, GT_COLUMN_CONTINUOUS},   {"humidity", 0, 7, GT_COLUMN_CONTINUOUS}, {"k", 30, -1, GT_COLUMN_CONTINUOUS},
	         {"id", 0, 0, GT_COLUMN_CONTINUOUS}};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		for (int alone = 0; alone < 2; alone++) {
			char text[4096];
			struct gt_data_table t;
			struct gt_table_facts f;
			int n = sprintf(text, alone ? "%s,y\n" : "%s,y,x\n", c[i].name);
			for (int r = 0; r < 30; r++)
				n += sprintf(text + n, alone ? "%d,%s\n" : "%d,%s,%d.5\n",
				             c[i].step == 7 ? r * 7 % 31 : c[i].step ? c[i].first + c[i].step * r : r % 25, r % 3 ? "a" : "b", r * r % 7);
			CHECK_OK(learn_text(text, &plain, &t, &f), e);
			CHECK_MSG(f.column[0].type == (alone ? GT_COLUMN_CONTINUOUS : c[i].want), "%s, step %d: %s", c[i].name, c[i].step,
			          gt_column_type_names[f.column[0].type]);
			gt_table_facts_free(&f);
			gt_table_free(&t);
		}
}

TEST(encodings)
{
	static const struct {
		const char *text;
		size_t n;
		enum gt_encoding from;
		const char *want;        /* the word in the second row of x */
		enum gt_encoding guess;
	} c[] = {{"x,y\n1,a\ncaf\xe9,b\n", 15, GT_LATIN_1, "caf\xc3\xa9", GT_WINDOWS_1252},
	         {"x,y\n1,a\n\x80 5,b\n", 14, GT_WINDOWS_1252, "\xe2\x82\xac 5", GT_WINDOWS_1252},
	         {"x,y\n1,a\n\x81,b\n", 12, GT_LATIN_1, "\xc2\x81", GT_UTF_8},
	         {"x,y\n1,a\ncaf\xc3\xa9,b\n", 16, GT_UTF_8, "caf\xc3\xa9", GT_UTF_8},
	         {"x,y\n\xe9,\xc3\xa9\nz,b\n", 13, GT_LATIN_1, "z", GT_UTF_8}, /* both: damaged UTF-8 */
	         {"\xff\xfex\0;\0y\0\n\0001\0;\0a\0\n\0\x3d\xd8\0\xde;\0b\0\n\0", 28, GT_UTF_8, "\xf0\x9f\x98\x80", GT_UTF_8},
	         {"\xfe\xff\0x\0\t\0y\0\n\0001\0\t\0a\0\n\x04\x16\0\t\0b\0\n", 26, GT_UTF_8, "\xd0\x96", GT_UTF_8}};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		for (int gz = 0; gz < 2; gz++) {
			struct gt_table_spec s = plain;
			struct gt_data_table t;
			char path[1024];
			enum gt_encoding guess;
			size_t len;
			s.encoding = c[i].from;
			s.column = (const struct gt_column_spec[]){{"x", GT_COLUMN_CATEGORICAL}};
			s.ncolumns = 1;
			put(gz ? "t.csv.gz" : "t.csv", c[i].text, c[i].n, gz);
			snprintf(path, sizeof path, "%s", at(gz ? "t.csv.gz" : "t.csv"));
			CHECK_OK(gt_table_read(&(const char *){path}, 1, &s, &t, &e), e);
			CHECK_MSG(t.n == 2 && !strcmp(gt_table_text(&t, 0, 1, &len), c[i].want), "%zu", i);
			gt_table_free(&t);
			CHECK_OK(gt_table_guess_encoding(path, &guess, &e), e);
			CHECK_MSG(guess == c[i].guess, "%zu", i);
		}
}

TEST(guessed_notation)
{
	static const struct {
		const char *text, *want; /* want: decimal and separator; "?": it could be another one */
	} c[] = {{"a,b\n1.5,x\n2,y\n", ". "},
	         {"a;b\n1,5;x\n2;y\n", ", "},
	         {"a;b;c\n1.500,5;x;3\n2,5;y;4\n", ",."},
	         {"a;b\n1.500;0,5\n2.250;1,5\n", ",."},
	         {"a;b\n1.5;0,5\n2.25;1,5\n", ". "},
	         {"a,b\n\"1,500.25\",0.5\n\"2,000\",1.5\n", ".,"},
	         {"a,b\n\"1,500\",x\n\"2,000\",y\n", ".,?"},
	         {"a;b\n1,500;x\n2,000;y\n", ", ?"},
	         {"a;b\n1 500,5;x\n12 000;y\n", ",  "},
	         {"a,b\n1'500.5,x\n12'000,y\n", ".'"},
	         {"a,b\nx,18.05.2023\ny,19.05.2023\n", ". "}};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct gt_notation n;
		bool other;
		char path[1024], got[8];
		put_text("t.csv", c[i].text);
		snprintf(path, sizeof path, "%s", at("t.csv"));
		CHECK_OK(gt_table_guess_notation(path, &plain, &n, &other, &e), e);
		snprintf(got, sizeof got, "%c%c%s", n.decimal ? n.decimal : '.', n.thousands ? n.thousands : '_', other ? "?" : "");
		char want[8];
		snprintf(want, sizeof want, "%c%c%s", c[i].want[0], c[i].want[1] == ' ' && c[i].want[2] != ' ' ? '_' : c[i].want[1],
		         strchr(c[i].want, '?') ? "?" : "");
		CHECK_MSG(!strcmp(got, want), "%s: %s, not %s", c[i].text, got, want);
	}
}

TEST(cells_have_commas)
{
	static const char *const yes[] = {"1,5", "-0,25", "+3,0", "1234,5", "1,234", "1,234,567", "1,234,567.8", "1.234,5",
	                                  "12.345.678,90", "1,234.5"};
	static const char *const no[] = {"", ",", "1,", ",5", "1", "1.5", "1.234", "1.234.567", "1,2,3", "1234,567,890", "1,23,456", "1.2,5",
	                                 "1234.567,8", "1,5.5", "1,5a", "a,5", "1,234.", "1,234,5", "--1,5", "1, 5", "1.234,5,6", "1,234.5.6",
	                                 "1;5"};
	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
		CHECK_MSG(gt_cell_has_commas(yes[i], strlen(yes[i])), "%s", yes[i]);
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		CHECK_MSG(!gt_cell_has_commas(no[i], strlen(no[i])), "%s", no[i]);
}

TEST(cells_equal_strtod)
{
	uint32_t r = 1;
	char buf[64];
	double v;
	for (int i = 0; i < 200000; i++) {
		uint32_t k[4];
		for (int j = 0; j < 4; j++)
			k[j] = r = r * 1664525u + 1013904223u;
		int digits = (int)(k[0] >> 8) % 19 + 1, exponent = (int)(k[1] >> 8) % 60 - 30;
		snprintf(buf, sizeof buf, "%s%u.%0*ue%d", k[2] >> 31 ? "-" : "", k[2] >> 12, digits / 3 + 1, k[3] >> (digits % 24), exponent);
		CHECK_MSG(cell(buf, &v) == GT_CELL_NUMBER && v == strtod(buf, NULL), "%s", buf);
	}
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */
TEST(reads_columns)
{
	struct gt_data_table t;
	CHECK_OK(read_text("\xef\xbb\xbfname, x ,y\r\n\"Smith, J\",1.5,a\r\n\"say \"\"hi\"\"\",?,b\r\nplain,-2,a", &plain, &t), e);
	CHECK(t.n == 3 && t.ncolumns == 3 && t.header && gt_table_find(&t, "x") == 1);
	CHECK(t.column[0].store == GT_STORE_WORDS && t.column[1].store == GT_STORE_NUMBERS && t.column[2].store == GT_STORE_WORDS);
	CHECK(!strcmp(gt_words_text(&t.column[0].words, t.column[0].code[0]), "Smith, J"));
	CHECK(!strcmp(gt_words_text(&t.column[0].words, t.column[0].code[1]), "say \"hi\""));
	CHECK(t.column[1].number[0] == 1.5 && isnan(t.column[1].number[1]) && t.column[1].number[2] == -2);
	CHECK(t.column[2].words.n == 2 && t.column[2].code[2] == 0);
	CHECK(gt_table_bytes(&t) > 3 * 16 && gt_table_bytes(&t) < 8192);
	gt_table_free(&t);
}

TEST(reads_numbers_before_words_again)
{
	struct gt_data_table t;
	CHECK_OK(read_text("id,zip,y\n1,01234,a\n2,9,b\nx3,10,a\n", &plain, &t), e);
	CHECK(t.column[0].store == GT_STORE_WORDS && t.column[0].words.n == 3);
	CHECK(!strcmp(gt_words_text(&t.column[0].words, t.column[0].code[0]), "1"));
	CHECK(t.column[1].store == GT_STORE_WORDS && !strcmp(gt_words_text(&t.column[1].words, t.column[1].code[0]), "01234"));
	gt_table_free(&t);
}

TEST(finds_lines)
{
	struct gt_data_table t;
	int64_t line;
	put_text("a.csv", "x,y\n1,a\n\n\n2,b\n\"\n3\n\",a\n4,b\n");
	put_text("b.csv", "y,x\na,5\nb,6\n");
	char a[1024], b[1024];
	snprintf(a, sizeof a, "%s", at("a.csv"));
	snprintf(b, sizeof b, "%s", at("b.csv"));
	CHECK_OK(gt_table_read((const char *const[]){a, b}, 2, &plain, &t, &e), e);
	static const int64_t lines[] = {2, 5, 6, 9, 2, 3};
	CHECK(t.n == 6);
	for (int64_t i = 0; i < 6; i++) {
		const char *path = gt_table_where(&t, i, &line);
		CHECK_MSG(line == lines[i] && !strcmp(path, i < 4 ? a : b), "row %lld: %s:%lld", (long long)i, path, (long long)line);
	}
	CHECK(!strcmp(gt_words_text(&t.column[0].words, t.column[0].code[4]), "5")); /* columns of the second file are found by their names */
	gt_table_free(&t);
}

TEST(headers)
{
	struct gt_data_table t;
	static const char *const target_3[] = {"c3"};
	struct gt_table_spec s = {.target = target_3, .ntarget = 1};
	CHECK_OK(read_text("M,0.455,15\nF,0.35,7\n", &s, &t), e); /* a number in the first record: no header */
	CHECK(!t.header && t.n == 2 && !strcmp(t.column[0].name, "c1"));
	gt_table_free(&t);
	CHECK_OK(read_text("p,x,p\ne,x,y\n", &s, &t), e); /* two equal fields: no header */
	CHECK(!t.header && t.n == 2);
	gt_table_free(&t);
	CHECK_OK(read_text(",b,y\n0,1,2\n", &plain, &t), e); /* pandas writes its index like this */
	CHECK(t.header && t.n == 1 && !strcmp(t.column[0].name, "c1"));
	gt_table_free(&t);
	struct gt_column_spec named[] = {{"a", GT_COLUMN_AUTO}, {"b", GT_COLUMN_AUTO}, {"y", GT_COLUMN_TARGET}};
	CHECK_OK(read_text("u,v,w\nu,v,z\n", &(struct gt_table_spec){.header = GT_HEADER_NO, .column = named, .ncolumns = 3}, &t), e);
	CHECK(t.n == 2 && !strcmp(t.column[1].name, "b"));
	gt_table_free(&t);
	struct gt_column_spec numbered[] = {{"c2", GT_COLUMN_IGNORE}, {"c1", GT_COLUMN_AUTO}, {"c3", GT_COLUMN_TARGET}};
	CHECK_OK(read_text("u,v,w\nu,v,z\n", &(struct gt_table_spec){.header = GT_HEADER_NO, .column = numbered, .ncolumns = 3}, &t), e);
	CHECK(!strcmp(t.column[0].name, "c1") && t.column[1].store == GT_STORE_SKIP);
	gt_table_free(&t);
	CHECK_OK(read_text("1;2;y\n3;4;5\n", &(struct gt_table_spec){.header = GT_HEADER_YES, .target = target_y, .ntarget = 1}, &t), e);
	CHECK(t.n == 1 && t.ncolumns == 3 && !strcmp(t.column[0].name, "1"));
	gt_table_free(&t);
	/* commas between digits are no delimiters where another character is one */
	struct gt_column_spec words[] = {{"c1", GT_COLUMN_CATEGORICAL}, {"c2", GT_COLUMN_CATEGORICAL}, {"c3", GT_COLUMN_TARGET}};
	CHECK_OK(read_text("0,5;1,5;a\n1;2;b\n", &(struct gt_table_spec){.column = words, .ncolumns = 3}, &t), e);
	CHECK(t.ncolumns == 3 && t.n == 2 && !t.header);
	gt_table_free(&t);
	CHECK_OK(read_text("0,5,a;b\n1,2,c;d\n", &(struct gt_table_spec){.column = words, .ncolumns = 3}, &t), e);
	CHECK(t.ncolumns == 3 && t.n == 2);
	gt_table_free(&t);
}

/* ---- learning ------------------------------------------------------------------------------------------------------------------ */
TEST(infers_types)
{
	struct gt_data_table t;
	struct gt_table_facts f;
	char text[8192] = "small,many,real,word,id,constant,empty,zip,y\n";
	for (int i = 0; i < 42; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%d,%d.5,%s,n%d,7,?,0%d,%s\n", i % 20, i % 21, i % 3,
		         i % 2 ? "u" : "v", i,
		         i % 5, i % 2 ? "no" : "yes");
	CHECK_OK(learn_text(text, &plain, &t, &f), e);
	static const enum gt_column_type types[] = {GT_COLUMN_CATEGORICAL, GT_COLUMN_CONTINUOUS, GT_COLUMN_CONTINUOUS, GT_COLUMN_CATEGORICAL,
	                                            GT_COLUMN_IGNORE, GT_COLUMN_IGNORE, GT_COLUMN_IGNORE, GT_COLUMN_CATEGORICAL,
		GT_COLUMN_TARGET};
	for (int k = 0; k < 9 && f.ncolumns == 9; k++)
		CHECK_MSG(f.column[k].type == types[k], "%s: %s", f.column[k].name, gt_column_type_names[f.column[k].type]);
	CHECK(f.ncolumns == 9 && f.nvalues == 2 && f.ncodes == 3 && f.ntargets == 1 && f.task == GT_TASK_CLASSES);
	CHECK(f.column[0].whole && !f.column[3].whole && !f.column[7].whole); /* 01 ... are codes, not numbers */
	CHECK(!strcmp(gt_words_text(&f.column[8].words, 0), "no") && !strcmp(gt_words_text(&f.column[8].words, 1), "yes"));
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

/* Texts: 8 parts on average, more than half of them different; the fields of several columns are joined. */
TEST(infers_texts)
{
	struct gt_data_table t;
	struct gt_table_facts f;
	struct gt_texts own;
	const struct gt_texts *texts;
	char text[16384] = "y,prose,title,repeated,given\n";
	for (int i = 0; i < 42; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text),
		         "%d,\"a film of %d parts, \n and as many acts\",film %d of this long year,"
		         "one of %d texts that some rows have in common,%s\n", i % 2, i, i, i % 21, i ? "x" : "NA");
	const struct gt_column_spec given = {"given", GT_COLUMN_TEXT};
	struct gt_table_spec spec = plain;
	CHECK_OK(learn_text(text, &spec, &t, &f), e);
	CHECK(f.ncolumns == 5 && f.ntexts == 1 && f.column[1].type == GT_COLUMN_TEXT && f.column[2].type == GT_COLUMN_IGNORE);
	CHECK(f.column[3].type == GT_COLUMN_CATEGORICAL && f.column[4].type == GT_COLUMN_CATEGORICAL);
	CHECK_OK(gt_table_texts(&t, &f, &own, &texts, &e), e);
	CHECK(texts->n == 42 && is_text(texts, 41, "a film of 41 parts, \n and as many acts"));
	gt_texts_free(&own);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	spec.column = &given;
	spec.ncolumns = 1;
	CHECK_OK(learn_text(text, &spec, &t, &f), e);
	CHECK(t.column[4].store == GT_STORE_TEXT && f.column[4].type == GT_COLUMN_TEXT && f.column[4].missing == 1 && f.ntexts == 2);
	CHECK_OK(gt_table_texts(&t, &f, &own, &texts, &e), e);
	CHECK(is_text(texts, 0, "a film of 0 parts, \n and as many acts")); /* the other text is missing */
	CHECK(is_text(texts, 1, "a film of 1 parts, \n and as many acts\nx"));
	gt_texts_free(&own);
	int64_t line;
	CHECK_OK(gt_table_thin_out(&t, 4, &e), e); /* rows 0, 10, 21 and 31, which begin in lines 2, 22, 44 and 64 */
	CHECK(t.n == 4 && t.column[4].text.n == 4 && t.column[4].text.size == 3 && is_text(&t.column[4].text, 3, "x"));
	CHECK(t.column[0].number[2] == 1 && gt_table_where(&t, 3, &line) && line == 64);
	size_t n;
	CHECK(!strncmp(gt_table_text(&t, 1, 2, &n), "a film of 21 parts", 18));
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

TEST(learns_only_from_training_rows)
{
	struct gt_data_table t;
	struct gt_table_facts f;
	CHECK_OK(read_text("x,k,y\n1.5,a,0\n2.5,b,1\nword,c,0\n3.5,a,1\n1000.5,d,1\n", &plain, &t), e);
	CHECK_OK(gt_table_fit(&t, &plain, (const int64_t[]){0, 1, 3}, 3, &f, &e), e);
	CHECK(f.column[0].type == GT_COLUMN_CONTINUOUS && f.column[0].mean == 2.5 && f.column[0].median == 2.5);
	CHECK(f.column[1].words.n == 2 && !strcmp(gt_words_text(&f.column[1].words, 0), "a"));
	float values[5];
	struct gt_table_fields out = {.values = values};
	CHECK(gt_table_transform(&t, &f, &out, &e) == GT_EDATA &&
	      strstr(e.msg, "t.csv:4: expected a number in the column \"x\", got \"word\""));
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

TEST(statistics_of_numbers)
{
	struct gt_data_table t;
	struct gt_table_facts f;
	/* of 1, 2, 4, 9: median 3, which replaces the missing one: mean 19/5, variance (1+4+16+81+9)/5 - 3.8^2 = 22.2 - 14.44 = 7.76 */
	CHECK_OK(learn_text("x,z,y\n1,1e-3,0\n9,2e-3,1\nNA,3e-3,0\n2,4e-3,1\n4,5e-3,0\n",
	                    &(struct gt_table_spec){.target = target_y,
	                                            .ntarget = 1,
	                                            .column = (const struct gt_column_spec[]){{"x", GT_COLUMN_CONTINUOUS}},
	                                            .ncolumns = 1},
	                    &t, &f), e);
	const struct gt_table_fact *x = &f.column[0];
	CHECK(x->median == 3 && fabs(x->mean - 3.8) < 1e-15 && fabs(x->std - sqrt(7.76)) < 1e-15 && x->na && x->missing == 1);
	CHECK(f.nvalues == 3 && !f.column[1].na);
	float v[15];
	int32_t labels[5];
	CHECK_OK(gt_table_transform(&t, &f, &(struct gt_table_fields){.values = v, .labels = labels}, &e), e);
	CHECK(v[0] == (float)((1 - x->mean) / x->std) && v[2] == 0 && v[8] == 1 && v[6] == (float)((3 - x->mean) / x->std));
	CHECK(labels[0] == 0 && labels[1] == 1 && labels[4] == 0);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	/* one value in every row: std 0, and the input is x - mean */
	CHECK_OK(learn_text("x,k,y\n5,a,0\n5,b,1\n", &(struct gt_table_spec){.target = target_y, .ntarget = 1,
	                    .column = (const struct gt_column_spec[]){{"x", GT_COLUMN_CONTINUOUS}}, .ncolumns = 1}, &t, &f), e);
	CHECK(f.column[0].std == 0 && gt_table_transform(&t, &f, &(struct gt_table_fields){.values = v}, &e) == GT_OK && v[0] == 0 &&
	      v[1] == 0);
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

TEST(medians_of_all_sizes)
{
	static const char *const texts[] = {"-3\n", "4\n-2\n", "0\n-1\n7\n", "-1.5\n-1.5\n3\n2\n"};
	static const double medians[] = {-3, 1, 0, 0.25};
	for (int i = 0; i < 4; i++) {
		struct gt_data_table t;
		struct gt_table_facts f;
		char text[200] = "k,y\n", copy[100], *save, *line;
		snprintf(copy, sizeof copy, "%s", texts[i]);
		int row = 0;
		for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			snprintf(text + strlen(text), sizeof text - strlen(text), "w%d,%s\n", row++ % 2, line);
		struct gt_table_spec s = {.target = target_y, .ntarget = 1, .task = GT_TASK_NUMBERS,
		                          .column = (const struct gt_column_spec[]){{"k", GT_COLUMN_CATEGORICAL}}, .ncolumns = 1};
		enum gt_code code = learn_text(text, &s, &t, &f);
		if (row == 1)
			CHECK(code == GT_EDATA && strstr(e.msg, "the same in every row"));
		else
			CHECK_MSG(code == GT_OK && f.column[1].median == medians[i], "%d: %g", i, code ? NAN : f.column[1].median);
		gt_table_facts_free(&f);
		gt_table_free(&t);
	}
}

TEST(codes_by_frequency_then_name)
{
	struct gt_data_table t, u;
	struct gt_table_facts f;
	static const char *const train = "k,n,y\nb,10,1\nc,2,2\nb,2.0,1\na,10,2\n?,3,1\nc,2,2\n";
	CHECK_OK(learn_text(train, &plain, &t, &f), e);
	const struct gt_table_fact *k = &f.column[0], *n = &f.column[1];
	CHECK(k->words.n == 3 && !strcmp(gt_words_text(&k->words, 0), "b") && !strcmp(gt_words_text(&k->words, 1), "c") &&
	      !strcmp(gt_words_text(&k->words, 2), "a") && k->missing == 1);
	CHECK(n->whole && n->words.n == 3 && !strcmp(gt_words_text(&n->words, 0), "2") && !strcmp(gt_words_text(&n->words, 1), "10"));
	CHECK(gt_table_cardinality(&f, 0) == 5 && gt_table_cardinality(&f, 2) == 2);
	int32_t codes[12], labels[6];
	CHECK_OK(gt_table_transform(&t, &f, &(struct gt_table_fields){.codes = codes, .labels = labels}, &e), e);
	static const int32_t want[] = {2, 3, 3, 2, 2, 2, 4, 3, 0, 4, 3, 2};
	CHECK(!memcmp(codes, want, sizeof want) && labels[0] == 0 && labels[1] == 1);
	/* words that were not learned; numbers that are written in another way; the target is not there; a further column; another order */
	CHECK_OK(read_as("n,more,k\n10.0,x,a\n+2,x,zzz\n4,x,NA\nword,x,b\n,x,c\n", &plain, &f, false, &u), e);
	CHECK_OK(gt_table_transform(&u, &f, &(struct gt_table_fields){.codes = codes}, &e), e);
	static const int32_t then[] = {4, 3, 1, 2, 0, 1, 2, 1, 3, 0};
	CHECK(u.n == 5 && !memcmp(codes, then, sizeof then));
	CHECK(u.column[0].words.n == 3 && u.column[0].code[1] == GT_CODE_OTHER); /* other words take no memory */
	gt_table_free(&u);
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

TEST(targets)
{
	struct gt_data_table t;
	struct gt_table_facts f;
	static const char *const two[] = {"u", "v"};
	float targets[4];
	int32_t labels[3];
	/* classes of whole numbers are sorted as numbers */
	CHECK_OK(learn_text("x,y\n0.5,10\n1.5,9\n2.5,-1\n", &plain, &t, &f), e);
	CHECK(f.task == GT_TASK_CLASSES && !strcmp(gt_words_text(&f.column[1].words, 0), "-1") &&
	      !strcmp(gt_words_text(&f.column[1].words, 1), "9"));
	CHECK(gt_table_transform(&t, &f, &(struct gt_table_fields){.labels = labels}, &e) == GT_OK && labels[0] == 2 && labels[1] == 1 &&
	      !labels[2]);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	/* two columns of numbers */
	CHECK_OK(learn_text("u,x,v\n1,0.5,2.5\n3,1.5,4.5\n", &(struct gt_table_spec){.target = two, .ntarget = 2}, &t, &f), e);
	CHECK(f.task == GT_TASK_NUMBERS && f.ntargets == 2 && gt_table_target_column(&f, 1) == 2);
	CHECK(gt_table_transform(&t, &f, &(struct gt_table_fields){.targets = targets}, &e) == GT_OK && targets[0] == 1 && targets[1] == 2.5f &&
	      targets[2] == 3 && targets[3] == 4.5f);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	/* a class that the training data lacks */
	struct gt_data_table u;
	CHECK_OK(learn_text("x,y\n0.5,no\n1.5,yes\n", &plain, &t, &f), e);
	CHECK_OK(read_text("x,y\n0.5,no\n1.5,maybe\n", &plain, &u), e);
	CHECK(gt_table_transform(&u, &f, &(struct gt_table_fields){.labels = labels}, &e) == GT_EDATA &&
	      strstr(e.msg, "t.csv:3: column \"y\": the training"));
	gt_table_facts_free(&f);
	gt_table_free(&t);
	gt_table_free(&u);
}

TEST(strata_are_the_classes)
{
	struct gt_data_table t;
	int32_t group[6];
	int64_t n;
	CHECK_OK(read_text("x,y\n1,b\n2,a\n3,b\n4,c\n", &plain, &t), e);
	CHECK(gt_table_strata(&t, &plain, group, &n, &e) == GT_OK && n == 3 && group[0] == group[2] && group[1] != group[0] && group[3] == 2);
	gt_table_free(&t);
	CHECK_OK(read_text("x,y\n1,2\n2,1\n3,2\n4,2\n", &plain, &t), e);
	CHECK(gt_table_strata(&t, &plain, group, &n, &e) == GT_OK && n == 2 && group[0] == group[3] && group[1] == 1);
	gt_table_free(&t);
	CHECK_OK(read_text("x,y\n1,2.5\n2,1\n3,2\n4,2\n", &plain, &t), e);
	CHECK(gt_table_strata(&t, &plain, group, &n, &e) == GT_OK && n == 0);
	gt_table_free(&t);
}

/* ---- the same for one row ------------------------------------------------------------------------------------------------------ */
TEST(one_row_equals_the_table)
{
	struct gt_data_table t, u;
	struct gt_table_facts f;
	char text[8192] = "x,k,n,y\n", one[200];
	for (int i = 0; i < 60; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d.25,w%d,%d,%d\n", i % 7 ? "" : "-", i * i, i % 9, i % 4, i % 3);
	snprintf(text + strlen(text), sizeof text - strlen(text), "?,?,?,1\n");
	CHECK_OK(learn_text(text, &plain, &t, &f), e);
	float *values = malloc((size_t)(t.n * f.nvalues) * sizeof *values), v[2];
	int32_t *codes = malloc((size_t)(t.n * f.ncodes) * sizeof *codes), c[2];
	CHECK(f.nvalues == 2 && f.ncodes == 2);
	CHECK_OK(gt_table_transform(&t, &f, &(struct gt_table_fields){.values = values, .codes = codes}, &e), e);
	char *line = text, *next;
	for (int64_t i = -1; i < t.n; i++, line = next) {
		next = strchr(line, '\n') + 1;
		if (i < 0)
			continue;
		snprintf(one, sizeof one, "x,k,n,y\n%.*s", (int)(next - line), line);
		CHECK_OK(read_as(one, &plain, &f, false, &u), e);
		CHECK_OK(gt_table_transform(&u, &f, &(struct gt_table_fields){.values = v, .codes = c}, &e), e);
		CHECK(!memcmp(v, values + 2 * i, sizeof v) && !memcmp(c, codes + 2 * i, sizeof c));
		gt_table_free(&u);
	}
	free(values);
	free(codes);
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

TEST(compressed_files)
{
	struct gt_data_table t;
	char path[1024];
	put("t.csv.gz", "x,y\n1,a\n2,b\n", 12, true);
	snprintf(path, sizeof path, "%s", at("t.csv.gz"));
	CHECK_OK(gt_table_read(&(const char *){path}, 1, &plain, &t, &e), e);
	CHECK(t.n == 2 && t.column[0].number[1] == 2);
	gt_table_free(&t);
}

/* ---- in a checkpoint and in a config ------------------------------------------------------------------------------------------- */
static enum gt_code parse_facts(const char *text, struct gt_table_facts *out)
{
	struct gt_arena *a;
	const struct gt_json_value *v;
	CHECK_OK(gt_arena_open(&a, &e), e);
	*out = (struct gt_table_facts){0};
	enum gt_code code = gt_json_parse(text, strlen(text), "data.json", 5, strlen(text), a, &v, &e);
	if (code == GT_OK)
		code = gt_table_json_get(gt_json_member(v, "table"), "data.json", out, &e);
	gt_arena_close(a);
	return code;
}

TEST(facts_in_a_checkpoint)
{
	struct gt_data_table t;
	struct gt_table_facts f, g;
	struct gt_json j = {0};
	const char *text;
	CHECK_OK(learn_text("x,\"k \"\"\xc3\xa9\",n,id,y\n0.1,\"a,\n\"\"b\",1,q,no\n0.7,\\,2,q,yes\n?,?,1,q,no\n", &plain, &t, &f), e);
	gt_json_object(&j, NULL);
	gt_json_int(&j, "format", 1);
	gt_table_json_put(&j, "table", &f);
	gt_json_end(&j);
	CHECK_OK(gt_json_finish(&j, &text, &e), e);
	CHECK_OK(parse_facts(text, &g), e);
	CHECK_OK(gt_table_json_compare(&f, &g, "t.csv", "step-1", &e), e);
	CHECK(g.nvalues == f.nvalues && g.ncodes == f.ncodes && g.ntargets == 1 && g.header && g.column[0].na && g.column[2].whole);
	g.column[0].mean += 1;
	CHECK(gt_table_json_compare(&f, &g, "t.csv", "step-1", &e) == GT_EDATA && strstr(e.msg, "the statistics of the checkpoint step-1"));
	gt_json_free(&j);
	gt_table_facts_free(&g);
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

TEST(columns_of_dates)
{
	struct gt_data_table t, u;
	struct gt_table_facts f, again;
	struct gt_table_spec s = plain;
	float v[3 * 11];
	char *text;
	/* 1, 2 and 3 January 2023, the last of 3 rows missing: means and deviations of scikit-learn after the median */
	CHECK_OK(learn_text("d,x,y\n31.12.2022,0.5,a\n02.01.2023 12:00,1.5,b\n?,2.5,a\n", &s, &t, &f), e);
	CHECK(f.column[0].type == GT_COLUMN_DATE && f.column[0].order == GT_DATE_DMY && f.column[0].na && f.nvalues == 11);
	CHECK_OK(gt_table_transform(&t, &f, &(struct gt_table_fields){.values = v}, &e), e);
	CHECK(fabsf(v[0] + 1.2247449f) < 1e-6f && fabsf(v[11] - 1.2247449f) < 1e-6f && v[22] == 0); /* years -1/2, 1/2, 0 around the mean */
	CHECK(v[10] == 0 && v[21] == 0 && v[32] == 1 && v[31] > 1.2f);
	CHECK_OK(gt_table_columns_text(&f, "", &text, &e), e);
	CHECK_MSG(strstr(text, "{ name = \"d\"; type = \"date\"; order = \"dmy\"; }, // dates, 1 missing") != NULL ||
	          strstr(text, "{ name = \"d\"; type = \"date\"; order = \"dmy\"; }, // dates; 1 missing") != NULL, "%s", text);
	free(text);
	struct gt_json j = {0};
	const char *json;
	gt_json_object(&j, NULL);
	gt_table_json_put(&j, "table", &f);
	gt_json_end(&j);
	CHECK_OK(gt_json_finish(&j, &json, &e), e);
	CHECK_OK(parse_facts(json, &again), e);
	gt_json_free(&j);
	CHECK_OK(gt_table_json_compare(&f, &again, "a", "b", &e), e);
	CHECK_OK(read_as("d,x\n01.02.2023,1\n", &s, &again, false, &u), e);
	CHECK_OK(gt_table_transform(&u, &again, &(struct gt_table_fields){.values = v}, &e), e);
	gt_table_free(&u);
	CHECK(read_as("d,x\n2023-02-01,1\n", &s, &again, false, &u) == GT_EDATA &&
	      strstr(e.msg, "u.csv:2: column \"d\": expected a date such as 18.05.2023 or 18/05/2023, got \"2023-02-01\""));
	gt_table_facts_free(&again);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	/* a given type is read as texts, which lie side by side in memory */
	s.column = (const struct gt_column_spec[]){{"d", GT_COLUMN_DATE}};
	s.ncolumns = 1;
	CHECK_OK(learn_text("d,x,y\n2023-01-31,0.5,a\n2023-02-01,1.5,b\n2023-02-02 11:00,2.5,a\n", &s, &t, &f), e);
	CHECK(t.column[0].store == GT_STORE_TEXT && f.column[0].order == GT_DATE_YMD && f.nvalues == 10);
	CHECK_OK(gt_table_transform(&t, &f, &(struct gt_table_fields){.values = v}, &e), e);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	s = plain;
	/* one row decides on the order; without it, none does */
	CHECK_OK(learn_text("d,x,y\n1/2/2023,1,a\n1/13/2023,2,b\n3/4/2023,7,b\n", &s, &t, &f), e);
	CHECK(f.column[0].type == GT_COLUMN_DATE && f.column[0].order == GT_DATE_MDY && t.column[0].orders == 1u << GT_DATE_MDY);
	gt_table_facts_free(&f);
	gt_table_free(&t);
	CHECK_OK(learn_text("d,x,y\n1/2/2023,1,a\n1/12/2023,2,b\n3/4/2023,7,b\n", &s, &t, &f), e);
	CHECK(f.column[0].type == GT_COLUMN_IGNORE && strstr(f.column[0].why, "cannot be told apart"));
	gt_table_facts_free(&f);
	gt_table_free(&t);
	s.column = (const struct gt_column_spec[]){{"d", GT_COLUMN_DATE, GT_DATE_DMY}};
	s.ncolumns = 1;
	CHECK_OK(learn_text("d,x,y\n1/2/2023,1,a\n1/12/2023,2,b\n3/4/2023,7,b\n", &s, &t, &f), e);
	CHECK(f.column[0].type == GT_COLUMN_DATE && f.column[0].order == GT_DATE_DMY && f.column[0].given);
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

TEST(bad_facts)
{
	static const char *const texts[][2] = {
	    {"{\"table\":3}", "\"task\""},
	    {"{\"table\":{\"task\":\"classes\"}}", "list \"columns\""},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[]}}", "1 to 65536 columns, got 0"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"x\",\"type\":\"auto\"}]}}",
	     "column 1 of the table: expected a member \"type\""},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"x\",\"type\":\"continuous\",\"mean\":1e999,\"std\":1,"
	     "\"median\":1}]}}", "\"mean\""},
	    {"{\"table\":{\"task\":\"numbers\",\"columns\":[{\"name\":\"x\",\"type\":\"target\",\"mean\":1,\"std\":-1,\"median\":1}]}}",
	     "standard"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"x\",\"type\":\"categorical\",\"words\":[\"a\",\"a\"]}]}}",
	     "all different"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"x\",\"type\":\"categorical\",\"words\":[1]}]}}", "strings"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"x\",\"type\":\"date\",\"order\":\"auto\",\"parts\":[]}]}}",
	     "27 numbers"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"x\",\"type\":\"date\",\"order\":\"ymd\",\"parts\":[1,2,3]}]}}",
	     "27 numbers"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"x\",\"type\":\"categorical\",\"whole\":true,\"words\":[\"1.0\"]}]}}",
	     "whole"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"x\",\"type\":\"categorical\",\"words\":[\"a\"]}]}}", "target column"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"x\",\"type\":\"categorical\",\"words\":[\"a\"]},"
	     "{\"name\":\"x\",\"type\":\"target\",\"words\":[\"a\",\"b\"]}]}}", "no other column"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"y\",\"type\":\"target\",\"words\":[\"a\"]}]}}", "at least two classes"},
	    {"{\"table\":{\"task\":\"classes\",\"columns\":[{\"name\":\"y\",\"type\":\"target\",\"words\":[\"a\",\"b\"]}]}}", "learn from"},
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct gt_table_facts f;
		enum gt_code code = parse_facts(texts[i][0], &f);
		CHECK_MSG(code == GT_EDATA && strstr(e.msg, texts[i][1]), "%s: %d %s", texts[i][0], code, code ? e.msg : "");
		CHECK(!f.column);
		gt_table_facts_free(&f);
	}
}

TEST(columns_as_a_config)
{
	struct gt_data_table t;
	struct gt_table_facts f;
	char *text;
	CHECK_OK(learn_text("x,\"k \"\"\\\",id,y\n0.5,a,q,no\n1.5,b,q,yes\n?,b,q,no\n", &plain, &t, &f), e);
	CHECK_OK(gt_table_columns_text(&f, "\t", &text, &e), e);
	CHECK_MSG(!strcmp(text, "\tcolumns = (\n"
	                        "\t\t{ name = \"x\"; type = \"continuous\"; }, // numbers; mean 1, standard deviation 0.408248, 1 missing\n"
	                        "\t\t{ name = \"k \\\"\\\\\"; type = \"categorical\"; }, // words; 2 different values\n"
	                        "\t\t{ name = \"id\"; type = \"ignore\"; }, // a single value\n"
	                        "\t\t{ name = \"y\"; type = \"target\"; } // 2 classes\n"
	                        "\t);\n"), "%s", text);
	free(text);
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

RUN_TESTS()
