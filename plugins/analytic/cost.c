/* Cycles (8) and energy (9) of one design, with the charges that are no more than a formula. */
#include "kernel.h"

#include <string.h>

/* Rounded up, but for the noise of a number that is whole in mathematics. */
double whole(double cycles) { return ceil(cycles * (1.0 - 1e-12)); }

/* Cycles in which a unit passes so many positions, of which it takes some in a cycle each, and every `width` of the empty
 * ones between two of them in another one (charges/intersection.py). */
static double passed(const Run *run, double positions, double taken, double width) {
    if (!(width < INFINITY) || !(positions > 0.0)) return taken;
    double x = min2(1.0, taken / positions);
    double seen = x * width < 1e-6 ? x * width : 1.0 - power(run, 1.0 - x, width);
    double each = x > 0.0 ? x / positive(seen) : 1.0 / width;
    return max2(taken, positions * each);
}

/* `intersection`: cycles of the units, which are busy in some of their positions and pass the others by skips. */
static double looked_at(const Model *m, const Run *run, Design *x, double busy) {
    double steps = x->turns, positions = steps, width = INFINITY, waits[LEVELS + 1] = {0}, waited = 0.0;
    for (int i = 0; i < x->effects; i++) {
        const Effect *e = &x->effect[i];
        int t = (int)e->action->target, s = e->level, child = (int)m->child[t * m->S + s], gene = (int)e->action->gene;
        double limit = min2(m->lookahead[e->action->place], e->action->width[x->gene[gene]]), left = 1.0;
        if (e->kind != SKIP || t == m->output || !saves(m, e) || limit == INFINITY) continue;
        for (int outer = 0; outer < s; outer++) /* of several the innermost counts */
            if (x->saving->kind[t][outer] == SKIP) left = 1.0 - x->saving->share[t][outer];
        if (child < 0) {
            positions = min2(positions, steps * left);
            width = min2(width, limit);
            continue;
        }
        double tiles = x->brought[t][child] / x->words[t][child] * left;
        double taken = tiles * min2(1.0, (1.0 - e->still) / positive(left));
        waits[gene] = max2(waits[gene], passed(run, max2(tiles, taken), taken, limit) - taken);
    }
    if (unit_kind(m, x) == SKIP) {
        double reached = x->timed->left / x->units;
        waited = passed(run, positions, reached, width) - reached;
        positions = reached;
        width = min2(m->lookahead[m->S], m->at_unit.width[x->gene[m->unit]]);
    }
    for (int gene = 0; gene < m->A; gene++) waited = waited + waits[gene];
    return min2(whole(passed(run, positions, busy, width) + waited), steps);
}

/* Words that every level moves in time. */
static void demanded(const Model *m, Design *x) {
    const Counts *c = x->timed;
    const Removal *removal = x->differ ? &x->time : &x->energy;
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < m->S; s++) {
            int gated = removal->kind[t][s] == GATE;
            double read = c->read[t][s], written = c->fill[t][s] + c->update[t][s], word = m->word_bits[s];
            double read_bits = c->read_bits[t][s], written_bits = c->fill_bits[t][s] + c->update_bits[t][s];
            if (gated) {
                read = read + c->gone_read[t][s];
                written = written + c->gone_update[t][s];
                read_bits = read_bits + c->gone_read_bits[t][s];
                written_bits = written_bits + c->gone_update_bits[t][s];
            }
            x->demand_read[t][s] = read + floor(read_bits / word);
            x->demand_written[t][s] = written + floor(written_bits / word);
            x->demand_filled[t][s] = c->fill[t][s] + floor(c->fill_bits[t][s] / word);
            if (!m->ragged || !m->stored[t * m->S + s]) continue;
            double serves = x->gives[t][s], comes = x->gets[t][s];
            x->demand_read[t][s] *= serves;
            x->demand_written[t][s] *= t == m->output ? max2(serves, comes) : comes;
            x->demand_filled[t][s] *= comes;
        }
}

/* Cycles that a level needs. */
static double level_cycles(const Model *m, const Design *x, int s, double compute) {
    double busy = positive(compute), read = 0.0, written = 0.0, slowdown = 1.0;
    for (int t = 0; t < m->T; t++) {
        int alive = x->active[t][s] > 0.0;
        double share = x->used[s] / (alive ? x->active[t][s] : 1.0);
        double reads = (alive ? ceil(x->demand_read[t][s] / share) : 0.0) / busy;
        double writes = (alive ? ceil(x->demand_written[t][s] / share) : 0.0) / busy;
        read = t ? read + reads : reads;
        written = t ? written + writes : writes;
    }
    double bandwidth[3] = {m->read_bandwidth[s], m->write_bandwidth[s], m->bandwidth[s]}, words[3] = {read, written, read + written};
    for (int i = 0; i < 3; i++)
        if (bandwidth[i] != INFINITY) slowdown = fmin(slowdown, bandwidth[i] / max2(words[i], bandwidth[i]));
    return compute > 0.0 || slowdown < 1.0 ? ceil(busy / slowdown) : 0.0;
}

/* 8 */
void cycled(const Model *m, Run *run, Design *x) {
    const Counts *c = x->timed;
    double busy = c->actual + c->gated, units = x->units, *level = x->level_cycles, mean, compute, total;
    if (m->option[POSITIONS]) busy = busy + c->passed;
    compute = mean = m->ragged ? whole(busy / positive(units)) : ceil(busy / positive(units));
    if (m->option[IMBALANCE]) {
        thinned(m, run, x);
        double ratio = waiting_ratio(m, run, x);
        if (ratio > 1.0) compute = min2(whole(compute * ratio), x->turns);
    }
    if (m->option[INTERSECTION]) compute = looked_at(m, run, x, compute);
    demanded(m, x);
    total = compute;
    for (int s = 0; s < m->S; s++) {
        level[s] = level_cycles(m, x, s, compute);
        total = max2(total, level[s]);
    }
    if (m->option[OVERLAP]) total = max2(total, overlapped(m, run, x, mean, compute, level));
    x->compute_cycles = compute;
    x->cycles = total;
}

/* pJ of the accesses of one instance to a tensor at a level. */
static double access_energy(const Model *m, const Design *x, int t, int s) {
    const Counts *c = &x->counts[0];
    const double *price = m->price + s * PRICES;
    double count[5] = {c->read[t][s], c->fill[t][s], c->update[t][s], c->gone_read[t][s], c->gone_update[t][s]};
    double width = m->metadata_width[s];
    double spent = count[0] * price[READ] + count[1] * price[WRITE];
    int kind = x->energy.kind[t][s];
    spent = spent + count[2] * price[WRITE];
    if (kind != NONE) {
        spent = spent + count[3] * price[kind == GATE ? GATED_READ : SKIPPED_READ];
        spent = spent + count[4] * price[kind == GATE ? GATED_UPDATE : SKIPPED_UPDATE];
    }
    spent = spent + ceil(c->read_bits[t][s] / width) * price[METADATA_READ];
    spent = spent + ceil(c->fill_bits[t][s] / width) * price[METADATA_WRITE];
    spent = spent + ceil(c->update_bits[t][s] / width) * price[METADATA_WRITE];
    if (kind != NONE) {
        spent = spent + ceil(c->gone_read_bits[t][s] / width) * price[kind == GATE ? GATED_METADATA_READ : SKIPPED_METADATA_READ];
        spent = spent + ceil(c->gone_update_bits[t][s] / width) *
                            price[kind == GATE ? GATED_METADATA_UPDATE : SKIPPED_METADATA_UPDATE];
    }
    return spent;
}

/* `intersection`: an addition for every metadata access of a leader of a skip, and for every compute that a skip sees. */
static double compared_pj(const Model *m, const Design *x) {
    const Counts *c = &x->counts[0];
    double added = 0.0;
    for (int s = 0; s < m->S; s++)
        for (int t = 0; t < m->T; t++) {
            if (x->led[t][s] != SKIP) continue;
            added = added + ceil(c->read_bits[t][s] / m->metadata_width[s]) * x->active[t][s] * m->add_metadata[s];
        }
    if (unit_kind(m, x) == SKIP) added = added + (c->actual + c->skipped) * m->add_word[m->S];
    return added;
}

/* `leakage`: all memories leak as long as a design runs. */
static double leaked_pj(const Model *m, const Design *x) {
    double power = 0.0;
    for (int s = 0; s < m->S; s++) {
        double every = m->instances[s], here = x->used[s];
        power = power + (m->asleep[s] == 1.0 ? every : here + (every - here) * m->asleep[s]) * m->leakage[s];
    }
    return power * 1e9 / m->clock * x->cycles;
}

/* `gated`: what gated accesses and computes cost beyond their own price. */
static double gated_pj(const Model *m, const Design *x) {
    const Counts *c = &x->counts[0];
    double added = 0.0;
    for (int s = 0; s < m->S; s++)
        for (int t = 0; t < m->T; t++) {
            if (x->energy.kind[t][s] != GATE) continue;
            const double *extra = m->extra + s * 4; /* read, update, metadata read, metadata update */
            double spent = c->gone_read[t][s] * extra[0] + c->gone_update[t][s] * extra[1];
            spent = spent + ceil(c->gone_read_bits[t][s] / m->metadata_width[s]) * extra[2];
            spent = spent + ceil(c->gone_update_bits[t][s] / m->metadata_width[s]) * extra[3];
            added = added + spent * x->active[t][s];
        }
    return added + c->gated * m->gated_each + (m->option[POSITIONS] ? c->passed * m->gated_passed : 0.0);
}

/* Wires of an H-tree from its root to so many of the leaves, spread evenly. */
static double length_mm(double copies, double leaves, double side) {
    copies = min2(copies, leaves);
    double root = sqrt(copies);
    return side * (1.5 * (root - 1.0) + root - copies / sqrt(leaves));
}

/* `network`: words cross an H-tree over the square of a level's children; partial sums are added on the way. */
static double network_pj(const Model *m, const Design *x) {
    const Counts *c = &x->counts[0];
    double added = 0.0;
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < m->S; s++) {
            if (!m->stored[t * m->S + s]) continue;
            double down = c->read[t][s], up = c->update[t][s], spent = 0.0;
            if (t == m->output && m->option[DRAINS]) down = max2(down - c->leaving[s], 0.0);
            double bits = (down + up) * m->word_bits[s];
            bits = bits + c->read_bits[t][s];
            bits = bits + c->update_bits[t][s];
            int child = (int)m->child[t * m->S + s];
            for (int block = s; block < (child < 0 ? m->S : child); block++) {
                if (m->spatial[block] < 0) continue;
                double copies = max2(x->product[m->spatial[block]] / x->distinct[t][block], 1.0);
                spent = spent + bits * m->wire * length_mm(copies, m->fanout[block], m->side[block]);
                if (t == m->output) spent = spent + up * (copies - 1.0) * m->add_word[s];
                bits = bits * copies;
                up = up * copies;
            }
            added = added + spent * x->active[t][s];
        }
    return added;
}

/* 9 */
void costed(const Model *m, Run *run, Design *x) {
    const Counts *c = &x->counts[0];
    double energy = c->actual * m->mac[0] + c->gated * m->mac[1] + c->skipped * m->mac[2];
    (void)run;
    x->compute_pj = energy;
    for (int s = 0; s < m->S; s++)
        for (int t = 0; t < m->T; t++) {
            x->tile_pj[t][s] = 0.0;
            if (!m->stored[t * m->S + s]) continue;
            double tile = access_energy(m, x, t, s) * x->active[t][s];
            if (m->clustered) tile = tile * (min2(x->used[s], m->instances[s] / m->cluster[s]) / x->used[s]);
            x->tile_pj[t][s] = tile;
            energy = energy + tile;
        }
    if (m->option[INTERSECTION]) energy = energy + (x->charge_pj[0] = compared_pj(m, x));
    if (m->option[LEAKAGE]) energy = energy + (x->charge_pj[1] = leaked_pj(m, x));
    if (m->option[GATED]) energy = energy + (x->charge_pj[2] = gated_pj(m, x));
    if (m->option[NETWORK]) energy = energy + (x->charge_pj[3] = network_pj(m, x));
    x->energy_pj = energy;
}
