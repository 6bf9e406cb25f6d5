/* Units of ranks (6.2) whose formats are lists of positions (`declarative/codes.py`) or expressions of counts (`programs.py`): what the tables lack for them, and the sums over
 * the occupancies of a tile in one pass, with the numbers of `occupancy/expected.py` to the last bit. Logarithms and exponentials are
 * NumPy's own loops.
 *
 * Every function takes arrays that `occupancy/units.py` has made; it returns None where one is not what it knows, or where
 * units are no numbers from 0 on: NumPy then says what is wrong.
 */
#include "../../sparsemap/native.h"

#include <math.h>

#include "../../sparsemap/loops.h"
#include "lookup.h"

enum { BLOCK = 128 }; /* points at once */
enum { ALL, MASK, COORDINATES, RUNS }; /* as `LISTS` has them */
enum { NOTHING, MARKER, SAME, EVEN, COUNT, PARENT }; /* what tells where a fiber ends, as `ENDS` has it */
/* what a format is */
enum { GROUPED, UPPER, UPPER_END, LIST, END, TOLD, PADDED, COMPRESSED, COUNTED, PROGRAMS, MOST_STEPS = 16, CODES = PROGRAMS + 4 * MOST_STEPS };
/* steps of a program (`OPERATIONS`), and what it may know (`QUANTITIES`) */
enum { STOP, QUANTITY, NUMBER, PLUS, MINUS, TIMES, OVER, CEIL, FLOOR, MINIMUM, MAXIMUM };
enum { FIBERS, OF_FIBER, OCCUPIED, COORD, OFFSET, ALL_FIBERS, FULLEST, QUANTITIES };
/* what is known of a rank at any occupancy; those of the list of groups, and of the list in a group or fiber */
enum { UPPER_WIDTH, UPPER_COUNT, INNER, WIDTH, COUNT_BITS, MOST, COORD_BITS, READABLE, READABLE_EVEN, NUMBERS };
enum { SLOTS = NUMBERS, LENGTH, LONGEST, GROUPS_OF, USUAL, ALL_NUMBERS };
/* columns of tiles, of pairs of a tile and its part, and of what is found (`Tile`, `Pair`, `RankUnits`) */
enum { LARGEST = 3, POINTS, AT_K, AT_P, LEFT_OUT, AT_P_SENT, GRAIN, STEP, ORIGIN, SAMPLES, EDGES, SUMS, AT_ALL_P, TILE };
enum { FILLED, FILLED_LARGEST, VARIES, PAIR };
enum { METADATA, PAYLOAD, LARGEST_METADATA, LARGEST_PAYLOAD, METADATA_BITS, PAYLOAD_BITS, OFFSETS, LARGEST_OFFSETS, NARROW, UNITS };
/* numbers of a rank behind its shapes (`Ranks`) */
enum { OF_LENGTH, ABOVE, FORMAT, POSITIONS, DROPS, SINGLE };
enum { BOX, BELOW, GROUP, PARTS };

typedef struct {
    Ufunc exp, expm1, log1p, log2;
} Loops;

/* Bits of what tells the ends of fibers, of so many bits an entry and a count (`Counted.header`). */
static double header(double end, double fibers, double width, double count, int even) {
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

/* Bits of a format at n <= BLOCK points (`ExpressionFormat.encoded`), and how many offsets it has; `even`: whether groups are equally
 * full at the last point. */
static int counted(const Loops *f, const double *code, const double *rank, int n, const double *fibers, const double *occupied,
                    const double *groups, double *bits, double *offsets, int *evenly) {
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
    *evenly = even;
    return 1;
}

/* A program of a format at n <= BLOCK points; whether it is one. */
static int run(const double *program, const double *const *quantity, int n, double *found) {
    double stack[MOST_STEPS][BLOCK];
    int top = -1;
    for (int step = 0; step < MOST_STEPS && program[2 * step] != STOP; step++) {
        int kind = (int)program[2 * step], which = (int)program[2 * step + 1], pushes = kind == QUANTITY || kind == NUMBER;
        if (!(program[2 * step] > STOP && program[2 * step] <= MAXIMUM)) return 0;
        if (kind == QUANTITY && !(program[2 * step + 1] >= 0.0 && program[2 * step + 1] < QUANTITIES)) return 0;
        top += pushes ? 1 : kind == CEIL || kind == FLOOR ? 0 : -1;
        if (top < 0) return 0;
        double *a = stack[top];
        const double *b = stack[top + (top + 1 < MOST_STEPS)];
        for (int i = 0; i < n; i++) switch (kind) {
            case QUANTITY: a[i] = quantity[which][i]; break;
            case NUMBER: a[i] = program[2 * step + 1]; break;
            case PLUS: a[i] = a[i] + b[i]; break;
            case MINUS: a[i] = a[i] - b[i]; break;
            case TIMES: a[i] = a[i] * b[i]; break;
            case OVER: a[i] = a[i] / b[i]; break;
            case CEIL: a[i] = ceil(a[i]); break;
            case FLOOR: a[i] = floor(a[i]); break;
            case MINIMUM: a[i] = min2(a[i], b[i]); break;
            default: a[i] = max2(a[i], b[i]);
            }
    }
    if (top == 0) memcpy(found, stack[0], n * sizeof *found);
    return top == 0;
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

/* Ranks in rows: shapes of so many `parts` each of tile, box and below, `SINGLE` numbers, that of a group, and the fullest fiber. */
typedef struct {
    const double *rows, *chances, *lists, *group, *codes;
    const int64_t *factors;
    Py_ssize_t count, width, chance_count, list_count, formats, one;
    int parts, groups, actual, pointers, usual;
    Lookup tile, pair, told, empty;
    Loops loops;
} Given;

enum { COMMON = 20 };

/* The arguments that all doors take first; whether they fit each other. */
static int given(Views *views, PyObject *const *args, Py_ssize_t nargs, int more, Given *g) {
    memset(g, 0, sizeof *g);
    if (nargs != COMMON + more) return 0;
    Py_buffer *rows = view(views, args[0], "d", 2, 0), *chances, *lists, *codes, *group, *factors;
    g->parts = (int)PyLong_AsLong(args[1]);
    g->groups = PyObject_IsTrue(args[2]), g->actual = PyObject_IsTrue(args[3]), g->pointers = PyObject_IsTrue(args[4]);
    g->usual = args[11] != Py_None;
    g->one = PyLong_AsSsize_t(args[15]);
    if (PyErr_Occurred()) PyErr_Clear();
    if (!rows || g->parts < 1 || (3 + g->groups) * g->parts + SINGLE + 1 != rows->shape[1] || 2 * g->parts > FACTORS ||
        !lookup(views, args[5], args[6], TILE, &g->tile) || !lookup(views, args[7], args[8], PAIR, &g->pair) ||
        !lookup(views, args[9], args[10], NUMBERS, &g->told) || (g->usual && !lookup(views, args[11], args[12], 1, &g->empty)) ||
        !(chances = view(views, args[13], "d", 1, 0)) || !(lists = view(views, args[14], "d", 1, 0)) ||
        !(codes = view(views, args[16], "d", 2, 0)) || !(group = view(views, args[17], "d", 1, 0)) ||
        !(factors = view(views, args[18], "lq", 1, 0)))
        return 0;
    Loops *f = &g->loops;
    if (!PyTuple_Check(args[19]) || PyTuple_GET_SIZE(args[19]) != 4 || !ufunc(PyTuple_GET_ITEM(args[19], 0), 1, &f->exp) ||
        !ufunc(PyTuple_GET_ITEM(args[19], 1), 1, &f->expm1) || !ufunc(PyTuple_GET_ITEM(args[19], 2), 1, &f->log1p) ||
        !ufunc(PyTuple_GET_ITEM(args[19], 3), 1, &f->log2))
        return 0;
    g->rows = rows->buf, g->count = rows->shape[0], g->width = rows->shape[1];
    g->chances = chances->buf, g->chance_count = chances->shape[0], g->lists = lists->buf, g->list_count = lists->shape[0];
    g->codes = codes->buf, g->formats = codes->shape[0], g->group = group->buf, g->factors = factors->buf;
    return codes->shape[1] == CODES && group->shape[0] == g->formats && factors->shape[0] >= FACTORS && g->one >= 0 &&
           g->one < g->chance_count;
}

/* ceil(log2) of a number, 2 at least, rounded up to a power of two (`name_bits`). */
static double name_bits(const Loops *f, double positions) {
    int bits = 1;
    double names = 1.0;
    if (positions < 1099511627776.0) /* from there on a double rounds it */
        for (int64_t reach = 2; (double)reach < positions; reach *= 2) bits++;
    else
        bits = (int)ceil(one(&f->log2, positions));
    while (names < bits) names *= 2.0;
    return names;
}

/* The row of a table for some numbers; -1: there is none; -2: they have no key. */
static int64_t row_for(const Given *g, const Lookup *table, const double *values, int count) {
    uint64_t key = 0;
    for (int i = 0; i < count; i++)
        if (!component(&key, values[i], (uint64_t)g->factors[i])) return -2;
    return row_of(table, key | 1);
}

/* What tables are asked for of a rank: tile and part of it, for each, and the three numbers that a format is told. */
typedef struct {
    double pair[PARTS][FACTORS], told[3];
    int parts;
} Asked;

static void asked(const Given *g, const double *row, Asked *a) {
    int n = g->parts;
    const double *rest = row + 3 * n;
    a->parts = GROUP + g->groups;
    for (int j = 0; j < a->parts; j++) {
        memcpy(a->pair[j], row, n * sizeof *row);
        memcpy(a->pair[j] + n, j == GROUP ? rest + SINGLE : row + (1 + j) * n, n * sizeof *row);
    }
    a->told[0] = rest[FORMAT], a->told[1] = rest[OF_LENGTH], a->told[2] = name_bits(&g->loops, rest[POSITIONS] + 1.0);
}

typedef struct {
    double *values;
    size_t count, room;
} List;

static int append(List *list, const double *values, int count) {
    if (!count) return 1;
    if (list->count + count > list->room) {
        size_t room = 2 * (list->count + count) + FACTORS;
        double *more = realloc(list->values, room * sizeof *more);
        if (!more) return 0;
        list->values = more, list->room = room;
    }
    memcpy(list->values + list->count, values, count * sizeof *values);
    list->count += count;
    return 1;
}

static PyObject *bytes_of(const List *list) {
    return PyBytes_FromStringAndSize((const char *)list->values, (Py_ssize_t)(list->count * sizeof *list->values));
}

/* lacking(GIVEN): what tables lack for ranks, as bytes of rows of numbers: tiles, pairs of a tile and its part, fibers of a format, parts
 * that may be empty. */
static PyObject *lacking(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    enum { TILES, PAIRS, TOLD_OF, EMPTY, LISTS };
    Views views = {.count = 0};
    Given g;
    List lists[LISTS] = {{NULL, 0, 0}};
    int good = given(&views, args, nargs, 0, &g);
    for (Py_ssize_t i = 0; good && i < g.count; i++) {
        const double *row = g.rows + i * g.width;
        Asked a;
        asked(&g, row, &a);
        int64_t rows[2 + PARTS] = {row_for(&g, &g.tile, row, g.parts), row_for(&g, &g.told, a.told, 3)};
        if (rows[0] == -1) good &= append(&lists[TILES], row, g.parts);
        if (rows[1] == -1) good &= append(&lists[TOLD_OF], a.told, 3);
        for (int j = 0; j < a.parts; j++) {
            rows[2 + j] = row_for(&g, &g.pair, a.pair[j], 2 * g.parts);
            if (rows[2 + j] == -1) good &= append(&lists[PAIRS], a.pair[j], 2 * g.parts);
        }
        if (g.usual && row_for(&g, &g.empty, row + 2 * g.parts, g.parts) == -1)
            good &= append(&lists[EMPTY], row + 2 * g.parts, g.parts);
        for (int j = 0; j < 2 + a.parts; j++) good &= rows[j] != -2;
    }
    PyObject *found = good ? PyTuple_New(LISTS) : Py_NewRef(Py_None);
    for (int j = 0; j < LISTS; j++) {
        PyObject *bytes = found && good ? bytes_of(&lists[j]) : NULL;
        if (bytes)
            PyTuple_SET_ITEM(found, j, bytes);
        else if (good)
            Py_CLEAR(found);
        free(lists[j].values);
    }
    release(&views);
    return found;
}

/* A rank with what tables know of it. */
typedef struct {
    const double *tile, *chance, *filled[PARTS];
    double largest[PARTS], numbers[ALL_NUMBERS];
    const double *code;
    int64_t size;
    int merged, inside; /* inside: a merged window in which what lies below varies */
} Rank;

/* Whether tables know all of a rank. */
static int known(const Given *g, Py_ssize_t i, Rank *r) {
    const double *row = g->rows + i * g->width, *rest = row + 3 * g->parts;
    Asked a;
    asked(g, row, &a);
    int64_t tile = row_for(g, &g->tile, row, g->parts), told = row_for(g, &g->told, a.told, 3);
    if (tile < 0 || told < 0 || !(rest[FORMAT] >= 0.0 && rest[FORMAT] < (double)g->formats)) return 0;
    int format = (int)rest[FORMAT], drops = rest[DROPS] != 0.0, varies = 0;
    r->tile = g->tile.data + tile * TILE;
    r->code = g->codes + format * CODES;
    r->merged = r->tile[GRAIN] > 0.0;
    double out = drops ? r->tile[LEFT_OUT] : 0.0, size = r->tile[POINTS] - out, at = r->tile[drops ? AT_P_SENT : AT_P];
    if (!(size >= 0.0 && out >= 0.0 && at >= 0.0 && at + size <= (double)g->chance_count)) return 0;
    for (int j = 0; j < PARTS; j++) {
        int64_t pair = row_for(g, &g->pair, a.pair[j < a.parts ? j : BOX], 2 * g->parts);
        if (pair < 0) return 0;
        const double *own = g->pair.data + pair * PAIR;
        double from = own[FILLED] + out;
        if (!(from >= 0.0 && from + size <= (double)g->list_count)) return 0;
        r->filled[j] = g->lists + (int64_t)from;
        r->largest[j] = own[FILLED_LARGEST];
        varies |= own[VARIES] != 0.0;
        if (j == BELOW) r->inside = r->merged && own[VARIES] != 0.0;
    }
    r->size = (int64_t)size;
    r->chance = g->chances + (int64_t)at;
    if (r->merged && !varies && r->size > 1) r->size = 1, r->chance = g->chances + g->one;
    memcpy(r->numbers, g->told.data + told * NUMBERS, NUMBERS * sizeof(double));
    r->numbers[SLOTS] = rest[ABOVE], r->numbers[LENGTH] = rest[OF_LENGTH], r->numbers[LONGEST] = row[g->width - 1];
    r->numbers[GROUPS_OF] = g->groups ? ceil(rest[OF_LENGTH] / g->group[format]) : rest[OF_LENGTH];
    r->numbers[USUAL] = 0.0;
    if (g->usual) {
        int64_t empty = row_for(g, &g->empty, row + 2 * g->parts, g->parts);
        if (empty < 0) return 0;
        r->numbers[USUAL] = 1.0 - g->empty.data[empty];
    }
    return 1;
}

/* steps(GIVEN, tail, cuts): where `occupied` passes a whole number between two bins: bytes of rank and bin (2, P) and of values (3, P):
 * how many it passes, and `occupied` in both. */
static PyObject *steps(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Given g;
    List lists[5] = {{NULL, 0, 0}};
    int good = given(&views, args, nargs, 2, &g);
    double tail = good ? PyFloat_AsDouble(args[COMMON]) : 0.0, cuts = good ? PyFloat_AsDouble(args[COMMON + 1]) : 0.0;
    if (PyErr_Occurred()) PyErr_Clear();
    for (Py_ssize_t i = 0; good && i < g.count; i++) {
        Rank r;
        if (!(good = known(&g, i, &r))) break;
        double length = r.numbers[LENGTH], all = 0.0;
        size_t before = lists[0].count;
        for (int64_t j = 0; good && r.inside && j + 1 < r.size; j++) {
            double here = length * of(g.actual, r.filled[BELOW][j], r.filled[BOX][j]);
            double next = length * of(g.actual, r.filled[BELOW][j + 1], r.filled[BOX][j + 1]);
            double rises = ceil(next) - ceil(here), values[5];
            if (!(rises > 0.0) || !(r.chance[j] + r.chance[j + 1] > tail)) continue;
            int64_t place[2] = {i, j};
            memcpy(values, place, sizeof place);
            values[2] = rises, values[3] = here, values[4] = next;
            for (int k = 0; k < 5; k++) good &= append(&lists[k], values + k, 1);
            all += rises;
        }
        for (int k = 0; k < 5 && !(all <= cuts); k++) lists[k].count = before;
    }
    PyObject *found = NULL;
    for (int k = 1; good && k < 5; k++) good &= k == 2 || append(&lists[k < 2 ? 0 : 2], lists[k].values, (int)lists[k].count);
    if (good) found = Py_BuildValue("(NN)", bytes_of(&lists[0]), bytes_of(&lists[2]));
    for (int k = 0; k < 5; k++) free(lists[k].values);
    release(&views);
    return good ? found : Py_NewRef(Py_None);
}

/* Units of metadata and payload of a format at n <= BLOCK points (`ExpressionFormat.units`), and how many offsets it has. */
static int programmed(const Rank *r, const double (*same)[BLOCK], int n, const double *fibers, const double *occupied, double *metadata,
                      double *payload, double *offsets) {
    const double *quantity[QUANTITIES], *program = r->code + PROGRAMS;
    for (int j = 0; j < QUANTITIES; j++) quantity[j] = j == FIBERS ? fibers : j == OCCUPIED ? occupied : same[j];
    for (int i = 0; i < n; i++)
        offsets[i] = fibers[i] + (r->code[COMPRESSED] ? r->numbers[SLOTS] * occupied[i] : fibers[i] * r->numbers[LENGTH]);
    return run(program, quantity, n, metadata) && run(program + 2 * MOST_STEPS, quantity, n, payload);
}

/* The sum of p times `units` over all occupancies of a merged window (`expected._total`). */
static double total_of(const Given *g, const double *tile, double units) {
    int exponent;
    double total = frexp(units, &exponent), from = tile[AT_ALL_P], samples = tile[SAMPLES];
    if (from > 0.0 && samples > 0.0 && from + samples <= (double)g->chance_count) {
        const double *p = g->chances + (int64_t)from;
        double mantissa = total;
        total = p[0] * mantissa;
        for (int64_t i = 1; i < (int64_t)samples; i++) total += p[i] * mantissa;
    }
    return ldexp(total, exponent);
}

/* units(GIVEN, cut, pieces, out): `out` (n, UNITS); `cut` (2, m): rank, ascending, and bin of pieces in place of bins; `pieces` (4, m):
 * fibers, occupied, groups and probability. */
static PyObject *units(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Views views = {.count = 0};
    Given g;
    Py_buffer *cut, *pieces, *out;
    if (!given(&views, args, nargs, 3, &g) || !(cut = view(&views, args[COMMON], "lq", 2, 0)) ||
        !(pieces = view(&views, args[COMMON + 1], "d", 2, 0)) || !(out = view(&views, args[COMMON + 2], "d", 2, 1)))
        return none(&views);
    Py_ssize_t m = cut->shape[1], piece = 0;
    if (cut->shape[0] != 2 || pieces->shape[0] != 4 || pieces->shape[1] != m || out->shape[0] != g.count || out->shape[1] != UNITS)
        return none(&views);
    const int64_t *cut_rank = cut->buf, *cut_bin = cut_rank + m;
    double fibers[BLOCK], occupied[BLOCK], groups[BLOCK], p[BLOCK], bits[BLOCK], offsets[BLOCK], payload[BLOCK] = {0.0};
    double same[QUANTITIES][BLOCK]; /* of a rank at any occupancy */
    for (Py_ssize_t i = 0; i < g.count; i++) {
        Rank r;
        if (!known(&g, i, &r)) return none(&views);
        double *rank = r.numbers;
        int by_program = r.code[COUNTED] != 0.0;
        if (by_program) {
            const int from[QUANTITIES] = {-1, LENGTH, -1, COORD_BITS, MOST, SLOTS, LONGEST};
            for (int j = 0; j < QUANTITIES; j++)
                for (int k = 0; from[j] >= 0 && k < BLOCK; k++) same[j][k] = rank[from[j]];
            if (!(rank[WIDTH] >= 0.0 && rank[WIDTH] < INFINITY && rank[COUNT_BITS] >= 0.0 && rank[COUNT_BITS] < INFINITY)) return none(&views);
        } else if (rank[WIDTH] < 0.0) { /* the best one of runs */
            rank[WIDTH] = best_bits(&g.loops, rank[INNER], rank[USUAL], rank[COORD_BITS]);
            rank[MOST] = ldexp(1.0, (int)rank[WIDTH]) - 1.0;
        }
        Sum sums[3] = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
        Py_ssize_t stop = piece;
        int even = 0;
        while (stop < m && cut_rank[stop] == i) stop++;
        for (int64_t start = 0; start <= r.size; start += BLOCK) {
            int64_t some = r.size + 1 - start < BLOCK ? r.size + 1 - start : BLOCK;
            int ends = start + some > r.size;
            for (int64_t j = 0; j < some; j++) {
                int64_t k = start + j;
                int last = k == r.size;
                double there = last ? r.largest[BOX] : r.filled[BOX][k], held = last ? r.largest[BELOW] : r.filled[BELOW][k];
                p[j] = last ? 0.0 : r.chance[k];
                fibers[j] = rank[SLOTS] * there;
                occupied[j] = rank[LENGTH] * of(g.actual, held, there);
                groups[j] = rank[GROUPS_OF] * (last ? r.largest[GROUP] : r.filled[GROUP][k]);
            }
            for (Py_ssize_t j = piece; j < stop; j++)
                if (cut_bin[j] >= start && cut_bin[j] < start + some) p[cut_bin[j] - start] = 0.0;
            if (!(by_program ? programmed(&r, same, (int)some, fibers, occupied, bits, payload, offsets)
                             : counted(&g.loops, r.code, rank, (int)some, fibers, occupied, groups, bits, offsets, &even)) ||
                !add(&sums[0], p, bits, (int)some, !start, ends) || !add(&sums[1], p, offsets, (int)some, !start, ends) ||
                (by_program && !add(&sums[2], p, payload, (int)some, !start, ends)))
                return none(&views);
        }
        const double *of_pieces = pieces->buf;
        for (int some = 0; piece < stop; piece += some) {
            some = stop - piece < BLOCK ? (int)(stop - piece) : BLOCK;
            const double *there = of_pieces + piece, *held = there + m, *listed = held + m, *chance = listed + m;
            int unused;
            if (!(by_program ? programmed(&r, same, some, there, held, bits, payload, offsets)
                             : counted(&g.loops, r.code, rank, some, there, held, listed, bits, offsets, &unused)) ||
                !add(&sums[0], chance, bits, some, 0, 0) || !add(&sums[1], chance, offsets, some, 0, 0) ||
                (by_program && !add(&sums[2], chance, payload, some, 0, 0)))
                return none(&views);
        }
        for (int j = 0; j < 3; j++) /* 0 is 0 already */
            if (r.merged && sums[j].steady > 0.0) sums[j].total = total_of(&g, r.tile, sums[j].steady);
        double *found = (double *)out->buf + i * UNITS;
        memset(found, 0, UNITS * sizeof *found);
        found[METADATA] = sums[0].total, found[LARGEST_METADATA] = sums[0].largest, found[METADATA_BITS] = 1.0;
        if (g.pointers) found[OFFSETS] = sums[1].total, found[LARGEST_OFFSETS] = sums[1].largest;
        if (by_program) {
            found[PAYLOAD] = sums[2].total, found[LARGEST_PAYLOAD] = sums[2].largest;
            found[METADATA_BITS] = rank[WIDTH], found[PAYLOAD_BITS] = rank[COUNT_BITS];
        }
        found[NARROW] = rank[even ? READABLE_EVEN : READABLE] == 0.0;
    }
    return piece == m ? done(&views, g.count) : none(&views);
}

/* Merged windows of ranks (`pieces.Windows`), by columns. */
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
 * number that is passed, and the four occupancies (4, each) around (`pieces.cut`). */
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
 * of the bins in which `occupied` (4 m,) passes whole numbers, as `pieces.cut` has them: rank and bin, mean occupancy and probability;
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

MODULE(units, DOOR(lacking), DOOR(steps), DOOR(units), DOOR(near), DOOR(cut))
