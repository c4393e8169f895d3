/* Reads a file to its end: reader FILE [BUFFER_BYTES]
 *
 * The same source is linked statically and dynamically; nothing but what both builds do alike may stand here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what, const char *which)
{
    fprintf(stderr, "%s %s: %s\n", what, which, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    size_t size = 2 << 20;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: reader FILE [BUFFER_BYTES]\n");
        return 2;
    }
    if (argc == 3) {
        char *end;
        errno = 0;
        unsigned long long asked = strtoull(argv[2], &end, 10);
        if (errno || *end || end == argv[2] || asked == 0 || asked > (size_t)-1 / 2) {
            fprintf(stderr, "no buffer of '%s' bytes\n", argv[2]);
            return 2;
        }
        size = (size_t)asked;
    }
    char *buffer = malloc(size);
    if (!buffer)
        return fail("no memory for", argv[1]);
    int file = open(argv[1], O_RDONLY);
    if (file < 0)
        return fail("cannot open", argv[1]);
    for (;;) {
        ssize_t count = read(file, buffer, size);
        if (count == 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return fail("cannot read", argv[1]);
    }
}
