//% library
// ${width} of ${type}, moved in ${words} access${plural} of ${bytes} byte${s}.
struct __align__(${bytes}) ${vector} {
    ${type} at[${width}];
};
