
/* ==== the task ${part}: ${what} ==== */

typedef struct ${name}_op ${name}_op;
typedef struct ${name}_dims {
//% each dims
    int64_t ${dim};
//% end
//% if not dims
    int64_t none;
//% end
} ${name}_dims;
typedef struct ${name}_tensors {
//% each tensors
    ${const}void *${tensor}; /* ${what} */
//% end
} ${name}_tensors;
