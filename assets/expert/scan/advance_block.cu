${carry} = ${combine}(${carry}, __shfl_sync(0xffffffffu, ${sums}, ${last_warp}));
${turn} ^= 1;
