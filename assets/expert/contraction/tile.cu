const int tiles_m = (int)((${total_m} + (Tiles::BM - 1)) / Tiles::BM);
const int tiles_n = (int)((${total_n} + (Tiles::BN - 1)) / Tiles::BN);
//% if batch
const int tiles = tiles_m * tiles_n, tile = blockIdx.x % tiles;
//% else
const int tile = blockIdx.x;
//% end
// Blocks that run together share rows and columns: groups of ${raster} rows of tiles, column by column.
const int group_m = tile / (${raster} * tiles_n) * ${raster};
const int group_rows = min(tiles_m - group_m, ${raster}), in_group = tile - group_m * tiles_n;
const int tile_m = group_m + in_group % group_rows, tile_n = in_group / group_rows;
const ${index} first_m = (${index})tile_m * Tiles::BM, first_n = (${index})tile_n * Tiles::BN;
//% if batch
${batch}
//% end
//% if taps
// Of a window's ${taps} places only those that hit an element count, the same for all results of a
// block: they are listed first, and k runs through them alone.
__shared__ int taps[${taps_size}]; // places; at the end how many
for (int tap = tid; tap < ${taps_size}; tap += ${threads})
    taps[tap] = 0;
__syncthreads();
if (tid < 32) {
    int found = 0;
    for (int tap = tid; tap < ${taps_rounded}; tap += 32) {
        ${decode_tap}
        const bool exists = tap < ${taps} && ${tap_exists};
        const unsigned all = __ballot_sync(0xffffffff, exists);
        if (exists)
            taps[found + __popc(all & ((1u << tid) - 1))] = tap;
        found += __popc(all);
    }
    if (tid == 0)
        taps[${taps_size} - 1] = found;
}
__syncthreads();
//% end
//% if skips
// Tiles of k in which every term is left out are skipped.
//% end
//% if split
const int k_from = ${k_from}, k_to = ${k_to};
// Of k, for one of ${split} blocks.
const int share = (k_to - k_from + (${split} * Tiles::BK - 1)) / (${split} * Tiles::BK) * Tiles::BK;
const int k_begin = k_from + (int)blockIdx.y * share;
const int k_end = min(k_to, k_begin + share);
//% else
const int k_begin = ${k_from}, k_end = ${k_to};
//% end
