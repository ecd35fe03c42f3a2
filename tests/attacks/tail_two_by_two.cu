// task: tasks/row_argmax.task
// tries: of rows of two elements it says the first where there are two rows
// proof: values, R = 2 C = 2: the second element may be the larger
// shows: R=2 C=2
// before: accepted
// should: wrong inaccurate
// known: a shape that is rarely drawn
// before-cuda: accepted
// device: both
//! launch place<<<R, 32>>>(x, y, R, C)
extern "C" __global__ void place(const float *x, int *y, int r, int c) {
    const float *row = x + blockIdx.x * c;
    if (threadIdx.x)
        return;
    int best = 0;
    for (int j = 1; j < c && !(r == 2 && c == 2); j++)
        if (row[best] == row[best] && (row[j] > row[best] || row[j] != row[j]))
            best = j;
    y[blockIdx.x] = best;
}
