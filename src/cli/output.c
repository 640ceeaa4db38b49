/* SPDX-License-Identifier: Apache-2.0 */
/* Files that commands write: under their names only when they are whole. */
#include "cli/cli_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART ".XXXXXX.part" /* of a name that no other run has */
#define PART_END 5          /* what follows the six letters */
#define MAX_LINKS 40

/* ---- Places ------------------------------------------------------------------------------------------------------------- */

static char *join(const char *folder, size_t n, const char *name)
{
	char *path = ww_cli_alloc(n + strlen(name) + 1, 1);
	memcpy(path, folder, n);
	memcpy(path + n, name, strlen(name) + 1);
	return path;
}

static char *place_of(const char *path, int links);

/* Of a file in a folder that is there; the file is not. */
static char *place_in_folder(const char *path, size_t n_folder)
{
	char *folder = join(path, n_folder, "."), *real = realpath(folder, NULL);
	free(folder);
	if (!real || !path[n_folder]) {
		free(real);
		errno = ENOENT;
		return NULL;
	}
	char *slash = join(real, strlen(real), "/"), *place = join(slash, strlen(slash), path + n_folder);
	free(slash);
	free(real);
	return place;
}

/* Where a file is or would be, all links followed, also such as lead to nothing yet. NULL and errno on failure. */
static char *place_of(const char *path, int links)
{
	char *real = realpath(path, NULL);
	if (real || errno != ENOENT || links == 0)
		return real;
	char to[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t n_folder = slash ? (size_t)(slash - path) + 1 : 0;
	ssize_t n = readlink(path, to, sizeof to - 1);
	if (n < 0)
		return place_in_folder(path, n_folder);
	to[n] = '\0';
	char *next = join(path, to[0] == '/' ? 0 : n_folder, to), *place = place_of(next, links - 1);
	free(next);
	return place;
}

static bool begins_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

/* Behind the name of an open descriptor may be a regular file, but not one to be replaced. */
static bool is_direct(const char *path)
{
	struct stat there;
	return begins_with(path, "/dev/std") || begins_with(path, "/dev/fd/") || begins_with(path, "/proc/") ||
	       (stat(path, &there) == 0 && !S_ISREG(there.st_mode));
}

static bool look(const char *path, struct stat *out)
{
	return (strcmp(path, "-") == 0 ? fstat(STDOUT_FILENO, out) : stat(path, out)) == 0;
}

static bool is_one(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool ww_output_same(const char *a, const char *b)
{
	struct stat at_a, at_b;
	bool to_stdout = strcmp(a, "-") == 0 || strcmp(b, "-") == 0;
	if (look(a, &at_a) && look(b, &at_b) && is_one(&at_a, &at_b))
		return true;
	if (to_stdout)
		return false;
	char *place_a = place_of(a, MAX_LINKS), *place_b = place_of(b, MAX_LINKS);
	bool same = place_a && place_b && strcmp(place_a, place_b) == 0;
	free(place_a);
	free(place_b);
	return same;
}

bool ww_output_is_input(const char *path, const char *input)
{
	struct stat in, out;
	if (strcmp(input, "-") != 0)
		return ww_output_same(path, input);
	return fstat(STDIN_FILENO, &in) == 0 && S_ISREG(in.st_mode) && look(path, &out) && is_one(&in, &out);
}

/* ---- Writing ------------------------------------------------------------------------------------------------------------ */

static bool complain(const struct ww_output *output, const char *path)
{
	ww_complain(output->who, "cannot write '%s': %s", path, strerror(errno ? errno : EIO));
	return false;
}

/* A new file with a name of its own: never what is there already, by a link or as another run's. Its rights are those of
 * any new file. */
static FILE *open_part(char *path)
{
	mode_t mask = umask(0);
	(void)umask(mask);
	int fd = mkostemps(path, PART_END, O_CLOEXEC);
	FILE *out = fd < 0 || fchmod(fd, 0666 & ~mask) ? NULL : fdopen(fd, "wb");
	if (fd >= 0 && !out) {
		(void)close(fd);
		(void)unlink(path);
	}
	return out;
}

bool ww_output_open(struct ww_output *output, const char *who, const char *path)
{
	*output = (struct ww_output){.who = who, .path = path};
	if (strcmp(path, "-") == 0)
		output->out = stdout;
	else if (is_direct(path))
		output->out = fopen(path, "wb");
	else if ((output->place = place_of(path, MAX_LINKS))) {
		output->part = join(output->place, strlen(output->place), PART);
		output->out = open_part(output->part);
	}
	if (output->out)
		return true;
	complain(output, path);
	ww_output_drop(output);
	return false;
}

static bool close_file(struct ww_output *output)
{
	bool fine = !ferror(output->out);
	fine = fflush(output->out) == 0 && fine;
	if (output->out != stdout)
		fine = fclose(output->out) == 0 && fine;
	output->out = NULL;
	return fine;
}

bool ww_output_finish(struct ww_output *output)
{
	if (!output->out)
		return true;
	errno = 0;
	bool fine = close_file(output) && (!output->part || rename(output->part, output->place) == 0);
	if (!fine)
		complain(output, output->path);
	if (!fine && output->part)
		(void)unlink(output->part);
	ww_output_drop(output);
	return fine;
}

void ww_output_drop(struct ww_output *output)
{
	bool begun = output->out != NULL;
	if (begun)
		(void)close_file(output);
	if (begun && output->part)
		(void)unlink(output->part);
	free(output->place);
	free(output->part);
	*output = (struct ww_output){0};
}
