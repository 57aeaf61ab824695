// Faults of the machine, for the programs that are started with this library in LD_PRELOAD: a clock that is wrong, and
// a disk that is slow. The file TORTURE_CONTROL has two numbers of 64 bits: milliseconds that are added to the
// real-time clock, and milliseconds that each fsync and fdatasync takes longer. It is mapped, so that reading it needs
// no system call: workers of handlers may make few of them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *control;
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void open_control(void) {
  const char *path = getenv("TORTURE_CONTROL");
  real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) control = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = real_clock_gettime ? real_clock_gettime(clock, time) : (int)syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    int64_t nanoseconds = time->tv_nsec + (control[0] % 1000) * 1000000;
    time->tv_sec += control[0] / 1000;
    if (nanoseconds < 0) { nanoseconds += 1000000000; time->tv_sec -= 1; }
    if (nanoseconds >= 1000000000) { nanoseconds -= 1000000000; time->tv_sec += 1; }
    time->tv_nsec = nanoseconds;
  }
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return (time_t)-1;
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

static void delay(void) {
  if (!control || control[1] <= 0) return;
  struct timespec pause = {control[1] / 1000, (control[1] % 1000) * 1000000};
  nanosleep(&pause, NULL);
}

int fsync(int file) {
  delay();
  return real_fsync ? real_fsync(file) : (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
  delay();
  return real_fdatasync ? real_fdatasync(file) : (int)syscall(SYS_fdatasync, file);
}
