// What is known of some columns of a row: ${names}.
struct ${part} {
//% each fields
    ${type} ${field};
//% end
//% if filler
    int filler; // so that no byte of a copy is unwritten
//% end

    static __device__ __forceinline__ ${part} none() {
        ${part} made;
//% each fields
        made.${field} = ${nothing};
//% end
//% if filler
        made.filler = 0;
//% end
        return made;
    }
    // Takes kTerms more columns in.
    template <int kTerms>
    __device__ __forceinline__ void add(${parameters}) {
//% each units
//% if is_sum
        {
            ${type} more = 0;
#pragma unroll
            for (int each = 0; each < kTerms; each++)
                more += ${terms}[each];
            ${value} += more;
        }
//% end
//% if is_other
#pragma unroll
        for (int each = 0; each < kTerms; each++)
            ${value} = ${added};
//% end
//% if counts
#pragma unroll
        for (int each = 0; each < kTerms; each++)
            ${count} += ${masks}[each];
//% end
//% if is_place
#pragma unroll
        for (int each = 0; each < kTerms; each++)
            cp_next_${extreme}(${value}, ${place}, ${terms}[each], ${places}[each]);
//% end
//% if is_softmax
        {
            float top = ${value};
#pragma unroll
            for (int each = 0; each < kTerms; each++)
                top = cp_maximum(top, ${terms}[each]);
            // Exponentials are relative to the largest so far; where all are -inf, to 0.
            const float base = top == -INFINITY ? 0.0f : top;
            float more = 0.0f;
#pragma unroll
            for (int each = 0; each < kTerms; each++)
                more += ${exp}(${terms}[each] - base);
            ${sum} = ${sum} * ${exp}(${value} - base) + more;
            ${value} = top;
        }
//% end
//% if is_moments
        {
//% if masked
            float average = 0.0f, more = 0.0f, counted = 0.0f;
#pragma unroll
            for (int each = 0; each < kTerms; each++) {
                average += ${terms}[each];
                counted += ${masks}[each];
            }
            average /= fmaxf(counted, 1.0f);
#pragma unroll
            for (int each = 0; each < kTerms; each++) {
                const float apart = ${masks}[each] ? ${terms}[each] - average : 0.0f;
                more += apart * apart;
            }
            cp_merge_moments(${count}, ${value}, ${squares}, counted, average, more);
//% else
            float average = 0.0f, more = 0.0f;
#pragma unroll
            for (int each = 0; each < kTerms; each++)
                average += ${terms}[each];
            average /= kTerms;
#pragma unroll
            for (int each = 0; each < kTerms; each++)
                more += (${terms}[each] - average) * (${terms}[each] - average);
            cp_merge_moments(${count}, ${value}, ${squares}, kTerms, average, more);
//% end
        }
//% end
//% end
    }
    __device__ __forceinline__ void merge(const ${part} &other) {
//% each units
//% if is_softmax
        {
            const float top = cp_maximum(${value}, other.${value});
            const float base = top == -INFINITY ? 0.0f : top;
            ${sum} = ${sum} * ${exp}(${value} - base) + other.${sum} * ${exp}(other.${value} - base);
            ${value} = top;
        }
//% end
//% if is_moments
        cp_merge_moments(${count}, ${value}, ${squares}, other.${count}, other.${value}, other.${squares});
//% end
//% if is_place
        cp_take_${extreme}(${value}, ${place}, other.${value}, other.${place});
//% end
//% if merged
        ${value} = ${merged};
//% end
//% if counts
        ${count} += other.${count};
//% end
//% end
    }
//% if crosses
    // That of the lane whose number differs by the bits of `distance`.
    __device__ __forceinline__ ${part} across(int distance) const {
        ${part} made;
//% each fields
        made.${field} = __shfl_xor_sync(0xffffffff, ${field}, distance);
//% end
//% if filler
        made.filler = 0;
//% end
        return made;
    }
//% end
};

