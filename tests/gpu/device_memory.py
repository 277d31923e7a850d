#!/usr/bin/env python3
"""Runs a command and prints how many bytes of the GPU's memory were gone at most while it ran: cuMemGetInfo, polled from a process that
holds a context of its own and allocates nothing. Nothing else may use the GPU meanwhile. Standard library only.

Usage: device_memory.py COMMAND…      ends as the command does; 77 where there is no driver"""
import ctypes
import subprocess
import sys
import time


def check(code, what):
    if code != 0:
        print(f"{what}: CUDA error {code}", file=sys.stderr)
        sys.exit(77)


try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as e:
    print(f"no driver: {e}", file=sys.stderr)
    sys.exit(77)
device, context = ctypes.c_int(), ctypes.c_void_p()
check(cuda.cuInit(0), "cuInit")
check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")


def free():
    a, b = ctypes.c_size_t(), ctypes.c_size_t()
    check(cuda.cuMemGetInfo_v2(ctypes.byref(a), ctypes.byref(b)), "cuMemGetInfo")
    return a.value


before = least = free()
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
while p.poll() is None:
    least = min(least, free())
    time.sleep(0.002)
print(before - least)
sys.exit(0 if p.returncode == 0 else 1)
