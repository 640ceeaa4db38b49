/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Newton's step on the dual. The curvature H = sum_j k_j w_j w_j' over the rows in use is gathered as a sparse matrix; the
 * quadratic model g's - s'Hs/2 is maximised over prices that stay >= 0 by conjugate gradients on the rows not fixed at 0,
 * with an incomplete factor from small rows to large ones, which is exact where rows nest.
 */
#include "core/allocate_internal.h"

#include <math.h>
#include <string.h>

#define CG_STEPS 60
#define FACE_TRUST 0.1    /* less damping for the next face when no price fell to 0 on this one */
#define PASSES 3          /* of relaxation before a face is chosen */
#define FACES 10          /* changes of the set of rows at price 0 */
#define FACE_DAMPING 0.03 /* of the diagonal: how far one face may be trusted */
#define LEAST_PIVOT 1e-4  /* of the diagonal */

/* ---- The curvature ------------------------------------------------------------------------------------------------------ */

static void choose_used(ww_alloc *a)
{
	for (size_t r = 0; r < a->n_rows; r++)
		a->curvature.used[r] = a->rows[r].priced && (a->price[r] > 0 || a->gradient[r] > 0);
}

static void gather_load(ww_alloc *a, uint32_t r, const struct load *load)
{
	struct curvature *c = &a->curvature;
	const struct answer *q = &a->answers[load->job];
	double kw = a->bend[load->job] * load->watts;
	if (q->n_loads > MOST_PAIRED_LOADS) {
		c->extra[r] += kw * load->watts;
		return;
	}
	for (const struct load *l = &a->loads[q->first], *end = l + q->n_loads; l < end; l++) {
		uint32_t other = l->row;
		if (other == r)
			c->diagonal[r] += kw * l->watts;
		if (!c->used[other] || c->rank[other] <= c->rank[r])
			continue;
		if (c->stamp[other] != r + 1) {
			c->stamp[other] = r + 1;
			c->slot[other] = c->n_pairs;
			c->column[c->n_pairs] = other;
			c->value[c->n_pairs++] = 0;
		}
		c->value[c->slot[other]] += kw * l->watts;
	}
}

static void gather(ww_alloc *a)
{
	struct curvature *c = &a->curvature;
	c->n_pairs = 0;
	memset(c->stamp, 0, a->n_rows * sizeof *c->stamp);
	for (size_t i = 0; i < a->n_rows; i++) {
		uint32_t r = a->small_first[i];
		const struct alloc_row *row = &a->rows[r];
		c->first[i] = c->n_pairs;
		c->diagonal[r] = c->extra[r] = 0;
		for (size_t k = row->first; c->used[r] && k < row->first + row->n_loads; k++)
			if (a->bend[a->by_row[k].job] > 0)
				gather_load(a, r, &a->by_row[k]);
		if (c->diagonal[r] + c->extra[r] <= 0)
			c->used[r] = false;
	}
	c->first[a->n_rows] = c->n_pairs;
}

static void times_long_jobs(const ww_alloc *a, const double *v, double *out)
{
	const struct curvature *c = &a->curvature;
	for (uint32_t i = 0; i < c->n_long; i++) {
		uint32_t job = c->long_jobs[i];
		const struct answer *q = &a->answers[job];
		double sum = 0;
		for (const struct load *l = &a->loads[q->first], *end = l + q->n_loads; l < end; l++)
			sum += l->watts * v[l->row];
		sum *= a->bend[job];
		for (const struct load *l = &a->loads[q->first], *end = l + q->n_loads; sum != 0 && l < end; l++)
			out[l->row] += l->watts * sum;
	}
}

/* out = (H + damping diag H) v; v is 0 in rows not in use, out means nothing there. */
static void times(const ww_alloc *a, const double *v, double damping, double *out)
{
	const struct curvature *c = &a->curvature;
	for (size_t r = 0; r < a->n_rows; r++)
		out[r] = ((1 + damping) * c->diagonal[r] + damping * c->extra[r]) * v[r];
	for (size_t i = 0; i < a->n_rows; i++) {
		uint32_t r = a->small_first[i];
		double sum = 0, at = v[r];
		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++) {
			sum += c->value[p] * v[c->column[p]];
			out[c->column[p]] += c->value[p] * at;
		}
		out[r] += sum;
	}
	times_long_jobs(a, v, out);
}

/* ---- The incomplete factor ---------------------------------------------------------------------------------------------- */

/* Takes row r's part off the pairs of a row behind it; slot and stamp hold r's own pairs. */
static void eliminate(struct curvature *c, uint32_t r, uint32_t pair)
{
	uint32_t other = c->column[pair], i = c->rank[other];
	double share = c->value[pair] == 0 ? 0 : c->factor[pair] / c->pivot[r];
	c->pivot[other] -= share * c->factor[pair];
	for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++)
		if (c->stamp[c->column[p]] == r + 1)
			c->factor[p] -= share * c->factor[c->slot[c->column[p]]];
}

static void factorise(ww_alloc *a)
{
	double damping = FACE_DAMPING + a->damping;
	struct curvature *c = &a->curvature;
	memset(c->stamp, 0, a->n_rows * sizeof *c->stamp);
	memcpy(c->factor, c->value, c->n_pairs * sizeof *c->factor);
	for (size_t r = 0; r < a->n_rows; r++)
		c->pivot[r] = (1 + damping) * (c->diagonal[r] + c->extra[r]);
	for (size_t i = 0; i < a->n_rows; i++) {
		uint32_t r = a->small_first[i];
		if (!c->used[r])
			continue;
		c->pivot[r] = max_of(c->pivot[r], LEAST_PIVOT * (c->diagonal[r] + c->extra[r]));
		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++) {
			c->stamp[c->column[p]] = r + 1;
			c->slot[c->column[p]] = p;
		}
		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++)
			eliminate(c, r, p);
		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++)
			c->factor[p] /= c->pivot[r];
	}
}

/* out = M^-1 v on the rows that are not fixed. */
static void precondition(const ww_alloc *a, const double *v, double *out)
{
	const struct curvature *c = &a->curvature;
	memcpy(out, v, a->n_rows * sizeof *out);
	for (size_t i = 0; i < a->n_rows; i++) {
		uint32_t r = a->small_first[i];
		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++)
			out[c->column[p]] -= c->factor[p] * out[r];
	}
	for (size_t i = a->n_rows; i-- > 0;) {
		uint32_t r = a->small_first[i];
		double sum = c->used[r] ? out[r] / c->pivot[r] : 0;
		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++)
			sum -= c->factor[p] * out[c->column[p]];
		out[r] = sum;
	}
	for (size_t r = 0; r < a->n_rows; r++)
		if (!c->used[r] || c->fixed[r])
			out[r] = 0;
}

/* ---- The step ---------------------------------------------------------------------------------------------------------- */

/* residual = g - H step on the rows that are free; returns whether a fixed row wants to leave 0. */
static void find_residual(const ww_alloc *a, const double *step, double *residual)
{
	times(a, step, a->damping, residual);
	for (size_t r = 0; r < a->n_rows; r++)
		residual[r] = a->curvature.used[r] ? a->gradient[r] - residual[r] : 0;
}

struct effort {
	double share, first; /* residuals, in the factor's measure: to be reached relative to the first one */
	double damping;      /* of the diagonal */
};

/* Conjugate gradients on the free rows, until the residual's size, in the factor's measure, is `enough`. */
static double solve_face(ww_alloc *a, double *step, double *residual, const struct effort *e)
{
	const struct curvature *c = &a->curvature;
	double damping = e->damping + a->damping, share = e->share, first = e->first;
	double *direction = a->work[2], *image = a->work[3], *z = a->work[4], rz = 0;
	for (size_t r = 0; r < a->n_rows; r++)
		if (c->fixed[r])
			residual[r] = 0;
	precondition(a, residual, z);
	for (size_t r = 0; r < a->n_rows; r++) {
		direction[r] = z[r];
		rz += residual[r] * z[r];
	}
	first = max_of(first, rz);
	for (int n = 0; n < CG_STEPS && rz > share * share * first; n++) {
		double curvature = 0, next = 0;
		times(a, direction, damping, image);
		for (size_t r = 0; r < a->n_rows; r++)
			curvature += direction[r] * image[r];
		if (!(curvature > 0))
			break;
		for (size_t r = 0; r < a->n_rows; r++) {
			step[r] += rz / curvature * direction[r];
			residual[r] = c->used[r] && !c->fixed[r] ? residual[r] - rz / curvature * image[r] : 0;
		}
		precondition(a, residual, z);
		for (size_t r = 0; r < a->n_rows; r++)
			next += residual[r] * z[r];
		for (size_t r = 0; r < a->n_rows; r++)
			direction[r] = z[r] + next / rz * direction[r];
		rz = next;
	}
	return first;
}

/*
 * One pass of projected Gauss and Seidel over the rows. `moved`: what rows moved in the last pass, of which smaller rows
 * have not heard yet.
 */
static void relax(ww_alloc *a, double *step, double *residual, double *moved)
{
	struct curvature *c = &a->curvature;
	for (size_t i = 0; i < a->n_rows; i++) {
		uint32_t r = a->small_first[i];
		if (!c->used[r])
			continue;
		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++)
			residual[r] -= c->value[p] * moved[c->column[p]];
		double diagonal = (1 + a->damping) * (c->diagonal[r] + c->extra[r]),
		       move = max_of(residual[r] / diagonal, -a->price[r] - step[r]);
		step[r] += move;
		moved[r] = move;
		residual[r] -= diagonal * move;
		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++)
			residual[c->column[p]] -= c->value[p] * move;
	}
}

/* Size of the residual, in steps that each row would take alone; rows that stay at 0 do not count. */
static double residual_size(const ww_alloc *a, const double *step, const double *residual)
{
	const struct curvature *c = &a->curvature;
	double sum = 0;
	for (size_t r = 0; r < a->n_rows; r++)
		if (c->used[r] && (residual[r] > 0 || a->price[r] + step[r] > 0))
			sum += residual[r] * residual[r] / (c->diagonal[r] + c->extra[r]);
	return sum;
}

void newton_step(ww_alloc *a, double *step, double share)
{
	struct curvature *c = &a->curvature;
	double *residual = a->work[1], first_size = 0;
	struct effort e = {.share = share, .damping = FACE_DAMPING};
	choose_used(a);
	gather(a);
	factorise(a);
	memset(step, 0, a->n_rows * sizeof *step);
	for (int face = 0; face < FACES; face++) {
		find_residual(a, step, residual);
		double size = residual_size(a, step, residual);
		first_size = face ? first_size : size;
		if (size <= share * share * first_size)
			break;
		memset(a->work[2], 0, a->n_rows * sizeof *step);
		for (int pass = 0; pass < PASSES; pass++)
			relax(a, step, residual, a->work[2]);
		find_residual(a, step, residual);
		for (size_t r = 0; r < a->n_rows; r++)
			c->fixed[r] = a->price[r] + step[r] <= 0 && residual[r] <= 0;
		e.first = solve_face(a, step, residual, &e);
		bool fell = false;
		for (size_t r = 0; r < a->n_rows; r++) {
			fell = fell || step[r] < -a->price[r];
			step[r] = max_of(step[r], -a->price[r]);
		}
		e.damping *= fell ? 1 : FACE_TRUST;
	}
}
