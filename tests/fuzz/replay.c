/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds a fuzz target each file of the files and folders it is given: the corpus as a test, without libFuzzer. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long n_files;

static int replay_file(const char *path, size_t size)
{
	FILE *in = fopen(path, "rb");
	uint8_t *data = malloc(size ? size : 1);
	size_t got = 0;
	int status = -1;

	if (in && data) {
		got = fread(data, 1, size, in);
		status = got == size && !ferror(in) ? 0 : -1;
	}
	if (in)
		(void)fclose(in);
	if (status == 0) {
		LLVMFuzzerTestOneInput(data, size);
		n_files++;
	} else {
		fprintf(stderr, "replay: %s: cannot be read: %s\n", path, strerror(errno));
	}
	free(data);
	return status;
}

static int replay(const char *path)
{
	struct stat info;
	struct dirent **entries = NULL;
	char child[4096];
	int status = 0;

	if (stat(path, &info) != 0) {
		fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
		return -1;
	}
	if (!S_ISDIR(info.st_mode))
		return replay_file(path, (size_t)info.st_size);
	int n = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		int length = snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.' && (length >= (int)sizeof child || replay(child) != 0))
			status = -1;
		free(entries[i]);
	}
	free(entries);
	return n < 0 ? -1 : status;
}

int main(int argc, char **argv)
{
	int status = 0;
	for (int i = 1; i < argc; i++)
		if (replay(argv[i]) != 0)
			status = 1;
	if (n_files == 0) {
		fprintf(stderr, "replay: no files; name the corpus folders\n");
		status = 1;
	}
	printf("%lu files replayed\n", n_files);
	return status;
}
