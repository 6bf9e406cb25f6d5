/* Units of ranks (6.2) whose formats are lists of positions (`declarative/codes.py`): the sums over the occupancies of a tile
 * in one pass, with the numbers of `occupancy/expected.py` to the last bit. Logarithms and exponentials are NumPy's own loops.
 *
 * Every function takes arrays that `occupancy/listed.py` has made; it returns None where one is not what it knows, or where
 * units are no numbers from 0 on: NumPy then says what is wrong.
 */
#include "../../sparsemap/native.h"

#include <math.h>

#include "../../sparsemap/loops.h"

enum { BLOCK = 128 }; /* points at once */
enum { ALL, MASK, COORDINATES, RUNS }; /* as `LISTS` has them */
enum { NOTHING, MARKER, SAME, EVEN, COUNT, PARENT }; /* what tells where a fiber ends, as `ENDS` has it */
/* what a format is */
enum { GROUPED, UPPER, UPPER_END, LIST, END, TOLD, PADDED, COMPRESSED, CODES };
/* what is known of a rank at any occupancy; those of the list of groups, and of the list in a group or fiber */
enum { SLOTS, LENGTH, LONGEST, GROUPS_OF, UPPER_WIDTH, UPPER_COUNT, INNER, WIDTH, COUNT_BITS, MOST, USUAL, COORD_BITS,
       READABLE, READABLE_EVEN, NUMBERS };
/* where numbers of its tile begin, and how many there are; those of its largest occupancy */
enum { AT_P, AT_BOX, AT_BELOW, AT_GROUP, SIZE, MERGED, FORMAT, PLACES };
enum { BOX, BELOW, GROUP, LARGEST };

typedef struct {
    Ufunc exp, expm1, log1p;
} Loops;

/* Bits of what tells the ends of fibers, of so many bits an entry and a count (`Counted.header`). */
static double header(int64_t end, double fibers, double width, double count, int even) {
    if (end == MARKER) return fibers * width;
    if (end == SAME) return min2(fibers, 1.0) * count;
    if (end == COUNT || end == PARENT || (end == EVEN && !even)) return fibers * count;
    return 0.0;
}

/* Tokens of a fiber where a whole number of the tile's few positions holds something (`runs._drawn`). */
static double drawn(double length, double filled, double most, int told, double positions) {
    double hold = filled * positions, found = length * filled, empty = 1.0, escape = most;
    for (double m = 0.0; m <= length; m += 1.0) {
        double left = positions - m, longer = empty * (max2(left - hold, 0.0) / max2(left, 1.0));
        if (m == escape) {
            double both = empty - longer;
            found += (length - m) * both;
            if (!told) found += empty - (m < length ? both : empty);
            escape += most;
        }
        if (!told && m == 0.0) found += longer;
        empty = longer;
    }
    return found;
}

/* Tokens of fibers whose positions hold something with these probabilities (`runs.tokens`), n <= BLOCK. */
static void tokens(const Loops *f, double length, double most, int told, double positions, const double *filled, int n, double *found) {
    double run[BLOCK], x[BLOCK], gap[BLOCK], last[BLOCK], ends[BLOCK], none[BLOCK], at[BLOCK];
    double whole = floor(length / most), exact = whole * most == length;
    for (int i = 0; i < n; i++) at[i] = -filled[i];
    all_one(&f->log1p, at, n, run);
    for (int i = 0; i < n; i++) run[i] = most * run[i];
    all_one(&f->expm1, run, n, gap);
    all_one(&f->exp, run, n, x);
    for (int i = 0; i < n; i++) at[i] = whole > 0.0 ? run[i] * whole : 0.0;
    all_one(&f->exp, at, n, last);
    if (!told && exact) {
        for (int i = 0; i < n; i++) at[i] = whole - 1.0 > 0.0 ? run[i] * (whole - 1.0) : 0.0;
        all_one(&f->exp, at, n, ends);
        for (int i = 0; i < n; i++) at[i] = filled[i] < 1.0 ? run[i] / most * length : 0.0;
        all_one(&f->exp, at, n, none);
    }
    for (int i = 0; i < n; i++) {
        double p = filled[i], left = -gap[i], safe = whole * left < 1e-5 ? 1.0 : left, escapes = whole;
        double weighted = whole * (whole + 1.0) / 2.0;
        if (!(whole * left < 1e-5)) {
            escapes = x[i] * (1.0 - last[i]) / safe;
            weighted = x[i] * (1.0 - (whole + 1.0) * last[i] + whole * last[i] * x[i]) / (safe * safe);
        }
        if (positions <= 64.0 && p > 0.0 && (most > 1.0 || told)) {
            found[i] = drawn(length, p, most, told, positions);
            continue;
        }
        if (told) {
            found[i] = length * p + p * (length * escapes - most * weighted);
            continue;
        }
        double before = escapes, all = 0.0;
        if (exact) {
            double fewer = whole - 1.0;
            before = fewer * left < 1e-5 ? fewer : x[i] * (1.0 - ends[i]) / left;
            all = p < 1.0 ? none[i] : 0.0;
        }
        found[i] = length * p + escapes * (1.0 + p * length) - p * most * weighted + (1.0 - p) - p * before - all;
    }
}

/* The width of a token that takes the fewest bits (`runs.best_bits`). */
static double best_bits(const Loops *f, double length, double usual, double most_bits) {
    double best = 1.0, least = INFINITY, filled = min2(max2(usual, 0.0), 1.0), found;
    for (double bits = 1.0; bits <= 32.0; bits *= 2.0) {
        if (bits > most_bits && bits > 1.0) continue;
        tokens(f, length, ldexp(1.0, (int)bits) - 1.0, 0, INFINITY, &filled, 1, &found);
        if (bits * found < least) best = bits, least = bits * found;
    }
    return best;
}

/* Bits of a format at n <= BLOCK points (`ExpressionFormat.encoded`), and how many offsets it has; whether groups are equally full at
 * the last point. */
static int counted(const Loops *f, const int64_t *code, const double *rank, int n, const double *fibers, const double *occupied,
                    const double *groups, double *bits, double *offsets) {
    double filled[BLOCK] = {0.0}, each[BLOCK], slots = rank[SLOTS], length = rank[LENGTH], inner = rank[INNER], width = rank[WIDTH];
    int even = 0;
    double count = rank[GROUPS_OF], all = code[GROUPED] ? slots * count : slots, most = rank[MOST], of_none = 0.0;
    if (code[LIST] == RUNS) {
        for (int i = 0; i < n; i++) {
            double held = slots * occupied[i];
            if (code[PADDED]) held = max2(held, fibers[i] * rank[LONGEST]);
            filled[i] = min2(max2(held / (all * inner), 0.0), 1.0);
        }
        tokens(f, inner, most, (int)code[TOLD], all * inner, filled, n, each);
        of_none = code[TOLD] ? 0.0 : ceil(inner / most);
    }
    for (int i = 0; i < n; i++) {
        double there = fibers[i], held = slots * occupied[i], upper = 0.0, own = 0.0;
        offsets[i] = there + (code[COMPRESSED] ? held : there * length);
        if (code[PADDED]) held = max2(held, there * rank[LONGEST]);
        if (code[GROUPED]) {
            double some = min2(slots * groups[i], there * count), of_each = held / max2(slots * count, 1e-300);
            even = fmod(length, inner) == 0.0 && groups[i] >= count * (1.0 - 1e-12) && fabs(of_each - rint(of_each)) < 1e-9;
            if (code[UPPER] == MASK) upper = there * count * rank[UPPER_WIDTH];
            if (code[UPPER] == COORDINATES)
                upper = some * rank[UPPER_WIDTH] + header(code[UPPER_END], there, rank[UPPER_WIDTH], rank[UPPER_COUNT], even);
            there = code[UPPER] == ALL ? there * count : some;
        }
        double ends = header(code[END], there, width, rank[COUNT_BITS], even);
        if (code[LIST] == MASK) own = there * inner * width;
        if (code[LIST] == COORDINATES) own = held * width + ends;
        if (code[LIST] == RUNS) own = max2(all * each[i] - (all - there) * of_none, 0.0) * width + ends;
        bits[i] = upper + own;
    }
    return even;
}

/* Of one column: the sum of p times it, its value at the largest occupancy, and the one that it has at all others, or NaN. */
typedef struct {
    double total, largest, steady;
} Sum;

static int add(Sum *sum, const double *p, const double *column, int n, int starts, int ends) {
    if (starts) sum->steady = column[0];
    for (int i = 0; i < n; i++) {
        if (!(column[i] >= 0.0 && column[i] < INFINITY)) return 0;
        sum->total += p[i] * column[i];
        if (!(ends && i == n - 1) && column[i] != sum->steady) sum->steady = NAN;
    }
    if (ends) sum->largest = column[n - 1];
    return 1;
}

static double of(int actual, double held, double there) { return actual ? min2(1.0, held / positive(there)) : held; }

typedef struct {
    Py_buffer *chances, *lists, *places, *numbers, *largest;
} Given;

/* The arrays that all functions take; whether they fit each other. */
static int given(Views *views, PyObject *const *args, Given *g) {
    if (!(g->chances = view(views, args[0], "d", 1, 0)) || !(g->lists = view(views, args[1], "d", 1, 0)) ||
        !(g->places = view(views, args[2], "lq", 2, 0)) || !(g->numbers = view(views, args[3], "d", 2, 0)) ||
        !(g->largest = view(views, args[4], "d", 2, 0)))
        return 0;
    Py_ssize_t n = g->places->shape[0];
    if (g->places->shape[1] != PLACES || g->numbers->shape[0] != n || g->numbers->shape[1] != NUMBERS || g->largest->shape[0] != n ||
        g->largest->shape[1] != LARGEST)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        const int64_t *at = (const int64_t *)g->places->buf + i * PLACES;
        if (at[SIZE] < 0 || at[AT_P] < 0 || at[AT_P] + at[SIZE] > g->chances->shape[0]) return 0;
        for (int j = AT_BOX; j <= AT_GROUP; j++)
            if (at[j] < 0 || at[j] + at[SIZE] > g->lists->shape[0]) return 0;
    }
    return 1;
}

/* rises(chances, lists, places, numbers, largest, actual, tail, cuts, inside, rank_bin, values): where `occupied` passes a whole number
 * between two bins of the ranks `inside` (`RankPoints.rising`): rank_bin (2, P) and values (3, P): rises, and occupied in both. */
static PyObject *rises(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Given g;
    Py_buffer *inside, *at, *values;
    if (nargs != 11 || !given(&views, args, &g) || !(inside = view(&views, args[8], "?", 1, 0)) ||
        !(at = view(&views, args[9], "lq", 2, 1)) || !(values = view(&views, args[10], "d", 2, 1)))
        return none(&views);
    int actual = PyObject_IsTrue(args[5]);
    double tail = PyFloat_AsDouble(args[6]), cuts = PyFloat_AsDouble(args[7]);
    if (PyErr_Occurred()) PyErr_Clear();
    Py_ssize_t n = g.places->shape[0], room = at->shape[1], count = 0;
    if (inside->shape[0] != n || at->shape[0] != 2 || values->shape[0] != 3 || values->shape[1] != room) return none(&views);
    int64_t *rank = at->buf, *bin = rank + room;
    double *rise = values->buf, *first = rise + room, *second = first + room;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!((const char *)inside->buf)[i]) continue;
        const int64_t *own = (const int64_t *)g.places->buf + i * PLACES;
        const double *p = (const double *)g.chances->buf + own[AT_P], *box = (const double *)g.lists->buf + own[AT_BOX];
        const double *below = (const double *)g.lists->buf + own[AT_BELOW];
        double length = ((const double *)g.numbers->buf)[i * NUMBERS + LENGTH], all = 0.0;
        Py_ssize_t start = count;
        for (int64_t j = 0; j + 1 < own[SIZE]; j++) {
            double here = length * of(actual, below[j], box[j]), next = length * of(actual, below[j + 1], box[j + 1]);
            double steps = ceil(next) - ceil(here);
            if (!(steps > 0.0) || !(p[j] + p[j + 1] > tail)) continue;
            if (count == room) return none(&views);
            rank[count] = i, bin[count] = j, rise[count] = steps, first[count] = here, second[count++] = next;
            all += steps;
        }
        if (!(all <= cuts)) count = start;
    }
    return done(&views, count);
}

/* units(chances, lists, places, numbers, largest, actual, loops, codes, cut, pieces, out): out (n, 7), of bits and of offsets the sum,
 * the one at the largest occupancy, and the steady one of merged windows, and whether the code cannot be read; `cut` (2, m): rank, ascending, and bin of pieces in place of
 * bins; `pieces` (4, m): fibers, occupied, groups and probability. */
static PyObject *units(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Given g;
    Loops f;
    Py_buffer *codes, *cut, *pieces, *out;
    if (nargs != 11 || !given(&views, args, &g) || !PyTuple_Check(args[6]) || PyTuple_GET_SIZE(args[6]) != 3 ||
        !ufunc(PyTuple_GET_ITEM(args[6], 0), 1, &f.exp) || !ufunc(PyTuple_GET_ITEM(args[6], 1), 1, &f.expm1) ||
        !ufunc(PyTuple_GET_ITEM(args[6], 2), 1, &f.log1p) || !(codes = view(&views, args[7], "lq", 2, 0)) ||
        !(cut = view(&views, args[8], "lq", 2, 0)) || !(pieces = view(&views, args[9], "d", 2, 0)) ||
        !(out = view(&views, args[10], "d", 2, 1)))
        return none(&views);
    int actual = PyObject_IsTrue(args[5]);
    if (PyErr_Occurred()) PyErr_Clear();
    Py_ssize_t n = g.places->shape[0], m = cut->shape[1], piece = 0;
    if (codes->shape[1] != CODES || cut->shape[0] != 2 || pieces->shape[0] != 4 || pieces->shape[1] != m || out->shape[0] != n ||
        out->shape[1] != 7)
        return none(&views);
    const int64_t *cut_rank = cut->buf, *cut_bin = cut_rank + m;
    double fibers[BLOCK], occupied[BLOCK], groups[BLOCK], p[BLOCK], bits[BLOCK], offsets[BLOCK];
    for (Py_ssize_t i = 0; i < n; i++) {
        const int64_t *at = (const int64_t *)g.places->buf + i * PLACES, *code;
        double rank[NUMBERS];
        const double *largest = (const double *)g.largest->buf + i * LARGEST;
        const double *chance = (const double *)g.chances->buf + at[AT_P], *lists = g.lists->buf;
        if (at[FORMAT] < 0 || at[FORMAT] >= codes->shape[0]) return none(&views);
        code = (const int64_t *)codes->buf + at[FORMAT] * CODES;
        memcpy(rank, (const double *)g.numbers->buf + i * NUMBERS, sizeof rank);
        if (rank[WIDTH] < 0.0) { /* the best one of runs */
            rank[WIDTH] = best_bits(&f, rank[INNER], rank[USUAL], rank[COORD_BITS]);
            rank[MOST] = ldexp(1.0, (int)rank[WIDTH]) - 1.0;
        }
        Sum sums[2] = {{0.0}, {0.0}};
        Py_ssize_t stop = piece;
        int even = 0;
        while (stop < m && cut_rank[stop] == i) stop++;
        for (int64_t start = 0; start <= at[SIZE]; start += BLOCK) {
            int64_t some = at[SIZE] + 1 - start < BLOCK ? at[SIZE] + 1 - start : BLOCK;
            int ends = start + some > at[SIZE];
            for (int64_t j = 0; j < some; j++) {
                int64_t k = start + j;
                int last = k == at[SIZE];
                double there = last ? largest[BOX] : lists[at[AT_BOX] + k], held = last ? largest[BELOW] : lists[at[AT_BELOW] + k];
                p[j] = last ? 0.0 : chance[k];
                fibers[j] = rank[SLOTS] * there;
                occupied[j] = rank[LENGTH] * of(actual, held, there);
                groups[j] = rank[GROUPS_OF] * (last ? largest[GROUP] : lists[at[AT_GROUP] + k]);
            }
            for (Py_ssize_t j = piece; j < stop; j++)
                if (cut_bin[j] >= start && cut_bin[j] < start + some) p[cut_bin[j] - start] = 0.0;
            even = counted(&f, code, rank, (int)some, fibers, occupied, groups, bits, offsets);
            if (!add(&sums[0], p, bits, (int)some, !start, ends) || !add(&sums[1], p, offsets, (int)some, !start, ends))
                return none(&views);
        }
        const double *of_pieces = pieces->buf;
        for (int some = 0; piece < stop; piece += some) {
            some = stop - piece < BLOCK ? (int)(stop - piece) : BLOCK;
            counted(&f, code, rank, some, of_pieces + piece, of_pieces + m + piece, of_pieces + 2 * m + piece, bits, offsets);
            if (!add(&sums[0], of_pieces + 3 * m + piece, bits, some, 0, 0) ||
                !add(&sums[1], of_pieces + 3 * m + piece, offsets, some, 0, 0))
                return none(&views);
        }
        double *found = (double *)out->buf + i * 7;
        for (int j = 0; j < 2; j++, found += 3)
            found[0] = sums[j].total, found[1] = sums[j].largest, found[2] = at[MERGED] ? sums[j].steady : NAN;
        *found = rank[even ? READABLE_EVEN : READABLE] == 0.0;
    }
    return piece == m ? done(&views, n) : none(&views);
}

/* Merged windows of ranks (`bins.Windows`), by columns. */
typedef struct {
    const double *store, *origin, *step, *grain;
    const int64_t *edges, *sums, *samples;
    Py_ssize_t size, ranks;
} Windows;

static double edge(const Windows *w, int64_t rank, int64_t bin) { return w->origin[rank] + w->step[rank] * w->store[w->edges[rank] + bin]; }

/* Probability below y, and its density there (`Windows.below`). */
static double below(const Windows *w, int64_t rank, double y, double *density) {
    double t = (y - w->origin[rank]) / w->step[rank], i = min2(max2(floor(t), 0.0), (double)(w->samples[rank] - 1));
    const double *at = w->store + w->sums[rank] + (int64_t)i;
    double before = at[1] - at[0], here = at[2] - at[1], after = at[3] - at[2];
    double slope = (after - before) / 2.0, bend = (after - 2.0 * here + before) / 2.0;
    t = t - i - 0.5;
    *density = here + slope * t;
    return at[1] + here * (t + 0.5) + slope * (t * t - 0.25) / 2.0 + bend * t * (t * t - 0.25) / 3.0;
}

/* Mean occupancy and probability of the piece of a window between two ends. */
static void piece_of(const Windows *w, int64_t rank, double left, double right, double *k, double *p) {
    double low_density, high_density, low = below(w, rank, left, &low_density), high = below(w, rank, right, &high_density);
    double density = low_density + high_density, tilt = density > 0.0 ? (high_density - low_density) / density : 0.0;
    double margin = min2(w->grain[rank], right - left) / 2.0;
    *k = min2(max2((left + right) / 2.0 + tilt * (right - left) / 6.0, left + margin), right - margin);
    *p = high - low;
}

/* Where a step is, near the bin that it was seen in: between the last of four occupancies at which `occupied` has not passed it, and the
 * next one. */
static double step_at(const Windows *w, int64_t rank, int64_t bin, double value, double first, const double *occupied) {
    int passed = 0;
    for (int j = 0; j < 4; j++) passed += occupied[j] <= value;
    return min2(max2((first - 0.5 + (double)passed) * w->grain[rank], edge(w, rank, bin)), edge(w, rank, bin + 2));
}

/* near(grain, rank, rises, means, occupied, source, value, first, around): for every step in `rises` (n,) the place it is of, the whole
 * number that is passed, and the four occupancies (4, each) around (`bins.cut`). */
static PyObject *near(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    static const char *const kinds[] = {"d", "lq", "d", "d", "d", "lq", "d", "d", "d"};
    Views views = {.count = 0};
    Py_buffer *b[9];
    if (nargs != 9) return none(&views);
    for (int i = 0; i < 9; i++)
        if (!(b[i] = view(&views, args[i], kinds[i], i == 3 || i == 4 ? 2 : 1, i > 4))) return none(&views);
    Py_ssize_t n = b[1]->shape[0], room = b[5]->shape[0], count = 0;
    if (b[2]->shape[0] != n || b[3]->shape[0] != 2 || b[3]->shape[1] != n || b[4]->shape[0] != 2 || b[4]->shape[1] != n ||
        b[6]->shape[0] != room || b[7]->shape[0] != room || b[8]->shape[0] != 4 * room)
        return none(&views);
    const double *rises = b[2]->buf, *k = b[3]->buf, *found = b[4]->buf;
    double *value = b[6]->buf, *first = b[7]->buf, *around = b[8]->buf;
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t rank = ((const int64_t *)b[1]->buf)[i];
        if (rank < 0 || rank >= b[0]->shape[0] || !(rises[i] >= 0.0 && rises[i] <= (double)(room - count))) return none(&views);
        double grain = ((const double *)b[0]->buf)[rank];
        for (double step = 0.0; step < rises[i]; step += 1.0, count++) {
            ((int64_t *)b[5]->buf)[count] = i;
            value[count] = ceil(found[i]) + step;
            first[count] = floor((k[i] + (value[count] - found[i]) / (found[n + i] - found[i]) * (k[n + i] - k[i])) / grain) - 1.0;
            for (int j = 0; j < 4; j++) around[4 * count + j] = (first[count] + (double)j) * grain;
        }
    }
    return done(&views, count);
}

/* cut(store, edges, sums, samples, origin, step, grain, rank, bin, source, value, first, occupied, places, numbers): pieces (2, 2 m)
 * of the bins in which `occupied` (4 m,) passes whole numbers, as `bins.cut` has them: rank and bin, mean occupancy and probability;
 * how many. */
static PyObject *cut(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    static const char *const kinds[] = {"d", "lq", "lq", "lq", "d", "d", "d", "lq", "lq", "lq", "d", "d", "d", "lq", "d"};
    enum { GIVEN = 15 };
    Views views = {.count = 0};
    Py_buffer *b[GIVEN];
    if (nargs != GIVEN) return none(&views);
    for (int i = 0; i < GIVEN; i++)
        if (!(b[i] = view(&views, args[i], kinds[i], i > 12 ? 2 : 1, i > 12))) return none(&views);
    Windows w = {b[0]->buf, b[4]->buf, b[5]->buf, b[6]->buf, b[1]->buf, b[2]->buf, b[3]->buf, b[0]->shape[0], b[1]->shape[0]};
    Py_ssize_t n = b[7]->shape[0], m = b[9]->shape[0], room = b[13]->shape[1], count = 0;
    for (int i = 2; i < 7; i++)
        if (b[i]->shape[0] != w.ranks) return none(&views);
    if (b[8]->shape[0] != n || b[10]->shape[0] != m || b[11]->shape[0] != m || b[12]->shape[0] != 4 * m || room != 2 * m ||
        b[13]->shape[0] != 2 || b[14]->shape[0] != 2 || b[14]->shape[1] != room)
        return none(&views);
    const int64_t *ranks = b[7]->buf, *bins = b[8]->buf, *source = b[9]->buf;
    const double *value = b[10]->buf, *first = b[11]->buf, *occupied = b[12]->buf;
    int64_t *rank_of = b[13]->buf, *bin_of = rank_of + room;
    double *k = b[14]->buf, *p = k + room;
    for (Py_ssize_t i = 0; i < m; i++) { /* all that is read */
        if (source[i] < 0 || source[i] >= n) return none(&views);
        int64_t rank = ranks[source[i]], bin = bins[source[i]];
        if (rank < 0 || rank >= w.ranks || bin < 0 || bin > w.size || w.edges[rank] < 0 || w.edges[rank] > w.size - bin - 3 ||
            w.samples[rank] < 1 || w.sums[rank] < 0 || w.sums[rank] > w.size - w.samples[rank] - 3)
            return none(&views);
    }
    for (Py_ssize_t start = 0, stop; start < m; start = stop) {
        int64_t rank = ranks[source[start]], before = -1;
        double last = 0.0;
        for (stop = start; stop < m && ranks[source[stop]] == rank; stop++) { /* what is left of every step */
            int64_t bin = bins[source[stop]];
            double y = step_at(&w, rank, bin, value[stop], first[stop], occupied + 4 * stop);
            bin += y > edge(&w, rank, bin + 1);
            rank_of[count] = rank, bin_of[count] = bin;
            piece_of(&w, rank, bin == before ? last : edge(&w, rank, bin), y, &k[count], &p[count]);
            before = bin, last = y;
            count++;
        }
        Py_ssize_t end = count;
        for (Py_ssize_t i = end - (stop - start); i < end; i++) { /* what is right of the last one in a bin */
            if (i + 1 < end && bin_of[i + 1] == bin_of[i]) continue;
            Py_ssize_t at = start + i - (end - (stop - start));
            double y = step_at(&w, rank, bins[source[at]], value[at], first[at], occupied + 4 * at);
            rank_of[count] = rank, bin_of[count] = bin_of[i];
            piece_of(&w, rank, y, edge(&w, rank, bin_of[i] + 1), &k[count], &p[count]);
            count++;
        }
    }
    return done(&views, count);
}

MODULE(units, DOOR(rises), DOOR(units), DOOR(near), DOOR(cut))
