/* A module for fake_cuda.c: the text that it reads, inside an ELF file whose symbols are the text's
 * variables, as a cubin has them. `@NAME BANK BYTE…` puts a variable into .nv.constant3 (BANK
 * const) or .nv.global.init (global). */
#ifndef TESTS_DEVICE_FAKE_IMAGE_H
#define TESTS_DEVICE_FAKE_IMAGE_H

#include "base/str.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_NAMES = 1, IMAGE_SYMBOLS, IMAGE_CONST, IMAGE_GLOBAL, IMAGE_SECTIONS };
#define IMAGE_BYTES   8192
#define IMAGE_SYMTAB  4096
#define IMAGE_STRINGS 5120
#define IMAGE_BANKS   6144 /* of constants; of globals 512 further */

struct image {
    char *p;
    size_t nsymbols, nstrings, nbytes[2]; /* bytes: of the two banks */
};

static inline uint32_t image_string(struct image *m, const char *s) {
    uint32_t at = (uint32_t)m->nstrings;
    m->nstrings += (size_t)snprintf(m->p + IMAGE_STRINGS + at, 128, "%s", s) + 1;
    return at;
}

static inline void image_variable(struct image *m, const char *line) {
    char name[64], bank[16];
    int used = 0;
    if (sscanf(line, "@%63s %15s%n", name, bank, &used) != 2)
        return;
    size_t global = strcmp(bank, "global") == 0, start = m->nbytes[global];
    char *end, *bytes = m->p + IMAGE_BANKS + 512 * global;
    for (const char *at = line + used; *at == ' '; at = end)
        bytes[m->nbytes[global]++] = (char)strtol(at, &end, 16);
    Elf64_Sym sym = {.st_name = image_string(m, name),
                     .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
                     .st_shndx = (Elf64_Half)(IMAGE_CONST + global),
                     .st_value = start,
                     .st_size = m->nbytes[global] - start};
    memcpy(m->p + IMAGE_SYMTAB + sizeof sym * m->nsymbols++, &sym, sizeof sym);
}

static inline void image_sections(struct image *m) {
    uint64_t at = IMAGE_BYTES - IMAGE_SECTIONS * sizeof(Elf64_Shdr);
    Elf64_Shdr s[IMAGE_SECTIONS] = {0};
    s[IMAGE_CONST].sh_name = image_string(m, ".nv.constant3");
    s[IMAGE_GLOBAL].sh_name = image_string(m, ".nv.global.init");
    s[IMAGE_SYMBOLS].sh_name = image_string(m, ".symtab");
    s[IMAGE_SYMBOLS].sh_link = IMAGE_NAMES;
    s[IMAGE_SYMBOLS].sh_offset = IMAGE_SYMTAB;
    s[IMAGE_SYMBOLS].sh_size = sizeof(Elf64_Sym) * m->nsymbols;
    s[IMAGE_NAMES].sh_offset = IMAGE_STRINGS;
    s[IMAGE_NAMES].sh_size = m->nstrings;
    for (size_t global = 0; global < 2; global++) {
        Elf64_Shdr *bank = &s[IMAGE_CONST + global];
        bank->sh_flags = SHF_ALLOC | (global ? SHF_WRITE : 0);
        bank->sh_offset = IMAGE_BANKS + 512 * global;
        bank->sh_size = m->nbytes[global];
    }
    memcpy(m->p + at, s, sizeof s);
    Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                    .e_shoff = at,
                    .e_shentsize = sizeof *s,
                    .e_shnum = IMAGE_SECTIONS,
                    .e_shstrndx = IMAGE_NAMES};
    memcpy(m->p, &h, sizeof h);
}

/* One of the last four that were made. */
static inline str fake_image(const char *text) {
    static char space[4][IMAGE_BYTES];
    static size_t next;
    struct image m = {.p = space[next++ % 4], .nstrings = 1};
    memset(m.p, 0, IMAGE_BYTES);
    snprintf(m.p + 64, IMAGE_SYMTAB - 64, "%s", text);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (*line == '@')
            image_variable(&m, line);
    image_sections(&m);
    return (str){m.p, IMAGE_BYTES};
}

#endif
