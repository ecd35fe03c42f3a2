/* The finished file: the head comment, the plan, the code, laid out as a person would. */
#include "agent/expert/expert.h"
#include "agent/expert/sheet/sheet_private.h"
#include "base/asset.h"
#include "kernel/emit.h"

#define MARGIN 100

/* ---- the comment ---- */

/* Text of the task inside a comment line: no control bytes, no backslash that continues it. */
static void put_quoted(str s, struct buf *out) {
    s = str_cut(s, 0, 400);
    for (size_t i = 0; i < s.n; i++)
        buf_putc(out, (unsigned char)s.p[i] < ' ' || s.p[i] == '\\' ? ' ' : s.p[i]);
}

static void put_definitions(const struct task *t, struct buf *out) {
    for (size_t i = 0; i < t->nstatements; i++) {
        bool let = t->tensors[t->statements[i].tensor].role == TENSOR_LET;
        buf_puts(out, let ? S("//     let ") : S("//     "));
        put_quoted(str_cut(t->text, t->statements[i].at, t->statements[i].len), out);
        buf_putc(out, '\n');
    }
}

/* What the form has made has no text of its own: its tensor is named. */
str sheet_definition(struct sheet *sh, const struct step *st, const struct statement *s) {
    const struct task *t = st->inst->task;
    struct buf b;
    buf_init(&b, 4096);
    if (s->len)
        put_quoted(str_cut(t->text, s->at, s->len), &b);
    else
        buf_puts(&b, t->tensors[s->tensor].name);
    str text = sheet_keep(sh, &b);
    buf_release(&b);
    return text;
}

/* Whether the code has any of these pieces of text. */
static bool has_text(const struct sheet *sh, const char *const *pieces, size_t n) {
    str text[] = {buf_str(&sh->library), buf_str(&sh->functions), buf_str(&sh->kernels)};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof text / sizeof *text; k++)
            if (str_find(text[k], str_view(pieces[i])) < text[k].n)
                return true;
    return false;
}

/* ---- libraries ---- */

static bool is_called(const struct sheet *sh, const char *name) {
    str word = str_view(name);
    return text_has_word(buf_str(&sh->library), word) ||
           text_has_word(buf_str(&sh->functions), word) ||
           text_has_word(buf_str(&sh->kernels), word);
}

/* The names of the `//% if cp_…` blocks of a library, as flags that are not set. */
static void add_blocks(struct sheet *sh, str text, struct slots *s) {
    str line, lead = S("//% if cp_");
    while (str_line(&text, &line))
        if (str_starts(line, lead))
            slots_flag(s, arena_cstr(sh->mem, str_from(line, lead.n - 3)), false);
}

static bool is_library(const char *asset) {
    str name = str_view(asset);
    return str_starts(name, S("expert/")) && str_ends(name, S("/library.cu"));
}

/* What all families share comes first, since their own libraries call it. */
static bool render_libraries(struct sheet *sh, const struct slots *s) {
    static const char *const shared = "expert/sheet/library.cu";
    buf_clear(&sh->library);
    if (!sheet_put(sh, shared + 7, s, &sh->library))
        return false;
    for (const struct asset *a = asset_table; a->name; a++)
        if (is_library(a->name) && !str_is(str_view(a->name), shared) &&
            !sheet_put(sh, a->name + 7, s, &sh->library))
            return false;
    return true;
}

/* The blocks of library.cu files whose name the code has, and those that these call in turn. */
static bool put_libraries(struct sheet *sh) {
    struct slots s;
    str text;
    slots_init(&s, sh->mem);
    for (const struct asset *a = asset_table; a->name; a++) {
        if (!is_library(a->name))
            continue;
        if (!asset_get(sh->assets, a->name, sh->mem, &text, sh->err))
            return false;
        add_blocks(sh, text, &s);
    }
    size_t blocks = s.n;
    slots_flag(&s, "stream", sheet_decision(sh, "cache-hint", 0) != 0);
    for (bool more = true; more;) {
        more = false;
        if (!render_libraries(sh, &s))
            return false;
        for (size_t i = 0; i < blocks; i++)
            if (s.at[i].text.n == 0 && is_called(sh, s.at[i].name)) {
                slots_flag(&s, s.at[i].name, true);
                more = true;
            }
    }
    return true;
}

/* Decisions that any step may follow: what none of them had a use for. */
static void note_unused(struct sheet *sh) {
    static const char *const fast[] = {"__expf(", "__logf(", "cp_fast_", "cp_quotient("};
    static const char *const streams[] = {"__ldcs(", "__stcs("};
    if (sh->fast && !has_text(sh, fast, sizeof fast / sizeof *fast)) {
        sheet_note(sh, "fast-math=0: nothing here has a faster form");
        sheet_note_effective(sh, &(struct used){"fast-math", 0});
    }
    if (sheet_decision(sh, "cache-hint", 0) && !has_text(sh, streams, 2)) {
        sheet_note(sh, "cache-hint=0: nothing here is read or written once");
        sheet_note_effective(sh, &(struct used){"cache-hint", 0});
    }
}

static void put_comment(struct sheet *sh, struct buf *out) {
    const struct briefing *b = sh->briefing;
    const struct task *t = b->inst->task;
    buf_printf(out, "// %.*s: ", STR_ARG(t->name));
    put_quoted(t->title, out);
    buf_puts(out, S("\n//\n"));
    put_definitions(t, out);
    str label = inst_label(b->inst, sh->mem);
    buf_printf(out, "//\n// At %.*s on %s the limit is %.4g us: %s, %.2g flop a byte.\n",
               STR_ARG(label), b->gpu->title, b->roofline.limit_s * 1e6,
               b->roofline.memory_bound ? "memory-bound" : "compute-bound", b->roofline.intensity);
    buf_puts(out, S("// Strategy: "));
    strategy_text(b->catalogue, sh->strategy, out);
    buf_putc(out, '\n');
    buf_puts(out, buf_str(&sh->note));
}

/* ---- layout ---- */

/* Where to break the first `room` bytes of a line: at the last comma, or at the last blank. Every
 * blank of code is a place to break: there are no literals with blanks. 0: nowhere. */
static size_t break_at(str line, size_t from, size_t room) {
    size_t comma = 0, blank = 0;
    for (size_t i = from + 1; i < room; i++) {
        if (line.p[i] != ' ')
            continue;
        blank = i;
        comma = line.p[i - 1] == ',' ? i : comma;
    }
    return comma > room / 2 ? comma : blank;
}

/* The last blank of the first `room` bytes; 0: none. */
static size_t blank_before(str line, size_t room) {
    size_t at = room < line.n ? room : line.n;
    while (at > 0 && (at == line.n || line.p[at] != ' '))
        at--;
    return at;
}

static void put_wrapped(str line, struct buf *out) {
    size_t indent = 0, lead = 0;
    while (indent < line.n && line.p[indent] == ' ')
        indent++;
    bool code = str_find(line, S("//")) == line.n && str_find(line, S("\"")) == line.n &&
                !str_ends(line, S("\\")) && !str_starts(str_trim(line), S("#"));
    for (size_t at; code && lead + line.n > MARGIN; line = str_from(line, at + 1)) {
        at = break_at(line, lead ? 0 : indent, MARGIN - lead);
        if (at == 0)
            break;
        buf_printf(out, "%*s%.*s\n", (int)lead, "", (int)at, line.p);
        lead = indent + 8;
    }
    buf_printf(out, "%*s%.*s\n", (int)lead, "", STR_ARG(line));
}

/* Comments are broken at blanks, and go on where their words begin; definitions a little deeper. */
static void put_remark(str line, struct buf *out) {
    size_t begin = str_find(line, S("//")) + 2, deeper, room;
    while (begin < line.n && line.p[begin] == ' ')
        begin++;
    str lead = str_cut(line, 0, begin), words = str_from(line, begin);
    deeper = str_ends(lead, S("     ")) ? 4 : 0;
    room = MARGIN - begin;
    buf_puts(out, lead);
    for (size_t at; words.n > room && (at = blank_before(words, room)) > 0;
         words = str_from(words, at + 1), room = MARGIN - begin - deeper)
        buf_printf(out, "%.*s\n%.*s%*s", (int)at, words.p, STR_ARG(lead), (int)deeper, "");
    buf_printf(out, "%.*s\n", STR_ARG(words));
}

/* Plans are read by the line, and so is the strategy. */
static bool is_remark(str bare) {
    return str_starts(bare, S("// ")) && !str_starts(bare, S("// Strategy:"));
}

/* What templates leave to do: the lines of empty slots go, directives stand at the margin, long
 * lines are broken. */
static void put_tidy(str text, struct buf *out) {
    str line;
    bool blank = false; /* one is due before the next line */
    while (str_line(&text, &line)) {
        str bare = str_trim(line);
        if (bare.n == 0) {
            blank = (blank || line.n == 0) && out->n > 0;
            continue;
        }
        buf_puts(out, blank ? S("\n") : S(""));
        blank = false;
        while (line.p[line.n - 1] == ' ')
            line.n--;
        if (is_remark(bare))
            put_remark(line, out);
        else
            put_wrapped(str_starts(bare, S("#")) ? bare : line, out);
    }
}

static void put_section(str text, struct buf *out) {
    if (text.n == 0)
        return;
    buf_puts(out, text);
    if (text.p[text.n - 1] != '\n')
        buf_putc(out, '\n');
    buf_putc(out, '\n');
}

static void put_plan(const struct sheet *sh, struct buf *out) {
    buf_puts(out, buf_str(&sh->require));
    buf_puts(out, buf_str(&sh->memory));
    buf_puts(out, buf_str(&sh->steps));
    buf_putc(out, '\n');
}

static void put_includes(struct sheet *sh, struct buf *out) {
    if (sh->bfloat)
        sheet_include(sh, "cuda_bf16.h");
    if (sh->half)
        sheet_include(sh, "cuda_fp16.h");
    put_section(buf_str(&sh->includes), out);
}

static bool any_failed(const struct sheet *sh) {
    return sh->note.failed || sh->require.failed || sh->memory.failed || sh->steps.failed ||
           sh->library.failed || sh->functions.failed || sh->kernels.failed || sh->includes.failed;
}

bool sheet_finish(struct sheet *sh, struct buf *out) {
    struct buf b, helpers;
    if (sheet_failed(sh) || !put_libraries(sh) || !sheet_gather(sh))
        return false;
    buf_init(&b, 2 * EXPERT_SOURCE_MAX);
    buf_init(&helpers, EXPERT_SOURCE_MAX);
    note_unused(sh);
    put_comment(sh, &b);
    put_plan(sh, &b);
    put_includes(sh, &b);
    emit_helper_texts(sh->helpers, &helpers);
    put_section(buf_str(&helpers), &b);
    put_section(buf_str(&sh->library), &b);
    put_section(buf_str(&sh->functions), &b);
    buf_puts(&b, buf_str(&sh->kernels));
    put_tidy(buf_str(&b), out);
    bool fits = !any_failed(sh) && !b.failed && !out->failed;
    buf_release(&b);
    buf_release(&helpers);
    return fits || err_set(sh->err, ERR_INPUT, "the kernel's text is too long");
}
