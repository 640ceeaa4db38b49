/* SPDX-License-Identifier: Apache-2.0 */
/* Every mistake in a scenario is one line with file, line, field and remedy, and leaves nothing read. */
#include "assert_near.h"
#include "scenario_text.h"

struct mistake {
	const char *text;
	ww_status code;
	const char *line; /* behind "t.yaml: line " */
};

/* False, with both lines printed, when the text differs; all mistakes of a table are shown in one run. */
static bool check_mistake(const struct mistake *m)
{
	struct ww_scenario scenario, untouched;
	struct ww_error err = {WW_OK, ""};
	memset(&scenario, 0xA5, sizeof scenario);
	memset(&untouched, 0xA5, sizeof untouched);
	ww_status status = parse(m->text, strlen(m->text), &scenario, &err);
	if (status == WW_OK)
		fail_msg("was read: %s", m->text);
	if (strncmp(err.text, "t.yaml: line ", 13) != 0 || strcmp(err.text + 13, m->line) != 0) {
		print_error("is     %s\nwanted t.yaml: line %s\n", err.text, m->line);
		return false;
	}
	assert_int_equal(status, m->code);
	assert_int_equal(err.code, m->code);
	assert_memory_equal(&scenario, &untouched, sizeof scenario);
	assert_int_equal(parse(m->text, strlen(m->text), &scenario, NULL), m->code);
	return true;
}

#define CHECK_ALL(mistakes)                                                                                            \
	do {                                                                                                           \
		bool all_ = true;                                                                                      \
		(void)state;                                                                                           \
		for (size_t i_ = 0; i_ < sizeof(mistakes) / sizeof(mistakes)[0]; i_++)                                 \
			all_ &= check_mistake(&(mistakes)[i_]);                                                        \
		assert_true(all_);                                                                                     \
	} while (0)

#define INVALID WW_ERR_INVALID
#define RANGE WW_ERR_RANGE

static void whole_files(void **state)
{
	static const struct mistake mistakes[] = {
		{"", WW_ERR_NO_DATA, "1: the file is empty; see wattweir-scenario(5) for what it holds"},
		{"# wattweir scenario 2\n" LEAST, WW_ERR_UNSUPPORTED,
	         "1: scenario format '2' is unknown; this program reads format 1: use a newer one"},
		{"# wattweir scenario 1x\n" LEAST, WW_ERR_UNSUPPORTED,
	         "1: scenario format '1x' is unknown; this program reads format 1: use a newer one"},
		{"# a site\r\n#wattweir\tscenario  v2\r\n" LEAST, WW_ERR_UNSUPPORTED,
	         "2: scenario format 'v2' is unknown; this program reads format 1: use a newer one"},
		{"# wattweir scenario 1, a site\n" LEAST, WW_ERR_UNSUPPORTED,
	         "1: scenario format '1,' is unknown; this program reads format 1: use a newer one"},
		{"# wattweir sweep 1\ngroup,cap_w\n", INVALID,
	         "1: looks like a sweep, not a scenario file; name another file"},
		{"group,cap_w\n", INVALID, "1: looks like a sweep, not a scenario file; name another file"},
		{"# wattweir cluster 1\n" LEAST, INVALID,
	         "1: the file calls itself a wattweir cluster, not a scenario; name another file"},
		{LEAST "speed: 2\n", INVALID,
	         "6: speed: unknown key; the keys here are name, seed, duration, period, objective, lease, after, "
	         "settle, "
	         "trim, lowered, guard, gpu, rows, nodes, jobs, curves, events, wire, faults, "
	         "modes"},
		{LEAST "name: u\n", INVALID, "6: name: is already on line 1; remove one of them"},
		{"duration: 1 h\n" ROWS NODES JOBS, INVALID, "1: name: is missing; write a name"},
		{"name: t\n" ROWS NODES JOBS, INVALID,
	         "1: duration: is missing; write a number with its unit us, ms, s, min or h, like 30 s"},
		{HEAD NODES JOBS, INVALID, "1: rows: is missing; write a list with '- ' before each entry"},
		{HEAD ROWS JOBS, INVALID, "1: nodes: is missing; write a list with '- ' before each entry"},
		{HEAD ROWS NODES, INVALID, "1: jobs: is missing; write a list with '- ' before each entry"},
		{"name: a123456789b123456789c123456789d123456789e123456789f123456789g123\nduration: 1 h\n" ROWS NODES
	                 JOBS,
	         INVALID, "1: name: is longer than 63 bytes; shorten it"},
		{LEAST "events: []\n", INVALID,
	         "6: events: is empty; write a list with '- ' before each entry, or remove the key"},
		{LEAST "wire:\n", INVALID,
	         "6: wire: is empty; write its keys below it, indented, or in braces, or remove the key"},
		{LEAST "gpu: H200\n", INVALID,
	         "6: gpu: is a text, not keys with values; the keys are min, max, default, idle, chip_spread, "
	         "sensor_gain, "
	         "sensor_noise, dead, settle_time, duty_sampler"},
	};
	CHECK_ALL(mistakes);
}

static void own_keys(void **state)
{
	static const struct mistake mistakes[] = {
		{LEAST "seed: -1\n", INVALID,
	         "6: seed: '-1' is not a whole number; write a whole number without a unit, like 2"},
		{"name: t\nduration: 60\n" ROWS NODES JOBS, INVALID,
	         "2: duration: '60' has no unit; write a number with its unit us, ms, s, min or h, like 30 s"},
		{"name: t\nduration: 2 days\n" ROWS NODES JOBS, INVALID,
	         "2: duration: '2 days' has a unit that does not belong here; write a number with its unit us, ms, s, "
	         "min "
	         "or h, like 30 s"},
		{"name: t\nduration: 0 s\n" ROWS NODES JOBS, RANGE,
	         "2: duration: '0 s' must be above 0 and at most 744 h; write a number with its unit us, ms, s, min or "
	         "h, "
	         "like 30 s"},
		{"name: t\nduration: 745 h\n" ROWS NODES JOBS, RANGE,
	         "2: duration: '745 h' must be above 0 and at most 744 h; write a number with its unit us, ms, s, min "
	         "or "
	         "h, like 30 s"},
		{"name: t\nduration: 1.5 s\n" ROWS NODES JOBS, RANGE,
	         "2: duration: 1.5 s is not a number of whole seconds; round it"},
		{LEAST "period: 500 ms\n", RANGE,
	         "6: period: '500 ms' must be 1 s to 60 s; write a number with its unit us, ms, s, min or h, like 30 "
	         "s"},
		{LEAST "period: 1500 ms\n", RANGE, "6: period: 1.5 s is not a number of whole seconds; round it"},
		{LEAST "objective: money\n", INVALID,
	         "6: objective: 'money' is not one of its words; write relative, tokens, log or maxmin"},
		{LEAST "objective: token\n", INVALID,
	         "6: objective: 'token' is not one of its words; write relative, tokens, log or maxmin"},
		{LEAST "objective: or\n", INVALID,
	         "6: objective: 'or' is not one of its words; write relative, tokens, log or maxmin"},
		{LEAST "objective: [log]\n", INVALID,
	         "6: objective: is a list, not a single value; write relative, tokens, log or maxmin"},
		{LEAST "trim: yes\n", INVALID, "6: trim: 'yes' is not one of its words; write on or off"},
		{LEAST "after:\n", INVALID, "6: after: is empty; write hold, failcap or restore, or remove the key"},
		{LEAST "lease: 1 s\n", RANGE,
	         "6: lease: '1 s' must be 3 s to 24 h; write a number with its unit us, ms, s, min or h, like 30 s"},
		{LEAST "period: 10 s\n", RANGE,
	         "1: lease: 15 s is shorter than two periods of 10 s; one lost message would end it: lengthen it"},
		{LEAST "settle: 61 s\n", RANGE,
	         "6: settle: '61 s' must be 0 s to 60 s; write a number with its unit us, ms, s, min or h, like 30 s"},
		{LEAST "guard: 0.5\n", INVALID, "6: guard: '0.5' has no unit; write a percentage, like 30%"},
		{LEAST "guard: 51%\n", RANGE, "6: guard: '51%' must be 0% to 50%; write a percentage, like 30%"},
	};
	CHECK_ALL(mistakes);
}

static void gpus_wires_and_curves(void **state)
{
	static const struct mistake mistakes[] = {
		{LEAST "gpu: {min: 300 W, max: 250 W}\n", RANGE,
	         "6: gpu: min: 300 W is more than max, 250 W; correct one of them"},
		{LEAST "gpu: {max: 500 W, default: 600 W}\n", RANGE,
	         "6: gpu: default: 600 W is not within min and max, 200 W to 500 W; correct one of them"},
		{LEAST "gpu: {default: 100 W}\n", RANGE,
	         "6: gpu: default: 100 W is not within min and max, 200 W to 700 W; correct one of them"},
		{LEAST "gpu:\n  idle: 201 W\n", RANGE,
	         "7: gpu: idle: 201 W is more than min, 200 W; correct one of them"},
		{LEAST "gpu: {chip_spread: 21%}\n", RANGE,
	         "6: gpu: chip_spread: '21%' must be 0% to 20%; write a percentage, like 30%"},
		{LEAST "gpu: {duty_sampler: true}\n", INVALID,
	         "6: gpu: duty_sampler: 'true' is neither yes nor no; write yes or no"},
		{LEAST "gpu: {dead: 150}\n", INVALID,
	         "6: gpu: dead: '150' has no unit; write a number with its unit us, ms, s, min or h, like 30 s"},
		{LEAST "wire: {loss: 101%}\n", RANGE,
	         "6: wire: loss: '101%' must be 0% to 100%; write a percentage, like 30%"},
		{LEAST "wire: {delay_least: 20 ms, delay_most: 10 ms}\n", RANGE,
	         "6: wire: delay_most: is less than delay_least; correct one of them"},
		{LEAST "wire: {late: 1%}\n", INVALID, "6: wire: late: late_most is missing or 0; give both, or none"},
		{LEAST "wire: {late_most: 1 s}\n", INVALID,
	         "6: wire: late_most: late is missing or 0; give both, or none"},
		{LEAST "curves: {at: [20]}\n", INVALID,
	         "6: curves: at: '20' has no unit; write a percentage, like 30%"},
		{LEAST "curves:\n  at:\n  - 20%\n  - {cut: 30%}\n", INVALID,
	         "9: curves: at: is keys with values, not a single value; write a percentage, like 30%"},
		{LEAST "curves: {at: [96%]}\n", RANGE,
	         "6: curves: at: '96%' must be 1% to 95%; write a percentage, like 30%"},
		{LEAST "curves: {at: [30%, 30%]}\n", INVALID,
	         "6: curves: at: the cuts do not rise; write the smallest first, each once"},
		{LEAST "curves: {at: [1%, 2%, 3%, 4%, 5%, 6%, 7%, 8%, 9%]}\n", INVALID,
	         "6: curves: at: has more than 8 cuts; leave some out"},
		{LEAST "curves: {noise: 1%}\n", INVALID,
	         "6: curves: at: is missing; write the cuts of the fit, like at: [20%, 55%]"},
		{LEAST "curves: {known: yes, at: [20%]}\n", INVALID,
	         "6: curves: known: what is known needs no fit; remove it, or at and noise"},
	};
	CHECK_ALL(mistakes);
}

#define ROW(keys) HEAD "rows:\n- {name: site, meter: yes}\n- {name: r, " keys "}\n" NODES JOBS

static void rows(void **state)
{
	static const struct mistake mistakes[] = {
		{ROW("limit: 0 W"), RANGE,
	         "5: row 'r': limit: '0 W' must be above 0 and at most 10 GW; write a number with its unit W, kW or "
	         "MW, "
	         "like 12.5 kW"},
		{ROW("limit: 12"), INVALID,
	         "5: row 'r': limit: '12' has no unit; write a number with its unit W, kW or MW, like 12.5 kW"},
		{ROW("limit: 9 kW, boundary: grid"), INVALID,
	         "5: row 'r': boundary: 'grid' is not one of its words; write gpu, it or meter"},
		{ROW("boundary: it"), INVALID,
	         "5: row 'r': boundary: is that of a limit, but there is none; add limit, or remove it"},
		{ROW("meter: 1"), INVALID, "5: row 'r': meter: '1' is neither yes nor no; write yes or no"},
		{ROW("cooling: 201%"), RANGE,
	         "5: row 'r': cooling: '201%' must be 0% to 200%; write a percentage, like 30%"},
		{ROW("fixed: 1 kW"), INVALID,
	         "5: row 'r': fixed: unknown key; the keys here are name, count, on, limit, boundary, meter, "
	         "meter_noise, "
	         "other, "
	         "cooling, cooling_lag, guard"},
		{ROW("on: sit"), INVALID, "5: row 'r': on: there is no row 'sit'; did you mean 'site'?"},
		{ROW("on: {row: site}"), INVALID, "5: row 'r': on: is keys with values, not a name; write one name"},
		{ROW("on: [{row: site, share: 50%}]"), RANGE,
	         "5: row 'r': on: the shares add up to 50%, not to 100%; correct them"},
		{ROW("on: [{row: site}, {row: r}]"), INVALID,
	         "5: row 'r': on: share: is missing; where there are several rows, each needs its share, like {row: "
	         "feed-a, share: 50%}"},
		{ROW("on: [{row: site, share: 50%}, {row: site, share: 50%}]"), INVALID,
	         "5: row 'r': on: 'site' stands here twice; add up its shares in one entry"},
		{ROW("on: [a, b, c, d, e]"), INVALID, "5: row 'r': on: has more than 4 rows; put rows in between"},
		{ROW("on: r"), INVALID,
	         "5: row 'r': on: feeds itself, directly or through others; power comes from above: name another row"},
		{HEAD "rows:\n- {name: site, on: a}\n- {name: a, on: [{row: c, share: 60%}, {row: b, share: 40%}]}\n"
	              "- {name: b, on: d}\n- {name: c}\n- {name: d, on: a}\n" NODES JOBS,
	         INVALID,
	         "6: row 'b': on: feeds itself, directly or through others; power comes from above: name another row"},
		{HEAD "rows:\n- name: site\n- limit: 9 kW\n  name: site\n" NODES JOBS, INVALID,
	         "6: row 'site': name: 'site' is also the name of the row on line 4; rename one of them"},
		{HEAD "rows:\n- {name: site}\n- {limit: 9 kW}\n" NODES JOBS, INVALID,
	         "5: row 2: name: is missing; write a name"},
		{ROW("meter: yes"), INVALID, "5: row 'r': no node is on it; put one on it, or remove the row"},
		{ROW("count: 4097"), RANGE,
	         "5: row 'r': count: '4097' must be 1 to 4096; write a whole number without a unit, like 2"},
		{HEAD "rows: [{name: r, count: 4096}, {name: q}]\n" NODES JOBS, INVALID,
	         "3: row 'q': more than 4096 rows; leave out the lowest"},
		{HEAD "rows: [{name: r-2}, {name: r, count: 2}]\n" NODES JOBS, INVALID,
	         "3: row 'r': name: 'r-2' is also the name of the row on line 3; rename one of them"},
		{HEAD
	         "rows: [{name: r, count: 2}]\nnodes: [{name: n, count: 2, gpus: 8, host: 1 kW, on: [{row: r, share: "
	         "50%}, {row: r-2, share: 50%}]}]\n" JOBS,
	         INVALID, "4: node 'n': on: 'r-2' stands here twice; add up its shares in one entry"},
		{HEAD "rows: [{name: site, count: 2}]\n" NODES JOBS, INVALID,
	         "4: node 'n': on: 'site' stands for 2 rows; name one of them, or write a count of 2 or more here"},
		{HEAD "rows: [{name: site}, {name: r, count: 2, on: q}, {name: q, count: 2, on: r}]\n" NODES JOBS,
	         INVALID,
	         "3: row 'q': on: feeds itself, directly or through others; power comes from above: name another row"},
	};
	CHECK_ALL(mistakes);
}

#define NODE(keys) HEAD ROWS "nodes:\n- {name: n, gpus: 8, " keys "}\n" JOBS

static void nodes(void **state)
{
	static const struct mistake mistakes[] = {
		{NODE("on: site"), INVALID,
	         "5: node 'n': host: is missing; write a number with its unit W, kW or MW, like 12.5 kW"},
		{NODE("host: 1 kW"), INVALID,
	         "5: node 'n': on: is missing; write a name, or a list with '- ' before each entry"},
		{HEAD ROWS "nodes:\n- {name: n, on: site, host: 1 kW, gpus: 17}\n" JOBS, RANGE,
	         "5: node 'n': gpus: '17' must be 1 to 16; write a whole number without a unit, like 2"},
		{NODE("host: 1 kW, on: rack"), INVALID, "5: node 'n': on: there is no row 'rack'; the file has 'site'"},
		{NODE("host: 1 kW, on: site, count: 0"), RANGE,
	         "5: node 'n': count: '0' must be 1 to 16384; write a whole number without a unit, like 2"},
		{NODE("host: 1 kW, on: site, boot_cap: 100 W"), RANGE,
	         "5: node 'n': boot_cap: 100 W is not within min and max of gpu, 200 W to 700 W; correct it"},
		{HEAD ROWS "nodes:\n- {name: n, count: 16384, gpus: 8, on: site, host: 1 kW}\n"
	                   "- {name: m, gpus: 8, on: site, host: 1 kW}\n" JOBS,
	         RANGE, "6: node 'm': more than 16384 nodes; leave some out"},
		{HEAD ROWS "nodes:\n- {name: n, count: 2, gpus: 8, on: site, host: 1 kW}\n"
	                   "- {name: n-2, gpus: 8, on: site, host: 1 kW}\n" JOBS,
	         INVALID, "6: node 'n-2': name: 'n-2' is also the name of the node on line 5; rename one of them"},
		{HEAD ROWS
	         "nodes:\n- {name: a123456789b123456789c123456789d123456789e123456789f123456789gh, count: 9,\n"
	         "   gpus: 8, on: site, host: 1 kW}\n" JOBS,
	         INVALID,
	         "5: node 'a123456789b123456789c123456789d123456789e123...': name: is longer than 63 bytes with its "
	         "number; shorten it"},
		{HEAD "rows:\n- {name: r1}\n- {name: r2, on: r1}\n- {name: r3, on: r2}\n- {name: r4, on: r3}\n"
	              "- {name: r5, on: r4}\n- {name: r6, on: r5}\n- {name: r7, on: r6}\n- {name: r8, on: r7}\n"
	              "- {name: r9, on: r8}\n- {name: ra, on: r9}\n- {name: rb, on: ra}\n- {name: rc, on: rb}\n"
	              "- {name: rd, on: rc}\nnodes: [{name: n, gpus: 8, host: 1 kW, on: rd}]\n" JOBS,
	         INVALID, "17: node 'n': on: more than 12 rows carry it; leave out those that never bind"},
	};
	CHECK_ALL(mistakes);
}

#define JOB(keys) HEAD ROWS NODES "jobs:\n- {name: j, gpus: 4, " keys "}\n"
#define LORA "family: moe-lora, "
#define PHYSICS "physics: {phi: 0.9, h: 0.05, sm: 0.9, tensor: 0.5, dram: 0.3, nvlink: 0.1}"

static void jobs(void **state)
{
	static const struct mistake mistakes[] = {
		{JOB("tier: 3"), INVALID,
	         "6: job 'j': nothing says how it behaves; write one of family, sweep and physics"},
		{JOB(LORA "sweep: a.csv"), INVALID,
	         "6: job 'j': there are several models of it; write one of family, sweep and physics"},
		{JOB("family: moe"), INVALID,
	         "6: job 'j': family: 'moe' is not one of its words; write dense-pretrain, dense-lora, moe-pretrain or "
	         "moe-lora"},
		{JOB(LORA "group: a"), INVALID,
	         "6: job 'j': group: is that of a sweep, but there is none; add sweep, or remove it"},
		{JOB("sweep: a.csv, tokens: 100"), INVALID, "6: job 'j': tokens: the sweep says how many; remove it"},
		{JOB(PHYSICS), INVALID,
	         "6: job 'j': tokens: is missing; write the tokens/s of each GPU at its full clock, like tokens: 4000"},
		{JOB("tokens: 1, physics: {phi: 0.9}"), INVALID,
	         "6: job 'j': physics: h: is missing; write a number without a unit, like 1.5"},
		{JOB("tokens: 1, physics: {phi: 0.9, h: 0.2, sm: 1, tensor: 0, dram: 0, nvlink: 0}"), RANGE,
	         "6: job 'j': physics: h: phi and h are shares of the time and add up to more than 1; lower one of "
	         "them"},
		{JOB("tokens: 1, physics: {phi: 1.1}"), RANGE,
	         "6: job 'j': physics: phi: '1.1' must be 0 to 1; write a number without a unit, like 1.5"},
		{JOB(LORA "tier: 4"), RANGE,
	         "6: job 'j': tier: '4' must be 0, 1, 2 or 3; write a whole number without a unit, like 2"},
		{JOB(LORA "floor: 0.5"), INVALID, "6: job 'j': floor: '0.5' has no unit; write a percentage, like 30%"},
		{JOB(LORA "weight: 0"), RANGE,
	         "6: job 'j': weight: '0' must be 0.000001 to 1000000; write a number without a unit, like 1.5"},
		{JOB(LORA "start: 1 h"), RANGE,
	         "6: job 'j': start: 3600 s is not before the end of the scenario, 3600 s; correct it or the duration"},
		{JOB(LORA "start: 20 min, end: 10 min"), RANGE,
	         "6: job 'j': end: the end at 600 s is not after the start at 1200 s; write a later one"},
		{JOB(LORA "checkpoint: {every: 1 min, for: 1 min, power: 115 W}"), RANGE,
	         "6: job 'j': checkpoint: for: is not shorter than every; correct one of them"},
		{JOB(LORA "evaluation: {every: 1 min, for: 1 s}"), INVALID,
	         "6: job 'j': evaluation: power: is missing; write a number with its unit W, kW or MW, like 12.5 kW"},
		{JOB(LORA "evaluation: {every: 1 min, for: 1 s, power: 701 W}"), RANGE,
	         "6: job 'j': evaluation: power: 701 W is more than max of gpu, 700 W; correct it"},
		{JOB(LORA "count: 2, tier: 1") "- {name: j-2, family: moe-lora, gpus: 1}\n", INVALID,
	         "7: job 'j-2': name: 'j-2' is also the name of the job on line 6; rename one of them"},
		{HEAD ROWS NODES "jobs: [{name: j, family: moe-lora, gpus: 1000000},\n"
	                         "{name: k, family: moe-lora, gpus: 1000000}]\n",
	         RANGE, "6: job 'k': gpus: all jobs together have more than 1048576 GPUs; leave some out"},
		{HEAD ROWS NODES "jobs: [{name: j, family: moe-lora, gpus: 1, count: 16384},\n"
	                         "{name: k, family: moe-lora, gpus: 1}]\n",
	         RANGE, "6: job 'k': more than 16384 jobs; leave some out"},
	};
	CHECK_ALL(mistakes);
}

#define TWO HEAD ROWS "nodes: [{name: n, count: 2, gpus: 8, on: site, host: 1 kW}]\njobs:\n"
#define ON(name, gpus, nodes) "- {name: " name ", family: moe-lora, gpus: " gpus ", nodes: " nodes "}\n"

static void places(void **state)
{
	static const struct mistake mistakes[] = {
		{TWO "- {name: j, family: moe-lora, gpus: 17}\n", INVALID,
	         "6: job 'j': gpus: 'j' wants 17, but only 16 are free at its time; lower it, add nodes, or choose "
	         "another "
	         "time"},
		{TWO "- {name: a, family: moe-lora, gpus: 12}\n- {name: j, family: moe-lora, gpus: 2, count: 3}\n",
	         INVALID,
	         "7: job 'j': gpus: 'j-3' wants 2, but only 0 are free at its time; lower it, add nodes, or choose "
	         "another "
	         "time"},
		{TWO "- {name: a, family: moe-lora, gpus: 12, end: 10 min}\n"
	             "- {name: b, family: moe-lora, gpus: 8, start: 9 min}\n",
	         INVALID,
	         "7: job 'b': gpus: 'b' wants 8, but only 4 are free at its time; lower it, add nodes, or choose "
	         "another "
	         "time"},
		{TWO ON("a", "9", "[n-1]"), INVALID,
	         "6: job 'a': gpus: 'a' wants 9, but on its nodes only 8 are free at its time; lower it, add nodes, or "
	         "choose another time"},
		{TWO ON("a", "8", "[n]"), INVALID,
	         "6: job 'a': nodes: there is no node 'n'; the file has 'n-1' and 'n-2'"},
		{TWO ON("a", "8", "n-1"), INVALID,
	         "6: job 'a': nodes: is a text, not a list; write a list with '- ' before each entry"},
		{TWO ON("a", "4", "[{node: n-1, gpus: 5}]"), INVALID,
	         "6: job 'a': nodes: have more GPUs than the job; correct gpus, or place fewer"},
		{TWO ON("a", "6", "[n-1]") ON("b", "4", "[{node: n-1, gpus: 4}]"), INVALID,
	         "7: job 'b': nodes: only 2 of 8 GPUs of 'n-1' are free at its time; place it elsewhere, or at another "
	         "time"},
		{TWO ON("a", "16", "[{node: n-1, gpus: 8}, {node: n-1, gpus: 8}]"), INVALID,
	         "6: job 'a': nodes: only 0 of 8 GPUs of 'n-1' are free at its time; place it elsewhere, or at another "
	         "time"},
		{TWO "- {name: a, family: moe-lora, gpus: 10}\n" ON("b", "8", "[n-1]"), INVALID,
	         "6: job 'a': gpus: 'a' wants 10, but only 8 are free at its time; lower it, add nodes, or choose "
	         "another "
	         "time"},
		{HEAD ROWS "nodes: [{name: n, count: 1025, gpus: 1, on: site, host: 1 kW}]\n"
	                   "jobs: [{name: j, family: moe-lora, gpus: 1025}]\n",
	         RANGE, "5: job 'j': gpus: are on more than 1024 nodes; divide the job"},
	};
	CHECK_ALL(mistakes);
}

#define EVENT(keys) LEAST "events:\n- {name: e, " keys "}\n"
#define CHANGE(keys)                                                                                                   \
	LEAST "events:\n- name: e\n  start: 10 min\n  for: 10 min\n  cut: 20%\n  changes:\n  - {" keys "}\n"

static void event_times(void **state)
{
	static const struct mistake mistakes[] = {
		{EVENT("start: 2 min, cut: 30%, end: 2 min"), RANGE,
	         "7: event 'e': end: the end at 120 s is not after the start at 120 s; write a later one"},
		{EVENT("start: 1 min, cut: 30%, for: 1 min, announce: 2 min"), RANGE,
	         "7: event 'e': announce: 120 s is not before the end of the event, 120 s; correct one of them"},
		{EVENT("start: 2 h, cut: 30%"), RANGE,
	         "7: event 'e': start: 7200 s is not before the end of the scenario, 3600 s; correct it or the "
	         "duration"},
		{EVENT("start: 2 h, cut: 30%, announce: 10 min"), RANGE,
	         "7: event 'e': start: 7200 s is not before the end of the scenario, 3600 s; correct it or the "
	         "duration"},
		{LEAST "events:\n- name: e\n  announce: 1 min\n  start: 10 min\n  for: 10 min\n  cut: 20%\n  changes:\n"
	               "  - {at: 5 min, start: 1 h, for: 1 min}\n",
	         RANGE,
	         "13: event 'e': change 1: start: 3600 s is not before the end of the scenario, 3600 s; correct it or "
	         "the duration"},
		{EVENT("start: 1 min, cut: 30%, for: 10 min, ramp_down: 11 min"), RANGE,
	         "7: event 'e': ramp_down: 660 s is longer than the event, 600 s; shorten it, or lengthen the event"},
		{LEAST
	         "events:\n- name: e\n  start: 10 min\n  for: 20 min\n  cut: 20%\n  ramp_down: 15 min\n  changes:\n"
	         "  - {at: 12 min, end: 20 min}\n",
	         RANGE,
	         "13: event 'e': change 1: ramp_down: 900 s is longer than the event, 600 s; shorten it, or lengthen "
	         "the "
	         "event"},
		{EVENT("start: 59 min, cut: 30%, announce: 1 h"), RANGE,
	         "7: event 'e': announce: 3600 s is not before the end of the scenario, 3600 s; correct it or the "
	         "duration"},
	};
	CHECK_ALL(mistakes);
}

static void events(void **state)
{
	static const struct mistake mistakes[] = {
		{EVENT("cut: 30%"), INVALID,
	         "7: event 'e': start: is missing; write a number with its unit us, ms, s, min or h, like 30 s"},
		{EVENT("start: 1 min"), INVALID,
	         "7: event 'e': cut: is missing; write cut, like 30%, or limit, like 50 kW"},
		{EVENT("start: 1 min, cut: 30%, limit: 5 kW"), INVALID,
	         "7: event 'e': limit: cut is there as well; remove one of them"},
		{EVENT("start: 1 min, cut: 101%"), RANGE,
	         "7: event 'e': cut: '101%' must be 0.1% to 100%; write a percentage, like 30%"},
		{EVENT("start: 1 min, cut: 30%, end: 2 min, for: 1 min"), INVALID,
	         "7: event 'e': for: end is there as well; remove one of them"},
		{EVENT("start: 1 min, cut: 30%, row: rack"), INVALID,
	         "7: event 'e': row: there is no row 'rack'; the file has 'site'"},
		{EVENT("start: 1 min, cut: 30%, class: soft"), INVALID,
	         "7: event 'e': class: 'soft' is not one of its words; write contract or protection"},
		{HEAD "rows: [{name: site}]\n" NODES JOBS "events: [{name: e, start: 1 min, cut: 30%}]\n", INVALID,
	         "6: event 'e': cut: is one of what was measured, but row 'site' has no meter; write meter: yes there, "
	         "or "
	         "limit here"},
		{HEAD "rows: [{name: site}]\n" NODES JOBS
	              "events: [{name: e, start: 1 min, cut: 30%, boundary: gpu}]\n",
	         INVALID,
	         "6: event 'e': cut: is one of what was measured, but row 'site' has no meter; write meter: yes there, "
	         "or "
	         "limit here"},
		{EVENT("start: 0 s, cut: 30%"), RANGE,
	         "7: event 'e': cut: is told at 0 s, when nothing is measured yet; announce it later, or write limit"},
		{EVENT("start: 1 min, cut: 30%") "- {name: e, start: 5 min, cut: 10%}\n", INVALID,
	         "8: event 'e': name: 'e' is also the name of the event on line 7; rename one of them"},
		{CHANGE("cut: 10%"), INVALID,
	         "12: event 'e': change 1: at: is missing; write a number with its unit us, ms, s, min or h, like 30 "
	         "s"},
		{CHANGE("at: 9 min, cut: 10%"), RANGE,
	         "12: event 'e': change 1: at: is not after what was told before, at 600 s; write the changes in their "
	         "order"},
		{CHANGE("at: 11 min"), INVALID,
	         "12: event 'e': change 1: nothing changes; write what does, or cancel: yes"},
		{CHANGE("at: 11 min, cancel: yes, cut: 10%"), INVALID,
	         "12: event 'e': change 1: cancel: nothing else changes then; leave only at and cancel"},
		{CHANGE("at: 11 min, cancel: yes}\n  - {at: 12 min, cut: 10%"), INVALID,
	         "13: event 'e': change 2: the event is cancelled already; remove one of the changes"},
		{CHANGE("at: 21 min, cancel: yes"), RANGE,
	         "12: event 'e': change 1: at: 1260 s is not before the end of the event, 1200 s; correct one of them"},
		{CHANGE("at: 11 min, start: 20 min"), RANGE,
	         "12: event 'e': change 1: end: the end at 1200 s is not after the start at 1200 s; write a later one"},
		{CHANGE("at: 11 min, name: f"), INVALID,
	         "12: event 'e': change 1: name: unknown key; the keys here are at, start, row, end, for, cut, limit, "
	         "boundary, class, ramp_down, ramp_up, cancel"},
	};
	CHECK_ALL(mistakes);
}

#define FAULT(keys) LEAST "faults:\n- {at: 1 min, what: " keys "}\n"

static void modes(void **state)
{
	static const struct mistake mistakes[] = {
		{LEAST "modes: [{at: 1 min}]\n", INVALID,
	         "6: mode 1: mode: is missing; write enforce, freeze or disengage"},
		{LEAST "modes: [{at: 1 min, mode: off}]\n", INVALID,
	         "6: mode 1: mode: 'off' is not one of its words; write enforce, freeze or disengage"},
		{LEAST "modes: [{at: 1 h, mode: freeze}]\n", RANGE,
	         "6: mode 1: at: 3600 s is not before the end of the scenario, 3600 s; correct it or the duration"},
		{LEAST "modes: [{at: 1 min, mode: freeze}, {at: 1 min, mode: enforce}]\n", INVALID,
	         "6: mode 2: at: is not after the mode before it; write modes in the order of time"},
	};
	CHECK_ALL(mistakes);
}

static void faults(void **state)
{
	static const struct mistake mistakes[] = {
		{FAULT("fire"), INVALID,
	         "7: fault 1: what: 'fire' is not one of its words; write agent-crash, reboot, controller-crash, "
	         "controller-zombie, foreign, cut, meter, journal, dead, hung-gpu or meter-late"},
		{FAULT("dead, for: 1 min, node: n"), INVALID, "7: fault 1: for: does not belong to dead; remove it"},
		{FAULT("dead"), INVALID, "7: fault 1: node: is missing; dead needs it"},
		{FAULT("dead, node: n") "- {at: 50 min, what: reboot, for: 1 min, node: n}\n", INVALID,
	         "8: fault 2: overlaps the fault on line 7; let one end before the other begins"},
		{FAULT("hung-gpu, node: n, gpu: 1"), INVALID,
	         "7: fault 1: for: is missing; hung-gpu needs it, or until"},
		{FAULT("hung-gpu, node: n, for: 1 s"), INVALID, "7: fault 1: gpu: is missing; hung-gpu needs it"},
		{FAULT("hung-gpu, node: n, gpu: 8, for: 1 s"), RANGE,
	         "7: fault 1: gpu: 'n' has 8 GPUs, numbered from 0; write a lower one"},
		{FAULT("hung-gpu, node: n, gpu: 1, for: 1 min") "- {at: 90 s, what: hung-gpu, node: n, gpu: 1, for: 1 "
	                                                        "min}\n",
	         INVALID, "8: fault 2: overlaps the fault on line 7; let one end before the other begins"},
		{FAULT("cut, for: 1 s, node: n, by: 2 s"), INVALID,
	         "7: fault 1: by: does not belong to cut; remove it"},
		{HEAD "rows: [{name: site}]\n" NODES JOBS
	              "faults: [{at: 1 s, what: meter-late, for: 1 s, row: site, by: 1 s}]\n",
	         INVALID, "6: fault 1: row: 'site' has no meter; write meter: yes there, or name another row"},
		{FAULT("meter-late, row: site, for: 1 s"), INVALID, "7: fault 1: by: is missing; meter-late needs it"},
		{FAULT("meter-late, row: site, for: 1 s, by: 61 s"), RANGE,
	         "7: fault 1: by: '61 s' must be 1 s to 60 s; write a number with its unit us, ms, s, min or h, like "
	         "30 s"},
		{FAULT("cut, node: n"), INVALID, "7: fault 1: for: is missing; cut needs it, or until"},
		{FAULT("cut, for: 1 s"), INVALID, "7: fault 1: node: is missing; cut needs it"},
		{FAULT("cut, for: 1 s, node: m"), INVALID, "7: fault 1: node: there is no node 'm'; the file has 'n'"},
		{FAULT("cut, for: 1 s, node: n, gpu: 1"), INVALID,
	         "7: fault 1: gpu: does not belong to cut; remove it"},
		{FAULT("foreign, until: 90 s, node: n, gpu: 1, limit: 300 W"), INVALID,
	         "7: fault 1: until: does not belong to foreign; remove it"},
		{FAULT("foreign, node: n, gpu: 1"), INVALID, "7: fault 1: limit: is missing; foreign needs it"},
		{FAULT("foreign, node: n, gpu: 8, limit: 300 W"), RANGE,
	         "7: fault 1: gpu: 'n' has 8 GPUs, numbered from 0; write a lower one"},
		{FAULT("foreign, node: n, gpu: 1, limit: 150 W"), RANGE,
	         "7: fault 1: limit: 150 W is not within min and max of gpu, 200 W to 700 W; correct it"},
		{FAULT("controller-crash, for: 1 s, row: site"), INVALID,
	         "7: fault 1: row: does not belong to controller-crash; remove it"},
		{HEAD "rows: [{name: site}]\n" NODES JOBS "faults: [{at: 1 s, what: meter, for: 1 s, row: site}]\n",
	         INVALID, "6: fault 1: row: 'site' has no meter; write meter: yes there, or name another row"},
		{FAULT("reboot, for: 59 s, node: n"), RANGE,
	         "7: fault 1: for: the node is back before its shortest boot, 60 s; lengthen it, or shorten boot of "
	         "the "
	         "node"},
		{FAULT("reboot, until: 1 min, node: n"), RANGE,
	         "7: fault 1: until: the end at 60 s is not after the start at 60 s; write a later one"},
		{FAULT("cut, for: 1 s, until: 2 min, node: n"), INVALID,
	         "7: fault 1: for: until is there as well; remove one of them"},
		{LEAST "faults: [{at: 1 h, what: controller-crash, for: 1 s}]\n", RANGE,
	         "6: fault 1: at: 3600 s is not before the end of the scenario, 3600 s; correct it or the duration"},
		{FAULT("controller-crash, for: 1 min") "- {at: 90 s, what: controller-zombie, for: 1 min}\n", INVALID,
	         "8: fault 2: overlaps the fault on line 7; let one end before the other begins"},
		{FAULT("reboot, for: 1 min, node: n") "- {at: 90 s, what: agent-crash, for: 1 min, node: n}\n", INVALID,
	         "8: fault 2: overlaps the fault on line 7; let one end before the other begins"},
	};
	CHECK_ALL(mistakes);
}

/* Bounds of lists, which keep the work on a hostile file small. */
static void long_lists(void **state)
{
	static char text[300000];
	size_t used = (size_t)snprintf(text, sizeof text, LEAST "faults:\n");
	struct mistake m = {text, INVALID, "7: faults: more than 4096 faults; leave some out"};
	(void)state;
	for (int i = 0; i < 4097; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "- {at: %d s, what: fire}\n", i);
	assert_true(check_mistake(&m));
	used = (size_t)snprintf(text, sizeof text, HEAD NODES JOBS "rows:\n");
	for (int i = 0; i < 4097; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "- {name: r%d, on: r%d}\n", i,
		                         (i + 1) % 4097);
	m.line = "4102: row 'r4096': more than 4096 rows; leave out the lowest";
	assert_true(check_mistake(&m));

	/* One less is a chain whose ends meet. */
	*strstr(text, "- {name: r4096") = '\0';
	memcpy(strstr(text, "r4096}\n"), "r0}\n", 5);
	m.line = "6: row 'r0': on: feeds itself, directly or through others; power comes from above: name another row";
	assert_true(check_mistake(&m));
	assert_true(used < sizeof text - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_files), cmocka_unit_test(own_keys),    cmocka_unit_test(gpus_wires_and_curves),
		cmocka_unit_test(rows),        cmocka_unit_test(nodes),       cmocka_unit_test(jobs),
		cmocka_unit_test(places),      cmocka_unit_test(event_times), cmocka_unit_test(events),
		cmocka_unit_test(faults),      cmocka_unit_test(modes),       cmocka_unit_test(long_lists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
