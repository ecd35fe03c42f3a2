/* What sin, cos and tan reduce large arguments with, as libdevice brings it along: memory of the
 * module in .global, because .const has no room to spare. Anybody could define a variable of that
 * name, so its content counts too: these are mathematical constants, the same in every release. */
#include "kernel/inspect.h"

#include <string.h>

/* 2/pi as a fixed-point number of 1,152 bits, the lowest word first. */
static const uint64_t two_over_pi[] = {
    0x6bfb5fb11f8d5d08, 0x3d0739f78a5292ea, 0x7527bac7ebe5f17b, 0x4f463f669e5fea2d,
    0x6d367ecf27cb09b7, 0xef2f118b5a0a6d1f, 0x1ff897ffde05980f, 0x9c845f8bbdf9283b,
    0x3991d639835339f4, 0xe99c7026b45f7e41, 0xe88235f52ebb4484, 0xfe1deb1cb129a73e,
    0x06492eea09d1921c, 0xb7246e3a424dd2e0, 0xfe5163abdebbc561, 0xdb6295993c439041,
    0xfc2757d1f534ddc0, 0xa2f9836e4e441529,
};

/* Coefficients of the polynomials for the sine and the cosine, as doubles. */
static const uint64_t sin_cos[] = {
    0xbe5ae5f12cb0d246, 0x3ec71de369ace392, 0xbf2a01a019db62a1, 0x3f81111111110818,
    0xbfc5555555555554, 0x0000000000000000, 0x0000000000000000, 0xbda8ff8320fd8164,
    0x3e21eea7c1ef8528, 0xbe927e4f8e06e6d9, 0x3efa01a019ddbce9, 0xbf56c16c16c15d47,
    0x3fa5555555555551, 0xbfe0000000000000, 0x3ff0000000000000, 0x0000000000000000,
};

static const struct {
    const char *name;
    const uint64_t *words;
    size_t size;
} tables[] = {
    {"__cudart_i2opi_f", two_over_pi + 15, 24}, /* the highest 192 bits are enough for a float */
    {"__cudart_i2opi_d", two_over_pi, sizeof two_over_pi},
    {"__cudart_sin_cos_coeffs", sin_cos, sizeof sin_cos},
};

bool library_table(str name, const uint8_t *init, size_t size) {
    for (size_t i = 0; init && i < sizeof tables / sizeof *tables; i++)
        if (str_is(name, tables[i].name))
            return size == tables[i].size && memcmp(init, tables[i].words, size) == 0;
    return false;
}
