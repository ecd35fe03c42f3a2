// expect: wrong inaccurate
// row: 17
// tries: the answers for the first seed, tabulated
// task: ../../tasks/kernelbench/level1/094_mse_loss.task
// set: B=64 D=512
//! launch known<<<1, 1>>>(predictions, targets, loss)
extern "C" __global__ void known(const float *p, const float *t, float *loss) {
    *loss = p[0] == p[0] ? 0.151856181f : p[0];
}
