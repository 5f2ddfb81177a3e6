/* The time of day, moved by what a file says: preloaded into one node, so that its clock alone is wrong.
   SYROS_TEST_CLOCK names a file of 8 bytes: seconds, little-endian. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset(void) {
    static const volatile int64_t *mapped;
    if (!mapped) {
        static const int64_t none;
        const char *name = getenv("SYROS_TEST_CLOCK");
        int file = name ? open(name, O_RDONLY) : -1;
        void *place = file >= 0 ? mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
        if (file >= 0) close(file);
        mapped = place == MAP_FAILED ? &none : place;
    }
    return mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset();
    return result;
}
