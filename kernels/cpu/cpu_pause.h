/* gt_cpu_pause() in a loop that polls a variable lets the processor's other hardware thread run, and saves power. */
#ifndef GT_CPU_PAUSE_H
#define GT_CPU_PAUSE_H

static inline void gt_cpu_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	/* `yield` does nothing on most arm64 processors. `isb` takes about as long as `pause` does on x86-64, so the limits of spins fit. */
	__asm__ volatile("isb" ::: "memory");
#endif
}

#endif
