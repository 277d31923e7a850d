#!/bin/bash
# folder.sh BUILD DEST: a folder that runs on another x86-64 Linux machine, below 51 MiB (make gpu-folder; a GPU's machine may take 64 MiB
# with the tracked files, which are 13): program and backends, test programs, the shared libraries that they need, goldens, configs, the
# scripts of check-gpu and bench-gpu, FashionMNIST where it is here (GPU_FOLDER_DATA= leaves it out). That machine needs a shell,
# coreutils, awk, sed, grep, and python3 or tar and xz; most checks need python3; no package.
# Layout: as a build tree and the source tree in one (bin, lib/gtrain, tests, configs), with wrap.sh in the places of programs:
#   libexec/   the programs and a loader   lib/dep/   shared libraries   lib/libc/   the C library, for machines whose own is older
#   GLIBC      the C library's version that all of it needs             COMMIT      what it was built from
# libexec, lib and tests/golden are in packed.tar.xz: wrap.sh unpacks it at the first start.
set -eu
build=$(cd "$1" && pwd) dest=$2
src=$(cd "$(dirname "$0")/../.." && pwd)
limit=$((51 << 20))
say() { echo "gpu-folder: $*" >&2; }
if [ ! -e "$build/lib/gtrain/cuda.so" ]; then
	say "$build was built without CUDA"
	exit 69
fi
if [ -e "$dest" ] && [ ! -e "$dest/packed.tar.xz" ]; then
	say "$dest is there, and no such folder: not touched"
	exit 73
fi
rm -rf "$dest"
mkdir -p "$dest"/{bin,configs,data,packed/libexec,packed/lib/{gtrain,dep,libc}}
dest=$(cd "$dest" && pwd)
packed=$dest/packed

# The programs that check.sh and prove.sh name. Those that need the headers of cuDNN or NCCL are not built without them; a simulator needs
# no plans.
# shellcheck disable=SC2016 # the text of another script
mapfile -t programs < <(grep -ho '"\$build/tests/[a-z_/]*"' "$src"/tests/gpu/{check,proof_facts}.sh |
	sed 's|"$build/||; s|"||' | sort -u)
for p in bin/gtrain "${programs[@]}"; do
	if [ ! -x "$build/$p" ]; then
		case $p in
		tests/cuda/dnn_plans | tests/cudasim/tool_conv | tests/cudasim/tool_nccl) say "without $p: it is not built" && continue ;;
		esac
		say "$build/$p is not built"
		exit 66
	fi
	mkdir -p "$dest/${p%/*}"
	install -m 755 "$src/tests/gpu/wrap.sh" "$dest/$p"
	strip -o "$packed/libexec/${p##*/}" "$build/$p"
done
for p in null cpu ref cuda export help init show smoke view; do strip -o "$packed/lib/gtrain/$p.so" "$build/lib/gtrain/$p.so"; done
# A folder of build/cudasim brings the host's CUDA runtime: all that has opened it must open the same file.
for p in libcudasim.so libcublasLt.so.0 libcudnn.so.0 libnccl.so.0; do
	[ ! -e "$build/lib/gtrain/$p" ] || strip -o "$packed/lib/gtrain/$p" "$build/lib/gtrain/$p"
done
mkdir -p "$dest/tests/cudasim"
${CC:-gcc} -O1 -shared -fPIC -D_GNU_SOURCE "$src/tests/cudasim/fast_clock.c" -o "$dest/tests/cudasim/fast_clock.so" -ldl # test_staged.sh

# ---- shared libraries: all that the programs and backends are linked to; the C library's parts apart ------------------------------------
libc='^(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libutil|libresolv|libanl|libnss_.*)\.so'
ldd "$packed"/libexec/* "$packed"/lib/gtrain/*.so >"$dest/ldd"
if grep 'not found' "$dest/ldd" >&2; then
	say 'libraries are missing here'
	exit 69
fi
awk '$2 == "=>" { print $3 }' "$dest/ldd" | sort -u | while read -r f; do
	if [[ ${f##*/} =~ $libc || $f == "$dest"/* ]]; then continue; fi
	strip -o "$packed/lib/dep/${f##*/}" "$f"
done
here=$(awk '$1 == "libc.so.6" { print $3; exit }' "$dest/ldd")
rm "$dest/ldd"
# Libraries that a driver may ask for beside the C library must come from the same place, the stubs too.
for f in "${here%/*}"/{libc.so.6,libm.so.6,libdl.so.2,libpthread.so.0,librt.so.1,libutil.so.1,libresolv.so.2,libanl.so.1}; do
	cp -L "$f" "$packed/lib/libc/"
done
cp -L "${here%/*}/ld-linux-x86-64.so.2" "$packed/libexec/"
# Packed relocations need 2.36.
objdump -T -p "$packed"/libexec/[!l]* "$dest"/tests/cudasim/*.so "$packed"/lib/gtrain/*.so "$packed"/lib/dep/* |
	sed 's/GLIBC_ABI_DT_RELR/GLIBC_2.36/' | grep -o 'GLIBC_2\.[0-9]*' |
	sort -uV | tail -n 1 |
	sed 's/GLIBC_//' >"$dest/GLIBC"
if [ ! -s "$dest/GLIBC" ]; then
	say 'objdump names no version of the C library'
	exit 70
fi
# One stream with a window that is larger than cuda.so: dnn_plans, which has the same kernels, costs nothing behind it.
tar cf - -C "$packed" lib/gtrain/cuda.so libexec --exclude lib/gtrain/cuda.so lib -C "$src" tests/golden/{ops.bin,parity} |
	xz --x86 --lzma2=preset=4,dict=64MiB >"$dest/packed.tar.xz"
rm -r "$packed"

# ---- what the scripts read -----------------------------------------------------------------------------------------------------------
cp "$src"/configs/*.cfg "$dest/configs/"
(cd "$src" && tar cf - tests/ops/cases.txt tests/parity/*.{cfg,py} tests/parity/test_parity.sh \
	tests/resume/resume.cfg \
	tests/cli/recompute.cfg tests/cli/make_images.py \
	tests/cudasim/{sim,test_windows,test_fp16,test_staged}.sh \
	tests/cudasim/{test_sim_nan,test_sim_transforms}.sh \
	tests/cudasim/fast_clock.c \
	tests/gpu/*.{sh,py,md}) |
	tar xf - -C "$dest"
git -C "$src" describe --always --dirty --abbrev=10 >"$dest/COMMIT" 2>/dev/null || echo unknown >"$dest/COMMIT"
data=${GPU_FOLDER_DATA-/usr/share/datasets/fashion-mnist}
if [ -n "$data" ] && [ -d "$data" ]; then
	mkdir "$dest/data/fashion-mnist"
	cp "$data"/*-ubyte.gz "$dest/data/fashion-mnist/"
else
	say 'without FashionMNIST: the checks that need it will be skipped'
fi
bytes=$(du -sb "$dest" | cut -f1)
say "$dest: $((bytes >> 20)) MiB, needs glibc $(cat "$dest/GLIBC") or brings its own"
if [ "$bytes" -ge $limit ]; then
	say "that is $bytes bytes, more than $limit"
	exit 70
fi
