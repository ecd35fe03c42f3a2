#include "report/page.h"

#include "base/asset.h"
#include "base/template.h"

#include <stdarg.h>

void page_init(struct page *p, struct arena *mem) {
    *p = (struct page){.mem = mem, .data = json_object(), .charts = json_object()};
    json_set(p->data, "charts", p->charts);
    buf_init(&p->body, PAGE_MAX);
}

void page_release(struct page *p) {
    buf_release(&p->body);
    json_free(p->data);
}

void page_put(struct page *p, const char *markup) {
    buf_puts(&p->body, str_view(markup));
}

void page_putf(struct page *p, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&p->body, fmt, ap);
    va_end(ap);
}

void page_section(struct page *p, const char *id, const char *title) {
    BUG_IF(p->n == PAGE_MAX_SECTIONS);
    if (p->n)
        page_put(p, "</section>\n");
    p->sections[p->n++] = (struct page_section){id, title};
    page_putf(p,
              "<section id=\"%s\" aria-labelledby=\"%s-heading\"><h2 id=\"%s-heading\">%s</h2>\n",
              id, id, id, title);
}

void page_fact(struct page *p, const char *term, str text) {
    html_element(&p->body, "dt", str_view(term));
    html_element(&p->body, "dd", text);
}

void page_tile(struct page *p, const char *label, str value, str remark) {
    page_put(p, "<div class=\"tile\">");
    html_element(&p->body, "span class=\"label\"", str_view(label));
    html_element(&p->body, "span class=\"value\"", value);
    html_element(&p->body, "span class=\"remark\"", remark);
    page_put(p, "</div>");
}

static str contents(const struct page *p) {
    struct buf b;
    buf_init(&b, 1u << 16);
    for (size_t i = 0; i < p->n; i++)
        buf_printf(&b, "<li><a href=\"#%s\">%s</a></li>", p->sections[i].id, p->sections[i].title);
    str s = arena_str(p->mem, buf_str(&b));
    buf_release(&b);
    return s;
}

static str escaped(const struct page *p, str text) {
    struct buf b;
    buf_init(&b, 8 * text.n + 64);
    html_text(&b, text);
    str s = arena_str(p->mem, buf_str(&b));
    buf_release(&b);
    return s;
}

bool page_write(struct page *p, const char *assets, struct buf *out, struct err *err) {
    str page, style, script;
    if (!asset_get(assets, "report/page.html", p->mem, &page, err) ||
        !asset_get(assets, "report/report.css", p->mem, &style, err) ||
        !asset_get(assets, "report/report.js", p->mem, &script, err))
        return false;
    if (p->n)
        page_put(p, "</section>\n");
    struct buf data, hash;
    buf_init(&data, PAGE_MAX);
    buf_init(&hash, 128);
    html_json(&data, p->data);
    html_base64(&hash, sha256_of(script));
    const struct slot slots[] = {
        {.name = "title", .text = escaped(p, p->title)},
        {.name = "kind", .text = p->kind},
        {.name = "heading", .text = escaped(p, p->heading)},
        {.name = "subtitle", .text = escaped(p, p->subtitle)},
        {.name = "version", .text = S(CUTEPILOT_VERSION)},
        {.name = "contents", .text = contents(p)},
        {.name = "body", .text = buf_str(&p->body)},
        {.name = "style", .text = style},
        {.name = "script", .text = script},
        {.name = "script_hash", .text = buf_str(&hash)},
        {.name = "data", .text = buf_str(&data)},
    };
    bool ok =
        template_render(S("report/page.html"), page, slots, sizeof slots / sizeof *slots, out, err);
    if (ok && (out->failed || data.failed || p->body.failed))
        ok = err_set(err, ERR_INPUT, "the report would be larger than %zu MiB", PAGE_MAX >> 20);
    buf_release(&data);
    buf_release(&hash);
    return ok;
}
