// A block takes ${results} neighbouring results, a thread ${items} of them. Input and weights wait in shared
// memory, and what a thread's results share moves on through registers, ${step} places of the window
// at a time.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
    // A file has one name for each type.
    extern __shared__ __align__(16) float slab_line[];
    constexpr int ITEMS = ${items}, STEP = ${step}, RESULTS = ${results};
    constexpr int RUN = ITEMS < STEP ? ITEMS : STEP; // places that no gap parts
    const int size = (int)${size}, whole = (size + STEP - 1) / STEP * STEP;
    const int tid = threadIdx.x, own = tid * ITEMS;
    // Four floats of every 36 stay empty, so that lanes ITEMS apart meet in no bank.
    const auto spot = [](int place) { return place + (place >> 5) * 4; };
    float *const line = slab_line + ${weight_count} * whole;
    const ${index} corner = blockIdx.x % ${tiles_across} * RESULTS${suffix};
    const int outer = blockIdx.x / ${tiles_across};
    ${coordinates}
//% each weights
    float *const ${weight} = slab_line + ${number} * whole;
    for (int ${at} = tid; ${at} < whole; ${at} += ${block})
        ${weight}[${at}] = ${at} < size ? ${value} : 0.0f;
//% end
    // The input of the block's results, each element once; ${padding} beyond its edges.
#pragma unroll 4
    for (int place = tid; place < RESULTS + whole; place += ${block}) {
        const ${index} column = ${column};
        const bool inside = ${inside};
        line[spot(place)] = inside ? ${input} : ${padding};
    }
    __syncthreads();
    float acc[ITEMS], part[ITEMS + STEP];
#pragma unroll
    for (int result = 0; result < ITEMS; result++)
        acc[result] = ${identity};
    const auto load = [](float *to, const float *from) {
        const float4 four = *(const float4 *)from;
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    };
#pragma unroll
    for (int result = 0; result < ITEMS; result += 4)
        load(part + result, line + spot(own + result));
#pragma unroll 1
    for (int place = 0; place < size; place += STEP) {
#pragma unroll
        for (int tap = 0; tap < STEP; tap += 4)
            load(part + ITEMS + tap, line + spot(own + ITEMS + place + tap / RUN * RUN) + tap % RUN);
//% each weights
        float ${weight}_here[STEP];
#pragma unroll
        for (int tap = 0; tap < STEP; tap += 4)
            load(${weight}_here + tap, ${weight} + place + tap);
//% end
        if (place + STEP <= size) {
#pragma unroll
            for (int tap = 0; tap < STEP; tap++) {
#pragma unroll
                for (int result = 0; result < ITEMS; result++)
                    acc[result] = ${combined};
            }
        } else {
#pragma unroll
            for (int tap = 0; tap < STEP; tap++) {
                if (place + tap < size) {
#pragma unroll
                    for (int result = 0; result < ITEMS; result++)
                        acc[result] = ${combined};
                }
            }
        }
#pragma unroll
        for (int result = 0; result < ITEMS; result++)
            part[result] = part[result + STEP];
    }
    // Neighbouring threads store neighbours.
    __syncthreads();
#pragma unroll
    for (int result = 0; result < ITEMS; result += 4)
        *(float4 *)(line + spot(own + result)) =
            make_float4(acc[result], acc[result + 1], acc[result + 2], acc[result + 3]);
    __syncthreads();
#pragma unroll
    for (int turn = 0; turn < ITEMS; turn++) {
        const int place = turn * ${block} + tid;
        const ${index} ${along} = corner + place;
        if (${along} >= ${extent})
            break;
        const float sum = line[spot(place)];
        const float value = ${result};
        ${maps}
//% each stores
        ${store};
//% end
    }
}

