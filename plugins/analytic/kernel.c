/* The door of the compiled model: `evaluate` takes what `compiled.py` made, one batch at a time. */
#define HELD 512
#include "../../sparsemap/native.h"
#include "kernel.h"

enum { OPEN, DONE, OTHER }; /* what is known of a design: nothing yet, all, that it is for NumPy */

/* A buffer, or an exception. */
static Py_buffer *known(Py_buffer *found) {
    if (!found) PyErr_SetString(PyExc_ValueError, "not such an array, or too many");
    return found;
}

/* The numbers of an array in one piece, of one of the `kinds`; NULL and an exception if it is not. */
static void *piece(Views *views, PyObject *array, const char *kinds, Py_ssize_t *count, int writes) {
    const Py_buffer *found = known(view(views, array, kinds, 0, writes));
    if (found) *count = found->len / found->itemsize;
    return found ? found->buf : NULL;
}

/* Runs of whole and real numbers, one after the other, in the order in which `compiled.py` lays them out. */
typedef struct {
    const int64_t *whole;
    const double *real;
    Py_ssize_t wholes, reals;
} Cursor;

static const int64_t *ints(Cursor *c, Py_ssize_t count) {
    const int64_t *found = c->whole;
    c->wholes -= count;
    if (c->wholes >= 0) c->whole += count;
    return found;
}

static const double *reals(Cursor *c, Py_ssize_t count) {
    const double *found = c->real;
    c->reals -= count;
    if (c->reals >= 0) c->real += count;
    return found;
}

enum { SIZES = 15, FLAGS = 9 };

/* Whether the numbers are a model of which all sizes are within limits. */
static int model_of(Cursor *c, Model *m) {
    if (c->wholes < SIZES + FLAGS + OPTIONS) return 0;
    const int64_t *n = ints(c, SIZES), *flag = ints(c, FLAGS), *option = ints(c, OPTIONS);
    for (int i = 0; i < SIZES; i++)
        if (n[i] < -1 || n[i] > 4096) return 0;
    m->D = (int)n[0], m->T = (int)n[1], m->S = (int)n[2], m->L = (int)n[3], m->R = (int)n[4], m->A = (int)n[5];
    m->M = (int)n[6], m->F = (int)n[7], m->output = (int)n[8], m->actions = (int)n[9], m->needs = (int)n[10];
    m->beyond = (int)n[11], m->unit = (int)n[12], m->lanes = (int)n[13], m->lane_count = (int)n[14];
    m->operands = m->T - 1;
    if (m->D < 1 || m->D > DIMS || m->T < 2 || m->T > TENSORS || m->S < 1 || m->S > LEVELS || m->L < m->S || m->L > GROUPS ||
        m->R < 1 || m->R > SLOTS || m->A > LEVELS + 1 || m->A < 0 || m->M < 1 || m->M > 127 || m->F < 1 || m->F > 127 ||
        m->actions < 0 || m->actions > ACTIONS || m->output < 0 || m->output >= m->T)
        return 0;
    m->every_fiber = (int)flag[0], m->pads = (int)flag[1], m->blocks = (int)flag[2], m->groups = (int)flag[3];
    m->padded = (int)flag[4], m->ends = (int)flag[5], m->one_word = (int)flag[6], m->copied = (int)flag[7];
    m->clustered = (int)flag[8];
    for (int i = 0; i < OPTIONS; i++) m->option[i] = (int)option[i];
    int D = m->D, T = m->T, S = m->S, L = m->L, A = m->A, M = m->M, F = m->F;
    m->temporal = ints(c, S), m->spatial = ints(c, S), m->block = ints(c, L), m->inwards = ints(c, L);
    m->relevant = ints(c, T * D), m->ranks = ints(c, T), m->terms = ints(c, T * D * 5);
    m->windowed = ints(c, T), m->strided = ints(c, T), m->straight = ints(c, T), m->by_shape = ints(c, T), m->stored = ints(c, T * S);
    m->parent = ints(c, T * S), m->child = ints(c, T * S), m->spans = ints(c, T * S), m->home = ints(c, T);
    m->operand = ints(c, m->operands), m->factor_bit = ints(c, D), m->fanout_bit = ints(c, L), m->order_bit = ints(c, T);
    m->entry_bit = ints(c, T), m->place_bit = ints(c, A), m->capacity_bit = ints(c, S), m->metadata_bit = ints(c, S), m->group_level = m->block;
    m->form_compressed = ints(c, F), m->form_padded = ints(c, F), m->form_anywhere = ints(c, F), m->form_linked = ints(c, F);
    m->form_offsets = ints(c, F), m->form_ends = ints(c, F), m->form_own = ints(c, F), m->form_one_word = ints(c, F);
    m->form_row = ints(c, 4 * F), m->gaps = ints(c, T * D), m->cut = ints(c, T * D), m->need = ints(c, m->needs * (3 + M));
    m->depth = ints(c, S * T), m->steals = ints(c, S), m->rank_of = ints(c, T * D);
    m->alike = ints(c, m->operands * (D + 1)), m->alikes = m->shares = 0;
    m->sizes = reals(c, D), m->form_block = reals(c, F), m->form_group = reals(c, F), m->density = reals(c, T);
    m->rounded = reals(c, T), m->room = reals(c, T), m->copies = reals(c, T * S);
    m->lane_logs = reals(c, m->lanes), m->deviations = reals(c, m->lanes), m->normal_means = reals(c, m->lanes),
    m->normal_deviations = reals(c, m->lanes), m->bit_count = (int)ints(c, 1)[0];
    m->bits = reals(c, m->bit_count), m->lane_one = (int)ints(c, 1)[0], m->lane_two = (int)ints(c, 1)[0];
    m->normals = (int)ints(c, 1)[0], m->normal_at = reals(c, m->normals), m->normal_below = reals(c, m->normals);
    m->limits = reals(c, m->operands * D), m->rare = reals(c, m->operands), m->blocks_of = reals(c, m->operands * D);
    m->last = reals(c, D + 1), m->ragged = 0;
    for (int i = 0; i < m->actions + (m->unit >= 0); i++) {
        Action *a = i < m->actions ? &m->action[i] : &m->at_unit;
        const int64_t *about = ints(c, 5);
        a->gene = about[0], a->target = about[1], a->level = about[2], a->place = about[3], a->leaders = about[4];
        a->leader = ints(c, TENSORS), a->holder = ints(c, TENSORS);
        a->kind = ints(c, M), a->blind = ints(c, M), a->passes = ints(c, M), a->plain = ints(c, M), a->width = reals(c, M);
        a->lookahead = reals(c, M), a->effectiveness = reals(c, M);
        if (c->wholes < 0) return 0;
        if (a->leaders < 0 || a->leaders > TENSORS) return 0;
    }
    /* the chip */
    m->fanout = reals(c, S), m->data_words = reals(c, S), m->capacity = reals(c, S), m->shared = reals(c, S);
    m->metadata_capacity = reals(c, S), m->word_bits = reals(c, S), m->metadata_width = reals(c, S);
    m->cluster = reals(c, S), m->instances = reals(c, S), m->read_bandwidth = reals(c, S);
    m->write_bandwidth = reals(c, S), m->bandwidth = reals(c, S), m->lookahead = reals(c, S + 1);
    m->price = reals(c, S * PRICES), m->mac = reals(c, 3), m->extra = reals(c, S * 4), m->leakage = reals(c, S);
    m->asleep = reals(c, S), m->side = reals(c, S), m->add_word = reals(c, S + 1), m->add_metadata = reals(c, S);
    const double *last = reals(c, 4);
    if (c->wholes || c->reals) return 0;
    for (int i = 0; i < m->operands; i++) m->alikes |= m->alike[i * (D + 1)] != 0;
    for (int d = 0; d < D; d++) m->ragged |= m->last[d] < m->sizes[d];
    for (int s = 0; s < S; s++) m->shares |= m->steals[s] && m->spatial[s] >= 0;
    m->clock = last[0], m->gated_each = last[1], m->gated_passed = last[2], m->wire = last[3];
    return 1;
}

/* A table with so many columns from (places, data, width of what it is asked for). */
static int table_of(Views *views, PyObject *from, int columns, Table *found) {
    memset(found, 0, sizeof *found);
    if (from == Py_None) return 1;
    if (!PyTuple_Check(from) || PyTuple_GET_SIZE(from) != 3) return 0;
    found->width = (int)PyLong_AsLong(PyTuple_GET_ITEM(from, 2));
    return lookup(views, PyTuple_GET_ITEM(from, 0), PyTuple_GET_ITEM(from, 1), columns, &found->known) && found->width > 0;
}

/* One design, as far as the tables know it: the reasons against it, energy and cycles; OPEN where they lack something. */
static int evaluated(const Model *m, Run *run, Design *x, uint64_t *reasons, double *energy, double *cycles) {
    x->lacking = x->odd = 0;
    *reasons = checked(m, x);
    *energy = *cycles = INFINITY;
    if (*reasons) return DONE;
    nest(m, x);
    stored(m, run, x);
    if (x->odd) return OTHER;
    if (x->lacking && data_capacity_dense(m, x)) return OPEN; /* it may not fit: nothing else is asked of it */
    *reasons = x->lacking ? 0 : data_capacity(m, x);
    if (*reasons) return DONE;
    filters(m, run, x);
    metadata(m, run, x);
    traffic(m, run, x);
    if (x->odd) return OTHER;
    if (x->lacking) { /* what the work needs is asked for as well */
        if (m->option[IMBALANCE]) thinned(m, run, x), waiting_ratio(m, run, x);
        return OPEN;
    }
    *reasons = metadata_capacity(m, x);
    if (*reasons) return DONE;
    counted(m, run, x);
    cycled(m, run, x);
    if (x->odd) return OTHER;
    if (x->lacking) return OPEN;
    costed(m, run, x);
    if (!(x->energy_pj < INFINITY && x->cycles < INFINITY)) return OTHER;
    *energy = x->energy_pj;
    *cycles = x->cycles;
    return DONE;
}

/* How many numbers `told` writes, as `Kernel.told` in compiled.py reads them. */
static int told_count(const Model *m) { return 2 + CHARGES + 1 + 3 * m->S + 2 * m->T * m->S; }

/* Where energy and cycles of a design come from, and what its levels hold. */
static void told(const Model *m, const Design *x, double *out) {
    *out++ = x->compute_pj, *out++ = x->compute_cycles;
    for (int i = 0; i < CHARGES; i++) *out++ = x->charge_pj[i];
    for (int s = 0; s <= m->S; s++) *out++ = x->used[s];
    for (int s = 0; s < m->S; s++) *out++ = x->level_cycles[s];
    for (int s = 0; s < m->S; s++) *out++ = held_at(m, x->largest_bits, s);
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < m->S; s++) *out++ = x->tile_pj[t][s];
    for (int t = 0; t < m->T; t++)
        for (int s = 0; s < m->S; s++) *out++ = x->most[t][s];
}

/* Fills in the loops and choices of design b of B; whether all are within bounds. */
static int decoded(const Model *m, Design *x, const double *bounds, const int8_t *order, const int8_t *slots, const int8_t *genes,
                   Py_ssize_t b, Py_ssize_t B) {
    for (int g = 0; g < m->L; g++) {
        int seen = 0;
        for (int d = 0; d < m->D; d++) {
            x->bound[g][d] = bounds[(g * m->D + d) * B + b];
            int at = x->order[g][d] = order[(g * m->D + d) * B + b];
            if (at < 0 || at >= m->D || !(x->bound[g][d] >= 1.0)) return 0;
            seen |= 1 << at;
        }
        if (seen != (1 << m->D) - 1) return 0;
    }
    for (int t = 0; t < m->T; t++)
        for (int r = 0; r < m->R; r++) {
            int form = x->slot[t][r] = slots[(t * m->R + r) * B + b];
            if (form < 0 || form >= m->F) return 0;
        }
    for (int a = 0; a < m->A; a++) {
        int gene = x->gene[a] = genes[a * B + b];
        if (gene < 0 || gene >= m->M) return 0;
    }
    return 1;
}

/* The lists of all tables that lack something: [(place, bytes of rows of doubles)], places in the order of `fill`. */
static int listed(PyObject *lists, Table *table, int place) {
    if (!table->lacks) return 1;
    PyObject *bytes = PyBytes_FromStringAndSize((char *)table->lacking, table->lacks * table->width * (Py_ssize_t)sizeof(double));
    PyObject *entry = bytes ? Py_BuildValue("(iN)", place, bytes) : NULL;
    int good = entry && PyList_Append(lists, entry) == 0;
    Py_XDECREF(entry);
    return good;
}

enum { KINDS = 5 }; /* tables of a tensor: tile, empty, largest, longest, unit */
enum { TILE = 16, UNITS = 9 }; /* columns of the first and of the last */

/* evaluate(wholes, reals, ufuncs, factors, tables, bounds, order, slots, genes; state, energy, cycles, reasons, told)
 *
 * `tables`: five of every tensor, then one of every rank of every tensor (D places for each), then one of every operand,
 * that of meetings and that of ratios. Evaluates the designs that are OPEN in `state`, and returns what tables lack for those
 * that stay so, and all new ratios; None: not a model that is known here. `told` may be empty. */
static PyObject *evaluate(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    static Views views; /* with the GIL held */
    static Model model;
    Model *m = &model;
    Run *run = NULL;
    Design *x = NULL;
    PyObject *found = NULL, *lists = NULL;
    Cursor cursor;
    Py_ssize_t n, B, sizes[4], out[5];
    views.count = 0;
    if (nargs != 14) {
        PyErr_SetString(PyExc_TypeError, "evaluate takes 14 arguments");
        return NULL;
    }
    run = calloc(1, sizeof *run);
    x = calloc(1, sizeof *x);
    if (!run || !x) {
        PyErr_NoMemory();
        goto end;
    }
    if (!(cursor.whole = piece(&views, args[0], "lq", &cursor.wholes, 0)) || !(cursor.real = piece(&views, args[1], "d", &cursor.reals, 0)))
        goto end;
    if (!model_of(&cursor, m)) goto unknown;
    if (!PyTuple_Check(args[2]) || PyTuple_GET_SIZE(args[2]) != 6 || !ufunc(PyTuple_GET_ITEM(args[2], 0), 2, &run->power) ||
        !ufunc(PyTuple_GET_ITEM(args[2], 1), 1, &run->log2) || !ufunc(PyTuple_GET_ITEM(args[2], 2), 1, &run->exp) ||
        !ufunc(PyTuple_GET_ITEM(args[2], 3), 2, &run->hypot) || !ufunc(PyTuple_GET_ITEM(args[2], 4), 1, &run->log1p) ||
        !ufunc(PyTuple_GET_ITEM(args[2], 5), 1, &run->log))
        goto unknown;
    if (!(run->factors = piece(&views, args[3], "lq", &n, 0))) goto end;
    if (n < FACTORS || !PyList_Check(args[4]) || PyList_GET_SIZE(args[4]) != m->T * (KINDS + m->D) + m->operands + 2) goto unknown;
    Table *tables[TENSORS * (KINDS + DIMS) + TENSORS + 1];
    int count = 0, columns[TENSORS * (KINDS + DIMS) + TENSORS + 1];
    for (int t = 0; t < m->T; t++) {
        Table *own[KINDS] = {&run->tile[t], &run->empty[t], &run->largest[t], &run->longest[t], &run->unit[t]};
        for (int i = 0; i < KINDS; i++) columns[count] = i == 0 ? TILE : i == 4 ? UNITS : 1, tables[count++] = own[i];
        for (int r = 0; r < m->D; r++) columns[count] = 1, tables[count++] = &run->gap[t][r];
    }
    for (int i = 0; i < m->operands; i++) columns[count] = work_width(m), tables[count++] = &run->work[i];
    columns[count] = m->lane_count, tables[count++] = &run->meeting;
    columns[count] = 1, tables[count++] = &run->ratio;
    for (int i = 0; i < count; i++)
        if (!table_of(&views, PyList_GET_ITEM(args[4], i), columns[i], tables[i])) {
            if (PyErr_Occurred()) goto end;
            goto unknown;
        }
    const double *bounds = piece(&views, args[5], "d", &sizes[0], 0);
    const int8_t *order = bounds ? piece(&views, args[6], "b", &sizes[1], 0) : NULL;
    const int8_t *slots = order ? piece(&views, args[7], "b", &sizes[2], 0) : NULL;
    const int8_t *genes = slots ? piece(&views, args[8], "b", &sizes[3], 0) : NULL;
    int8_t *state = genes ? piece(&views, args[9], "b", &out[0], 1) : NULL;
    double *energy = state ? piece(&views, args[10], "d", &out[1], 1) : NULL;
    double *cycles = energy ? piece(&views, args[11], "d", &out[2], 1) : NULL;
    uint64_t *reasons = cycles ? piece(&views, args[12], "LQ", &out[3], 1) : NULL;
    double *rows = reasons ? piece(&views, args[13], "d", &out[4], 1) : NULL;
    if (!rows) goto end;
    B = out[0];
    if (sizes[0] != m->L * m->D * B || sizes[1] != sizes[0] || sizes[2] != m->T * m->R * B || sizes[3] != m->A * B || out[1] != B ||
        out[2] != B || out[3] != B || (out[4] && out[4] != B * told_count(m)))
        goto unknown;
    run->asked_bits = 8;
    run->asked = calloc((size_t)1 << run->asked_bits, sizeof *run->asked);
    size_t most = (size_t)m->T * m->S * (m->L * m->D + 1);
    x->entry = malloc(most * sizeof *x->entry);
    x->asked = malloc(most * sizeof *x->asked);
    x->rank = malloc((size_t)m->T * LOOPS * sizeof *x->rank);
    if (!run->asked || !x->entry || !x->asked || !x->rank) {
        PyErr_NoMemory();
        goto end;
    }
    for (Py_ssize_t b = 0; b < B && !run->failed; b++) {
        if (state[b] != OPEN) continue;
        state[b] = (int8_t)(decoded(m, x, bounds, order, slots, genes, b, B)
                                ? evaluated(m, run, x, &reasons[b], &energy[b], &cycles[b])
                                : OTHER);
        if (out[4] && state[b] == DONE && !reasons[b]) told(m, x, rows + b * told_count(m));
    }
    if (run->failed) {
        PyErr_NoMemory();
        goto end;
    }
    if (!(lists = PyList_New(0))) goto end;
    for (int i = 0; i < count; i++)
        if (!listed(lists, tables[i], i)) goto end;
    found = lists;
    lists = NULL;
    goto end;
unknown:
    found = Py_NewRef(Py_None);
end:
    Py_XDECREF(lists);
    if (run) {
        for (int t = 0; t < TENSORS; t++) {
            Table *own[] = {&run->tile[t], &run->empty[t], &run->largest[t], &run->longest[t], &run->unit[t], &run->work[t]};
            for (size_t i = 0; i < sizeof own / sizeof *own; i++) free(own[i]->lacking);
            for (int r = 0; r < DIMS; r++) free(run->gap[t][r].lacking);
        }
        free(run->meeting.lacking);
        free(run->ratio.lacking);
        free(run->asked);
        free(run);
    }
    if (x) {
        free(x->entry);
        free(x->asked);
        free(x->rank);
    }
    free(x);
    release(&views);
    return found;
}

MODULE(kernel, DOOR(evaluate))
