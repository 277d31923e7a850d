#!/bin/bash
# make install and uninstall, in folders whose names have a space; a clone in such a folder; scripts/deps.sh where packages cannot be
# installed.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
build=${GTRAIN_BUILD:-$src/build}
mk() { make --no-print-directory -C "$src" BUILD="$build" "$@" >"$tmp/out" 2>&1; }

dest="$tmp/a folder"
mkdir "$dest"
if ! mk install DESTDIR="$dest" prefix='/opt/my tools'; then
	fail install_with_spaces "$(tail -n 3 "$tmp/out")"
else
	root="$dest/opt/my tools" why=
	for f in bin/gtrain lib/gtrain/{cpu,null,export,help,init,show,view}.so $(cd "$src/man" &&
		for p in *.[157]; do echo "share/man/man${p##*.}/$p"; done) \
		share/gtrain/configs/fmnist_mlp.cfg share/bash-completion/completions/gtrain share/zsh/site-functions/_gtrain \
		share/fish/vendor_completions.d/gtrain.fish share/vim/vimfiles/syntax/gtrain.vim \
		share/vim/vimfiles/ftdetect/gtrain.vim share/gtrain/vscode/gtrain.tmLanguage.json share/gtrain/config.schema.json; do
		[ -f "$root/$f" ] || why="$why $f"
	done
	[ "$(find "$tmp" -maxdepth 1 -mindepth 1 -name 'a*' | wc -l)" = 1 ] || why="$why something beside the folder"
	if [ -z "$why" ]; then pass install_with_spaces; else fail install_with_spaces "missing:$why"; fi
	tiny_config
	if (cd "$tmp" && "$root/bin/gtrain" run tiny.cfg --device cpu -q --no-progress >"$tmp/out" 2>&1); then pass installed_program_trains
	else fail installed_program_trains "$(tail -n 2 "$tmp/out")"; fi
	if command -v man >/dev/null && ! man -M "$root/share/man" -w gtrain gtrain.cfg gtrain-parallel >"$tmp/out" \
		2>&1; then fail manual_is_found "$(cat "$tmp/out")"
	else pass manual_is_found; fi
	mk uninstall DESTDIR="$dest" prefix='/opt/my tools' || fail uninstall_runs "$(tail -n 2 "$tmp/out")"
	left=$(find "$dest" -type f)
	if [ -z "$left" ]; then pass uninstall_leaves_nothing; else fail uninstall_leaves_nothing "$left"; fi
fi

# A clone in a folder with a space: what make would run has no name of it in a rule, so that the program is built there. One room is enough
# to see it.
clone="$tmp/my clone"
mkdir "$clone"
(cd "$src" && tar cf - Makefile engine kernels datasets cli scripts tests/run tests/cudasim/cudasim.mk man configs) |
	tar xf - -C "$clone"
if (cd "$clone" && env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory GLOO= CUDA= CFLAGS=-O0 build/lib/gtrain/null.so install \
	-n >"$tmp/plan" 2>&1 &&
	env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory GLOO= CUDA= CFLAGS=-O0 build/lib/gtrain/null.so >"$tmp/out" 2>&1) &&
	[ -s "$clone/build/lib/gtrain/null.so" ]; then
	pass clone_with_a_space_builds
else
	fail clone_with_a_space_builds "$(tail -n 2 "$tmp/out" "$tmp/plan")"
fi

env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -C "$src" BUILD="$tmp/my build" all >"$tmp/out" 2>&1
rc=$?
if [ $rc != 0 ] && [ "$(wc -l <"$tmp/out")" = 1 ] && grep -q 'BUILD=.*without a space' "$tmp/out"; then pass build_with_a_space_is_refused
else fail build_with_a_space_is_refused "status $rc: $(head -n 2 "$tmp/out")"; fi

# ---- deps.sh: programs that it asks are replaced by ones that answer as a bare machine would ---------------------------------------------
mkdir "$tmp/bin"
for p in sh cat grep mktemp rm tail; do ln -s "$(command -v $p)" "$tmp/bin/$p"; done
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "install ok installed" | { case $4 in libdnnl-dev|dataset-fashion-mnist) exit 1;; *) cat;; esac; }\n' \
	>"$tmp/bin/dpkg-query"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$0 $*" >>"%s/calls"\n' "$tmp" >"$tmp/bin/apt-get"
printf '#!/bin/sh\necho 1000\n' >"$tmp/bin/id"
chmod +x "$tmp/bin"/{dpkg-query,apt-get,id}
env -i PATH="$tmp/bin" "$tmp/bin/sh" "$src/scripts/deps.sh" run >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ $rc = 77 ] && [ "$(wc -l <"$tmp/err")" = 1 ] && [ ! -e "$tmp/calls" ] &&
	grep -q 'run as root: .*apt-get install -y --no-install-recommends libdnnl-dev dataset-fashion-mnist$' \
	"$tmp/err"; then pass deps_without_root
else fail deps_without_root "status $rc: $(cat "$tmp/err")"; fi

printf '#!/bin/sh\necho 0\n' >"$tmp/bin/id"
env -i PATH="$tmp/bin" "$tmp/bin/sh" "$src/scripts/deps.sh" run >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ $rc = 0 ] && grep -q 'apt-get install -y --no-install-recommends libdnnl-dev dataset-fashion-mnist$' \
	"$tmp/calls"; then pass deps_as_root
else fail deps_as_root "status $rc: $(cat "$tmp/err" "$tmp/calls" 2>/dev/null)"; fi

rm "$tmp/bin/apt-get"
env -i PATH="$tmp/bin" "$tmp/bin/sh" "$src/scripts/deps.sh" run >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ $rc = 69 ] && grep -q 'equivalents of: libdnnl-dev dataset-fashion-mnist$' "$tmp/err"; then pass deps_elsewhere
else fail deps_elsewhere "status $rc: $(cat "$tmp/err")"; fi
