/* SPDX-License-Identifier: Apache-2.0 */
/* The program `wattweir`: finds the command and runs it. Reading starts at main, the last function. */
#include "cli/cli_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};

static int cmd_help(int argc, char **argv);

static const struct command commands[] = {
	{"pfi", "how flexible each measured job is (Power Flexibility Index)", ww_cmd_pfi},
	{"compare", "ways to divide a power cut among the measured jobs, side by side", ww_cmd_compare},
	{"plan", "caps per job for one power budget, with the reason for each", ww_cmd_plan},
	{"simulate", "a whole cluster in virtual time, under power budgets", ww_cmd_simulate},
	{"replay", "goes through a journal again and compares every decision", ww_cmd_replay},
	{"help", "help on a command", cmd_help},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char *current = "wattweir";
const char *argp_program_version = "wattweir " WW_VERSION;

struct chosen {
	int at; /* index of the command in argv, 0 = none */
};

static char *list_commands(int key, const char *text, void *input)
{
	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	char *out = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&out, &size);
	if (!memory)
		return (char *)text;
	fputs("Commands:\n", memory);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(memory, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fprintf(memory, "\n%s", text);
	return fclose(memory) == 0 ? out : (char *)text;
}

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	struct chosen *chosen = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		ww_args_quiet(state);
		return 0;
	case ARGP_KEY_ARG:
		chosen->at = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		ww_complain("wattweir", "no command given; see 'wattweir --help'");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp top = {
	.parser = parse_top,
	.args_doc = "COMMAND [ARGUMENT...]",
	.doc = "Divides a power budget among GPU training jobs so that the watts that must go cost as little "
	       "throughput as "
	       "possible.\v"
	       "'wattweir help COMMAND' tells more about one.\n"
	       "Exit status: 0 done, 1 failed, 2 wrong usage, 3 the outcome needs attention.\n\n"
	       "Example:\n"
	       "  wattweir compare examples/sample-sweep.csv --cut 10,20,30,40\n",
	.help_filter = list_commands,
};

static int unknown_command(const char *name)
{
	struct ww_near near = {.wanted = name};
	char listed[256] = "";
	for (size_t i = 0; i < N_COMMANDS; i++)
		ww_near_add(&near, commands[i].name);
	for (size_t i = 0, at = 0; i < N_COMMANDS && near.n == 0; i++)
		at += (size_t)snprintf(listed + at, sizeof(listed) - at, "%s%s", at ? ", " : "", commands[i].name);
	ww_complain("wattweir", "unknown command '%.60s'; %s: %s; see 'wattweir --help'", name,
	            near.n > 0 ? "nearest" : "there are", near.n > 0 ? near.names[0] : listed);
	return WW_EXIT_USAGE;
}

static int run_command(int argc, char **argv)
{
	static char who[64];
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(argv[0], commands[i].name) == 0) {
			snprintf(who, sizeof(who), "wattweir %s", commands[i].name);
			current = argv[0] = who;
			return commands[i].run(argc, argv);
		}
	}
	return unknown_command(argv[0]);
}

static int cmd_help(int argc, char **argv)
{
	char *help[] = {argv[1], (char *)"--help", NULL};
	if (argc > 2) {
		ww_complain(current, "one command at a time; see 'wattweir --help'");
		return WW_EXIT_USAGE;
	}
	if (argc == 2 && strcmp(argv[1], "help") != 0 && argv[1][0] != '-')
		return run_command(2, help);
	argp_help(&top, stdout, ARGP_HELP_STD_HELP & ~(unsigned)(ARGP_HELP_EXIT_OK | ARGP_HELP_EXIT_ERR),
	          (char *)"wattweir");
	return WW_EXIT_OK;
}

/* At every exit: output that was not written is a failure, also behind argp's --help. */
static void close_stdout(void)
{
	bool failed = ferror(stdout) != 0, pending = __fpending(stdout) > 0;
	errno = 0;
	if (fclose(stdout) != 0 && (pending || errno != EBADF))
		failed = true;
	if (failed) {
		ww_complain(current, "cannot write the output%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
		_exit(WW_EXIT_FAILED);
	}
}

/* A standard stream that is closed stays of no use, but no file that is opened later gets its number and what is meant
 * for the stream. */
static void fill_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
	struct chosen chosen = {0};
	fill_streams();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	argp_err_exit_status = WW_EXIT_USAGE;
	atexit(close_stdout);
	if (argc > 0)
		argv[0] = (char *)"wattweir";
	if (!ww_args_parse(&top, ARGP_IN_ORDER, argc, argv, &chosen) || chosen.at == 0)
		return WW_EXIT_USAGE;
	return run_command(argc - chosen.at, argv + chosen.at);
}
