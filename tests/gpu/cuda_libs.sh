# Source it: finds the CUDA libraries that gtrain opens (cuBLASLt, cuDNN, NCCL) and adds their folders to LD_LIBRARY_PATH. Looked at, in
# this order: the packages nvidia-* of python3's site-packages, the toolkit, what the loader knows. Sets cuda_libs, one line a library.
# shellcheck shell=bash
cuda_libs_dirs=$(python3 - <<'PY' 2>/dev/null
import glob, os, site, sys
dirs = [d for d in sys.path if d.endswith("-packages")] + site.getsitepackages() + [site.getusersitepackages()]
seen = []
for d in dirs:
    for name in ("libcublasLt.so.1[23]", "libcudnn.so.9", "libnccl.so.2"):
        for f in sorted(glob.glob(f"{d}/nvidia/*/lib/{name}"), reverse=True):  # cu13 before cublas, which is CUDA 12's
            if os.path.dirname(f) not in seen:
                seen.append(os.path.dirname(f))
print(":".join(seen))
PY
)
for d in /usr/local/cuda/lib64 /usr/local/cuda/lib; do
	if compgen -G "$d/libcublasLt.so.*" >/dev/null; then cuda_libs_dirs=${cuda_libs_dirs:+$cuda_libs_dirs:}$d; fi
done
if [ -n "$cuda_libs_dirs" ]; then export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$cuda_libs_dirs; fi
cuda_libs=
for name in libcublasLt.so libcudnn.so libnccl.so; do
	found=
	IFS=: read -ra dirs <<<"${LD_LIBRARY_PATH:-}"
	for d in "${dirs[@]}"; do
		[ -n "$found" ] || found=$(compgen -G "$d/$name.[0-9]*" | head -n 1)
	done
	[ -n "$found" ] || found=$(ldconfig -p 2>/dev/null | awk -v n="$name" 'index($1, n ".") == 1 { print $NF; exit }')
	cuda_libs+="$name: ${found:-not found}"$'\n'
done
