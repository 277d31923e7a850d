/* Reads PTX files. The files are searched for the names of kernels once; a kernel is read when it is launched first. */
#include "ptx_thread.hh"
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <map>
#include <memory>

using std::map;
using std::string;
using std::vector;

/* A file, and where the kernels and functions in it begin. */
struct file {
	string path, text;
	map<string, size_t> entry, function;
	map<string, size_t> shared; /* bytes of shared variables outside of kernels */
};

static vector<std::unique_ptr<file>> files;
static map<string, std::unique_ptr<ptx_kernel>> kernels;

/* ---- words ----------------------------------------------------------------------------------------------------------------------- */
static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static string trimmed(const string &s)
{
	size_t a = s.find_first_not_of(" \t\n\r"), b = s.find_last_not_of(" \t\n\r");
	return a == string::npos ? "" : s.substr(a, b - a + 1);
}

/* Splits at the commas that are outside of brackets. */
static vector<string> split(const string &s)
{
	vector<string> out;
	int depth = 0;
	string word;
	for (char c : s) {
		depth += (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
		if (c == ',' && !depth) {
			out.push_back(trimmed(word));
			word.clear();
		} else {
			word += c;
		}
	}
	if (!trimmed(word).empty())
		out.push_back(trimmed(word));
	return out;
}

static vector<string> split_dots(const string &s)
{
	vector<string> out(1);
	for (char c : s)
		if (c == '.')
			out.emplace_back();
		else
			out.back() += c;
	return out;
}

/* ---- one kernel or function ------------------------------------------------------------------------------------------------------ */
struct reader {
	const file &f;
	ptx_kernel *k;
	size_t at;                              /* in the text */
	map<string, int> cell;                  /* registers, by name */
	map<string, std::pair<int, int>> range; /* "%r": first cell, and number of registers %r0, %r1, … */
	map<string, size_t> label, shared, local;
	map<string, int> named;                  /* cells of constants, special registers and symbols, by their words */
	vector<std::pair<size_t, string>> jumps; /* branches whose label is not known yet */
	int line = 1;
	vector<string> constants; /* [i]: the constant in cell nregs + i */

	[[noreturn]] void die(const string &what) const
	{
		ptx_die(k, line, "%s", what.c_str());
	}

	/* Moves to the next statement, and counts lines. */
	void skip_blanks()
	{
		for (;; at++) {
			if (f.text.compare(at, 2, "//") == 0)
				at = f.text.find('\n', at);
			if (at >= f.text.size())
				die("the file ends inside a kernel");
			line += f.text[at] == '\n';
			if (!isspace((unsigned char)f.text[at]))
				return;
		}
	}

	/* Returns the text up to the next character of `ends`, without comments, and moves behind it. */
	string until(const char *ends)
	{
		string out;
		for (;; at++) {
			if (f.text.compare(at, 2, "//") == 0)
				at = f.text.find('\n', at);
			if (at >= f.text.size())
				die("the file ends inside a statement");
			if (strchr(ends, f.text[at]))
				break;
			line += f.text[at] == '\n';
			out += f.text[at] == '\n' ? ' ' : f.text[at];
		}
		at++;
		return trimmed(out);
	}

	/* ".param .align 8 .b8 name[328]", ".shared .align 4 .b8 name[32]", ".param .u32 name": returns the bytes. */
	size_t variable(const string &s, string *name, size_t *align) const
	{
		size_t size = 0, n = 1;
		*align = 0;
		const char *p = s.c_str();
		while (*p) {
			string word;
			while (isspace((unsigned char)*p))
				p++;
			while (name_char(*p))
				word += *p++;
			ptx_ins type;
			if (word == ".align")
				*align = strtoul(p, (char **)&p, 10);
			else if (word[0] == '.' && ptx_choose({"mov", word.substr(1)}, &type))
				size = ptx_size(type.type);
			else if (word[0] != '.' && !word.empty())
				*name = word;
			if (*p == '[') {
				n = strtoul(p + 1, (char **)&p, 10);
				p++;
			} else if (word.empty() && *p) {
				die("a declaration that is not understood: " + s);
			}
		}
		*align = *align ? *align : size;
		return size * n;
	}

	void add_param(const string &s)
	{
		ptx_param p;
		size_t align, end = k->params_size;
		p.size = variable(s, &p.name, &align);
		p.offset = (end + align - 1) / align * align;
		k->params_size = p.offset + p.size;
		k->params.push_back(p);
	}

	size_t place(size_t *end, size_t size, size_t align)
	{
		size_t at = (*end + align - 1) / align * align;
		*end = at + size;
		return at;
	}

	void declare(const string &s)
	{
		string name;
		size_t align;
		if (s.compare(0, 4, ".reg") == 0) {
			size_t type = s.find('.', 4), names = s.find_first_of(" \t", type);
			for (const string &n : split(s.substr(names))) {
				size_t less = n.find('<');
				int count = less == string::npos ? 1 : atoi(n.c_str() + less + 1);
				if (less == string::npos)
					cell[n] = (int)k->nregs;
				else
					range[n.substr(0, less)] = {(int)k->nregs, count};
				k->nregs += (size_t)count;
			}
		} else if (s.compare(0, 7, ".shared") == 0) {
			size_t size = variable(s.substr(7), &name, &align);
			shared[name] = place(&k->shared, size, align);
		} else if (s.compare(0, 6, ".local") == 0 || s.compare(0, 6, ".param") == 0) {
			size_t size = variable(s.substr(6), &name, &align);
			local[name] = place(&k->local, size, align);
		} else if (s.compare(0, 7, ".pragma") != 0) {
			die("a directive that is not simulated: " + s);
		}
	}

	/* ---- operands ---- */
	static bool number(const string &s, uint64_t *v)
	{
		char *end;
		if (s.compare(0, 2, "0f") == 0 || s.compare(0, 2, "0F") == 0 || s.compare(0, 2, "0d") == 0 || s.compare(0, 2, "0D") == 0)
			*v = strtoull(s.c_str() + 2, &end, 16);
		else if (s[0] == '-' || isdigit((unsigned char)s[0]))
			*v = s[0] == '-' ? (uint64_t)strtoll(s.c_str(), &end, 0) : strtoull(s.c_str(), &end, 0);
		else
			return false;
		return !*end || !strcmp(end, "U");
	}

	/* Returns the cell of a constant; constants follow the registers, whose number is not final yet: finish() adds it. */
	int constant(const string &word, uint64_t v)
	{
		auto found = named.find(word);
		if (found != named.end())
			return found->second;
		k->constants.push_back(v);
		return named[word] = -2 - (int)(k->constants.size() - 1);
	}

	int operand(const string &s)
	{
		static const char *const specials[PTX_SPECIALS] = {"%tid.x",    "%tid.y",    "%tid.z",   "%ntid.x",  "%ntid.y",
		                                                   "%ntid.z",   "%ctaid.x",  "%ctaid.y", "%ctaid.z", "%nctaid.x",
		                                                   "%nctaid.y", "%nctaid.z", "%laneid"};
		uint64_t v;
		if (s == "_")
			return -1;
		auto found = cell.find(s);
		if (found != cell.end())
			return found->second;
		size_t digits = s.find_last_not_of("0123456789") + 1;
		auto in = range.find(s.substr(0, digits));
		if (in != range.end() && digits < s.size()) {
			int n = atoi(s.c_str() + digits);
			if (n >= in->second.second)
				die("a register that is not declared: " + s);
			return in->second.first + n;
		}
		if (number(s, &v))
			return constant(s, v);
		for (int i = 0; i < PTX_SPECIALS; i++)
			if (s == specials[i]) {
				bool known = named.count(s);
				int c = constant(s, 0);
				if (!known)
					k->special.push_back({c, i});
				return c;
			}
		bool known = named.count(s);
		for (const ptx_param &p : k->params)
			if (s == p.name) {
				int c = constant(s, 0);
				if (!known)
					k->param_cells.push_back({c, p.offset});
				return c;
			}
		if (local.count(s)) {
			int c = constant(s, 0);
			if (!known)
				k->local_cells.push_back({c, local[s]});
			return c;
		}
		if (shared.count(s))
			return constant(s, shared[s]);
		auto outside = f.shared.find(s);
		if (outside != f.shared.end()) {
			size_t size = outside->second & 0xffffffff, align = outside->second >> 32;
			if (!size)
				die("dynamic shared memory, which is not simulated: " + s);
			shared[s] = place(&k->shared, size, align);
			return constant(s, shared[s]);
		}
		die("an operand that is not known: " + s);
	}

	/* "[%rd4+-96]": the cell of the address; *offset: what is added. */
	int address(const string &s, int64_t *offset)
	{
		string in = trimmed(s.substr(1, s.size() - 2));
		size_t plus = in.find('+');
		*offset = plus == string::npos ? 0 : strtoll(in.c_str() + plus + 1, NULL, 0);
		return operand(trimmed(in.substr(0, plus)));
	}

	/* Adds the operands of "{a, b}" or "a" to a list. */
	void values(const string &s, int *list, int *n)
	{
		if (s[0] != '{') {
			list[(*n)++] = operand(s);
			return;
		}
		for (const string &one : split(s.substr(1, s.size() - 2))) {
			if (*n == 4)
				die("more than 4 values: " + s);
			list[(*n)++] = operand(one);
		}
	}

	/* ---- instructions ---- */
	void call(const string &s);

	void instruction(string s)
	{
		ptx_ins i;
		i.line = line;
		if (s[0] == '@') {
			size_t blank = s.find_first_of(" \t");
			i.guard_not = s[1] == '!';
			i.guard = operand(s.substr(i.guard_not ? 2 : 1, blank - (i.guard_not ? 2 : 1)));
			s = trimmed(s.substr(blank));
		}
		size_t blank = s.find_first_of(" \t{(");
		string op = s.substr(0, blank), rest = blank == string::npos ? "" : trimmed(s.substr(blank));
		if (op == "call.uni" || op == "call")
			return call(rest);
		if (op == "ret" || op == "exit") {
			i.run = NULL;
			k->code.push_back(i);
			return;
		}
		vector<string> words = split_dots(op), list = split(rest);
		if (!ptx_choose(words, &i))
			die("an instruction that is not simulated: " + s);
		if (words[0] == "bra") {
			jumps.push_back({k->code.size(), list.at(0)});
		} else if (words[0] == "st") {
			if (list.size() != 2)
				die("a store of another form: " + s);
			i.src[i.nsrc++] = address(list[0], &i.offset);
			vector<string> each = list[1][0] == '{' ? split(list[1].substr(1, list[1].size() - 2)) : vector<string>{list[1]};
			for (const string &one : each)
				i.src[i.nsrc++] = operand(one);
		} else if (words[0] == "ld") {
			if (list.size() != 2)
				die("a load of another form: " + s);
			values(list[0], i.dst, &i.ndst);
			i.src[i.nsrc++] = address(list[1], &i.offset);
		} else if (words[0] == "atom" || words[0] == "red") {
			size_t n = 0;
			if (words[0] == "atom")
				i.dst[i.ndst++] = operand(list.at(n++));
			i.src[i.nsrc++] = address(list.at(n++), &i.offset);
			while (n < list.size())
				i.src[i.nsrc++] = operand(list[n++]);
		} else if (words[0] == "bar" || words[0] == "griddepcontrol" || words[0] == "membar") {
			for (const string &one : list)
				i.src[i.nsrc++] = operand(one);
		} else {
			if (list.size() < 2 || list.size() > 5)
				die("an instruction of another form: " + s);
			size_t bar = list[0].find('|');
			if (bar != string::npos) {
				i.pred = operand(list[0].substr(bar + 1));
				list[0] = list[0].substr(0, bar);
			}
			values(list[0], i.dst, &i.ndst);
			for (size_t n = 1; n < list.size(); n++)
				values(list[n], i.src, &i.nsrc);
			ptx_simplify(&i);
		}
		k->code.push_back(i);
	}

	/* Reads what stands between '{' and the '}' that belongs to it. */
	void body()
	{
		for (int depth = 1; depth;) {
			skip_blanks();
			char c = f.text[at];
			if (c == '{' || c == '}') {
				depth += c == '{' ? 1 : -1;
				at++;
				continue;
			}
			size_t end = at;
			while (end < f.text.size() && name_char(f.text[end]))
				end++;
			if (end > at && f.text[end] == ':') {
				label[f.text.substr(at, end - at)] = k->code.size();
				at = end + 1;
				continue;
			}
			int begins = line;
			string s = until(";");
			std::swap(line, begins);
			if (s[0] == '.')
				declare(s);
			else
				instruction(s);
			line = begins;
		}
		finish();
	}

	/* Constants get the cells after the registers, and branches their instructions. */
	void finish()
	{
		auto fix = [&](int &c) { c = c <= -2 ? (int)k->nregs + (-2 - c) : c; };
		for (ptx_ins &i : k->code) {
			fix(i.guard);
			fix(i.pred);
			for (int n = 0; n < 4; n++) {
				fix(i.dst[n]);
			}
			for (int &c : i.src)
				fix(c);
		}
		for (auto &s : k->special)
			fix(s.first);
		for (auto &p : k->param_cells)
			fix(p.first);
		for (auto &p : k->local_cells)
			fix(p.first);
		for (const auto &j : jumps) {
			if (!label.count(j.second))
				die("a label that is not there: " + j.second);
			k->code[j.first].offset = (int64_t)label[j.second];
		}
		if (k->shared > 48 << 10)
			die("more than 48 KiB of shared variables");
	}
};

static ptx_kernel *read_code(const file &f, const string &name, size_t at);

/* "(retval0), name, (param0, …)" */
void reader::call(const string &s)
{
	vector<string> list = split(s);
	ptx_ins i;
	bool result = list.size() == 3;
	i.line = line;
	i.run = ptx_call;
	if (list.size() < 2 || !f.function.count(list[result]))
		die("a call of another form: " + s);
	i.callee = read_code(f, list[result], f.function.at(list[result]));
	for (size_t n = result ? 0 : 1; n < list.size(); n += result ? 2 : 1)
		for (const string &one : split(list[n].substr(1, list[n].size() - 2)))
			i.src[i.nsrc++] = operand(one);
	i.ndst = result;
	if (i.nsrc != (int)i.callee->params.size() || i.callee->params_size > 64)
		die("a call with other arguments than the function's: " + s);
	k->code.push_back(i);
}

/* Reads a kernel, or a function, whose results come before its arguments in `params`. at: behind the word .entry or .func. */
static ptx_kernel *read_code(const file &f, const string &name, size_t at)
{
	std::unique_ptr<ptx_kernel> &k = kernels[name];
	if (k)
		return k.get();
	k = std::make_unique<ptx_kernel>();
	k->name = name;
	k->file = f.path.substr(f.path.rfind('/') + 1);
	reader r = {f, k.get(), at};
	r.line = 1 + (int)std::count(f.text.begin(), f.text.begin() + (long)at, '\n');
	for (r.skip_blanks(); f.text[r.at] != '{'; r.skip_blanks()) {
		if (f.text[r.at] == '(') {
			r.at++;
			for (const string &p : split(r.until(")")))
				r.add_param(p);
			continue;
		}
		size_t end = r.at;
		while (name_char(f.text[end]))
			end++;
		if (end == r.at)
			r.die("a head that is not understood");
		bool directive = f.text[r.at] == '.', threads = f.text.compare(r.at, end - r.at, ".maxntid") == 0;
		r.at = end;
		if (threads)
			k->max_threads = (unsigned)strtoul(f.text.c_str() + r.at, NULL, 10);
		while (directive && strchr(" \t0123456789,", f.text[r.at]))
			r.at++;
	}
	r.at++;
	r.body();
	return k.get();
}

/* ---- files ----------------------------------------------------------------------------------------------------------------------- */
/* Finds kernels, functions with a body, and shared variables outside of both. */
static void find_names(file *f)
{
	ptx_kernel none = {};
	none.file = f->path;
	reader r = {*f, &none, 0};
	const string &s = f->text;
	for (size_t at = 0; at < s.size(); at = s.find('\n', at) == string::npos ? s.size() : s.find('\n', at) + 1) {
		size_t end = s.find('\n', at), word;
		string line = s.substr(at, end - at);
		if ((word = line.find(".entry ")) != string::npos) {
			size_t name = at + word + 7, stop = name;
			while (name_char(s[stop]))
				stop++;
			f->entry[s.substr(name, stop - name)] = stop;
		} else if (line.compare(0, 5, ".func") == 0) {
			size_t open = line.find(')'), name = at + (open == string::npos ? 5 : open + 1);
			while (isspace((unsigned char)s[name]))
				name++;
			size_t stop = name;
			while (name_char(s[stop]))
				stop++;
			size_t body = s.find_first_of("{;", stop);
			if (body != string::npos && s[body] == '{')
				f->function[s.substr(name, stop - name)] = at + 5;
		} else if (line.compare(0, 8, ".shared ") == 0 || line.compare(0, 16, ".extern .shared ") == 0) {
			string name;
			size_t align, size = r.variable(line.substr(line.find("shared") + 6, line.find(';') - line.find("shared") - 6), &name, &align);
			f->shared[name] = align << 32 | size;
		}
	}
}

static void open_folder(const char *folder)
{
	DIR *d = opendir(folder);
	if (!d) {
		fprintf(stderr, "ptx: CUDASIM_PTX: cannot open %s\n", folder);
		abort();
	}
	for (struct dirent *e; (e = readdir(d));) {
		string name = e->d_name;
		if (name.size() < 4 || name.substr(name.size() - 4) != ".ptx")
			continue;
		auto f = std::make_unique<file>();
		f->path = string(folder) + "/" + name;
		FILE *in = fopen(f->path.c_str(), "r");
		char buf[1 << 16];
		for (size_t n; in && (n = fread(buf, 1, sizeof buf, in)) > 0;)
			f->text.append(buf, n);
		if (in)
			fclose(in);
		find_names(f.get());
		for (const auto &other : files)
			for (const auto &e : f->entry)
				if (other->entry.count(e.first)) {
					fprintf(stderr, "ptx: %s is in %s and in %s\n", e.first.c_str(), other->path.c_str(), f->path.c_str());
					abort();
				}
		files.push_back(std::move(f));
	}
	closedir(d);
}

const ptx_kernel *ptx_find(const char *symbol)
{
	static const char *const folder = getenv("CUDASIM_PTX");
	if (!folder)
		return NULL;
	if (files.empty())
		open_folder(folder);
	auto known = kernels.find(symbol);
	if (known != kernels.end())
		return known->second.get();
	for (const auto &f : files) {
		auto e = f->entry.find(symbol);
		if (e != f->entry.end())
			return read_code(*f, symbol, e->second);
	}
	fprintf(stderr, "ptx: %s is in no file of %s\n", symbol, folder);
	abort();
}
