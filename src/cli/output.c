/* SPDX-License-Identifier: Apache-2.0 */
/* Files that commands write: under their names only when they are whole. */
#include "cli/cli_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART ".XXXXXX.part" /* of a name that no other run has */
#define PART_END 5          /* what follows the six letters */
#define MAX_LINKS 40
#define MAX_PARTS 4 /* at one time */
#define RIGHTS 0777

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

/* What goes to the null device is in nobody's way. */
bool ww_output_is_stdout(const char *path)
{
	struct stat there, out, null;
	if (strcmp(path, "-") == 0)
		return true;
	bool same = look(path, &there) && look("-", &out) && is_one(&there, &out);
	return same && !(S_ISCHR(out.st_mode) && stat("/dev/null", &null) == 0 && null.st_rdev == out.st_rdev);
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

/* ---- Parts -------------------------------------------------------------------------------------------------------------- */

/* Files that are not whole yet; a signal reads it at any time. */
static char *volatile parts[MAX_PARTS];

static void remove_parts(void)
{
	for (size_t i = 0; i < MAX_PARTS; i++)
		if (parts[i])
			(void)unlink(parts[i]);
}

/* Its default action follows, as the handler stands for one call and the signal waits for its end. */
static void on_signal(int number)
{
	remove_parts();
	(void)raise(number);
}

/* What somebody else chose to ignore, as nohup does, stays ignored. */
static void watch_the_end(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	static bool watched;
	struct sigaction now, ours = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	if (watched)
		return;
	watched = true;
	(void)atexit(remove_parts);
	(void)sigfillset(&ours.sa_mask);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			(void)sigaction(signals[i], &ours, NULL);
}

static void note_part(const char *old, char *new)
{
	for (size_t i = 0; i < MAX_PARTS; i++) {
		if (parts[i] == old) {
			parts[i] = new;
			return;
		}
	}
	abort();
}

static void forget_part(struct ww_output *output)
{
	note_part(output->part, NULL);
	free(output->part);
	output->part = NULL;
}

static void remove_part(struct ww_output *output)
{
	(void)unlink(output->part);
	forget_part(output);
}

/* ---- Writing ------------------------------------------------------------------------------------------------------------ */

static bool complain(const struct ww_output *output)
{
	ww_complain(output->who, "cannot write '%s': %s", output->path, strerror(errno ? errno : EIO));
	return false;
}

/* As open() would say of the file that is to be replaced. */
static bool may_replace(const char *place)
{
	return faccessat(AT_FDCWD, place, W_OK, AT_EACCESS) == 0 || errno == ENOENT;
}

/* Its rights are those of the file that it is to replace, or of any new file. Where the group cannot be kept, another one
 * gets none of its rights. */
static bool set_rights(int fd, const char *place)
{
	struct stat old;
	if (stat(place, &old) != 0) {
		mode_t mask = umask(0);
		(void)umask(mask);
		return fchmod(fd, 0666 & ~mask) == 0;
	}
	bool kept = fchown(fd, old.st_uid, old.st_gid) == 0 || fchown(fd, (uid_t)-1, old.st_gid) == 0;
	return fchmod(fd, old.st_mode & RIGHTS & ~(kept ? 0u : (mode_t)S_IRWXG)) == 0;
}

/* A new file with a name of its own: never what is there already, by a link or as another run's. Signals wait until its
 * name is noted. */
static int make_part(struct ww_output *output)
{
	sigset_t all, before;
	char *path = join(output->place, strlen(output->place), PART);
	watch_the_end();
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	int fd = mkostemps(path, PART_END, O_CLOEXEC), failed = errno;
	if (fd >= 0) {
		note_part(NULL, path);
		output->part = path;
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (fd < 0)
		free(path);
	errno = failed;
	return fd;
}

static FILE *open_part(struct ww_output *output)
{
	int fd = may_replace(output->place) ? make_part(output) : -1;
	FILE *out = fd >= 0 && set_rights(fd, output->place) ? fdopen(fd, "wb") : NULL;
	if (fd >= 0 && !out) {
		int failed = errno;
		(void)close(fd);
		errno = failed;
	}
	return out;
}

bool ww_output_open(struct ww_output *output, const char *who, const char *path)
{
	*output = (struct ww_output){.who = who, .path = path};
	if (ww_output_is_stdout(path))
		output->out = stdout;
	else if (is_direct(path))
		output->out = fopen(path, "wbe");
	else if ((output->place = place_of(path, MAX_LINKS)))
		output->out = open_part(output);
	if (output->out)
		return true;
	complain(output);
	ww_output_drop(output);
	return false;
}

static bool close_file(struct ww_output *output)
{
	bool fine = !ferror(output->out);
	fine = fflush(output->out) == 0 && fine;
	if (output->out != stdout)
		fine = fclose(output->out) == 0 && fine;
	else
		clearerr(stdout); /* who closes it tells of it: no second line at the exit */
	output->out = NULL;
	return fine;
}

bool ww_output_close(struct ww_output *output)
{
	errno = 0;
	if (!output->out || close_file(output))
		return true;
	complain(output);
	ww_output_drop(output);
	return false;
}

bool ww_output_finish(struct ww_output *output)
{
	if (!ww_output_close(output))
		return false;
	bool fine = !output->part || rename(output->part, output->place) == 0;
	if (!fine)
		complain(output);
	else if (output->part)
		forget_part(output);
	ww_output_drop(output);
	return fine;
}

void ww_output_drop(struct ww_output *output)
{
	if (output->out)
		(void)close_file(output);
	if (output->part)
		remove_part(output);
	free(output->place);
	*output = (struct ww_output){0};
}

/* The complaint at the exit is left out then: one is enough. */
bool ww_output_flush(const char *who)
{
	bool failed = ferror(stdout) != 0;
	errno = 0;
	if (fflush(stdout) == 0 && !failed)
		return true;
	ww_complain(who, "cannot write the output%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
	clearerr(stdout);
	return false;
}
