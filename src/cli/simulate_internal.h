/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `wattweir simulate` share. A scenario becomes a scene (scenario_world.c), which is lived once for every
 * way to divide (simulate_run.c); numbers come from the three runs (simulate_result.c), and people and machines read them
 * (simulate_print.c, simulate_json.c, simulate_plot.c).
 */
#ifndef WW_SIMULATE_INTERNAL_H
#define WW_SIMULATE_INTERNAL_H

#include "cli/cli_internal.h"
#include "cli/world_internal.h"

/* ---- scenario_world.c ---------------------------------------------------------------------------------------------- */

/* A scenario as what a world is made from. All but `spec` is for reading only. */
struct ww_scene {
	const struct ww_scenario *scenario; /* borrowed */
	uint64_t seed;
	struct ww_world_spec spec; /* `division`, `journal` and `trace` are the runner's */
	struct ww_plant_spec plant;
	struct ww_config config;
	struct ww_sim_node *nodes;
	struct ww_sim_row *rows;
	struct ww_sim_load *loads;
	struct ww_sim_job *jobs;
	struct ww_sweep *sweeps; /* one per job, empty where it needs none */
	struct ww_row *row_configs;
	struct ww_node_config *node_configs;
	struct ww_job *told;                         /* what control knows of the jobs */
	struct ww_curve *known_curves, *true_curves; /* per job; status below 0 = none */
	double *free_tps;                            /* of each job where no cap binds, pauses apart */
	struct ww_announcement *announcements;
	struct ww_fault *faults;
	struct ww_mode_change *modes;
};

/* The scenario lives as long as the scene. WW_ERR_*: one line that names the thing. */
ww_status ww_scene_create(const struct ww_scenario *scenario, uint64_t seed, struct ww_scene **out,
                          struct ww_error *err) WW_MUST_CHECK;
void ww_scene_destroy(struct ww_scene *scene);

/* Tells control the true curves, or what the scenario lets it know. */
void ww_scene_tell_truth(struct ww_scene *scene, bool truth);

/* ---- simulate_run.c ------------------------------------------------------------------------------------------------ */

/* The virtual second that has just been lived, from 0 on. */
static inline uint32_t ww_second_of(const struct ww_world_second *s)
{
	return (uint32_t)(s->at_us / WW_SECOND_US) - 1;
}

/* The ramp down that counts: protection events know none. */
int64_t ww_ramp_down_us(const struct ww_scenario_event *told);

/* What a job did in one window of time. */
struct ww_job_mean {
	double tps;    /* sum over the seconds in which it ran */
	uint32_t ran;  /* those seconds */
	uint32_t held; /* seconds in which it held its GPUs, pauses too */
	uint32_t to;   /* end of the last of them with power on all its machines, of the run; 0 = none */
};

/* Why a GPU draws less than its job did before. */
enum ww_dip { WW_DIP_PAUSE, WW_DIP_ENDED, WW_DIP_DARK, WW_N_DIPS }; /* dark: a machine of the job has no power */

/*
 * Of one event in one run. Times are virtual seconds; from `from` on the budget counts: its ramp has ended, or where it has
 * none or was announced late, settle + 5 s have passed. What it asks for is what the scenario announces, also while nobody
 * is in charge; only the baseline of a cut is control's.
 */
struct ww_event_run {
	const struct ww_scenario_event *told;  /* the last version */
	uint32_t announced, begins;            /* it is told; power is to fall, if that could be known by then */
	uint32_t first, from, end, over;       /* over: its ramp up has ended, perhaps after the scenario */
	uint32_t led;                          /* seconds from `announced` to `end` with a controller in charge */
	double measured_frac;                  /* of the minutes behind the baseline, by the meter; NAN = not known */
	double baseline_w, limit_w, missing_w; /* NAN = not known; missing as control said last while it was in force */
	double *power_w, *budget_w, *dips_w;   /* per second; the true power at the event's boundary */
	double dips_ws[WW_N_DIPS];             /* from `from` to `end`, of each kind */
	struct ww_job_mean *before, *during;   /* per job */
};

/* What the last decision of the main event says of a job, and its GPUs' mean cap. */
struct ww_job_end {
	double cut_frac, equal_cut_frac, cap_w, promised_frac, kept_floor_frac;
	uint8_t why; /* enum ww_why, of most of its GPUs */
};

/* What it says of a GPU. */
struct ww_cap_end {
	double cap_w;  /* as enforced */
	double trim_w; /* of its target, moved from others of its job */
	uint8_t why;   /* enum ww_why */
};

/* A row whose charges were above its budget, the guard spent, for longer than limits need to be read back: sums over all
 * such times. */
struct ww_row_missing {
	uint32_t seconds;     /* 0 = never that long */
	uint32_t first, last; /* of them */
	double most_w;        /* once limits could have been read back */
	double over_w;        /* the most true power in them above the row's own limit or an event's; below 0: never */
};

/* What came of a fault of the scenario. */
struct ww_fault_run {
	double counted_w; /* the most that control counted its GPUs with until they obeyed again; of a meter: the rest of its
	                     row, while it was not as it should be; NAN = of no GPU or meter */
	double again_s; /* from its beginning until its GPUs obeyed again, or a controller was in charge; NAN = never, or
	                     of a meter */
};

struct ww_run {
	enum ww_division division;
	uint32_t seconds, n_events, n_jobs, n_rows;
	uint32_t led; /* seconds with a controller in charge */
	struct ww_event_run *events;
	struct ww_row_missing *rows;
	double *tps;      /* of all jobs, per second */
	double *rate_tps; /* the same with jobs that pause at the rate before it */
	struct ww_job_end *ends;
	struct ww_cap_end *caps; /* per GPU */
	struct ww_world_account account;
	struct ww_fault_run *faults;   /* per fault of the scenario */
	struct ww_held *held;          /* per node; NULL = nothing goes wrong */
	struct ww_world_alarm *alarms; /* of its nodes */
	size_t n_alarms;
	enum ww_sim_state *states; /* of each job at the end */
	double *before_w; /* per GPU: its limit before the main event; NULL = it has none, or at the end another may last */
	double *after_w; /* per GPU: its limit at the end */
	bool *in_reach;  /* per node: at the end */
};

/* What is told while a run goes on. */
struct ww_run_watch {
	/* After each second. WW_ERR_* ends the run. */
	ww_status (*second)(void *ctx, const struct ww_scene *scene, const struct ww_run *run,
	                    const struct ww_world_second *s, struct ww_error *err);
	void *ctx;
	struct ww_buf *journal; /* NULL = none */
	uint32_t journal_from;  /* second in which it begins with the state of then; 0 = from the first one on */
};

/* Lives the scene once. */
ww_status ww_run_create(struct ww_scene *scene, enum ww_division division, const struct ww_run_watch *watch,
                        struct ww_run **out, struct ww_error *err) WW_MUST_CHECK;
void ww_run_destroy(struct ww_run *run);

/* What a watt of a node's GPUs is at the event's boundary, once everything has followed. */
double ww_at_boundary(const struct ww_scene *scene, const struct ww_scenario_event *told, uint32_t node);

/* How long limits need to be read back. */
uint32_t ww_settled_s(const struct ww_scene *scene);

/* The least budget in force on the row of the main event, at the boundary of that event: of all such events, and the row's own
 * limit where that is lower. NAN = none of them is in force, or its baseline is not known yet. */
double ww_run_budget_w(const struct ww_scene *scene, const struct ww_run *run, uint32_t second);

/* ---- simulate_faults.c: what went wrong, and what came of it -------------------------------------------------------- */

void ww_faults_begin(const struct ww_scene *scene, struct ww_run *run);
void ww_faults_measure(const struct ww_scene *scene, struct ww_run *run, const ww_world *world,
                       const struct ww_world_second *s);
void ww_faults_end(struct ww_run *run); /* frees */

/* Whether a GPU has a lower limit at the end than before the main event, and why; NULL = it has not, or nobody knows. */
const char *ww_left_capped(const struct ww_scene *scene, const struct ww_run *run, uint32_t gpu);

void ww_faults_print(const struct ww_scene *scene, const struct ww_run *run, FILE *out);
void ww_faults_json(const struct ww_scene *scene, const struct ww_run *run, ww_json *json); /* into the open object */

/* ---- simulate_held.c: watts that nobody else gets because of nodes that do not answer ------------------------------- */

/* Of one node. Seconds count in which it was out of reach for longer than limits need to be read back, and a controller was
 * in charge. */
struct ww_held {
	uint32_t out_s;   /* out of reach without a break until now */
	uint32_t seconds; /* of the main event, in which it was */
	double event_w;   /* the most that control charged for its GPUs in them */
	double end_w;     /* at the end of the run; 0 = it is in reach */
};

void ww_held_begin(const struct ww_scene *scene, struct ww_run *run);
void ww_held_measure(const struct ww_scene *scene, struct ww_run *run, const ww_world *world,
                     const struct ww_world_second *s);
void ww_held_print(const struct ww_scene *scene, const struct ww_run *run, FILE *out);
void ww_held_json(const struct ww_scene *scene, const struct ww_run *run, ww_json *json); /* into the open object */

/* ---- simulate_result.c --------------------------------------------------------------------------------------------- */

enum { WW_N_RUNS = WW_N_DIVISIONS };

/* The three runs of one seed, by enum ww_division. */
struct ww_simulated {
	struct ww_scene *scene;
	struct ww_run *runs[WW_N_RUNS];
	size_t main_event; /* that is reported: the first one on a row that carries every node, else the first; SIZE_MAX = none */
};

/* Power of one event in one run; NAN = not known, as of an event that never came into force. */
struct ww_event_figures {
	double baseline_w, budget_w;
	double measured_frac;          /* of the ten minutes behind the baseline, by the meter */
	double before_w, mean_w;       /* power in the hour before, and from the end of the ramp to the end */
	double worst_over_w;           /* largest power - budget from the end of the ramp to the end */
	double unused_frac, dips_frac; /* watts left unused, of the baseline; those of dips apart */
	double dip_frac[WW_N_DIPS];    /* of that, by each kind */
	double to_target_s,
		to_most_s;    /* from its start on, until power stays within the budget; within 95 % of the cut */
	double begins_s;      /* from its start to when the cut begins; below 0 = before it */
	double first_below_s; /* and to the first second below its limit that others follow to the start, or after it */
	double snapback_frac; /* highest minute of the hour after / highest minute of the hour before */
	double back_s; /* from the end of its ramp up, until tokens/s of the last minute are 99 % of the hour before */
	double missing_w; /* with everything at its lowest; 0 = feasible */
};
struct ww_event_figures ww_event_figures(const struct ww_run *run, size_t event);

/* Why there are no figures of an event, NULL where there are. Static. */
const char *ww_event_unmeasured(const struct ww_run *run, size_t event);

/* Jobs that were there during an event, but not to its end: they have ended, or a machine of theirs has no power. */
uint32_t ww_jobs_gone(const struct ww_run *run, size_t event);

/* Jobs that ran in the hour before an event and at the end of the run do not, by such a state. */
uint32_t ww_jobs_lost(const struct ww_run *run, size_t event, enum ww_sim_state state);

/* The extremes over all events that are measured. NAN = there is none, or for the time: one is never kept for good. */
struct ww_worst {
	double over_w, to_target_s;
	uint32_t floors_broken; /* jobs that broke theirs in any event */
};

/* Tokens/s of all jobs while they run, without their pauses: in the hour before the event, or from the end of its ramp to
 * its end. Jobs count by how long they hold their GPUs during the event, before it as well. NAN without an event. */
double ww_event_tps(const struct ww_scene *scene, const struct ww_run *run, size_t event, bool before);

/* The same of one job, as a share of what it does under the highest cap; NAN when it did not run during the event. */
double ww_job_kept(const struct ww_scene *scene, const struct ww_run *run, size_t event, uint32_t job);
bool ww_job_broke(const struct ww_scene *scene, const struct ww_run *run, size_t event, uint32_t job);
uint32_t ww_floors_broken(const struct ww_scene *scene, const struct ww_run *run, size_t event);
struct ww_worst ww_worst(const struct ww_scene *scene, const struct ww_run *run);

uint64_t ww_broken(const struct ww_run *run); /* seconds or steps in which an invariant was broken */

/* What the scenario's objective says of a run during an event, or before it: the sum that is to be as large as possible, and
 * the same as a share of what there is without caps: a mean, for `log` the geometric one, for `maxmin` the least. */
struct ww_value {
	double sum, kept_frac;
};
struct ww_value ww_event_value(const struct ww_scene *scene, const struct ww_run *run, size_t event, bool before);

/* The reason for a cut of a job, of enum ww_why, in words: those of control, but for a cut that is deeper than anything measured
 * because the equal cut is. Static. */
const char *ww_end_why_text(const struct ww_scene *scene, const struct ww_run *run, uint32_t job, uint8_t why);

/* Gains over the equal cut in terms of the objective: of wattweir and of the oracle. Where the oracle is less than 0.4 points
 * better than the equal cut, nothing is recovered: NAN. */
struct ww_gains {
	double gain, gap, recovered_frac;
};
struct ww_gains ww_gains(const struct ww_simulated *s);

/* Sentences about figures that look wrong and are not; NULL where there is nothing to say. Static. */
#define WW_ABOVE_ORACLE                                                                                                \
	"The oracle knows the curves of all jobs, but neither faults nor pauses to come: it is not the most that can " \
	"be had."
const char *ww_above_oracle(const struct ww_simulated *s);
const char *ww_fewer_tokens(const struct ww_simulated *s);

/* Whether a person should look at it: a budget, floor or invariant was broken, a row missed watts, or an event could not be
 * kept or was never taken. */
bool ww_needs_attention(const struct ww_simulated *s);

/* ---- simulate_watch.c: what is told while a run goes on ------------------------------------------------------------- */

/* Each path is NULL where it is not wanted. */
struct ww_watch_args {
	const char *who, *trace, *journal, *plot; /* trace or journal "-": standard output */
	uint32_t journal_from;
	bool live; /* slowly enough to be watched, also without a terminal */
};

typedef struct ww_watch ww_watch;

/* Opens the files. NULL after one error line. */
ww_watch *ww_watch_create(const struct ww_watch_args *args);

/* How a run is to be watched: a line about it on a terminal; the product's run also with trace and journal. */
struct ww_run_watch ww_watch_run(ww_watch *watch, enum ww_division division);

/* Trace and journal are whole, but not under their names yet. False after one error line. */
bool ww_watch_close(ww_watch *watch);

/* Draws the picture where one is wanted, not under its name yet. False after one error line. */
bool ww_watch_draw(ww_watch *watch, const struct ww_simulated *s);

/* All went well: the files appear under their names. False after one error line. */
bool ww_watch_finish(ww_watch *watch);
void ww_watch_destroy(ww_watch *watch);

/* ---- simulate_plot.c ----------------------------------------------------------------------------------------------- */

/* Power against the budget and tokens/s over time, as SVG into an open output. False after one error line. */
bool ww_simulated_plot(const struct ww_simulated *s, struct ww_output *to);

/* ---- simulate_print.c, simulate_json.c ----------------------------------------------------------------------------- */

void ww_simulated_print(const struct ww_simulated *s, FILE *out);
void ww_simulated_json(const struct ww_simulated *s, ww_json *json); /* into the open object */

/* ---- simulate_seeds.c: many seeds, and their sums ------------------------------------------------------------------- */

typedef struct ww_seeds ww_seeds;

ww_seeds *ww_seeds_create(bool json);
void ww_seeds_add(ww_seeds *seeds, const struct ww_simulated *s);
void ww_seeds_print(ww_seeds *seeds, FILE *out);
void ww_seeds_destroy(ww_seeds *seeds);

/* "at the meter" and the like. Static. */
const char *ww_boundary_words(uint8_t boundary);

/* "1:02:03". Returns `out`. */
#define WW_TEXT_TIME 32
char *ww_text_time(double seconds, char out[WW_TEXT_TIME]);

/* The main event of a scene; SIZE_MAX = it has none. */
size_t ww_scene_main_event(const struct ww_scene *scene);

#endif
