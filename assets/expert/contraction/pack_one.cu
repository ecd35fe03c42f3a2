${packed}[(${slab} * ${total} + ${at}) * ${pitch} + ${k0} + ${tid} % 32] =
    ${tile}[${i} * 8 + ${tid} / 32][${tid} % 32];
