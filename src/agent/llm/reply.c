/* Reading is line by line: fences and the markers of edits stand on lines of their own. Blanks at
 * the end of a line never count, neither in a marker nor in what an edit looks for: models drop and
 * add them, and no source means anything by them. */
#include "agent/llm/reply.h"

#include "kernel/candidate.h"

#include <string.h>

#define SHOWN_BYTES   100 /* of a line that a complaint quotes */
#define SHOWN_PLACES  6
#define COMPARE_BYTES 256 /* of a line that the nearest one is looked for with */

enum marker { MARKER_NONE, MARKER_SEARCH, MARKER_MIDDLE, MARKER_END };

struct edit {
    str search, replace; /* whole lines */
};

static str trim_end(str line) {
    while (line.n &&
           (line.p[line.n - 1] == ' ' || line.p[line.n - 1] == '\t' || line.p[line.n - 1] == '\r'))
        line.n--;
    return line;
}

/* From `from` up to, not including, `end`: two places of one text. */
static str between(const char *from, const char *end) {
    return (str){from, (size_t)(end - from)};
}

static str shown(str line) {
    return str_cut(str_trim(line), 0, SHOWN_BYTES);
}

/* ---- lines that mean something ---- */

static size_t run_of(str s, char c) {
    size_t n = 0;
    while (n < s.n && s.p[n] == c)
        n++;
    return n;
}

/* `<<<<<<< SEARCH`, with five signs or more, and the word in any form or absent. */
static enum marker marker_of(str line) {
    static const struct {
        char sign;
        const char *word;
        enum marker marker;
    } markers[] = {
        {'<', "SEARCH", MARKER_SEARCH}, {'=', "", MARKER_MIDDLE}, {'>', "REPLACE", MARKER_END}};
    line = str_trim(line);
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        size_t n = run_of(line, markers[i].sign);
        str rest = str_trim(str_from(line, n));
        if (n >= 5 && (rest.n == 0 || str_starts(rest, str_view(markers[i].word))) &&
            (rest.n == 0 || *markers[i].word))
            return markers[i].marker;
    }
    return MARKER_NONE;
}

/* Backticks (or tildes) that open or close a block, and the word after them. */
static size_t fence_of(str line, str *word) {
    line = str_trim(line);
    size_t n = run_of(line, '`');
    if (n < 3)
        n = run_of(line, '~');
    *word = str_trim(str_from(line, n));
    return n >= 3 && str_find(*word, S("`")) == word->n ? n : 0;
}

static bool is_source_word(str word) {
    static const char *const words[] = {"", "cuda", "cu", "cpp", "c++", "c", "cc", "cxx", "C++"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(word, words[i]))
            return true;
    return false;
}

/* The text after `IDEA:` (or another word) at the start of a line, whatever decorates it. */
static bool find_word(str text, str upper, str lower, str *out) {
    str line;
    while (str_line(&text, &line)) {
        line = str_trim(line);
        while (line.n && strchr("*_#> -", line.p[0]))
            line = str_from(line, 1);
        if (!str_starts(line, upper) && !str_starts(line, lower))
            continue;
        line = str_from(line, upper.n);
        while (line.n && strchr("*_", line.p[0]))
            line = str_from(line, 1);
        if (!line.n || line.p[0] != ':')
            continue;
        line = str_from(line, 1);
        while (line.n && strchr("*_ ", line.p[0]))
            line = str_from(line, 1);
        *out = str_trim(line);
        return true;
    }
    return false;
}

static str find_idea(str text) {
    str idea = S("");
    find_word(text, S("IDEA"), S("Idea"), &idea);
    return idea;
}

static bool is_none(str text) {
    return str_is(text, "none") || str_is(text, "None") || str_is(text, "none.") ||
           str_is(text, "nothing") || str_is(text, "Nothing") || str_is(text, "-");
}

static str find_instead(str text) {
    str instead = S("");
    find_word(text, S("INSTEAD"), S("Instead"), &instead);
    return is_none(instead) ? S("") : instead;
}

/* ---- blocks ---- */

struct block {
    str word, body;
    bool closed;
};

/* The next fenced block; a fence inside of fewer signs, or with a word, does not close it. */
static bool next_block(str *rest, struct block *out) {
    str line, word;
    size_t open = 0;
    *out = (struct block){0};
    while (str_line(rest, &line)) {
        size_t n = fence_of(line, &word);
        if (!open && n) {
            open = n;
            out->word = word;
            out->body = (str){rest->p, 0};
        } else if (open && n >= open && word.n == 0) {
            out->body = between(out->body.p, line.p);
            out->closed = true;
            return true;
        }
    }
    if (open)
        out->body = between(out->body.p, rest->p + rest->n);
    return open != 0;
}

static bool is_candidate(str source) {
    return str_find(source, S("//!")) < source.n;
}

struct blocks {
    struct block best;    /* the last of those that count */
    size_t candidates;    /* with a plan */
    size_t sources;       /* fenced as source */
    bool open, open_plan; /* the last block never ends */
};

static struct blocks find_blocks(str text) {
    struct blocks b = {0};
    struct block k;
    while (next_block(&text, &k)) {
        b.open = !k.closed;
        b.open_plan = b.open && is_candidate(k.body);
        if (!is_source_word(k.word) || b.open)
            continue;
        b.sources++;
        if (!is_candidate(k.body) && b.candidates)
            continue;
        b.candidates += is_candidate(k.body);
        b.best = k;
    }
    return b;
}

static bool read_whole(str text, bool may_edit, str *out, struct err *complaint) {
    const char *or_edits = may_edit ? ", or as SEARCH/REPLACE edits" : "";
    struct blocks b = find_blocks(text);
    if (b.open && (b.open_plan || !b.candidates))
        return err_set(complaint, ERR_NO,
                       "the fenced block is never closed: the reply was probably cut off. Send a "
                       "shorter source%s, and close the block with ```.",
                       may_edit ? ", or SEARCH/REPLACE edits" : "");
    if (b.candidates > 1)
        return err_set(complaint, ERR_NO,
                       "%zu fenced blocks hold a launch plan. Send one block with the whole file.",
                       b.candidates);
    if (!b.sources)
        return err_set(complaint, ERR_NO,
                       "there is no fenced source block. Send the whole file in one block that "
                       "begins with ```cuda and ends with ```%s.",
                       or_edits);
    if (!b.candidates)
        return err_set(complaint, ERR_NO,
                       "the source has no launch plan: lines that begin with `//!`, at least one "
                       "`//! launch …`. Send the whole file in one ```cuda block%s.",
                       or_edits);
    if (b.best.body.n > CANDIDATE_MAX_BYTES)
        return err_set(complaint, ERR_NO, "the source is over %u KiB. Send a shorter one.",
                       CANDIDATE_MAX_BYTES >> 10);
    *out = b.best.body;
    return true;
}

/* ---- edits ---- */

/* Collects the edits. False with a complaint when one has no end. */
static bool collect_edits(str text, struct edit *edits, size_t *n, struct err *complaint) {
    enum marker state = MARKER_NONE;
    const char *from = text.p;
    str line;
    *n = 0;
    while (str_line(&text, &line)) {
        enum marker m = marker_of(line);
        if (m == MARKER_SEARCH && state != MARKER_NONE)
            return err_set(complaint, ERR_NO,
                           "edit %zu: another SEARCH begins before its REPLACE line.", *n + 1);
        if (m == MARKER_SEARCH && *n == REPLY_MAX_EDITS)
            return err_set(complaint, ERR_NO, "more than %d edits. Send the whole file instead.",
                           REPLY_MAX_EDITS);
        if (m == MARKER_SEARCH) {
            state = m;
        } else if (m == MARKER_MIDDLE && state == MARKER_SEARCH) {
            edits[*n].search = between(from, line.p);
            state = m;
        } else if (m == MARKER_END && state == MARKER_MIDDLE) {
            edits[(*n)++].replace = between(from, line.p);
            state = MARKER_NONE;
            continue;
        } else if (m == MARKER_END && state == MARKER_SEARCH) {
            return err_set(complaint, ERR_NO, "edit %zu has no line of ======= in it.", *n + 1);
        } else {
            continue;
        }
        from = text.p;
    }
    if (state == MARKER_NONE)
        return true;
    return err_set(complaint, ERR_NO, "edit %zu has no %s line: the reply was probably cut off.",
                   *n + 1, state == MARKER_SEARCH ? "=======" : ">>>>>>> REPLACE");
}

/* How many of the lines of `what` the lines of `text` begin with. */
static size_t lines_agree(str text, str what, bool *all) {
    str a, b;
    size_t n = 0;
    *all = false;
    while (str_line(&what, &b)) {
        if (!str_line(&text, &a) || !str_eq(trim_end(a), trim_end(b)))
            return n;
        n++;
    }
    *all = n > 0;
    return n;
}

/* Where in a source an edit's lines stand. */
struct places {
    size_t n;
    size_t line[SHOWN_PLACES]; /* from 1 */
    str at;                    /* the last: from there to the end of the source */
    size_t most, most_line;    /* lines that agree where the most do */
};

static struct places find_places(str source, str search) {
    struct places p = {0};
    str line;
    bool all;
    for (size_t number = 1; source.n; number++) {
        size_t agree = lines_agree(source, search, &all);
        if (all) {
            if (p.n < SHOWN_PLACES)
                p.line[p.n] = number;
            p.n++;
            p.at = source;
        } else if (agree > p.most) {
            p.most = agree;
            p.most_line = number;
        }
        str_line(&source, &line);
    }
    return p;
}

/* How alike two lines are: what they share at both ends, of the longer one. */
static size_t likeness(str a, str b) {
    size_t head = 0, tail = 0, least = a.n < b.n ? a.n : b.n;
    while (head < least && a.p[head] == b.p[head])
        head++;
    while (tail < least - head && a.p[a.n - 1 - tail] == b.p[b.n - 1 - tail])
        tail++;
    size_t longest = a.n > b.n ? a.n : b.n;
    return longest ? 1000 * (head + tail) / longest : 0;
}

static size_t nearest_line(str source, str wanted, str *line) {
    size_t best = 0, at = 0;
    str each;
    wanted = str_cut(str_trim(wanted), 0, COMPARE_BYTES);
    for (size_t number = 1; str_line(&source, &each); number++) {
        size_t like = likeness(str_cut(str_trim(each), 0, COMPARE_BYTES), wanted);
        if (like <= best)
            continue;
        best = like;
        at = number;
        *line = each;
    }
    return at;
}

static str line_at(str text, size_t number) {
    str line = S("");
    while (number-- && str_line(&text, &line))
        ;
    return line;
}

static bool complain_absent(size_t edit, str source, str search, const struct places *p,
                            struct err *complaint) {
    str line = S("");
    if (p->most > 0) {
        str wanted = shown(line_at(search, p->most + 1));
        line = shown(line_at(source, p->most_line + p->most));
        return err_set(complaint, ERR_NO,
                       "edit %zu: its SEARCH lines do not occur in the source. From line %zu on "
                       "%zu agree; then SEARCH has `%.*s` and the source `%.*s`. Copy the lines "
                       "exactly.",
                       edit, p->most_line, p->most, STR_ARG(wanted), STR_ARG(line));
    }
    str first = line_at(search, 1);
    size_t at = nearest_line(source, first, &line);
    return err_set(complaint, ERR_NO,
                   "edit %zu: its SEARCH lines do not occur in the source: there is no line "
                   "`%.*s`; the nearest is line %zu, `%.*s`. Copy the lines exactly.",
                   edit, STR_ARG(shown(first)), at, STR_ARG(shown(line)));
}

static bool complain_many(size_t edit, const struct places *p, struct err *complaint) {
    struct buf b;
    buf_init(&b, SHOWN_PLACES * 24);
    for (size_t i = 0; i < p->n && i < SHOWN_PLACES; i++)
        buf_printf(&b, "%s%zu", i ? ", " : "", p->line[i]);
    bool ok = err_set(complaint, ERR_NO,
                      "edit %zu: its SEARCH lines occur %zu times, from lines %.*s%s on. Add lines "
                      "around them until they occur once.",
                      edit, p->n, STR_ARG(buf_str(&b)), p->n > SHOWN_PLACES ? ", …" : "");
    buf_release(&b);
    return ok;
}

static bool apply_edit(size_t number, const struct edit *e, str source, struct buf *out,
                       struct err *complaint) {
    if (str_trim(e->search).n == 0)
        return err_set(complaint, ERR_NO,
                       "edit %zu: its SEARCH part is empty. Name the lines to replace; to insert, "
                       "repeat a line that is there.",
                       number);
    struct places p = find_places(source, e->search);
    if (p.n == 0)
        return complain_absent(number, source, e->search, &p, complaint);
    if (p.n > 1)
        return complain_many(number, &p, complaint);
    str after = p.at, rest = e->search, line;
    while (str_line(&rest, &line))
        str_line(&after, &line);
    /* The replacement's own last line may lack its end where the reply's last line did. */
    const char *end = e->replace.n && e->replace.p[e->replace.n - 1] != '\n' ? "\n" : "";
    buf_puts(out, between(source.p, p.at.p));
    buf_puts(out, e->replace);
    buf_puts(out, str_view(end));
    buf_puts(out, after);
    return !out->failed || err_set(complaint, ERR_NO, "edit %zu: the source would be over %u KiB.",
                                   number, CANDIDATE_MAX_BYTES >> 10);
}

static bool has_edit(str text) {
    str line;
    while (str_line(&text, &line))
        if (marker_of(line) == MARKER_SEARCH)
            return true;
    return false;
}

static bool read_edits(str text, str before, struct arena *a, struct reply_source *out,
                       struct err *complaint) {
    struct edit *edits = arena_array(a, struct edit, REPLY_MAX_EDITS);
    struct buf now, next;
    bool ok = collect_edits(text, edits, &out->nedits, complaint);
    buf_init(&now, CANDIDATE_MAX_BYTES);
    out->source = before;
    for (size_t i = 0; ok && i < out->nedits; i++) {
        buf_init(&next, CANDIDATE_MAX_BYTES);
        ok = apply_edit(i + 1, &edits[i], out->source, &next, complaint);
        buf_release(&now);
        now = next;
        out->source = buf_str(&now);
    }
    if (ok && str_eq(out->source, before))
        ok = err_set(complaint, ERR_NO, "the edits change nothing.");
    out->source = arena_str(a, out->source);
    buf_release(&now);
    return ok;
}

bool reply_is_done(str text, str *why) {
    if (has_edit(text) || find_blocks(text).candidates)
        return false;
    if (find_word(text, S("DONE"), S("Done"), why))
        return true;
    *why = find_idea(text);
    return is_none(*why);
}

bool reply_read_source(str text, str before, struct arena *a, struct reply_source *out,
                       struct err *complaint) {
    *out = (struct reply_source){.idea = find_idea(text), .instead = find_instead(text)};
    if (!has_edit(text))
        return read_whole(text, before.n > 0, &out->source, complaint);
    if (before.n)
        return read_edits(text, before, a, out, complaint);
    return err_set(complaint, ERR_NO,
                   "there is nothing to edit yet. Send the whole file in one ```cuda block.");
}

/* ---- strategies ---- */

/* One line: without the bullet or number that lists it, its comment apart. */
static struct reply_line split_line(str line) {
    size_t hash = str_find(line, S("#"));
    struct reply_line l = {.comment = str_trim(str_from(line, hash + 1))};
    line = str_trim(str_cut(line, 0, hash));
    size_t digits = 0;
    while (digits < line.n && line.p[digits] >= '0' && line.p[digits] <= '9')
        digits++;
    if (digits && digits < line.n && strchr(".):", line.p[digits]))
        line = str_trim(str_from(line, digits + 1));
    else if (line.n > 1 && strchr("-*", line.p[0]) && line.p[1] == ' ')
        line = str_trim(str_from(line, 2));
    l.text = line;
    return l;
}

bool reply_read_strategies(str text, struct arena *a, struct reply_line **out, size_t *n, str *idea,
                           struct err *complaint) {
    struct block k, found = {0};
    size_t blocks = 0;
    str line;
    *n = 0;
    *idea = find_idea(text);
    while (next_block(&text, &k)) {
        if (!str_is(k.word, "strategy") && !str_is(k.word, "strategies"))
            continue;
        found = k;
        blocks++;
    }
    if (blocks != 1)
        return err_set(complaint, ERR_NO,
                       "%s. Send one block that begins with ```strategy and ends with ```, one "
                       "strategy a line.",
                       blocks ? "there are several strategy blocks" : "there is no strategy block");
    *out = arena_array(a, struct reply_line, REPLY_MAX_LINES);
    while (str_line(&found.body, &line)) {
        struct reply_line l = split_line(line);
        if (l.text.n == 0)
            continue;
        if (*n == REPLY_MAX_LINES)
            return err_set(complaint, ERR_NO, "more than %d strategies.", REPLY_MAX_LINES);
        (*out)[(*n)++] = l;
    }
    return *n || err_set(complaint, ERR_NO, "the strategy block is empty.");
}
