/* SPDX-License-Identifier: Apache-2.0 */
/* CLP as the judge of the allocator, for tests and benchmarks only: the linear program over chords of the loss curves. */
#ifndef WW_TESTS_ORACLE_CLP_H
#define WW_TESTS_ORACLE_CLP_H

#include "instances.h"

enum oracle_method {
	ORACLE_DUAL,     /* Clp_initialDualSolve */
	ORACLE_AUTOMATIC /* Clp_initialSolve */
};

struct oracle_task {
	const struct instance *instance;
	const double *lo, *hi;       /* bounds per job */
	const double *need_w;        /* cut per row, last the site */
	enum ww_objective objective; /* not MAXMIN */
	unsigned chords;             /* per job, narrower near lo */
	enum oracle_method method;
};

struct oracle_answer {
	bool solved;
	double value;   /* of the objective on the chords: never above the optimum on the curves */
	double seconds; /* of the processor, in the solver alone */
	int iterations;
};

/* `cut` receives the division. */
struct oracle_answer oracle_solve(const struct oracle_task *task, double *cut);

#endif
