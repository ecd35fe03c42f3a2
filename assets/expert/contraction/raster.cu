//% library
// Tiles in an order in which blocks that run together share rows and columns: groups of `height`
// rows of tiles, column by column.
static __device__ __forceinline__ void gemm_place(int tile, int tiles_m, int tiles_n, int height,
                                                  int &tile_m, int &tile_n) {
    const int first = tile / (height * tiles_n) * height;
    const int rows = min(tiles_m - first, height), rest = tile - first * tiles_n;
    tile_m = first + rest % rows;
    tile_n = rest / rows;
}
