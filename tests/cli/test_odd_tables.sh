#!/bin/bash
# Tables as people have them. Of each, `gtrain init` writes a config with which `check` and `run --smoke` end with status 0, or it says in
# one sentence what is wrong.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh disable=SC2016
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1
runs=0 refused=0

# rows N FORMAT: N lines of awk's printf FORMAT; its arguments are the row, a number in 0 ... 1, another one, a word, and a class that
# follows from the first number
rows() {
	awk -v n="$1" -v f="$2" 'BEGIN { split("red green blue", w, " "); seed = 7
		for (i = 1; i <= n; i++) {
			seed = seed * 16807 % 2147483647; a = seed / 2147483647
			seed = seed * 16807 % 2147483647; b = seed / 2147483647
			printf f "\n", i, a, b, w[int(b * 3) + 1], (a > 0.5 ? "yes" : "no")
		} }'
}
# the usual table: id, a, b, word, class
usual='%d,%.4f,%.3f,%s,%s' head='nr,a,b,word,class'
table() { # NAME HEAD N FORMAT
	{
		if [ -n "$2" ]; then printf '%s\n' "$2"; fi
		rows "$3" "$4"
	} >"$1.csv"
}
# good NAME TARGET [TEXT]: init writes a config of NAME.csv that runs; the config or the warnings contain TEXT
good() {
	local name=$1 text=${3-}
	rm -f odd.cfg
	if ! "$gtrain" init "$name.csv" --target "$2" -o odd.cfg >out 2>err || ! cp err err.init; then
		fail "$name" "init: $(tail -n 1 err)"
	elif [ -n "$text" ] && ! grep -qF -- "$text" odd.cfg err; then
		fail "$name" "no '$text' in the config or the warnings: $(cat err odd.cfg | head -n 40)"
	elif ! "$gtrain" check odd.cfg >out 2>err; then
		fail "$name" "check: $(tail -n 1 err)"
	elif ! "$gtrain" run odd.cfg --smoke >out 2>err; then
		fail "$name" "run: $(tail -n 1 err)"
	else
		runs=$((runs + 1))
		pass "$name"
	fi
}
# says NAME TARGET STATUS TEXT: init ends with STATUS and one line that has TEXT, besides warnings and a hint at -h, and writes nothing
says() {
	local name=$1 rc
	rm -f odd.cfg
	"$gtrain" init "$name.csv" --target "$2" -o odd.cfg >out 2>err
	rc=$?
	if [ $rc != "$3" ] || [ -e odd.cfg ]; then
		fail "$name" "status $rc, not $3: $(tail -n 1 err)"
	elif ! grep -v 'warning:\|^try ' err >line || ! grep -qF -- "$4" line || [ "$(wc -l <line)" != 1 ]; then
		fail "$name" "not one line with '$4': $(tail -n 2 err)"
	else
		refused=$((refused + 1))
		pass "$name"
	fi
}

# ---- files ------------------------------------------------------------------------------------------------------------------------
: >empty.csv
says empty class 65 'empty.csv'
printf '\n\n\r\n' >lines.csv
says lines class 65 'expected records, got none'
echo "$head" >header.csv
says header class 65 'expected rows after the header, got none'
table one "$head" 1 "$usual"
says one class 65 'expected at least 10 rows, got 1'
table nine "$head" 9 "$usual"
says nine class 65 'expected at least 10 rows, got 9'
table plain "$head" 60 "$usual"
good plain class 'row numbers'
good plain a
table bare '' 60 "$usual"
good bare c5 'header = "no"'
{ printf '\357\273\277' && cat plain.csv; } >bom.csv
good bom class 'name = "nr"'
sed 's/$/\r/' plain.csv >crlf.csv
good crlf class
sed '7s/$/\r/; 9s/$/\r/' plain.csv >mixed_ends.csv
good mixed_ends class
tr '\n' '\r' <plain.csv >old_mac.csv
says old_mac class 65 'old_mac.csv'
tr ',' ';' <plain.csv >semicolons.csv
good semicolons class
tr ',' '\t' <plain.csv >tabs.csv
good tabs class
tr ',' '|' <plain.csv >bars.csv
good bars class
sed 's/,/, /g' plain.csv >spaces.csv
good spaces class 'name = "word"'
sed 's/[^,]*/"&"/g' plain.csv >quotes.csv
good quotes class
gzip -c plain.csv >packed.csv
good packed class
awk 'NR == 20 { print ""; print "" } 1' plain.csv >gaps.csv
good gaps class
head -c -7 plain.csv >cut.csv
says cut class 65 'cut.csv:61: '
printf 'a\0b,x\n1,2\n' >nul.csv
says nul x 65 'nul.csv:1: expected text, got a NUL byte'
head -c 3000 /dev/zero | tr '\0' 'x' >letters.csv
says letters x 78 'letters.csv'
printf '\211PNG\r\n\032\n' >picture.csv
says picture x 78 'picture.csv'
sed '30s/,/,,/' plain.csv >ragged.csv
says ragged class 65 'ragged.csv:30: expected 5 fields, as in line 1, got 6'
sed 's/$/,/' plain.csv >trailing.csv
good trailing class 'no value'
sed '30s/green\|red\|blue/"open/' plain.csv >open_quote.csv
says open_quote class 65 'open_quote.csv:30: a quoted field that begins here has no closing quote'
sed '30s/green\|red\|blue/12" tyre/' plain.csv >inch.csv
says inch class 65 'inch.csv:30: expected quotes only around a whole field'

# ---- names and characters ---------------------------------------------------------------------------------------------------------
sed '1s/.*/№,größe,β,слово,κλάση/' plain.csv >unicode.csv
good unicode κλάση 'name = "größe"'
sed '1s/a,b/a,a/' plain.csv >twice.csv
says twice class 78 'because the first line has a number, a date, a long text or a text twice, so it is not a header'
sed '1s/a,b/a,/' plain.csv >unnamed.csv
good unnamed class 'name = "c3"'
sed '1s/a,b/a "quoted\\" name,$(b)/; 1s/,a "/,"a ""/; 1s/quoted\\" name/quoted\\"" name"/' plain.csv >hard_names.csv
good hard_names class 'quoted\\\" name'
sed "1s/a,b/$(head -c 300 /dev/zero | tr '\0' n),b/" plain.csv >long_name.csv
says long_name class 78 'a long text'
sed 's/green/gr\xfcn/' plain.csv >latin1.csv
good latin1 class 'encoding = "windows-1252"'
sed '1s/class/gr\xf6\xdfe/' plain.csv >latin1_name.csv
good latin1_name größe 'encoding = "windows-1252"'
{ printf '\377\376' && sed 's/./&\x00/g; s/$/\r\x00/' plain.csv | LC_ALL=C sed 's/$//' | awk 'BEGIN { ORS = "\n" } 1'; } >utf16_broken.csv
says utf16_broken class 65 'utf16_broken.csv'
if command -v iconv >/dev/null && iconv -f UTF-8 -t UTF-16 plain.csv >utf16.csv 2>err; then
	good utf16 class 'name = "word"'
else
	skip utf16 'iconv cannot write UTF-16'
fi
sed 's/red/r\x80d/; s/green/gr\xc3\xbcn/' plain.csv >both.csv
says both class 65 'column "word": expected UTF-8; write data.encoding'
sed '1s/$/,\x1b[31m/; 2,$s/$/,1/' plain.csv >escape.csv
says escape class 65 'expected column names without control characters'

# ---- numbers ----------------------------------------------------------------------------------------------------------------------
table german 'nr;a;b;word;class' 60 '%d;%.4f;%.3f;%s;%s'
sed 's/\([0-9]\)\.\([0-9]\)/\1,\2/g' german.csv >commas.csv
good commas class 'decimal = ","'
good commas a 'decimal = ","'
awk -F';' 'BEGIN { OFS = ";" } NR > 1 { $3 = "1." sprintf("%03d", NR * 7) ",50" } 1' commas.csv >thousands.csv
good thousands class 'thousands = "."'
awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = "\"1," sprintf("%03d", NR * 7) ".50\"" } 1' plain.csv >english.csv
good english class 'thousands = ","'
awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = "\"1," sprintf("%03d", NR * 7) "\"" } 1' plain.csv >either.csv
good either class 'thousands = ","'
table huge "$head" 60 '%d,%.4fe300,%.3f,%s,%s'
says huge class 65 'huge.csv:2: column "a": expected a number of a magnitude of at most 3.4e38'
table large "$head" 60 '%d,%.4fe37,%.3fe-30,%s,%s'
good large class
table integers "$head" 60 '9007199254740993%d,%.17g,%.3f,%s,%s'
good integers class
table one_odd "$head" 130 "$usual"
sed -i '40s/^\([0-9]*\),[^,]*/\1,#REF!/' one_odd.csv
good one_odd class 'column "a": expected a number, got "#REF!"; the cell counts as missing'
good one_odd a '1 row has no target and is left out'
# a word in place of many numbers counts as missing, unless it is a class of the target
awk -F, 'BEGIN { OFS = "," } NR > 1 && NR % 4 == 0 { $2 = "unknown" } 1' plain.csv >unknown.csv
good unknown class 'na = ["", "?", "NA", "nan", "NaN", "null", "unknown"];'
if grep -q 'column "a": 45 of 60 values are numbers, and 15 are "unknown", which counts as missing (na)' err.init &&
	grep -q '"a"; type = "continuous"' odd.cfg; then pass unknown_warning; else fail unknown_warning "$(cat err.init)"; fi
awk -F, 'BEGIN { OFS = "," } NR > 1 && NR % 3 == 0 { $5 = "unknown" } 1' unknown.csv >unknown_class.csv
good unknown_class class '"a"; type = "categorical"'
if grep -q 'na = ' odd.cfg; then fail unknown_class_na "$(grep 'na = ' odd.cfg)"; else pass unknown_class_na; fi
# nor if another column has the word as a value, whose cells would be missing, too
awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = NR % 2 ? "unknown" : "none" } 1' unknown.csv >unknown_value.csv
good unknown_value class '"b"; type = "categorical"; }, // words; 2 different values'
if grep -q 'na = ' odd.cfg; then fail unknown_value_na "$(grep 'na = ' odd.cfg)"; else pass unknown_value_na; fi
sed '50s/^\([0-9]*\),[^,]*/\1,-inf/; 40s/#REF!/0.5/' one_odd.csv >infinite.csv
good infinite class 'expected a finite number, got "-inf"'
sed 's/^\([0-9]*[05]\),[^,]*/\1,inf/' one_odd.csv >many_infinite.csv
says many_infinite class 65 'expected a finite number, as in'
sed '1!s/,0\.[0-9]*,/,$&/; s/,\$,/,$/' plain.csv >dollars.csv
good dollars class

# ---- columns ----------------------------------------------------------------------------------------------------------------------
sed 's/^\([^,]*,[^,]*\),[^,]*/\1,/; 1s/.*/nr,a,b,word,class/' plain.csv >no_values.csv
good no_values class 'no value'
sed '2,$s/^\([^,]*,[^,]*\),[^,]*/\1,5/' plain.csv >constant.csv
good constant class 'a single value'
cut -d, -f1,5 plain.csv >only_numbers.csv
good only_numbers class 'row numbers or a key, but the table has no other input'
cut -d, -f5 plain.csv >alone.csv
says alone class 65 'expected at least one column that the model can learn from, got none'
awk -F, 'BEGIN { OFS = "," } { print (NR > 1 ? "n" NR : "name"), $5 }' plain.csv >identifiers.csv
says identifiers class 65 '("name" is ignored: words that are all different)'
awk -F, 'BEGIN { OFS = "," } { print (NR > 1 ? sprintf("%05d", NR) : "zip"), $0 }' plain.csv >codes.csv
good codes class
awk -F, 'BEGIN { OFS = "," } { print $0, (NR > 1 ? "18." sprintf("%02d", NR % 12 + 1) ".2023" : "day") }' plain.csv >dates.csv
good dates class 'type = "date"; order = "dmy"'
sed 's/18\.\([0-9]*\)\.2023/2023-\1-18/' dates.csv >iso_dates.csv
good iso_dates class 'type = "date"; }'
gives made_up_dates 0 out 'smoke test passed' run odd.cfg --smoke -s 'data.train=["nowhere.csv"]'
sed 's/18\./18-/; s/\.2023/-2023/' dates.csv >dashes.csv
good dashes class 'type = "date"; order = "dmy"'
sed 's/18\.\([0-9]*\)\.2023/04\/\1\/2023/' dates.csv >either_date.csv
good either_date class 'the column "day" is ignored: dates whose day and month cannot be told apart'
sed '30s/18\.[0-9]*\.2023/soon/; 40s/18\.[0-9]*\.2023//' dates.csv >odd_date.csv
good odd_date class 'expected a date such as 18.05.2023 or 18/05/2023, got "soon"; the cell counts as missing'
tail -n +2 dates.csv | cut -d, -f4- >bare_dates.csv
good bare_dates c2 'header = "no"'
awk -F, 'BEGIN { OFS = "," } { for (i = 1; i < 300; i++) printf "%s,", (NR > 1 ? (NR * i) % 97 / 7 : "w" i); print $5 }' plain.csv >wide.csv
good wide class
awk -F, 'BEGIN { OFS = "," }
	{ print $0, (NR > 1 ? "\"some words of a text, which is long enough number " NR "\"" : "text") }' plain.csv >prose.csv
good prose class 'type = "text"'
good prose a 'type = "text"'

# ---- targets ----------------------------------------------------------------------------------------------------------------------
says plain absent 78 '--target: expected a column of'
says plain CLASS 78 'did you mean "class"?'
sed '2,$s/,[a-z]*$/,yes/' plain.csv >one_class.csv
says one_class class 65 'column "class": the target is the same in every row'
sed '2,$s/,[a-z]*$/,7.5/' plain.csv >one_number.csv
says one_number class 65 'column "class": the target is the same in every row'
awk -F, 'BEGIN { OFS = "," } NR > 1 { $5 = "u" NR } 1' plain.csv >unique.csv
says unique class 64 'a different word in each of 60 rows'
awk -F, 'BEGIN { OFS = "," } NR > 1 && NR < 60 { $5 = "u" NR } 1' plain.csv >nearly_unique.csv
good nearly_unique class
awk -F, 'BEGIN { OFS = "," } NR > 1 { $5 = "k" int(NR / 3) } 1' plain.csv >many_classes.csv
good many_classes class
awk -F, 'BEGIN { OFS = "," } NR > 1 { $5 = "" } 1' plain.csv >no_target.csv
says no_target class 65 'the target is missing'
awk -F, 'BEGIN { OFS = "," } NR > 1 && NR % 4 { $5 = "" } 1' plain.csv >few_targets.csv
good few_targets class 'rows have no target and are left out'
awk -F, 'BEGIN { OFS = "," } NR > 1 && NR % 8 { $5 = "" } 1' plain.csv >fewer_targets.csv
says fewer_targets class 65 'expected at least 10 rows, got 7'
good plain nr
awk -F, 'BEGIN { OFS = "," } NR > 1 { $5 = NR % 2 } 1' plain.csv >zero_one.csv
good zero_one class 'cross_entropy'
awk -F, 'BEGIN { OFS = "," } NR > 1 { $5 = NR % 2 ? "true" : "false" } 1' plain.csv >truth.csv
good truth class
awk -F, 'BEGIN { OFS = "," } NR > 1 { $5 = NR % 15 } 1' plain.csv >marks.csv
good marks class 'loss = "mse"'
echo "# $((runs + refused)) odd tables: $runs run, $refused are refused by init"
