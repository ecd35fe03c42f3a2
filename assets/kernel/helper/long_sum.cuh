// A sum of many terms: parts of 1024, and what adding those rounds away is carried along.
struct cp_long_sum {
    float part = 0.0f, total = 0.0f, lost = 0.0f;
    int n = 0;
    __device__ __forceinline__ void add(float x) {
        part += x;
        if (++n < 1024)
            return;
        const float y = part - lost, t = total + y;
        lost = (t - total) - y;
        total = t;
        part = 0.0f;
        n = 0;
    }
    __device__ __forceinline__ float value() const {
        return total + (part - lost);
    }
};
