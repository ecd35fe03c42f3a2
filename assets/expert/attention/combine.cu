// One query: ${parts} parts of its keys become one, in their order.
extern "C" __global__ void __launch_bounds__(${threads})
    ${kernel}(${params}) {
    constexpr int kParts = ${parts};
    const int batch = blockIdx.x / ${row_count}, tile_row = blockIdx.x % ${row_count};
    ${coordinates}
    ${store_coordinates}
    float largest = -INFINITY;
    for (int part = 0; part < kParts; part++)
        largest = ${larger}(largest, part_rows[2 * ((long long)part * gridDim.x + blockIdx.x)]);
    const float base = largest == -INFINITY ? 0.0f : largest;
    const int column = threadIdx.x;
    float total = 0.0f, sum = 0.0f;
    for (int part = 0; part < kParts; part++) {
        const long long row = (long long)part * gridDim.x + blockIdx.x;
        const float factor = cp_exp2((part_rows[2 * row] - base) * 1.44269504f);
        total += factor * part_rows[2 * row + 1];
        if (column < ${out_size})
            sum += factor * parts[row * ${out_size} + column];
    }
//% each row_stores
    if (column == 0)
        ${to}[${place}] = ${packed};
//% end
    if (column >= ${out_size})
        return;
//% each pairs
    ${to}[${place}] = ${packed};
//% end
//% each stores
    ${to}[${place}] = ${packed};
//% end
}
