/* check.h: counts what holds and what does not, for the tests that need nothing but the core. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stdio.h>

static int passed, failed;

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)

static void
check(bool good, const char *text, const char *file, int line)
{
    if (good) {
        passed++;
    } else {
        failed++;
        fprintf(stderr, "%s:%d: %s\n", file, line, text);
    }
}

/* For main(): the exit status. */
static int
summary(void)
{
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}

#endif
