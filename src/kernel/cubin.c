/* Reading a cubin. What is used of the format:
 *
 *   .symtab            kernels are function symbols with the bit STO_CUDA_ENTRY in st_other
 *   .nv.info           records (format byte, attribute byte, u16); format 4 has u16 bytes after it:
 *                      REGCOUNT, FRAME_SIZE and MIN_STACK_SIZE hold (symbol, value), two u32
 *   .nv.info.NAME      the same of one kernel: MAX_THREADS and REQNTID hold three u32
 *   .text.NAME         older files keep the registers in the top byte of sh_info
 *   .nv.shared.NAME    its size is the static shared memory; where .nv.shared.reserved.0 exists
 *                      (sm_90 on) the first 1,024 bytes belong to the system
 *   .nv.global         memory of the module that starts as zeros; .nv.global.init with its initial
 *                      values. Both have the flags SHF_ALLOC and SHF_WRITE, and so has every other
 *                      section of such memory; .nv.shared.NAME and .nv.local.NAME have them too
 *   .nv.constant3      the constants of the source
 *   .rela.text.NAME    relocations of code; sh_info is the section they apply to
 *   .nv.merc.NAME      from sm_100 on: the section .NAME once more, for another form of the code
 *
 * Addresses of variables usually reach code through .nv.constant4, which has a slot for each of
 * them, used or not.
 *
 * Checked against ptxas -v of CUDA 13.0 for sm_80, sm_90a, sm_100a and sm_120a. */
#include "kernel/cubin.h"

#include <elf.h>
#include <string.h>

#define STO_CUDA_ENTRY     0x10
#define EIFMT_SVAL         4
#define EIATTR_MAX_THREADS 0x05
#define EIATTR_REQNTID     0x10
#define EIATTR_FRAME_SIZE  0x11
#define EIATTR_MIN_STACK   0x12
#define EIATTR_REGCOUNT    0x2f
#define SYSTEM_SHARED      1024
#define CUBIN_MAX_KERNELS  4096
#define CUBIN_MAX_VARS     65536 /* CuTe brings some thousands of constants */

struct cubin {
    str bytes;
    const char *why; /* the first thing wrong with it */
    Elf64_Ehdr head;
    str section_names, symbols, symbol_names;
    bool system_shared;
};

static bool broken(struct cubin *c, const char *why) {
    c->why = why;
    return false;
}

/* Piece of the file, or nothing. */
static bool piece(const struct cubin *c, uint64_t at, uint64_t n, str *out) {
    if (at > c->bytes.n || n > c->bytes.n - at)
        return false;
    *out = (str){c->bytes.p + at, (size_t)n};
    return true;
}

static bool section(const struct cubin *c, size_t i, Elf64_Shdr *out) {
    str s;
    if (i >= c->head.e_shnum ||
        !piece(c, c->head.e_shoff, (uint64_t)c->head.e_shnum * sizeof *out, &s))
        return false;
    memcpy(out, s.p + i * sizeof *out, sizeof *out);
    return true;
}

static bool section_bytes(const struct cubin *c, const Elf64_Shdr *s, str *out) {
    return s->sh_type != SHT_NOBITS && piece(c, s->sh_offset, s->sh_size, out);
}

/* The NUL-terminated string at `at` of a table; empty when there is none. */
static str table_string(str table, uint64_t at) {
    if (at >= table.n)
        return S("");
    const char *end = memchr(table.p + at, 0, table.n - (size_t)at);
    return end ? (str){table.p + at, (size_t)(end - (table.p + at))} : S("");
}

static bool section_find(const struct cubin *c, str prefix, str name, Elf64_Shdr *out) {
    for (size_t i = 0; section(c, i, out); i++) {
        str is = table_string(c->section_names, out->sh_name);
        if (is.n == prefix.n + name.n && str_starts(is, prefix) && str_ends(is, name))
            return true;
    }
    return false;
}

static bool cubin_open(struct cubin *c) {
    Elf64_Shdr s;
    if (c->bytes.n < sizeof c->head)
        return broken(c, "shorter than an ELF header");
    memcpy(&c->head, c->bytes.p, sizeof c->head);
    if (memcmp(c->head.e_ident, ELFMAG, SELFMAG) != 0 || c->head.e_ident[EI_CLASS] != ELFCLASS64)
        return broken(c, "not a 64-bit ELF file");
    if (c->head.e_shentsize != sizeof(Elf64_Shdr))
        return broken(c, "section headers of another size");
    if (!section(c, c->head.e_shstrndx, &s) || !section_bytes(c, &s, &c->section_names))
        return broken(c, "no section names");
    if (!section_find(c, S(".symtab"), S(""), &s) || !section_bytes(c, &s, &c->symbols) ||
        !section(c, s.sh_link, &s) || !section_bytes(c, &s, &c->symbol_names))
        return broken(c, "no symbols");
    c->system_shared = section_find(c, S(".nv.shared.reserved.0"), S(""), &s);
    return true;
}

static bool symbol(const struct cubin *c, size_t i, Elf64_Sym *out) {
    if (i >= c->symbols.n / sizeof *out)
        return false;
    memcpy(out, c->symbols.p + i * sizeof *out, sizeof *out);
    return true;
}

/* Cuts the next record with bytes of its own off; false at the end. */
static bool record_next(str *info, uint8_t *attribute, str *value) {
    while (info->n >= 4) {
        uint16_t size;
        memcpy(&size, info->p + 2, 2);
        uint8_t format = (uint8_t)info->p[0];
        *attribute = (uint8_t)info->p[1];
        *value = str_cut(*info, 4, format == EIFMT_SVAL ? size : 0);
        *info = str_from(*info, 4 + value->n);
        if (format == EIFMT_SVAL)
            return true;
    }
    return false;
}

/* The largest value that .nv.info gives for this attribute of this symbol. */
static bool info_find(const struct cubin *c, uint8_t attribute, uint32_t of, uint32_t *out) {
    Elf64_Shdr s;
    str info, value;
    uint8_t is;
    bool found = false;
    if (!section_find(c, S(".nv.info"), S(""), &s) || !section_bytes(c, &s, &info))
        return false;
    while (record_next(&info, &is, &value)) {
        uint32_t pair[2];
        if (is != attribute || value.n < sizeof pair)
            continue;
        memcpy(pair, value.p, sizeof pair);
        if (pair[0] == of && (!found || pair[1] > *out)) {
            *out = pair[1];
            found = true;
        }
    }
    return found;
}

/* Threads of a block, by __launch_bounds__ or __block_size__. */
static int bounds_find(const struct cubin *c, str kernel) {
    Elf64_Shdr s;
    str info, value;
    uint8_t is;
    if (!section_find(c, S(".nv.info."), kernel, &s) || !section_bytes(c, &s, &info))
        return 0;
    while (record_next(&info, &is, &value)) {
        uint32_t d[3];
        if ((is != EIATTR_MAX_THREADS && is != EIATTR_REQNTID) || value.n < sizeof d)
            continue;
        memcpy(d, value.p, sizeof d);
        uint64_t threads = (uint64_t)d[0] * d[1];
        return d[0] <= 1024 && d[1] <= 1024 && d[2] <= 1024 ? (int)(threads * d[2]) : 0;
    }
    return 0;
}

static void kernel_read(const struct cubin *c, uint32_t index, str name, struct kernel_facts *out) {
    Elf64_Shdr s;
    uint32_t v = 0;
    out->name = name;
    if (info_find(c, EIATTR_REGCOUNT, index, &v))
        out->registers = (int)(v & 0xffff);
    else if (section_find(c, S(".text."), name, &s))
        out->registers = (int)(s.sh_info >> 24);
    out->max_threads = bounds_find(c, name);
    out->spill_store_bytes = out->spill_load_bytes = -1;
    if (info_find(c, EIATTR_FRAME_SIZE, index, &v))
        out->local_bytes = v;
    if (info_find(c, EIATTR_MIN_STACK, index, &v) && v > out->local_bytes)
        out->local_bytes = v; /* with the functions it calls */
    if (section_find(c, S(".nv.shared."), name, &s)) {
        size_t system = c->system_shared ? SYSTEM_SHARED : 0;
        out->shared_static = s.sh_size > system ? (size_t)s.sh_size - system : 0;
    }
}

bool cubin_facts(str cubin, struct arena *a, struct kernel_facts **out, size_t *n,
                 struct err *err) {
    struct cubin c = {.bytes = cubin};
    Elf64_Sym s;
    *n = 0;
    *out = NULL;
    if (!cubin_open(&c))
        return err_set(err, ERR_ENV, "cubin: %s", c.why);
    size_t count = 0;
    for (size_t i = 0; symbol(&c, i, &s); i++)
        count += ELF64_ST_TYPE(s.st_info) == STT_FUNC && (s.st_other & STO_CUDA_ENTRY);
    if (count > CUBIN_MAX_KERNELS)
        return err_set(err, ERR_ENV, "cubin: %zu kernels", count);
    *out = arena_array(a, struct kernel_facts, count);
    for (size_t i = 0; symbol(&c, i, &s); i++)
        if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && (s.st_other & STO_CUDA_ENTRY)) {
            str name = arena_str(a, table_string(c.symbol_names, s.st_name));
            kernel_read(&c, (uint32_t)i, name, &(*out)[(*n)++]);
        }
    return true;
}

/* ---- memory of the module ---- */

/* A copy counts for nothing, but only where there is what it copies. */
static bool is_copy(const struct cubin *c, str name, uint64_t size) {
    Elf64_Shdr of;
    return str_starts(name, S(".nv.merc.")) &&
           section_find(c, str_from(name, S(".nv.merc").n), S(""), &of) && of.sh_size >= size;
}

static bool is_module_memory(const struct cubin *c, const Elf64_Shdr *s) {
    str name = table_string(c->section_names, s->sh_name);
    bool loaded = (s->sh_flags & SHF_ALLOC) && s->sh_size > 0;
    bool writable = (s->sh_flags & SHF_WRITE) && !str_starts(name, S(".nv.shared.")) &&
                    !str_starts(name, S(".nv.local."));
    return loaded && (writable || str_is(name, ".nv.constant3")) && !is_copy(c, name, s->sh_size);
}

static bool relocation_names(str entries, uint64_t size, uint32_t symbol) {
    for (size_t at = 0; size >= sizeof(Elf64_Rel) && entries.n - at >= size; at += (size_t)size) {
        Elf64_Rel r; /* an Elf64_Rela begins with the same */
        memcpy(&r, entries.p + at, sizeof r);
        if (ELF64_R_SYM(r.r_info) == symbol)
            return true;
    }
    return false;
}

static bool used_by_code(const struct cubin *c, uint32_t symbol) {
    Elf64_Shdr s, of;
    str entries;
    for (size_t i = 0; section(c, i, &s); i++)
        if ((s.sh_type == SHT_REL || s.sh_type == SHT_RELA) && section(c, s.sh_info, &of) &&
            (of.sh_flags & SHF_EXECINSTR) && section_bytes(c, &s, &entries) &&
            relocation_names(entries, s.sh_entsize, symbol))
            return true;
    return false;
}

static bool variable_read(const struct cubin *c, const Elf64_Shdr *s, uint32_t index,
                          const Elf64_Sym *sym, struct cubin_variable *out) {
    str bytes = {0};
    if (sym->st_value > s->sh_size || sym->st_size > s->sh_size - sym->st_value)
        return false;
    if (s->sh_type != SHT_NOBITS && !section_bytes(c, s, &bytes))
        return false;
    *out = (struct cubin_variable){.name = table_string(c->symbol_names, sym->st_name),
                                   .size = (size_t)sym->st_size,
                                   .writable = (s->sh_flags & SHF_WRITE) != 0,
                                   .used_by_code = used_by_code(c, index)};
    if (bytes.n)
        out->init = (const uint8_t *)bytes.p + sym->st_value;
    return true;
}

/* The variables of one section, or of none (SHN_COMMON); counted where out is NULL. */
static bool section_variables(const struct cubin *c, size_t section_index, const Elf64_Shdr *s,
                              struct cubin_variable *out, size_t *n) {
    Elf64_Sym sym;
    uint64_t claimed = 0;
    for (size_t i = 0; symbol(c, i, &sym); i++) {
        if (sym.st_shndx != section_index || ELF64_ST_TYPE(sym.st_info) == STT_SECTION)
            continue;
        claimed += sym.st_size;
        if (out && !variable_read(c, s, (uint32_t)i, &sym, &out[*n]))
            return false;
        ++*n;
    }
    if (claimed == 0 && s->sh_size > 0) {
        if (out)
            out[*n] = (struct cubin_variable){.size = (size_t)s->sh_size,
                                              .writable = (s->sh_flags & SHF_WRITE) != 0};
        ++*n;
    }
    return true;
}

static bool all_variables(const struct cubin *c, struct cubin_variable *out, size_t *n) {
    Elf64_Shdr s;
    const Elf64_Shdr common = {.sh_type = SHT_NOBITS, .sh_flags = SHF_WRITE, .sh_size = UINT64_MAX};
    Elf64_Sym sym;
    bool has_common = false;
    *n = 0;
    for (size_t i = 0; section(c, i, &s); i++)
        if (is_module_memory(c, &s) && !section_variables(c, i, &s, out, n))
            return false;
    for (size_t i = 0; symbol(c, i, &sym); i++)
        has_common |= sym.st_shndx == SHN_COMMON;
    return !has_common || section_variables(c, SHN_COMMON, &common, out, n);
}

bool cubin_variables(str cubin, struct arena *a, struct cubin_variable **out, size_t *n,
                     struct err *err) {
    struct cubin c = {.bytes = cubin};
    if (!cubin_open(&c))
        return err_set(err, ERR_ENV, "cubin: %s", c.why);
    all_variables(&c, NULL, n);
    if (*n > CUBIN_MAX_VARS)
        return err_set(err, ERR_ENV, "cubin: %zu variables", *n);
    *out = arena_array(a, struct cubin_variable, *n);
    return all_variables(&c, *out, n) ||
           err_set(err, ERR_ENV, "cubin: a variable lies outside its section");
}

struct occupancy launch_occupancy(const struct gpu *g, const struct kernel_facts *f,
                                  const struct bound_launch *l) {
    int threads = (int)(l->block[0] * l->block[1] * l->block[2]);
    return gpu_occupancy(g, threads, f ? f->registers : 0,
                         (f ? f->shared_static : 0) + (size_t)l->shared);
}
